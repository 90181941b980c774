"""How the target of a task jumps, and how far gaze follows it.

In a task with a target, gaze follows it. Long gaze of such a task is generated with a target drawn
from the intervals and positions of the training participants' targets, unless one is given: its
rhythm then lasts as long as the gaze. A trained network under-responds to a target (gain below the
participants'). Calibration measures its gain, and it is given targets that compensate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.seeds import quantile_draw

_LEVELS = np.linspace(0.0, 1.0, 26)
_LEAST_JUMPS = 50
_LEAST_LEVEL = 0.02  # of the distances of jumps, without the extremes
_CANDIDATES = 8  # positions drawn for a jump, of which one is far enough from the one before
_SUMMED = 6  # intervals whose sum tells regular jumps from independent ones
LATE_S = (0.6, 0.95)  # after a jump, when gaze has arrived
_EVERY = 8  # windows a second apart overlap as many times
Gain = tuple[float, float]


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
        interval_s, x, y = (tuple(np.quantile(one, _LEVELS).round(6).tolist()) for one in values)
        of_task = [part.of_task(task).train for part in parts if task in part.tasks]
        gaze, target = (
            np.concatenate([getattr(one, cut)(slice(None, None, _EVERY)) for one in of_task])
            for cut in ("cut", "cut_targets")
        )
        gain = response_gain(gaze, target, of_task[0].rate_hz)
        least_jump = round(float(np.quantile(np.concatenate(distances), _LEAST_LEVEL)), 6)
        return cls(interval_s, x, y, gain, gain, are_regular(intervals), least_jump)

    def draw(self, n_samples: int, rate_hz: float, seed: int) -> NDArray[np.float32]:
        """A target (2, time), normalized, that jumps from the first sample on."""
        rng = np.random.default_rng(seed)
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

    def _distant(self, uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
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


def are_regular(intervals: Sequence[NDArray[np.float64]]) -> bool:
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
