"""Steering: what users give to steer gaze, as constraints sample by sample.

Arrays (entry, 2, time) are NaN where nothing is given. Window k takes entry k, and again the first
after the last. Durations that a scanpath leaves free are drawn from fixations that the model
itself generates for the task. Between fixations there is time for a saccade of their distance.

A network follows its condition to a fraction of a degree. The rest is removed at every sampling
step by the smallest shift of the denoised positions (`FixationMeans`): constant within a fixation,
linear from one to the next or to known samples, which stay. Later steps fit saccades and drift to
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.data.scanpaths import (
    SHORTEST_FIXATION_MS,
    Scanpath,
    Targets,
    parse_waypoint,
    read_scanpaths,
    read_targets,
)
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Floats, Screen
from gazediffusion.seeds import Stream, rng
from gazediffusion.settings import MOST_SECONDS, Steering

if TYPE_CHECKING:
    from gazediffusion.generation.sampler import Sampler

Array = NDArray[np.float64]
# Duration of a saccade: 2.2 ms per degree and 21 ms (Carpenter 1988, "Movements of the eyes").
SACCADE_MS, SACCADE_MS_PER_DEG = 21.0, 2.2
# Seconds for which a waypoint is held, and a last target without an end.
WAYPOINT_S, LAST_TARGET_S = 0.2, 1.0
Waypoint = tuple[float, float, float]


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
        entries = range(first, stop)
        return {name: _repeated(array, entries, n_samples) for name, array in self.given()}


@dataclass(frozen=True, eq=False)
class FixationMeans:
    """The fixations of a batch of windows, numbered from 1 over the batch; 0 is none.

    number: (window, time), which fixation a sample lies in. before, after: (window, time), the last
    fixation that began and the next that ends, 0 where there is none or a known sample. weight:
    (window, time), of `after`. place: (2, 1 + fixation), requested positions. size: (1 +
    fixation,), samples.
    """

    number: Tensor
    before: Tensor
    after: Tensor
    weight: Tensor
    place: Tensor
    size: Tensor

    @classmethod
    def of(cls, given: Tensor, is_known: Tensor | None = None) -> FixationMeans | None:
        """From positions (window, 2, time), NaN where no fixation is given; None without any.

        Samples of one fixation have one position. is_known (window, time): of samples that stay.
        """
        is_given = given.isfinite().all(dim=1)
        is_anchor = is_given
        if is_known is not None:
            is_anchor, is_given = is_given | is_known, is_given & ~is_known
        if not bool(is_given.any()):
            return None
        same = functional.pad((given.diff(dim=-1) == 0).all(dim=1) & is_given[:, :-1], (1, 0))
        is_first = is_given & ~same
        number = is_first.flatten().cumsum(0).view_as(is_first) * is_given
        n = int(is_first.sum())
        place = given.new_zeros(2, 1 + n)
        place[:, 1:] = given.transpose(0, 1)[:, is_first]
        size = number.flatten().bincount(minlength=1 + n).to(given).clamp_min(1)
        length = given.shape[-1]
        time = torch.arange(length, device=given.device).expand_as(number)
        # The last sample at or before each that is in a fixation or known, and the first after it.
        left = torch.where(is_anchor, time, -1).cummax(dim=1).values
        right = torch.where(is_anchor, time, length).flip(1).cummin(dim=1).values.flip(1)
        ends = number.gather(1, left.clamp_min(0)), number.gather(1, right.clamp_max(length - 1))
        # At the ends of a window the only neighbour counts.
        before = torch.where(left >= 0, ends[0], ends[1])
        after = torch.where(right < length, ends[1], ends[0])
        weight = (time - left) / (right - left).clamp_min(1)
        return cls(number, before, after, weight.to(given), place, size)

    def moved(self, position: Tensor) -> Tensor:
        """Positions (window, 2, time), shifted so that means over fixations are in place."""
        flat = position.transpose(0, 1).flatten(1)
        sums = torch.zeros_like(self.place).index_add_(1, self.number.flatten(), flat)
        shift = self.place - sums / self.size
        shift[:, 0] = 0
        between = torch.lerp(shift[:, self.before], shift[:, self.after], self.weight)
        return position + between.transpose(0, 1)


def timed(scanpath: Scanpath, screen: Screen, drawn_ms: Array) -> tuple[Array, Array]:
    """Onsets and durations (fixation,) in ms of a scanpath; what is left free follows.

    drawn_ms (fixation,): durations for those that have none. Between two given onsets these are
    scaled to fill the time.
    """
    onset, duration = scanpath.onset_ms.copy(), scanpath.duration_ms.copy()
    if np.isnan(onset[0]):
        onset[0] = 0.0
    saccade = saccade_ms(scanpath, screen)
    n = len(onset)
    for first, stop in pairwise([*np.flatnonzero(np.isfinite(onset)).tolist(), n]):
        is_free = np.isnan(duration[first:stop])
        lengths = np.where(is_free, drawn_ms[first:stop], duration[first:stop])
        if stop < n and is_free.any():
            taken = saccade[first:stop].sum() + lengths[~is_free].sum()
            left = onset[stop] - onset[first] - taken
            lengths[is_free] *= left / lengths[is_free].sum()
            if lengths[is_free].min() < SHORTEST_FIXATION_MS:
                raise GazeError(
                    f"scanpath {scanpath.name}: there is no time for fixations {first + 1} to "
                    f"{stop} between {onset[first]:g} and {onset[stop]:g} ms",
                    remedy="leave the onsets out, or give fewer fixations",
                )
        moves = lengths[:-1] + saccade[first : stop - 1]
        onset[first:stop] = onset[first] + np.concatenate([[0.0], np.cumsum(moves)])
        duration[first:stop] = lengths
    return onset, duration


def saccade_ms(scanpath: Scanpath, screen: Screen) -> Array:
    """Duration of the saccade from each fixation to the next, (fixation - 1,)."""
    place = np.stack([scanpath.x, scanpath.y])
    if not screen.has_degrees:
        return np.full(place.shape[1] - 1, 2 * SACCADE_MS)
    degrees = screen.to_degrees(screen.to_pixels(place))
    return np.asarray(SACCADE_MS + SACCADE_MS_PER_DEG * np.hypot(*np.diff(degrees)))


def fixation_durations(windows: Windows) -> Array:
    """Durations in ms of all fixations that lie wholly within their window."""
    found: list[float] = []
    for k in range(len(windows)):
        lasts = [
            event.offset_ms - event.onset_ms
            for event in windows.events(k)
            if event.event == "fixation"
        ]
        found += lasts[1:-1]
    return np.asarray(found)


def fixations_array(
    scanpaths: Sequence[Scanpath],
    times: Sequence[tuple[Array, Array]],
    rate_hz: float,
) -> Floats:
    """Where a fixation is to be, (scanpath, 2, time), to the end of the longest scanpath.

    times: onsets and durations in ms of each.
    """
    end_ms = max(float((onset + duration)[-1]) for onset, duration in times)
    array = nothing(len(scanpaths), end_ms / 1000, rate_hz)
    for entry, scanpath, (onset, duration) in zip(array, scanpaths, times, strict=True):
        first = np.rint(onset / 1000 * rate_hz).astype(int)
        last = np.rint((onset + duration) / 1000 * rate_hz).astype(int)
        for k, (a, b) in enumerate(zip(first, last, strict=True)):
            entry[:, a:b] = np.array([scanpath.x[k], scanpath.y[k]])[:, None]
    return array


def targets_array(
    targets: Sequence[Targets], rate_hz: float, seconds: float | None = None
) -> Floats:
    """Where the target is, (entry, 2, time); the last position holds for a second or to the end."""
    end_s = seconds or max(float(one.time_ms[-1]) for one in targets) / 1000 + LAST_TARGET_S
    array = nothing(len(targets), end_s, rate_hz)
    for entry, one in zip(array, targets, strict=True):
        for time_ms, x, y in zip(one.time_ms, one.x, one.y, strict=True):
            first = max(0, round(float(time_ms) / 1000 * rate_hz))
            entry[:, first:] = np.array([x, y])[:, None]
    return array


def waypoints_array(waypoints: Sequence[Waypoint], rate_hz: float, seconds: float) -> Floats:
    """Waypoints (seconds, x, y) as a fixation around each, (1, 2, time)."""
    array = nothing(1, seconds, rate_hz)
    for at_s, x, y in waypoints:
        if not 0 <= at_s <= seconds:
            raise GazeError(f"the waypoint at {at_s:g} s lies beyond the {seconds:g} s generated")
        first = max(0, round((at_s - WAYPOINT_S / 2) * rate_hz))
        array[0, :, first : round((at_s + WAYPOINT_S / 2) * rate_hz)] = np.array([x, y])[:, None]
    return array


def nothing(n: int, seconds: float, rate_hz: float) -> Floats:
    """An array (n, 2, time) in which nothing is given; one that is too long is refused."""
    if seconds > MOST_SECONDS:
        raise GazeError(
            f"windows of {seconds:.0f} s would be generated, and {MOST_SECONDS:g} s is the most",
            remedy="give times in milliseconds from the start of the gaze",
        )
    return np.full((n, 2, round(seconds * rate_hz)), np.nan, dtype=np.float32)


# Windows whose fixations give the durations that scanpaths leave free.
_N_WINDOWS = 8
_MOST_ENTRIES = 1024  # drawn for scanpaths with free durations; further windows repeat them


def as_given(steering: Steering, screen: Screen) -> Steering:
    """Steering with what tables and texts hold, which is on this screen, in normalized units."""
    scanpath: Any = steering.scanpath
    targets: Any = steering.targets
    at: Sequence[Any] = steering.at
    return replace(
        steering,
        scanpath=read_scanpaths(scanpath, screen) if isinstance(scanpath, Path) else scanpath,
        targets=read_targets(targets, screen) if isinstance(targets, Path) else targets,
        at=[parse_waypoint(one, screen) if isinstance(one, str) else one for one in at],
    )


def steered(sampler: Sampler, steering: Steering, n: int, seconds: float | None) -> Sampler:
    """The sampler of n windows that keep to scanpaths, targets, waypoints and a start.

    Window k takes scanpath k and target k, and again the first after the last. Waypoints and start
    hold for every window. seconds: length of every window; None is that of the longest scanpath or
    target, or of the model's windows.
    """
    rate_hz, length = sampler.run.config.rate_hz, sampler.run.config.length
    sampler = replace(sampler, constraints=Constraints())  # refused if not steerable
    arrays: dict[str, Floats] = {}
    if steering.scanpath:
        arrays["fixations"] = _fixations(list(steering.scanpath), sampler, n, sampler.seed)
    if steering.targets:
        arrays["targets"] = targets_array(steering.targets, rate_hz, seconds)
    longest = max((array.shape[2] for array in arrays.values()), default=length)
    n_samples = longest if seconds is None else round(seconds * rate_hz)
    points = [*([(0.0, *steering.start)] if steering.start else []), *steering.at]
    if points:
        given = waypoints_array(points, rate_hz, n_samples / rate_hz)
        arrays["fixations"] = _merged(arrays.get("fixations"), given)
    n_entries = max(len(array) for array in arrays.values())
    shaped = {name: _repeated(array, range(n_entries), n_samples) for name, array in arrays.items()}
    return replace(sampler, length=n_samples, constraints=Constraints(**shaped))


def _fixations(scanpaths: list[Scanpath], sampler: Sampler, n: int, seed: int) -> Floats:
    rate_hz = sampler.run.config.rate_hz
    screen = next(iter(sampler.screens.values()))
    if not any(np.isnan(one.duration_ms).any() for one in scanpaths):
        times = [timed(one, screen, one.duration_ms) for one in scanpaths]
        return fixations_array(scanpaths, times, rate_hz)
    n_entries = max(len(scanpaths), min(n, _MOST_ENTRIES))
    scanpaths = [scanpaths[k % len(scanpaths)] for k in range(n_entries)]
    free = replace(sampler, constraints=None, length=None)
    durations = fixation_durations(free.windows(0, _N_WINDOWS))
    if not len(durations):
        raise GazeError(
            "this model generates no fixations to draw durations from",
            remedy="give every fixation a duration",
        )
    times = []
    for k, one in enumerate(scanpaths):
        draws = rng(seed, Stream.FIXATION_DURATIONS, k)
        times.append(timed(one, screen, draws.choice(durations, len(one.x))))
    return fixations_array(scanpaths, times, rate_hz)


def _repeated(array: Floats, entries: range, n_samples: int) -> Floats:
    """These entries of an array (entry, 2, time), again from the first on, and NaN appended."""
    chosen = array[np.asarray(entries) % len(array)]
    padding = ((0, 0), (0, 0), (0, max(0, n_samples - array.shape[2])))
    return np.pad(chosen, padding, constant_values=np.nan)[..., :n_samples]


def _merged(fixations: Floats | None, waypoints: Floats) -> Floats:
    if fixations is None:
        return waypoints
    n_samples = max(fixations.shape[2], waypoints.shape[2])
    fixations = _repeated(fixations, range(len(fixations)), n_samples)
    waypoints = _repeated(waypoints, range(len(fixations)), n_samples)
    if (np.isfinite(fixations) & np.isfinite(waypoints)).any():
        raise GazeError(
            "a waypoint or the start falls into a fixation of the scanpath",
            remedy="leave it out, or give the scanpath a later onset",
        )
    return np.where(np.isfinite(fixations), fixations, waypoints)
