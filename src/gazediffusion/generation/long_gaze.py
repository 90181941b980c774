"""Constraints: what generated gaze must keep to, sample by sample, in normalized units.

Arrays (entry, 2, time) are NaN where nothing is given. Window k takes entry k, and again the first
after the last. Long gaze is generated in windows, each given the end of the one before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.conditioning.course import JITTER_S
from gazediffusion.errors import GazeError

Floats = NDArray[np.float32]
OVERLAP_S = 1.5  # of successive windows of long gaze
EDGE_S = 0.2  # at the end of a window, where gaze is not quite as elsewhere
_LEAST_KNOWN_S = 0.5  # of the gaze before that a window is given
_WAYPOINT_S, _WAYPOINTS_APART_S = 2.8, 1.0  # after the begin of a window; of two windows


@dataclass(frozen=True, eq=False)
class Constraints:
    """What windows keep to; None is nothing.

    known: gaze that is given, kept to the bit. fixations: where a fixation is to be. targets: where
    a target on the screen is.
    """

    known: Floats | None = None
    fixations: Floats | None = None
    targets: Floats | None = None

    def __post_init__(self) -> None:
        shapes = {array.shape for _, array in self.given()}
        if len(shapes) > 1 or any(len(one) != 3 or one[1] != 2 for one in shapes):
            raise GazeError(f"constraints must share a shape (window, 2, time), not {shapes}")
        if any(np.isinf(array).any() for _, array in self.given()):
            raise GazeError("constraints must be numbers, or NaN where nothing is given")

    def given(self) -> Iterator[tuple[str, Floats]]:
        """Name and array of each constraint."""
        for field in fields(self):
            array = getattr(self, field.name)
            if array is not None:
                yield field.name, array

    def describe(self) -> dict[str, Any]:
        """What a card says of them: entries and a hash of each; no gaze."""
        return {
            name: {"entries": len(array), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
            for name, array in self.given()
        }

    def of(self, first: int, stop: int, n_samples: int) -> dict[str, Floats]:
        """The constraints of windows first..stop-1, with NaN appended up to `n_samples`."""
        found = {}
        for name, array in self.given():
            entries = array[np.arange(first, stop) % len(array)]
            missing = max(0, n_samples - entries.shape[2])
            padding = ((0, 0), (0, 0), (0, missing))
            found[name] = np.pad(entries, padding, constant_values=np.nan)[..., :n_samples]
        return found


def window_starts(n_samples: int, length: int, rate_hz: float) -> list[int]:
    """Where the windows of `length` samples begin that together give this many samples.

    Each overlaps the one before by OVERLAP_S; the last ends with the gaze and may overlap more.
    """
    step = length - round(OVERLAP_S * rate_hz)
    starts = list(range(0, max(n_samples - length, 0), step))
    return [*starts, max(n_samples - length, 0)]


def joint_samples(
    n_windows: int, stop: int, rate_hz: float, targets: Floats | None = None
) -> NDArray[np.int64]:
    """Up to which of its samples each of n_windows is given the gaze before.

    stop: where the gaze before ends. What lies less than EDGE_S before is generated again. With
    targets (window, 2, time) a joint lies as long before their last jump: gaze has come to rest.
    """
    edge = round(EDGE_S * rate_hz)
    found = np.full(n_windows, stop - edge)
    if targets is None:
        return found
    first = round(_LEAST_KNOWN_S * rate_hz) + edge
    moved = np.diff(targets[..., first - 1 : stop + edge // 2], axis=2)
    is_jump = (np.isfinite(moved) & (moved != 0)).any(axis=1)
    last = first + is_jump.shape[1] - 1 - is_jump[:, ::-1].argmax(axis=1)
    return np.where(is_jump.any(axis=1), np.minimum(last - edge, found), found)


def continued(
    before: Floats, fixed: Floats | None, stop: int, rate_hz: float, targets: Floats | None = None
) -> Floats:
    """What is known in windows (window, 2, time) that continue the gaze before, up to `stop`.

    After the joint, that is what is fixed anyway.
    """
    joints = joint_samples(len(before), stop, rate_hz, targets)
    after = np.float32(np.nan) if fixed is None else fixed
    return np.where(np.arange(before.shape[2]) < joints[:, None, None], before, after)


def waypoint_samples(n_samples: int, length: int, rate_hz: float) -> list[int]:
    """Where waypoints of long gaze are at the earliest: one in a window, not close together.

    They lie up to JITTER_S later. Gaze has the time to get there from the joint.
    """
    found: list[int] = []
    for start in window_starts(n_samples, length, rate_hz):
        at = start + round(_WAYPOINT_S * rate_hz)
        if not found or at - found[-1] >= (JITTER_S + _WAYPOINTS_APART_S) * rate_hz:
            found.append(at)
    return found


def with_known(generated: Floats, known: Floats) -> Floats:
    """Generated gaze with the known samples, which it meets to rounding, in their places."""
    return np.where(np.isfinite(known), known, generated)


_SLOW_S = 0.1  # standard deviation of the filter that the noise lies above
_SHARE = 0.9  # of the difference that is removed: levels of real recordings vary a little
_MOST = 2.0  # the factor, or its inverse
_SMOOTHED_S = 0.02  # over which speed is averaged, and after a known sample noise sets in
_SLOW, _FAST = 4.0, 8.0  # speed in levels: below the first all is noise, above the second none


def noise_level(gaze: Floats) -> Floats:
    """The median absolute step from sample to sample, (window, 2, 1), of gaze (window, 2, time)."""
    level: Floats = np.median(np.abs(np.diff(gaze, axis=2)), axis=2, keepdims=True)
    return level


def at_noise_level(gaze: Floats, known: Floats, level: Floats, rate_hz: float) -> Floats:
    """Gaze (window, 2, time) with noise of the level (window, 2, 1) where nothing is known."""
    from scipy.ndimage import distance_transform_cdt, gaussian_filter1d, uniform_filter1d

    is_free = np.isnan(known[:, :1])
    steps = np.diff(gaze, axis=2, prepend=gaze[..., :1])
    rows = zip(steps, is_free[:, 0], strict=True)
    own = np.stack([np.median(np.abs(one[:, free]), axis=1) for one, free in rows])[..., None]
    size = max(1, round(_SMOOTHED_S * rate_hz))
    fast = uniform_filter1d(steps, size, axis=2) / np.maximum(own, 1e-9)
    is_slow = np.clip((_FAST - np.hypot(fast[:, :1], fast[:, 1:])) / (_FAST - _SLOW), 0.0, 1.0)
    noise = np.cumsum(steps * is_slow * is_free, axis=2)
    noise -= gaussian_filter1d(noise, _SLOW_S * rate_hz, axis=2)
    factor = np.clip((level / np.maximum(own, 1e-9)) ** _SHARE, 1 / _MOST, _MOST)
    # Nothing is added at a known sample, so that gaze still meets it.
    away = np.stack([distance_transform_cdt(one) for one in is_free[:, 0]])[:, None]
    away[is_free.all(axis=2)] = size  # nothing is known
    scaled: Floats = (gaze + (factor - 1) * noise * np.clip(away / size, 0.0, 1.0)).astype(
        np.float32
    )
    return scaled
