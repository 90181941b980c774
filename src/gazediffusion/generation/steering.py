"""Steering: what users give to steer generated gaze, made into the constraints of a generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.scanpaths import Scanpath, parse_waypoint, read_scanpaths
from gazediffusion.data.targets import read_targets
from gazediffusion.errors import GazeError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.rendering import (
    fixation_durations,
    fixations_array,
    targets_array,
    timed,
    waypoints_array,
)
from gazediffusion.geometry import Screen
from gazediffusion.seeds import seed_for
from gazediffusion.settings import Steering

# Windows whose fixations give the durations that scanpaths leave free.
_N_WINDOWS = 8
_MOST_ENTRIES = 1024  # drawn for scanpaths with free durations; further windows repeat them
_DURATIONS = 6  # names the stream of random numbers that durations are drawn from


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


def steered(
    generator: DiffusionGenerator, steering: Steering, n: int, seed: int, seconds: float | None
) -> DiffusionGenerator:
    """The generator of n windows that keep to scanpaths, targets, waypoints and a start.

    Window k takes scanpath k and target k, and again the first after the last. Waypoints and start
    hold for every window. seconds: length of every window; None is that of the longest scanpath or
    target, or of the model's windows.
    """
    rate_hz, length = generator.run.config.rate_hz, generator.run.config.length
    generator = replace(generator, constraints=Constraints())  # refused if not steerable
    arrays: dict[str, NDArray[np.float32]] = {}
    if steering.scanpath:
        arrays["fixations"] = _fixations(list(steering.scanpath), generator, n, seed)
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
    return replace(generator, length=n_samples, constraints=Constraints(**shaped))


def _fixations(
    scanpaths: list[Scanpath], generator: DiffusionGenerator, n: int, seed: int
) -> NDArray[np.float32]:
    rate_hz = generator.run.config.rate_hz
    screen = next(iter(generator.screens.values()))
    if not any(np.isnan(one.duration_ms).any() for one in scanpaths):
        times = [timed(one, screen, one.duration_ms) for one in scanpaths]
        return fixations_array(scanpaths, times, rate_hz)
    n_entries = max(len(scanpaths), min(n, _MOST_ENTRIES))
    scanpaths = [scanpaths[k % len(scanpaths)] for k in range(n_entries)]
    free = replace(generator, constraints=None, length=None)
    durations = fixation_durations(free.sample(_N_WINDOWS, seed))
    if not len(durations):
        raise GazeError(
            "this model generates no fixations to draw durations from",
            remedy="give every fixation a duration",
        )
    times = []
    for k, one in enumerate(scanpaths):
        rng = np.random.default_rng(seed_for(seed, _DURATIONS, k))
        times.append(timed(one, screen, rng.choice(durations, len(one.x))))
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
