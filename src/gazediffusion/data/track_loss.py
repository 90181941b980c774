"""Track loss: when the eye was lost, for how long, and what was measured beside; fitted and drawn.

Before the tracker loses the eye in a blink, and after it sees it again, the lid covers part of the
pupil and moves the measured gaze, mostly vertically. These flanks are deviations from where the eye
was: from the nearest point on the line between its places before and after the loss, so that a
saccade from one to the other is no deviation.

`LossModel` draws blinks and dropouts for generated gaze. Short losses (below 50 ms) and long ones
are two classes. Losses of a class begin at a rate that depends on the time since the last loss, so
that they come in groups. From half a second on, the rate is multiplied by a factor of the
recording, gamma distributed with mean 1 (a shared frailty), so that recordings differ. Durations
have the recordings' quantiles. The flank of either side is a sum of a few courses, found by
singular value decomposition. The size of its vector of weights has the recordings' quantiles,
correlated with that of the other side; its direction is Gaussian, apart for small and for large
flanks. A fitted model contains these tables and no row of a recording.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import BLINK_MS, clean
from gazediffusion.data.recordings import Recording, true_segments
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng
from gazediffusion.settings import CleaningConfig
from gazediffusion.storage import table_of, written_whole

Floats = NDArray[np.float64]

# Times of a flank, before the first lost sample and from the first that is seen again.
STEP_MS = 4.0
BEFORE_MS = np.arange(-100.0, 0.0, STEP_MS)
AFTER_MS = np.arange(0.0, 152.0, STEP_MS)
_REST_MS = 40.0  # beyond the flanks, over which the eye's places before and after are taken

FORMAT = "gazediffusion-losses"
CLASSES = ("short", "long")
N_COURSES = 6
# Edges of the bins of time since the last loss; the last bin is open.
EDGES_MS = np.array([0.0, 60.0, 120.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0])
_FIRST_OWN = 4  # the bin from which on recordings differ, 500 ms
LEVELS = np.concatenate([[0.005], np.arange(1, 40) / 40, [0.995]])
_SHAPES = np.geomspace(0.05, 20.0, 40)
_FEWEST = 20  # losses of a class in a task; with fewer, tables of all tasks stand for them
_WARM_UP_MS = 30_000.0  # before a window, which may begin anywhere in a recording
_NORMAL = NormalDist()


class Loss(NamedTuple):
    """One loss: when it began, how long it lasted and how long the eye was seen before, in ms.

    seen_before_ms: infinite for the first loss of a recording, NaN where the recording begins lost.
    is_whole: whether neither end of the recording cuts it.
    flank_deg: (2, time) at BEFORE_MS and AFTER_MS; None where another loss is too close.
    """

    onset_ms: float
    duration_ms: float
    seen_before_ms: float
    is_whole: bool
    flank_deg: Floats | None

    @property
    def is_long(self) -> bool:
        """Whether it lasts as long as a blink, or longer."""
        return self.duration_ms >= BLINK_MS[0]


@dataclass(frozen=True)
class Losses:
    """The losses of one recording, in order.

    seen_ms: (stretch,) how long the eye was seen in one piece; since_loss: (stretch,) whether a
    loss came before.
    """

    participant: str
    task: str
    duration_ms: float
    seen_ms: Floats
    since_loss: NDArray[np.bool_]
    losses: tuple[Loss, ...]

    @property
    def lost_ms(self) -> float:
        """How long the eye was lost."""
        return sum(one.duration_ms for one in self.losses)


def find_losses(recording: Recording, cleaning: CleaningConfig | None = None) -> Losses:
    """The losses of a recording whose screen is known in centimetres.

    >>> from pathlib import Path
    >>> from gazediffusion.screen import Screen
    >>> gaze_px = np.random.default_rng(0).normal(500, 1, (2, 1000)).astype(np.float32)
    >>> gaze_px[:, 400:430] = np.nan
    >>> screen, time_ms = Screen(1280, 720, 40, 22.5, 45), np.arange(1000) * 4.0
    >>> eyes = {"right": gaze_px}
    >>> found = find_losses(Recording("01", "film", "1", time_ms, eyes, Path(), "csv", screen))
    >>> [(one.onset_ms, one.duration_ms, one.is_long) for one in found.losses]
    [(1600.0, 120.0, True)]
    """
    cleaned = clean(recording, cleaning or CleaningConfig())
    is_lost = np.asarray(np.isnan(cleaned.gaze_px).any(axis=0))
    time_ms = cleaned.time_ms
    step_ms = float(np.median(np.diff(time_ms))) if len(time_ms) > 1 else 0.0
    edges_ms = np.append(time_ms, time_ms[-1:] + step_ms)
    seen = true_segments(~is_lost)
    return Losses(
        recording.participant,
        recording.task,
        float(edges_ms[-1] - edges_ms[0]),
        edges_ms[seen[:, 1]] - edges_ms[seen[:, 0]],
        seen[:, 0] > 0,
        tuple(_each(recording, cleaned.gaze_px, edges_ms, true_segments(is_lost))),
    )


def _each(
    recording: Recording, gaze_px: NDArray[np.float32], edges_ms: Floats, lost: NDArray[np.int64]
) -> Iterator[Loss]:
    if len(lost) == 0:
        return
    assert recording.screen is not None, "losses are measured on a known screen"
    pixels = gaze_px.astype(np.float64)
    degrees = np.asarray(recording.screen.to_degrees(pixels), dtype=np.float64)
    onsets, ends = edges_ms[lost[:, 0]], edges_ms[lost[:, 1]]
    first_ms, last_ms = float(edges_ms[0]), float(edges_ms[-1])
    seen_from = np.append(first_ms, ends[:-1])
    seen_to = np.append(onsets[1:], last_ms)
    reach_ms = BEFORE_MS[0] - _REST_MS, AFTER_MS[-1] + STEP_MS + _REST_MS
    seen_ms = onsets - seen_from
    seen_ms[0] = np.inf if onsets[0] > first_ms else np.nan
    for k, (onset, end) in enumerate(zip(onsets.tolist(), ends.tolist(), strict=True)):
        has_flank = seen_from[k] <= onset + reach_ms[0] and end + reach_ms[1] <= seen_to[k]
        yield Loss(
            onset,
            end - onset,
            float(seen_ms[k]),
            first_ms < onset and end < last_ms,
            _flank(edges_ms[:-1], degrees, onset, end) if has_flank else None,
        )


def _flank(time_ms: Floats, degrees: Floats, onset_ms: float, end_ms: float) -> Floats:
    """Deviations (2, time) beside one loss from the line between the places before and after."""

    def place(from_ms: float, to_ms: float) -> Floats:
        first, stop = np.searchsorted(time_ms, [from_ms, to_ms])
        return np.asarray(np.median(degrees[:, first:stop], axis=1, keepdims=True))

    far_ms, late_ms = onset_ms + BEFORE_MS[0], end_ms + AFTER_MS[-1] + STEP_MS
    before, after = place(far_ms - _REST_MS, far_ms), place(late_ms, late_ms + _REST_MS)
    first, stop = np.searchsorted(time_ms, [far_ms - _REST_MS, late_ms + _REST_MS])
    near_ms, near = time_ms[first:stop], degrees[:, first:stop]
    is_seen = ~np.isnan(near).any(axis=0)
    at_ms = np.concatenate([onset_ms + BEFORE_MS, end_ms + AFTER_MS])
    gaze = np.stack([np.interp(at_ms, near_ms[is_seen], axis[is_seen]) for axis in near])
    way = after - before
    share = ((gaze - before) * way).sum(axis=0) / max(float((way * way).sum()), 1e-12)
    return np.asarray(gaze - before - share.clip(0, 1) * way)


@dataclass(frozen=True, eq=False)
class Flank:
    """Weights of the courses on one side of the losses of a class.

    log_size: (level,) quantiles of the logarithm of the size of the vector of weights, in degrees.
    means: (half, course), covariances: (half, course, course) of its direction, a unit vector, for
        sizes below and above the median.
    """

    log_size: Floats
    means: Floats
    covariances: Floats

    @classmethod
    def fit(cls, weights: Floats) -> Flank:
        """The distribution of weights (flank, course)."""
        size = np.maximum(np.linalg.norm(weights, axis=1), 1e-6)
        halves = np.array_split((weights / size[:, None])[size.argsort()], 2)
        return cls(
            np.quantile(np.log(size), LEVELS),
            np.array([half.mean(axis=0) for half in halves]),
            np.array([np.cov(half.T) for half in halves]),
        )

    def draw(self, rank: float, rng: np.random.Generator) -> Floats:
        """Weights (course,) whose size has this rank, from 0 to 1."""
        half = int(rank >= 0.5)
        way = rng.multivariate_normal(self.means[half], self.covariances[half], method="eigh")
        size = math.exp(np.interp(rank, LEVELS, self.log_size))
        return np.asarray(size * way / np.linalg.norm(way))


@dataclass(frozen=True, eq=False)
class LossClass:
    """Short or long losses of a task.

    per_minute: (bin,) onsets per minute of seen time, by the time since the last loss (EDGES_MS).
    shape: of the gamma distribution of a recording's factor; small where recordings differ much.
    log_ms: (level,) quantiles of the logarithm of durations in ms.
    before, after: the flanks; coupling: correlation of the normal scores of their sizes.
    """

    per_minute: Floats
    shape: float
    log_ms: Floats
    before: Flank
    after: Flank
    coupling: float

    def draw_flank(self, courses: Sequence[Floats], rng: np.random.Generator) -> Floats:
        """Deviations (2, time) in degrees at BEFORE_MS and AFTER_MS."""
        one, other = rng.standard_normal(2).tolist()
        other = self.coupling * one + math.sqrt(1 - self.coupling**2) * other
        sides = [
            np.tensordot(flank.draw(_NORMAL.cdf(score), rng), of_side, axes=1)
            for flank, score, of_side in zip(
                (self.before, self.after), (one, other), courses, strict=True
            )
        ]
        return np.concatenate(sides, axis=1)


@dataclass(frozen=True, eq=False)
class LossModel:
    """The losses of each task: short and long ones, and the courses of all flanks.

    courses: (course, 2, time) in degrees, before and after a loss. fitted_on: what the card says of
        the recordings.
    """

    tasks: Mapping[str, tuple[LossClass, LossClass]]
    courses: tuple[Floats, Floats]
    fitted_on: Mapping[str, Any]

    @classmethod
    def fit(cls, recordings: Iterable[Losses], **fitted_on: Any) -> LossModel:
        """The model of these recordings' losses; fitted_on: more to be said of them."""
        found = list(recordings)
        tasks = list(dict.fromkeys(one.task for one in found))
        every = [loss for one in found for loss in one.losses]
        flanks = [loss.flank_deg for loss in every if loss.flank_deg is not None]
        if len(flanks) < _FEWEST:
            raise GazeError(
                f"only {len(flanks)} losses have flanks, and a model of losses needs {_FEWEST}"
            )
        before, after = (_courses(side) for side in _sides(flanks))
        courses = before, after
        shared = [_tables(_of_class(every, is_long), courses) for is_long in (False, True)]
        fitted = {}
        for task in tasks:
            of_task = [one for one in found if one.task == task]
            classes = []
            for is_long in (False, True):
                losses = _of_class([loss for one in of_task for loss in one.losses], is_long)
                tables = _tables(losses, courses) or shared[is_long]
                if tables is None:
                    raise GazeError(f"fewer than {_FEWEST} {CLASSES[is_long]} losses to fit")
                per_minute, shape = _rates(of_task, is_long)
                classes.append(LossClass(per_minute, shape, *tables))
            fitted[task] = (classes[0], classes[1])
        about = {
            "n_recordings": len(found),
            "n_participants": len({one.participant for one in found}),
            "minutes": round(sum(one.duration_ms for one in found) / 60_000, 1),
            "n_losses": len(every),
        }
        return cls(fitted, courses, {**fitted_on, **about})

    def add_to(self, windows: Windows, seed: int, first: int = 0) -> Windows:
        """Windows first.. of a seed with losses: NaN where the eye is lost, moved beside.

        Window k of a seed always has the same losses. All other samples are as they were.
        """
        gaze = windows.gaze.copy()
        for k, start in enumerate(windows.starts.tolist()):
            draws = rng(seed, Stream.TRACK_LOSS, first + k)
            window = gaze[:, start : start + windows.length]
            drawn = self.draw(
                windows.tasks[windows.task[k]], windows.length, windows.rate_hz, draws
            )
            _add(window, list(drawn), windows.rate_hz, windows.screens[windows.screen_index[k]])
        return replace(windows, gaze=gaze)

    def draw(
        self, task: str, n_samples: int, rate_hz: float, rng: np.random.Generator
    ) -> Iterator[tuple[int, int, Floats]]:
        """The losses of one window: first lost sample, first seen again, and flank (2, time)."""
        if task not in self.tasks:
            raise GazeError(
                f"the model of losses has no task {task!r}",
                remedy=suggestion(task, list(self.tasks)),
            )
        classes = self.tasks[task]
        per_ms = np.array([one.per_minute / 60_000 for one in classes])
        per_ms[:, _FIRST_OWN:] *= [[rng.gamma(one.shape) / one.shape] for one in classes]
        step_ms = 1000.0 / rate_hz
        begin_ms = -_WARM_UP_MS
        seen_ms = _draw_seen(per_ms.sum(axis=0), rng, is_first=True)
        while (begin_ms := begin_ms + seen_ms) < n_samples * step_ms:
            bin = np.searchsorted(EDGES_MS, seen_ms, side="right") - 1
            is_long = rng.random() * per_ms[:, bin].sum() >= per_ms[0, bin]
            chosen = classes[int(is_long)]
            end_ms = begin_ms + math.exp(np.interp(rng.random(), LEVELS, chosen.log_ms))
            if end_ms > 0:
                flank = chosen.draw_flank(self.courses, rng)
                first, stop = (math.ceil(max(ms, 0.0) / step_ms) for ms in (begin_ms, end_ms))
                if first < min(stop, n_samples):
                    yield first, min(stop, n_samples), flank
            begin_ms = end_ms
            seen_ms = _draw_seen(per_ms.sum(axis=0), rng)

    def describe(self) -> dict[str, Any]:
        """What a card says: the kind of model, and what it was fitted on."""
        return {"model": "rates with gamma frailty, durations, flanks", **self.fitted_on}

    def save(self, path: Path) -> None:
        """Write the tables as JSON, to five digits."""
        classes = {task: dict(zip(CLASSES, two, strict=True)) for task, two in self.tasks.items()}
        values = {
            "format": FORMAT,
            "fitted_on": dict(self.fitted_on),
            "courses": _plain(self.courses),
            "tasks": _plain(classes),
        }
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps(values, separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LossModel:
        """The model of losses in the folder of a model."""
        path = folder / "losses.json"
        if not path.is_file():
            raise GazeError(
                f"`track_loss` cannot be added: the model {folder.name} has no table of losses",
                remedy="leave it out, or take the packaged model joint",
            )
        with table_of(path, FORMAT, "the model of losses is damaged") as values:
            tasks = {
                task: (_class(classes["short"]), _class(classes["long"]))
                for task, classes in values["tasks"].items()
            }
            before, after = (np.array(side) for side in values["courses"])
            return cls(tasks, (before, after), values["fitted_on"])


def _plain(value: Any) -> Any:
    """Tables as plain values, numbers to five significant digits."""
    if isinstance(value, Flank | LossClass):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | tuple):
        return [_plain(one) for one in value]
    return float(f"{float(value):.5g}")


def _class(values: Mapping[str, Any]) -> LossClass:
    before, after = (
        Flank(**{key: np.array(one) for key, one in values[side].items()})
        for side in ("before", "after")
    )
    return LossClass(
        np.array(values["per_minute"]),
        float(values["shape"]),
        np.array(values["log_ms"]),
        before,
        after,
        float(values["coupling"]),
    )


def _of_class(losses: Iterable[Loss], is_long: bool) -> list[Loss]:
    return [one for one in losses if one.is_long == is_long and one.is_whole]


def _sides(flanks: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Flanks (flank, 2, time) before and after the losses."""
    before, after = np.split(np.array(flanks), [len(BEFORE_MS)], axis=2)
    return before, after


def _courses(flanks: Floats) -> Floats:
    """The courses (course, 2, time) that span most of the flanks (flank, 2, time) of a side."""
    rows = np.linalg.svd(flanks.reshape(len(flanks), -1), full_matrices=False)[2]
    return np.asarray(rows[:N_COURSES].reshape(-1, *flanks.shape[1:]))


def _tables(
    losses: Sequence[Loss], courses: Sequence[Floats]
) -> tuple[Floats, Flank, Flank, float] | None:
    """Durations, flanks and their coupling of a class; None where it has too few losses."""
    flanks = [one.flank_deg for one in losses if one.flank_deg is not None]
    if len(flanks) < _FEWEST:
        return None
    log_ms = np.quantile(np.log([one.duration_ms for one in losses]), LEVELS)
    before, after = (
        np.tensordot(side, of_side, axes=((1, 2), (1, 2)))
        for side, of_side in zip(_sides(flanks), courses, strict=True)
    )
    sizes = np.array([np.linalg.norm(side, axis=1) for side in (before, after)])
    ranks = (sizes.argsort(axis=1).argsort(axis=1) + 0.5) / len(flanks)
    coupling = float(np.corrcoef(np.vectorize(_NORMAL.inv_cdf)(ranks))[0, 1])
    return log_ms, Flank.fit(before), Flank.fit(after), coupling


def _rates(recordings: Sequence[Losses], is_long: bool) -> tuple[Floats, float]:
    """`per_minute` and `shape` of a class with the largest likelihood.

    With factors of a given shape, rates long after a loss are found by expectation maximisation.
    """
    seen = np.array([_seen_in_bins(one) for one in recordings]) / 60_000
    counts = np.zeros_like(seen)
    for number, one in enumerate(recordings):
        for loss in one.losses:
            if loss.is_long == is_long and not math.isnan(loss.seen_before_ms):
                bin = np.searchsorted(EDGES_MS, loss.seen_before_ms, side="right") - 1
                counts[number, bin] += 1
    in_group = counts.sum(axis=0) / np.maximum(seen.sum(axis=0), 1e-9)
    seen, counts = seen[:, _FIRST_OWN:], counts[:, _FIRST_OWN:]
    n_of, n_in = counts.sum(axis=1), counts.sum(axis=0)
    rates = in_group[_FIRST_OWN:]
    best: tuple[float, Floats, float] = (-math.inf, rates, 1.0)
    for shape in _SHAPES.tolist():
        for _ in range(30):
            expected = (shape + n_of) / (shape + seen @ rates)
            rates = n_in / np.maximum(expected @ seen, 1e-9)
        total = shape + seen @ rates
        likelihood = float(
            np.sum(np.vectorize(math.lgamma)(shape + n_of) - math.lgamma(shape))
            + np.sum(shape * np.log(shape / total) - n_of * np.log(total))
            + np.sum(n_in * np.log(np.maximum(rates, 1e-12)))
        )
        if likelihood > best[0]:
            best = likelihood, rates, shape
    return np.append(in_group[:_FIRST_OWN], best[1]), best[2]


def _seen_in_bins(one: Losses) -> Floats:
    """The time seen (bin,) in ms, by how long ago the last loss was; the last bin without one."""
    in_bins = np.diff(np.minimum(one.seen_ms[:, None], np.append(EDGES_MS, np.inf)))
    in_bins[~one.since_loss] = 0
    in_bins[~one.since_loss, -1] = one.seen_ms[~one.since_loss]
    return np.asarray(in_bins.sum(axis=0))


def _draw_seen(per_ms: Floats, rng: np.random.Generator, is_first: bool = False) -> float:
    """How long the eye is seen until the next loss, at these rates (bin,)."""
    rates = np.maximum(per_ms, 1e-12)
    due = rng.exponential()
    if is_first:
        return float(due / rates[-1])
    passed = np.append(0.0, np.cumsum(rates[:-1] * np.diff(EDGES_MS)))
    bin = np.searchsorted(passed, due, side="right") - 1
    return float(EDGES_MS[bin] + (due - passed[bin]) / rates[bin])


def _add(
    window: NDArray[np.float32],
    losses: Sequence[tuple[int, int, Floats]],
    rate_hz: float,
    screen: Screen,
) -> None:
    """Move a window's samples (2, time) beside each loss and take out the lost ones, in place."""
    step_ms, moved = 1000.0 / rate_hz, np.zeros(window.shape)
    sample = np.arange(window.shape[1])
    before_ms = np.append(BEFORE_MS[0] - STEP_MS, BEFORE_MS)
    after_ms = np.append(AFTER_MS, AFTER_MS[-1] + STEP_MS)
    for first, stop, flank in losses:
        before = slice(max(0, first - int(-before_ms[0] / step_ms)), first)
        after = slice(stop, stop + int(after_ms[-1] / step_ms))
        left, right = np.split(np.pad(flank, ((0, 0), (1, 1))), [len(before_ms)], axis=1)
        for axis in (0, 1):
            ms = (sample[before] - first) * step_ms
            moved[axis, before] += np.interp(ms, before_ms, left[axis])
            ms = (sample[after] - stop) * step_ms
            moved[axis, after] += np.interp(ms, after_ms, right[axis])
    is_moved = moved.any(axis=0)
    if is_moved.any():
        degrees = screen.to_degrees(screen.to_pixels(window[:, is_moved].astype(np.float64)))
        pixels = screen.from_degrees(degrees + moved[:, is_moved])
        window[:, is_moved] = screen.to_normalized(pixels)
    for first, stop, _ in losses:
        window[:, first:stop] = np.nan
