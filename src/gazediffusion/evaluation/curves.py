"""Curves of sets for figures: autocorrelation, spectrum, speed over time, and the main sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gazediffusion.evaluation.degree_events import main_sequence_fit
from gazediffusion.evaluation.quantities import Floats, Measured

MIN_SACCADES = 20
_MAX_POINTS = 500


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
