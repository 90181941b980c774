"""Steering: what users give to steer generated gaze, made into the constraints of a sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from gazediffusion.generation.long_gaze import Constraints
from gazediffusion.generation.sampler import Sampler
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng
from gazediffusion.settings import MOST_SECONDS, Steering

Floats = NDArray[np.float64]
# Duration of a saccade: 2.2 ms per degree and 21 ms (Carpenter 1988, "Movements of the eyes").
SACCADE_MS, SACCADE_MS_PER_DEG = 21.0, 2.2
# Seconds for which a waypoint is held, and a last target without an end.
WAYPOINT_S, LAST_TARGET_S = 0.2, 1.0
Waypoint = tuple[float, float, float]


def timed(scanpath: Scanpath, screen: Screen, drawn_ms: Floats) -> tuple[Floats, Floats]:
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


def saccade_ms(scanpath: Scanpath, screen: Screen) -> Floats:
    """Duration of the saccade from each fixation to the next, (fixation - 1,)."""
    place = np.stack([scanpath.x, scanpath.y])
    if not screen.has_degrees:
        return np.full(place.shape[1] - 1, 2 * SACCADE_MS)
    degrees = screen.to_degrees(screen.to_pixels(place))
    return np.asarray(SACCADE_MS + SACCADE_MS_PER_DEG * np.hypot(*np.diff(degrees)))


def fixation_durations(windows: Windows) -> Floats:
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
    scanpaths: Sequence[Scanpath], times: Sequence[tuple[Floats, Floats]], rate_hz: float
) -> NDArray[np.float32]:
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
) -> NDArray[np.float32]:
    """Where the target is, (entry, 2, time); the last position holds for a second or to the end."""
    end_s = seconds or max(float(one.time_ms[-1]) for one in targets) / 1000 + LAST_TARGET_S
    array = nothing(len(targets), end_s, rate_hz)
    for entry, one in zip(array, targets, strict=True):
        for time_ms, x, y in zip(one.time_ms, one.x, one.y, strict=True):
            first = max(0, round(float(time_ms) / 1000 * rate_hz))
            entry[:, first:] = np.array([x, y])[:, None]
    return array


def waypoints_array(
    waypoints: Sequence[Waypoint], rate_hz: float, seconds: float
) -> NDArray[np.float32]:
    """Waypoints (seconds, x, y) as a fixation around each, (1, 2, time)."""
    array = nothing(1, seconds, rate_hz)
    for at_s, x, y in waypoints:
        if not 0 <= at_s <= seconds:
            raise GazeError(f"the waypoint at {at_s:g} s lies beyond the {seconds:g} s generated")
        first = max(0, round((at_s - WAYPOINT_S / 2) * rate_hz))
        array[0, :, first : round((at_s + WAYPOINT_S / 2) * rate_hz)] = np.array([x, y])[:, None]
    return array


def nothing(n: int, seconds: float, rate_hz: float) -> NDArray[np.float32]:
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
    arrays: dict[str, NDArray[np.float32]] = {}
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
    shaped = {name: _shaped(array, n_entries, n_samples) for name, array in arrays.items()}
    return replace(sampler, length=n_samples, constraints=Constraints(**shaped))


def _fixations(
    scanpaths: list[Scanpath], sampler: Sampler, n: int, seed: int
) -> NDArray[np.float32]:
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


def _shaped(array: NDArray[np.float32], n_entries: int, n_samples: int) -> NDArray[np.float32]:
    """An array (entry, 2, time) with entries repeated and NaN appended."""
    return Constraints(known=array).of(0, n_entries, n_samples)["known"]


def _merged(
    fixations: NDArray[np.float32] | None, waypoints: NDArray[np.float32]
) -> NDArray[np.float32]:
    if fixations is None:
        return waypoints
    n_samples = max(fixations.shape[2], waypoints.shape[2])
    fixations = _shaped(fixations, len(fixations), n_samples)
    waypoints = _shaped(waypoints, len(fixations), n_samples)
    if (np.isfinite(fixations) & np.isfinite(waypoints)).any():
        raise GazeError(
            "a waypoint or the start falls into a fixation of the scanpath",
            remedy="leave it out, or give the scanpath a later onset",
        )
    return np.where(np.isfinite(fixations), fixations, waypoints)
