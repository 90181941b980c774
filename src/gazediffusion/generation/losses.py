"""Losses added to generated gaze: blinks and dropouts, drawn by a model fitted to recordings.

Short losses (below 50 ms) and long ones are two classes. In a recording, losses of a class begin at
a rate that depends on the time since the last loss, times a factor of the recording. The factor is
gamma distributed with mean 1 (a shared frailty), so that recordings differ and losses come in
groups. Durations have the recordings' quantiles. Flanks (data/losses.py) are sums of a few courses,
found by singular value decomposition, whose weights have the recordings' quantiles and correlations
of ranks (a Gaussian copula). A fitted model contains these tables and no row of a recording.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.losses import AFTER_MS, BEFORE_MS, STEP_MS, Loss, Losses
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import read_json, written_whole
from gazediffusion.geometry import Screen
from gazediffusion.seeds import seed_for

Floats = NDArray[np.float64]

FILE = "losses.json"
FORMAT = "gazediffusion-losses"
CLASSES = ("short", "long")
N_COURSES = 5
# Edges of the bins of time since the last loss; the last bin is open.
EDGES_MS = np.array([0.0, 60.0, 120.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0])
LEVELS = np.concatenate([[0.005], np.arange(1, 40) / 40, [0.995]])
_SHAPES = np.geomspace(0.05, 20.0, 40)
_FEWEST = 20  # losses of a class in a task; with fewer, tables of all tasks stand for them
_WARM_UP_MS = 30_000.0  # before a window, which may begin anywhere in a recording
_PURPOSE = 4  # names the stream of random numbers that losses are drawn from
_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class LossClass:
    """Short or long losses of a task.

    per_minute: (bin,) onsets per minute of seen time, by the time since the last loss (EDGES_MS).
    shape: of the gamma distribution of a recording's factor; small where recordings differ much.
    log_ms: (level,) quantiles of the logarithm of durations in ms.
    weights: (course, level) quantiles of the flanks' weights; ranks: (course, course) correlation
        of their normal scores.
    """

    per_minute: Floats
    shape: float
    log_ms: Floats
    weights: Floats
    ranks: Floats

    def draw_flank(self, courses: Floats, rng: np.random.Generator) -> Floats:
        """Deviations (2, time) in degrees at BEFORE_MS and AFTER_MS."""
        normal = rng.multivariate_normal(np.zeros(len(courses)), self.ranks, method="eigh")
        weights = [
            np.interp(_NORMAL.cdf(score), LEVELS, quantiles)
            for score, quantiles in zip(normal.tolist(), self.weights, strict=True)
        ]
        return np.asarray(np.tensordot(weights, courses, axes=1))


@dataclass(frozen=True, eq=False)
class LossModel:
    """The losses of each task: short and long ones, and the courses of all flanks.

    courses: (course, 2, time) in degrees. fitted_on: what the card says of the recordings.
    """

    tasks: Mapping[str, tuple[LossClass, LossClass]]
    courses: Floats
    fitted_on: Mapping[str, Any]

    @classmethod
    def fit(cls, recordings: Iterable[Losses], **fitted_on: Any) -> LossModel:
        """The model of these recordings' losses; fitted_on: more to be said of them."""
        found = list(recordings)
        tasks = list(dict.fromkeys(one.task for one in found))
        every = [loss for one in found for loss in one.losses]
        flanks = [loss.flank_deg.ravel() for loss in every if loss.flank_deg is not None]
        if len(flanks) < _FEWEST:
            raise GazeError(
                f"only {len(flanks)} losses have flanks, and a model of losses needs {_FEWEST}"
            )
        courses = np.linalg.svd(np.array(flanks), full_matrices=False)[2][:N_COURSES]
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
                classes.append(LossClass(*_rates(of_task, is_long), *tables))
            fitted[task] = (classes[0], classes[1])
        about = {
            "n_recordings": len(found),
            "n_participants": len({one.participant for one in found}),
            "minutes": round(sum(one.duration_ms for one in found) / 60_000, 1),
            "n_losses": len(every),
        }
        shape = (-1, 2, len(BEFORE_MS) + len(AFTER_MS))
        return cls(fitted, courses.reshape(shape), {**fitted_on, **about})

    def add_to(self, windows: Windows, seed: int, first: int = 0) -> Windows:
        """Windows first.. of a seed with losses: NaN where the eye is lost, moved beside.

        Window k of a seed always has the same losses. All other samples are as they were.
        """
        gaze = windows.gaze.copy()
        for k, start in enumerate(windows.starts.tolist()):
            rng = np.random.default_rng(seed_for(seed, first + k, _PURPOSE))
            window = gaze[:, start : start + windows.length]
            drawn = self.draw(windows.tasks[windows.task[k]], windows.length, windows.rate_hz, rng)
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
        factors = [rng.gamma(one.shape) / one.shape for one in classes]
        per_ms = np.array(
            [factor * one.per_minute / 60_000 for factor, one in zip(factors, classes, strict=True)]
        )
        step_ms = 1000.0 / rate_hz
        begin_ms = -_WARM_UP_MS
        seen_ms = _draw_seen(per_ms.sum(axis=0), rng, is_first=True)
        while (begin_ms := begin_ms + seen_ms) < n_samples * step_ms:
            bin = np.searchsorted(EDGES_MS, seen_ms, side="right") - 1
            is_long = rng.random() * per_ms[:, bin].sum() >= per_ms[0, bin]
            chosen = classes[int(is_long)]
            end_ms = begin_ms + math.exp(np.interp(rng.random(), LEVELS, chosen.log_ms))
            flank = chosen.draw_flank(self.courses, rng)
            lost = [min(max(math.ceil(ms / step_ms), 0), n_samples) for ms in (begin_ms, end_ms)]
            if lost[0] < lost[1]:
                yield lost[0], lost[1], flank
            begin_ms = end_ms
            seen_ms = _draw_seen(per_ms.sum(axis=0), rng)

    def describe(self) -> dict[str, Any]:
        """What a card says: what it was fitted on, and onsets per minute long after a loss."""
        return {"model": "gamma frailty, quantiles of durations, flanks", **self.fitted_on}

    def save(self, path: Path) -> None:
        """Write the tables as JSON, to five digits."""
        values = {
            "format": FORMAT,
            "fitted_on": dict(self.fitted_on),
            "courses": _rounded(self.courses),
            "tasks": {
                task: {
                    name: {key: _rounded(value) for key, value in vars(one).items()}
                    for name, one in zip(CLASSES, classes, strict=True)
                }
                for task, classes in self.tasks.items()
            },
        }
        with written_whole(path) as temporary:
            temporary.write_text(json.dumps(values, separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LossModel:
        """The model of losses in the folder of a model."""
        path = folder / FILE
        if not path.is_file():
            raise GazeError(
                "this model has no model of losses",
                path=folder,
                remedy="leave out `losses`, or take the packaged model joint",
            )
        try:
            values = read_json(path)
            if values["format"] != FORMAT:
                raise ValueError("another format")
            tasks = {
                task: tuple(
                    LossClass(**{key: np.array(value) for key, value in classes[name].items()})
                    for name in CLASSES
                )
                for task, classes in values["tasks"].items()
            }
            return cls(tasks, np.array(values["courses"]), values["fitted_on"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GazeError(f"the model of losses is damaged ({error})", path=path) from error


def _of_class(losses: Iterable[Loss], is_long: bool) -> list[Loss]:
    return [one for one in losses if one.is_long == is_long and one.is_whole]


def _tables(losses: Sequence[Loss], courses: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Durations, weights and ranks of a class; None where it has too few losses."""
    flanks = [one.flank_deg.ravel() for one in losses if one.flank_deg is not None]
    if len(flanks) < _FEWEST:
        return None
    log_ms = np.quantile(np.log([one.duration_ms for one in losses]), LEVELS)
    weights = courses @ np.array(flanks).T
    places = (weights.argsort(axis=1).argsort(axis=1) + 0.5) / len(flanks)
    ranks = np.corrcoef(np.vectorize(_NORMAL.inv_cdf)(places))
    return log_ms, np.quantile(weights, LEVELS, axis=1).T, ranks


def _rates(recordings: Sequence[Losses], is_long: bool) -> tuple[Floats, float]:
    """`per_minute` and `shape` of a class with the largest likelihood.

    With factors of a given shape, the rates are found by expectation maximisation.
    """
    seen = np.array([_seen_in_bins(one) for one in recordings]) / 60_000
    counts = np.zeros_like(seen)
    for number, one in enumerate(recordings):
        for loss in one.losses:
            if loss.is_long == is_long and not math.isnan(loss.seen_before_ms):
                bin = np.searchsorted(EDGES_MS, loss.seen_before_ms, side="right") - 1
                counts[number, bin] += 1
    n_of, n_in = counts.sum(axis=1), counts.sum(axis=0)
    best: tuple[float, Floats, float] = (-math.inf, np.zeros(len(EDGES_MS)), 1.0)
    rates = n_in / np.maximum(seen.sum(axis=0), 1e-9)
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
    return best[1], best[2]


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


def _rounded(values: Any) -> Any:
    """Numbers to five significant digits, as plain lists."""
    if isinstance(values, np.ndarray):
        return [_rounded(one) for one in values]
    return float(f"{float(values):.5g}")
