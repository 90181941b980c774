"""Curves of sets: autocorrelation, spectra and speed over time, and the main sequence.

A temporal distance is the mean absolute difference of two sets' mean curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from gazediffusion.evaluation.degree_events import main_sequence_fit
from gazediffusion.evaluation.quantities import TEMPORAL, GroupMeans, Measured, Temporal

Curve = Callable[[Temporal], GroupMeans]

MIN_SACCADES = 20
_MAX_POINTS = 500


def scalar_curves() -> Iterator[tuple[str, str, Curve]]:
    """Name, title and curve of each temporal distance."""
    for name in TEMPORAL:
        title = name.replace("_", " ")
        yield f"rho1_{name}", f"lag-one autocorrelation of {title}", partial(_lag_one, name)
        yield f"psd_{name}", f"spectrum of {title} (L1 per frequency)", partial(_spectrum, name)
    yield "autocorrelation", "speed autocorrelation to 400 ms", lambda t: t.autocorrelation


def _lag_one(name: str, temporal: Temporal) -> GroupMeans:
    return temporal.lag_one[name]


def _spectrum(name: str, temporal: Temporal) -> GroupMeans:
    return temporal.spectra[name]


def curves_of(measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The mean curves of some sets, by name, over the x they share."""
    temporal = {name: one.temporal for name, one in measured.items()}
    first = next(iter(temporal.values()))
    seconds = np.arange(len(first.speed_profile)) * float(first.lag_ms[1]) / 1000
    thin = slice(None, None, 10)
    return {
        "speed_autocorrelation": {
            "x": first.lag_ms.tolist(),
            "x_label": "lag (ms)",
            "y_label": "autocorrelation",
            "sets": {name: t.autocorrelation.mean().tolist() for name, t in temporal.items()},
        },
        "speed_spectrum": {
            "x": first.frequency_hz.tolist(),
            "x_label": "frequency (Hz)",
            "y_label": "share of power",
            "sets": {name: t.spectra["speed"].mean().tolist() for name, t in temporal.items()},
        },
        "mean_speed_profile": {
            "x": seconds[thin].tolist(),
            "x_label": "time (s)",
            "y_label": "mean speed (normalized units/s)",
            "sets": {name: t.speed_profile[thin].tolist() for name, t in temporal.items()},
        },
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
