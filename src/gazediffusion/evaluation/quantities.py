"""Quantities: everything that is compared, computed once per set of windows.

A quantity is a sample of numbers, each of a group of windows (a participant): one per window (a
feature, a count), or many (every step, every event), pooled. Distances, floors and intervals need
the numbers only. Curves and the main sequence of sets are for figures as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import evenly_spaced
from gazediffusion.evaluation.features import (
    DegreeEvents,
    EventStatistics,
    autocorrelation,
    degree_events,
    ivt_statistics,
    kinematic_features,
    lag_one_autocorrelation,
    main_sequence_fit,
    motion_quantities,
    normalized_spectra,
    velocity_quantities,
)
from gazediffusion.plugins import Plugin
from gazediffusion.screen import Screen

if TYPE_CHECKING:
    from gazediffusion.evaluation.sets import GazeSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Level = Literal["window", "pooled"]
Protocol = Literal["position", "velocity"]
# Sample-level quantities are pooled from at most this many windows, evenly spaced: eight million
# numbers suffice for a histogram, and memory stays bounded.
MAX_POOLED_WINDOWS = 4096
AUTOCORRELATION_MS = 400.0
# Of the main sequence: fewest saccades of a fit, most points that are kept.
MIN_SACCADES, _MAX_POINTS = 20, 500
TEMPORAL = ("v_x", "v_y", "speed", "log_speed")
# Saccades reach far beyond the bins of JS, so a picture needs further bins.
HEAVY_TAILED = ("v_x", "v_y", "speed")
# The family of the numbers that plug-ins compute; it does not count in the headline.
PLUGINS = "plug-ins"
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
    "v_x": ("horizontal velocity", "normalized units per second"),
    "v_y": ("vertical velocity", "normalized units per second"),
    "speed": ("speed", "normalized units per second"),
    "log_speed": ("log speed", "ln normalized units per second"),
    "turning_angle": ("signed turning angle", "rad"),
}
DEGREES = {
    "fixation_duration_s": ("fixation duration (20 deg/s)", "s"),
    "saccade_amplitude_deg": ("saccade amplitude", "deg"),
    "saccade_peak_deg_s": ("saccade peak velocity", "deg/s"),
    "microsaccades_per_s": ("microsaccades per second", "1/s"),
}
# name -> title of each temporal distance: mean absolute difference of two sets' mean curves
SCALARS = {
    f"{kind}_{name}": title.format(name.replace("_", " "))
    for name in TEMPORAL
    for kind, title in (
        ("rho1", "lag-one autocorrelation of {}"),
        ("psd", "spectrum of {} (L1 per frequency)"),
    )
} | {"autocorrelation": "speed autocorrelation to 400 ms"}


@dataclass(frozen=True, eq=False)
class Quantity:
    """Numbers of one kind: values (value,), and the group of the window each is of (value,)."""

    name: str
    title: str
    family: str
    unit: str
    level: Level
    values: Floats
    group: Ints

    @property
    def described(self) -> dict[str, str]:
        """All but the numbers, as in results."""
        return {word: getattr(self, word) for word in ("name", "title", "family", "unit", "level")}

    @property
    def mean(self) -> float | None:
        """Over all values; None where there is none."""
        return float(np.mean(self.values)) if len(self.values) else None


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Rows (window, ...) summed by group, so that means of drawn groups cost nothing."""

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, rows: Floats, group: Ints) -> GroupMeans:
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
class Measured:
    """One set of windows, measured.

    quantities: by `family.name`. curves: means of windows by temporal distance, keys of SCALARS.
    lag_ms, frequency_hz: of the curves. speed_profile: mean speed (step,), normalized units per
    second. features: (window, 9). degrees: None where no screen has a size.
    """

    quantities: dict[str, Quantity]
    curves: dict[str, GroupMeans]
    lag_ms: Floats
    frequency_hz: Floats
    speed_profile: Floats
    features: Floats
    degrees: DegreeEvents | None


def measure(
    gaze: NDArray[np.float32],
    rate_hz: float,
    screens: Screen | Sequence[Screen],
    protocols: tuple[Protocol, ...],
    group: Ints,
) -> Measured:
    """Measure windows (window, 2, time) of normalized gaze, each of a group (window,).

    screens: one for all windows or one for each; degrees are left out where none has a size.
    """
    chosen = evenly_spaced(len(gaze), MAX_POOLED_WINDOWS)
    features = kinematic_features(gaze, rate_hz)
    velocity = velocity_quantities(gaze[chosen], rate_hz)
    found: list[Quantity] = []
    if "position" in protocols:
        events = ivt_statistics(gaze, rate_hz)
        found += quantities_of("features", FEATURES, features, group)
        found += quantities_of("events", EVENTS, vars(events), group, _of_events(events, group))
        motion = motion_quantities(gaze[chosen])
        found += quantities_of("directions", DIRECTIONS, motion, group[chosen])
    if "velocity" in protocols:
        found += quantities_of("velocity", VELOCITY, velocity, group[chosen])
        path = {"path_length": ("reconstructed path length", "normalized units")}
        found += quantities_of("velocity", path, features, group)
    known = [screens] if isinstance(screens, Screen) else screens
    degrees = None
    if any(screen.has_degrees for screen in known):
        degrees = degree_events(gaze, screens, rate_hz)
        of_events = _of_events(degrees, group)
        found += quantities_of("degrees", DEGREES, vars(degrees), group[degrees.window], of_events)
    max_lag = min(round(AUTOCORRELATION_MS * rate_hz / 1000), velocity["speed"].shape[1] - 1)
    rows = {"autocorrelation": autocorrelation(velocity["speed"], max_lag)}
    for name in TEMPORAL:
        frequency_hz, rows[f"psd_{name}"] = normalized_spectra(velocity[name], rate_hz)
        rows[f"rho1_{name}"] = lag_one_autocorrelation(velocity[name])
    return Measured(
        quantities={f"{one.family}.{one.name}": one for one in found},
        curves={name: GroupMeans.of(rows[name], group[chosen]) for name in SCALARS},
        lag_ms=np.arange(max_lag + 1) * 1000.0 / rate_hz,
        frequency_hz=frequency_hz,
        speed_profile=velocity["speed"].mean(axis=0),
        features=np.stack([features[name] for name in FEATURES], axis=1),
        degrees=degrees,
    )


def _of_events(events: EventStatistics | DegreeEvents, group: Ints) -> dict[str, Ints]:
    """The group of each event, (event,), by the first word of its quantities."""
    return {"fixation": group[events.fixation_window], "saccade": group[events.saccade_window]}


def quantities_of(
    family: str,
    names: Mapping[str, tuple[str, str]],
    values: Mapping[str, NDArray[Any]],
    of_window: Ints,
    of_events: Mapping[str, Ints] | None = None,
) -> Iterator[Quantity]:
    """Quantities of windows (window,), of steps (window, step) and of events (event,).

    of_window, of_events: the group of each. Values that are not defined are left out.
    """
    for name, (title, unit) in names.items():
        found = np.asarray(values[name], dtype=np.float64)
        is_count = name.endswith("_count")
        of_event = None if is_count else (of_events or {}).get(name.split("_")[0])
        level: Level = "window" if found.ndim == 1 and of_event is None else "pooled"
        group = of_window if of_event is None else of_event
        group = np.broadcast_to(group[:, None] if found.ndim == 2 else group, found.shape)
        is_defined = np.isfinite(found)
        yield Quantity(name, title, family, unit, level, found[is_defined], group[is_defined])


def curves_of(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The mean curves of some sets, by name, over the x they share."""
    first = next(iter(measured.values()))
    thin = slice(None, None, 10)
    seconds = np.arange(len(first.speed_profile)) * float(first.lag_ms[1]) / 1000

    def curve(x: Floats, x_label: str, y_label: str, sets: dict[str, Floats]) -> dict[str, Any]:
        values = {name: one.tolist() for name, one in sets.items()}
        return {"x": x.tolist(), "x_label": x_label, "y_label": y_label, "sets": values}

    def means(key: str) -> dict[str, Floats]:
        return {name: one.curves[key].mean() for name, one in measured.items()}

    profiles = {name: one.speed_profile[thin] for name, one in measured.items()}
    return {
        "speed_autocorrelation": curve(
            first.lag_ms, "lag (ms)", "autocorrelation", means("autocorrelation")
        ),
        "speed_spectrum": curve(
            first.frequency_hz, "frequency (Hz)", "share of power", means("psd_speed")
        ),
        "mean_speed_profile": curve(
            seconds[thin], "time (s)", "mean speed (normalized units/s)", profiles
        ),
    }


def main_sequence_of(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The main sequence of each set of MIN_SACCADES or more: the fit, and some of its points."""
    if all(one.degrees is None for one in measured.values()):
        return {"not_computable": "the screen's size and distance are not known (`screen`)"}
    rows = {}
    for name, one in measured.items():
        events = one.degrees
        if events is None or len(events.saccade_window) < MIN_SACCADES:
            continue
        amplitude, peak = events.saccade_amplitude_deg, events.saccade_peak_deg_s
        fit = main_sequence_fit(amplitude, peak)
        step = max(1, len(amplitude) // _MAX_POINTS)
        rows[name] = {
            **vars(fit),
            "amplitude_deg": amplitude[::step][:_MAX_POINTS].tolist(),
            "peak_deg_s": peak[::step][:_MAX_POINTS].tolist(),
        }
    return {"sets": rows}


def plugin_quantities(of: GazeSet, plugins: Mapping[str, Plugin]) -> dict[str, Quantity]:
    """The numbers of a set's windows by each plug-in, under `family.name`."""
    found = {}
    for name, plugin in plugins.items():
        metric = plugin.value
        given = plugin.call(metric.values, of.gaze.copy(), of.rate_hz, of.screens)
        values = plugin.call(np.asarray, given, np.float64)
        if values.shape != (len(of.gaze),):
            needed = f"values of the shape {(len(of.gaze),)} are needed, not {values.shape}"
            raise plugin.failure(ValueError(needed))
        title = {name: (str(metric.title), str(metric.unit))}
        found[f"{PLUGINS}.{name}"] = next(quantities_of(PLUGINS, title, {name: values}, of.group))
    return found
