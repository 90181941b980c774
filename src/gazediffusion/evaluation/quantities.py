"""Quantities: everything that is compared, computed once per set of windows.

A quantity is a sample of numbers with the window each came from: one per window (a feature, a
count), or many (every step, every event), pooled. Distances, floors and intervals need the numbers
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.subsampling import evenly_spaced
from gazediffusion.evaluation.degree_events import DegreeEvents, degree_events
from gazediffusion.evaluation.features import (
    autocorrelation,
    ivt_statistics,
    kinematic_features,
    lag_one_autocorrelation,
    motion_quantities,
    normalized_spectra,
    velocity_quantities,
)
from gazediffusion.geometry import Screen

Floats = NDArray[np.float64]
Level = Literal["window", "pooled"]
Protocol = Literal["position", "velocity"]

# Sample-level quantities are pooled from at most this many windows, evenly spaced: eight million
# numbers suffice for a histogram, and memory stays bounded.
MAX_POOLED_WINDOWS = 4096
AUTOCORRELATION_MS = 400.0
TEMPORAL = ("v_x", "v_y", "speed", "log_speed")

# name -> (title, unit), by family
FEATURES = {
    "mean_speed": ("mean speed", "normalized units per sample"),
    "max_speed": ("max speed", "normalized units per sample"),
    "path_length": ("path length", "normalized units"),
    "x_range": ("x range", "normalized units"),
    "y_range": ("y range", "normalized units"),
    "x_std": ("x std", "normalized units"),
    "y_std": ("y std", "normalized units"),
    "displacement": ("displacement", "normalized units"),
    "fixation_ratio": ("fixation ratio", ""),
}
EVENTS = {
    "fixation_duration_s": ("fixation duration", "s"),
    "fixation_dispersion": ("fixation dispersion", "normalized units"),
    "fixation_count": ("fixations per window", ""),
    "saccade_amplitude": ("saccade amplitude", "normalized units"),
    "saccade_peak_speed": ("saccade peak speed", "normalized units per sample"),
    "saccade_duration_s": ("saccade duration", "s"),
    "saccade_count": ("saccades per window", ""),
}
DIRECTIONS = {
    "speed": ("speed", "normalized units per sample"),
    "direction": ("movement direction", "rad"),
    "turning_angle": ("turning angle", "rad"),
}
VELOCITY = {
    "v_x": ("horizontal velocity", "normalized units/s"),
    "v_y": ("vertical velocity", "normalized units/s"),
    "speed": ("speed", "normalized units/s"),
    "log_speed": ("log speed", "ln normalized units/s"),
    "turning_angle": ("signed turning angle", "rad"),
}
DEGREES = {
    "fixation_duration_s": ("fixation duration (20 deg/s)", "s"),
    "saccade_amplitude_deg": ("saccade amplitude", "deg"),
    "saccade_peak_deg_s": ("saccade peak velocity", "deg/s"),
    "microsaccades_per_s": ("microsaccades per second", "1/s"),
}


@dataclass(frozen=True, eq=False)
class Quantity:
    """Numbers of one kind: values (value,), and the window each came from (value,)."""

    name: str
    title: str
    family: str
    unit: str
    level: Level
    values: Floats
    window: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Rows (window, ...) summed by group, so that means of drawn groups cost nothing."""

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, rows: Floats, group: NDArray[np.int64]) -> GroupMeans:
        """Sums (group, ...) and counts (group,) over the windows whose rows are defined."""
        flat = rows.reshape(len(rows), -1)
        is_defined = np.isfinite(flat).all(axis=1)
        n_groups = int(group.max()) + 1
        sums = np.zeros((n_groups, flat.shape[1]))
        np.add.at(sums, group[is_defined], flat[is_defined])
        return cls(sums, np.bincount(group[is_defined], minlength=n_groups).astype(float))

    def mean(self, weights: Floats | None = None) -> Floats:
        """The mean row over all windows, (n,), or over drawn groups (replicate, n)."""
        if weights is None:
            return np.asarray(self.mean(np.ones((1, len(self.counts))))[0])
        counts = (weights @ self.counts)[:, None]
        # A set in which nothing moves has no such curve at all.
        return np.asarray(weights @ self.sums / np.where(counts > 0, counts, np.nan))


@dataclass(frozen=True, eq=False)
class Temporal:
    """Curves of one set, by group: autocorrelation of speed, spectra, lag-one correlations."""

    lag_ms: Floats
    autocorrelation: GroupMeans
    frequency_hz: Floats
    spectra: dict[str, GroupMeans]
    lag_one: dict[str, GroupMeans]
    speed_profile: Floats


@dataclass(frozen=True, eq=False)
class Measured:
    """One set of windows, measured."""

    quantities: dict[str, Quantity]
    temporal: Temporal
    features: Floats
    degrees: DegreeEvents | None


def measure(
    gaze: NDArray[np.float32],
    rate_hz: float,
    screens: Screen | Sequence[Screen],
    protocols: tuple[Protocol, ...],
    group: NDArray[np.int64],
) -> Measured:
    """Measure windows (window, 2, time) of normalized gaze, each of a group (window,).

    screens: one for all windows or one for each; degrees are left out where none has a size.
    Keys of `quantities` are `family.name`.
    """
    chosen = evenly_spaced(len(gaze), MAX_POOLED_WINDOWS)
    features = kinematic_features(gaze)
    known = [screens] if isinstance(screens, Screen) else screens
    has_degrees = any(screen.has_degrees for screen in known)
    degrees = degree_events(gaze, screens, rate_hz) if has_degrees else None
    found: list[Quantity] = []
    if "position" in protocols:
        found += _per_window("features", FEATURES, features)
        found += _events(gaze, rate_hz)
        found += _pooled("directions", DIRECTIONS, motion_quantities(gaze[chosen]), chosen)
    velocity = velocity_quantities(gaze[chosen], rate_hz)
    if "velocity" in protocols:
        found += _pooled("velocity", VELOCITY, velocity, chosen)
        path = {"path_length": ("reconstructed path length", "normalized units")}
        found += _per_window("velocity", path, features)
    if degrees is not None:
        found += _degrees(degrees)
    return Measured(
        quantities={f"{one.family}.{one.name}": one for one in found},
        temporal=_temporal(velocity, rate_hz, group[chosen]),
        features=np.stack([features[name] for name in FEATURES], axis=1),
        degrees=degrees,
    )


def _per_window(
    family: str, names: dict[str, tuple[str, str]], values: dict[str, Floats]
) -> Iterator[Quantity]:
    for name, (title, unit) in names.items():
        window = np.arange(len(values[name]))
        yield Quantity(name, title, family, unit, "window", values[name], window)


def _pooled(
    family: str,
    names: dict[str, tuple[str, str]],
    values: dict[str, Floats],
    chosen: NDArray[np.int64],
) -> Iterator[Quantity]:
    """Quantities of every step (window, step), those that are not defined left out."""
    for name, (title, unit) in names.items():
        rows = values[name]
        is_defined = ~np.isnan(rows)
        window = np.broadcast_to(chosen[:, None], rows.shape)[is_defined]
        yield Quantity(name, title, family, unit, "pooled", rows[is_defined], window)


def _events(gaze: NDArray[np.float32], rate_hz: float) -> Iterator[Quantity]:
    statistics = ivt_statistics(gaze, rate_hz)
    for name, (title, unit) in EVENTS.items():
        values = getattr(statistics, name).astype(np.float64)
        if name.endswith("_count"):
            window, level = np.arange(len(values)), "window"
        else:
            window, level = getattr(statistics, f"{name.split('_')[0]}_window"), "pooled"
        yield Quantity(name, title, "events", unit, level, values, window)  # type: ignore[arg-type]


def _degrees(events: DegreeEvents) -> Iterator[Quantity]:
    windows = {
        "fixation_duration_s": events.fixation_window,
        "saccade_amplitude_deg": events.saccade_window,
        "saccade_peak_deg_s": events.saccade_window,
        "microsaccades_per_s": events.window,
    }
    for name, (title, unit) in DEGREES.items():
        level: Level = "window" if name == "microsaccades_per_s" else "pooled"
        values: Any = getattr(events, name)
        is_defined = np.isfinite(values)
        window = windows[name][is_defined]
        yield Quantity(name, title, "degrees", unit, level, values[is_defined], window)


def _temporal(velocity: dict[str, Floats], rate_hz: float, group: NDArray[np.int64]) -> Temporal:
    max_lag = min(round(AUTOCORRELATION_MS * rate_hz / 1000), velocity["speed"].shape[1] - 1)
    spectra: dict[str, GroupMeans] = {}
    lag_one: dict[str, GroupMeans] = {}
    frequency = np.empty(0)
    for name in TEMPORAL:
        frequency, rows = normalized_spectra(velocity[name], rate_hz)
        spectra[name] = GroupMeans.of(rows, group)
        lag_one[name] = GroupMeans.of(lag_one_autocorrelation(velocity[name]), group)
    return Temporal(
        lag_ms=np.arange(max_lag + 1) * 1000.0 / rate_hz,
        autocorrelation=GroupMeans.of(autocorrelation(velocity["speed"], max_lag), group),
        frequency_hz=frequency,
        spectra=spectra,
        lag_one=lag_one,
        speed_profile=velocity["speed"].mean(axis=0),
    )
