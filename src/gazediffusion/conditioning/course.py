"""The course of a recording: what long gaze of a task depends on beside the gaze before.

Recordings are not stationary. Long gaze is given its elapsed time, and either a target that jumps
as the task's targets do, or where it begins and, where a page is read, waypoints on the way down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.seeds import Stream, quantile_draw, rng

Floats = NDArray[np.float64]
Gain = tuple[float, float]
KNOTS_S = (0.0, 1.0, 3.0, 6.0, 12.0, 20.0, 30.0, 40.0, 52.0, 70.0, 90.0)
# Beginnings.
TIMES_S = (0.0, 1.0)  # of a window that begins with the recording
BEGINNING_S = 1.0  # a window that begins within this time shows the beginning
POSITION_S = 0.1  # over which the position is averaged
_LEVELS = np.linspace(0.02, 0.98, 13)  # without the extremes of single participants
_LEAST_WINDOWS, _LEAST_PARTICIPANTS = 20, 5
# Pages.
JITTER_S = 4.0  # of waypoints, so that no moment of long gaze is special
_AROUND_S = 0.4  # before and after a return to the top gaze is given a position
_APART_S = 1.5  # of these from others
_EVERY_S = 1.0  # at which positions of recordings are taken
_RETURN = 0.5  # normalized: gaze that is so far above the lowest position reads the page again
_LEAST_POSITIONS, _LEAST_RECORDINGS, _LEAST_READERS = 12, 20, 5
_LEAST_EXPLAINED = 0.8  # of the variance of y by a constant pace, for a task to be reading
# Targets.
_RESPONSE_LEVELS = np.linspace(0.0, 1.0, 26)
_LEAST_JUMPS = 50
_LEAST_LEVEL = 0.02  # of the distances of jumps, without the extremes
_CANDIDATES = 8  # positions drawn for a jump, of which one is far enough from the one before
_SUMMED = 6  # intervals whose sum tells regular jumps from independent ones
LATE_S = (0.6, 0.95)  # after a jump, when gaze has arrived
_EVERY = 8  # windows a second apart overlap as many times


@dataclass(frozen=True)
class Beginning:
    """Quantiles at equal levels of x and y at each of TIMES_S, normalized and independent.

    Windows that are too short for the second time have the first alone.
    """

    x: tuple[tuple[float, ...], ...]
    y: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> Beginning | None:
        """From the training participants of windows files; None where too few begin."""
        places: list[Floats] = []
        n_participants = 0
        for part in parts:
            if task not in part.tasks:
                continue
            windows = part.of_task(task).train
            windows = windows.select(windows.elapsed_s < BEGINNING_S)
            n_participants += len(np.unique(windows.participant))
            n_samples = max(1, round(POSITION_S * part.rate_hz))
            gaze = windows.cut()
            firsts = [round(seconds * part.rate_hz) for seconds in TIMES_S]
            spans = [gaze[:, :, a : a + n_samples] for a in firsts if a + n_samples <= part.length]
            places.append(np.stack([np.median(span, axis=2) for span in spans], axis=2))
        values = np.concatenate(places) if places else np.empty(0)
        if len(values) < _LEAST_WINDOWS or n_participants < _LEAST_PARTICIPANTS:
            return None
        x, y = np.quantile(values, _LEVELS, axis=0).round(6).transpose(1, 2, 0).tolist()
        return cls(tuple(map(tuple, x)), tuple(map(tuple, y)))

    def draw(self, rng: np.random.Generator) -> list[tuple[float, float]]:
        """A position at each of TIMES_S."""
        return [
            (float(quantile_draw(x, rng.random(1))[0]), float(quantile_draw(y, rng.random(1))[0]))
            for x, y in zip(self.x, self.y, strict=True)
        ]

    def to_json(self) -> dict[str, list[list[float]]]:
        """The quantiles by name."""
        return {name: [list(one) for one in values] for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Beginning:
        """Read what `to_json` wrote."""
        return cls(**{name: tuple(map(tuple, one)) for name, one in values.items()})


@dataclass(frozen=True)
class Page:
    """Quantiles at equal levels of the pace (normalized y per second) of recordings, and of x.

    end: y at which a page ends.
    """

    pace: tuple[float, ...]
    x: tuple[float, ...]
    end: float

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> Page | None:
        """From the training participants of windows files; None where no page is read."""
        paces, explained, places, names = [], [], [], set()
        for part in parts:
            for name, time_s, place in _recordings(part, task):
                first = slice(_return(place[1]))
                time_s, place = time_s[first], place[:, first]
                if len(time_s) < _LEAST_POSITIONS:
                    continue
                slope, intercept = np.polyfit(time_s, place[1], 1)
                rest = place[1] - slope * time_s - intercept
                paces.append(slope)
                explained.append(1 - rest.var() / place[1].var())
                places.append(place)
                names.add(name)
        if len(paces) < _LEAST_RECORDINGS or len(names) < _LEAST_READERS:
            return None
        if np.median(explained) < _LEAST_EXPLAINED or np.quantile(paces, _LEVELS[0]) <= 0:
            return None
        x, y = np.concatenate(places, axis=1)
        return cls(
            tuple(np.quantile(paces, _LEVELS).round(6).tolist()),
            tuple(np.quantile(x, _LEVELS).round(6).tolist()),
            round(float(np.quantile(y, _LEVELS[-1])), 6),
        )

    def draw(self, time_s: Floats, top: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Times (time,) and positions (2, time) on the path of a recording.

        It reads from y = top after a second. Times are up to JITTER_S later than those given, or
        shortly before and after a return to the top.
        """
        pace = float(quantile_draw(self.pace, rng.random(1))[0])
        height = max(self.end - top, _RETURN)
        time_s = time_s + JITTER_S * rng.random(len(time_s))
        n_returns = int(pace * max(time_s.max(initial=0.0) - TIMES_S[-1], 0.0) / height)
        return_s = TIMES_S[-1] + np.arange(1, n_returns + 1) * height / pace
        is_apart = (np.abs(time_s[:, None] - return_s) > _APART_S).all(axis=1)
        around = [return_s - _AROUND_S, return_s + _AROUND_S]
        time_s = np.sort(np.concatenate([time_s[is_apart], *around]))
        x = quantile_draw(self.x, rng.random(len(time_s)))
        y = top + np.mod(pace * np.maximum(time_s - TIMES_S[-1], 0.0), height)
        return time_s, np.stack([x, y])

    def to_json(self) -> dict[str, Any]:
        """All of it by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Page:
        """Read what `to_json` wrote."""
        return cls(tuple(values["pace"]), tuple(values["x"]), values["end"])


def _recordings(part: Windows, task: str) -> Iterator[tuple[str, Floats, Floats]]:
    """Participant, times (s) and positions (2, time) of the training recordings of a task."""
    elapsed_ms = part.segment_elapsed_ms
    if task not in part.tasks or elapsed_ms is None:
        return
    stops = np.append(part.segment_starts[1:], part.gaze.shape[1])
    every, n_samples = (max(1, round(one * part.rate_hz)) for one in (_EVERY_S, POSITION_S))
    trials: dict[tuple[str, str], list[int]] = {}
    for k in np.unique(part.of_task(task).train.segment_of_window).tolist():
        name = part.participants[part.segment_participant[k]]
        trials.setdefault((name, part.segment_trial[k]), []).append(k)
    for (name, _), segments in trials.items():
        times, places = [], []
        for k in sorted(segments, key=elapsed_ms.__getitem__):
            gaze = part.gaze[:, part.segment_starts[k] : stops[k]]
            firsts = np.arange(0, gaze.shape[1] - n_samples + 1, every)
            times.append(elapsed_ms[k] / 1000 + firsts / part.rate_hz)
            spans = gaze[:, firsts[:, None] + np.arange(n_samples)]
            places.append(np.median(spans, axis=2).astype(np.float64))
        time_s, place = np.concatenate(times), np.concatenate(places, axis=1)
        is_read = time_s >= TIMES_S[-1]  # before, gaze is elsewhere
        yield name, time_s[is_read], place[:, is_read]


def _return(y: Floats) -> int | None:
    """The number of positions before gaze returns to the top of the page; None without a return."""
    above = np.flatnonzero(y < np.maximum.accumulate(y) - _RETURN)
    return int(above[0]) if len(above) else None


@dataclass(frozen=True)
class TargetPrior:
    """Quantiles at equal levels: of the time between jumps, and of x and y, normalized.

    All are independent. recorded_gain, generated_gain: the gain in x and y (`response_gain`) of the
    training participants and of the model; equal before calibration. is_regular: jumps scatter
    about multiples of the mean interval, and do not drift away from them. least_jump: how far, in
    normalized units, a position is from the one before at least.
    """

    interval_s: tuple[float, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    recorded_gain: Gain = (1.0, 1.0)
    generated_gain: Gain = (1.0, 1.0)
    is_regular: bool = False
    least_jump: float = 0.0

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> TargetPrior | None:
        """From the training participants of windows files; None where too few jumps are known."""
        intervals, places, distances = [], [], []
        for part in parts:
            for target in _target_of_segments(part, task):
                at = _jumps(target)
                at = at[np.isfinite(target[:, at]).all(axis=0)]
                places.append(target[:, at])
                intervals.append(np.diff(at) / part.rate_hz)
                distances.append(np.hypot(*np.diff(target[:, at], axis=1)))
        if sum(map(len, intervals)) < _LEAST_JUMPS:
            return None
        values = (np.concatenate(intervals), *np.concatenate(places, axis=1))
        interval_s, x, y = (
            tuple(np.quantile(one, _RESPONSE_LEVELS).round(6).tolist()) for one in values
        )
        of_task = [part.of_task(task).train for part in parts if task in part.tasks]
        gaze, target = (
            np.concatenate([getattr(one, cut)(slice(None, None, _EVERY)) for one in of_task])
            for cut in ("cut", "cut_targets")
        )
        gain = response_gain(gaze, target, of_task[0].rate_hz)
        least_jump = round(float(np.quantile(np.concatenate(distances), _LEAST_LEVEL)), 6)
        return cls(interval_s, x, y, gain, gain, are_regular(intervals), least_jump)

    def draw(self, n_samples: int, rate_hz: float, rng: np.random.Generator) -> NDArray[np.float32]:
        """A target (2, time), normalized, that jumps from the first sample on."""
        n_jumps = 1 + int(n_samples / rate_hz / self.interval_s[0])
        # By jumps, so that a longer target begins as a shorter one.
        uniforms = rng.random((n_jumps, 1 + 2 * _CANDIDATES))
        interval_s = quantile_draw(self.interval_s, uniforms[:, 0])
        x, y = self._distant(uniforms[:, 1:].reshape(n_jumps, _CANDIDATES, 2))
        ends_s = np.cumsum(interval_s)
        if self.is_regular:
            # An interval has the scatter of two jumps.
            mean_s = np.mean([self.interval_s[:-1], self.interval_s[1:]])
            ends_s = np.arange(1, n_jumps + 1) * mean_s + (interval_s - mean_s) / np.sqrt(2)
        ends = np.rint(np.maximum.accumulate(ends_s) * rate_hz)
        which = np.searchsorted(ends, np.arange(n_samples), side="right").clip(max=n_jumps - 1)
        return np.stack([x[which], y[which]]).astype(np.float32)

    def _distant(self, uniforms: Floats) -> Floats:
        """Positions (2, jump): the first candidate far enough from the one before, or the last.

        uniforms: (jump, candidate, 2).
        """
        x, y = (quantile_draw(one, uniforms[..., k]) for k, one in enumerate((self.x, self.y)))
        candidates = np.stack([x, y], axis=-1)
        chosen = candidates[:, -1].copy()
        before = np.full(2, np.inf)
        for number, own in enumerate(candidates):
            is_far = np.hypot(*(own - before).T) >= self.least_jump
            if is_far.any():
                chosen[number] = own[is_far.argmax()]
            before = chosen[number]
        return chosen.T

    def compensated(self, target: NDArray[np.float32]) -> NDArray[np.float32]:
        """Targets (..., 2, time) as a network is given them, so that gaze has the recorded gain."""
        factor = np.divide(self.recorded_gain, self.generated_gain).astype(np.float32)
        return target * factor[:, None]

    def to_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {
            name: list(one) if isinstance(one, tuple) else one for name, one in asdict(self).items()
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TargetPrior:
        """Read what `to_json` wrote."""
        plain: dict[str, Any] = {
            name: tuple(one) if isinstance(one, list) else one for name, one in values.items()
        }
        return cls(**plain)


def _target_of_segments(part: Windows, task: str) -> Iterator[NDArray[np.float32]]:
    """Targets (2, time) of the segments that have training windows of a task."""
    if part.targets is None or task not in part.tasks:
        return
    stops = np.append(part.segment_starts[1:], part.gaze.shape[1])
    for k in np.unique(part.of_task(task).train.segment_of_window):
        yield part.targets[:, part.segment_starts[k] : stops[k]]


def are_regular(intervals: Sequence[Floats]) -> bool:
    """Whether sums of successive intervals vary less than those of independent ones by half.

    intervals: of each segment.
    """
    sums = [np.convolve(one, np.ones(_SUMMED), "valid") for one in intervals if len(one) >= _SUMMED]
    if sum(map(len, sums)) < _LEAST_JUMPS:
        return False
    single = np.concatenate(intervals).var()
    return bool(np.concatenate(sums).var() < _SUMMED * single / 2)


def _jumps(target: NDArray[np.float32]) -> NDArray[np.int64]:
    """The samples at which a target (2, time) is elsewhere than before."""
    return np.flatnonzero(np.diff(target, axis=1).any(axis=0)) + 1


def response_gain(gaze: NDArray[np.float32], target: NDArray[np.float32], rate_hz: float) -> Gain:
    """The slope of gaze over target position in x and y, late after jumps of the target.

    gaze, target: (window, 2, time), normalized. 1 where the target never stays that long.
    """
    first, stop = (round(seconds * rate_hz) for seconds in LATE_S)
    places, found = [], []
    for of_gaze, of_target in zip(gaze, target, strict=True):
        jumps = _jumps(of_target)
        for at, following in zip(jumps, np.append(jumps[1:], of_target.shape[1]), strict=True):
            if following - at >= stop and np.isfinite(of_target[:, at]).all():
                places.append(of_target[:, at])
                found.append(np.median(of_gaze[:, at + first : at + stop], axis=1))
    if len(places) < _LEAST_JUMPS:
        return 1.0, 1.0
    x, y = (
        round(float(np.polyfit(one, other, 1)[0]), 4)
        for one, other in zip(np.array(places).T, np.array(found).T, strict=True)
    )
    return x, y


def encode_elapsed(seconds: Tensor, knots_s: Sequence[float] = KNOTS_S) -> Tensor:
    """Weights (batch, knot) of times (batch,), which are NaN where they are not given.

    >>> encode_elapsed(torch.tensor([0.25, torch.nan, 500.0]), (0.0, 1.0, 3.0)).tolist()
    [[0.75, 0.25, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    knots = torch.tensor(knots_s).to(seconds)
    time = seconds[:, None].clamp(knots[0], knots[-1])
    widths = knots.diff()
    # A weight rises from the knot before, and falls to the one after; beyond the ends it is one.
    rising = torch.nn.functional.pad((time - knots[:-1]) / widths, (1, 0), value=1.0)
    falling = torch.nn.functional.pad((knots[1:] - time) / widths, (0, 1), value=1.0)
    return torch.minimum(rising, falling).clamp(0.0, 1.0).nan_to_num(0.0)


@dataclass(frozen=True)
class Course:
    """What a model knows of the course of recordings; all empty for one that knows nothing.

    knots_s: of the elapsed time in the condition. latest_s: by task, the latest elapsed time at
    which a training window begins. targets, beginnings, pages: by task, where they are known.
    """

    knots_s: tuple[float, ...] = ()
    latest_s: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, TargetPrior] = field(default_factory=dict)
    beginnings: Mapping[str, Beginning] = field(default_factory=dict)
    pages: Mapping[str, Page] = field(default_factory=dict)

    @classmethod
    def fit(cls, parts: Sequence[Windows], tasks: Sequence[str]) -> Course:
        """From the training participants of windows files."""
        latest_s = {task: one for task in tasks if (one := _latest(parts, task)) is not None}
        targets = {task: TargetPrior.fit(parts, task) for task in tasks}
        beginnings = {task: Beginning.fit(parts, task) for task in tasks}
        pages = {task: Page.fit(parts, task) for task in tasks if targets[task] is None}
        return cls(
            KNOTS_S if latest_s else (),
            latest_s,
            {task: one for task, one in targets.items() if one is not None},
            {task: one for task, one in beginnings.items() if one is not None},
            {task: one for task, one in pages.items() if one is not None},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the entries of the elapsed time in the condition."""
        return tuple(f"{knot:g} s" for knot in self.knots_s)

    def encode(self, elapsed_s: Tensor | None, like: Tensor) -> Tensor:
        """Entries (batch, knot) of times (batch,), NaN where they are not given; None is no time.

        like: a tensor of the batch.
        """
        if elapsed_s is None:
            elapsed_s = like.new_full((len(like),), torch.nan)
        return encode_elapsed(elapsed_s.to(like), self.knots_s)

    def elapsed_of(self, tasks: Sequence[str], elapsed_s: float) -> Tensor:
        """The elapsed time of windows (window,); NaN where no training window is as late."""
        known = [elapsed_s <= self.latest_s.get(task, -1.0) for task in tasks]
        return torch.tensor([elapsed_s if one else torch.nan for one in known])

    def draw(
        self,
        tasks: Sequence[str],
        first: int,
        n_samples: int,
        rate_hz: float,
        seed: int,
        waypoints: Sequence[int] = (),
    ) -> dict[str, NDArray[np.float32]]:
        """What windows first.. of a seed are steered by: targets, or else positions.

        waypoints: the samples soon after which windows of a task that reads a page have a position.
        Arrays (window, 2, time) of `targets` and `fixations`, NaN where a task has none; an array
        without any value is left out.
        """
        shape = (len(tasks), 2, n_samples)
        found = {name: np.full(shape, np.nan, np.float32) for name in ("targets", "fixations")}
        n_fixated = max(1, round(POSITION_S * rate_hz))
        for k, task in enumerate(tasks):
            if task in self.targets:
                draws = rng(seed, Stream.TARGETS, first + k)
                found["targets"][k] = self.targets[task].draw(n_samples, rate_hz, draws)
            elif task in self.beginnings:
                places = self.beginnings[task].draw(rng(seed, Stream.BEGINNING, first + k))
                begins = [round(seconds * rate_hz) for seconds in TIMES_S[: len(places)]]
                if task in self.pages:
                    draws, given_s = (
                        rng(seed, Stream.PAGE, first + k),
                        np.array(waypoints) / rate_hz,
                    )
                    time_s, path = self.pages[task].draw(given_s, places[-1][1], draws)
                    begins += np.rint(time_s * rate_hz).astype(int).tolist()
                    places += [(float(x), float(y)) for x, y in path.T]
                for begin, place in zip(begins, places, strict=True):
                    found["fixations"][k, :, begin : begin + n_fixated] = np.array(place)[:, None]
        return {name: array for name, array in found.items() if np.isfinite(array).any()}

    def compensated(
        self, targets: NDArray[np.float32], tasks: Sequence[str]
    ) -> NDArray[np.float32]:
        """Targets (window, 2, time) of windows as a network is given them."""
        known = [self.targets.get(task) for task in tasks]
        rows = zip(targets, known, strict=True)
        return np.stack([one if prior is None else prior.compensated(one) for one, prior in rows])

    def draws_for(self, tasks: Sequence[str]) -> bool:
        """Whether windows of any of the tasks are steered."""
        return not (self.targets.keys() | self.beginnings.keys()).isdisjoint(tasks)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "knots_s": list(self.knots_s),
            "latest_s": dict(self.latest_s),
            "targets": {task: one.to_json() for task, one in self.targets.items()},
            "beginnings": {task: one.to_json() for task, one in self.beginnings.items()},
            "pages": {task: one.to_json() for task, one in self.pages.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Course:
        """Read what `to_json` wrote."""
        return cls(
            tuple(values["knots_s"]),
            dict(values["latest_s"]),
            {task: TargetPrior.from_json(one) for task, one in values["targets"].items()},
            {task: Beginning.from_json(one) for task, one in values["beginnings"].items()},
            {task: Page.from_json(one) for task, one in values.get("pages", {}).items()},
        )


def _latest(parts: Sequence[Windows], task: str) -> float | None:
    """The latest elapsed time (s) at which a training window of a task begins, if it is known."""
    times = [part.of_task(task).train.elapsed_s for part in parts if task in part.tasks]
    known = np.concatenate(times)
    known = known[np.isfinite(known)]
    return float(known.max()) if len(known) else None
