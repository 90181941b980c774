"""Quantities of eye movements by which participants differ, of every window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import detect_in_degrees
from gazediffusion.data.windows import Windows

Values = NDArray[np.float64]
Numbers = NDArray[np.int64]
QUANTITIES = (
    "fixation duration",
    "saccade rate",
    "amplitude",
    "peak velocity",
    "spread",
    "drift speed",
)
SMOOTHING_S = 0.04  # drift is that of gaze averaged over so much
_CHUNK = 512


@dataclass(frozen=True, eq=False)
class Movements:
    """The values of each quantity in some windows, and the window of each value.

    values, window: an array (value,) for each of `QUANTITIES`, in ms, 1/s, degrees, degrees per
    second, degrees, and degrees per second. Durations, amplitudes, velocities and drift have a
    value for each event, saccade rate and spread for each window.
    """

    values: tuple[Values, ...]
    window: tuple[Numbers, ...]

    @classmethod
    def of(cls, windows: Windows) -> Movements:
        """Of windows whose screens have a size, with the events of `Windows.events`."""
        found = [
            _measured(windows.select(np.arange(first, min(first + _CHUNK, len(windows)))), first)
            for first in range(0, len(windows), _CHUNK)
        ]
        columns = list(zip(*found, strict=True))
        return cls(
            tuple(np.concatenate([value for value, _ in column]) for column in columns),
            tuple(np.concatenate([window for _, window in column]) for column in columns),
        )

    @property
    def means(self) -> Values:
        """The mean of each quantity, (quantity,)."""
        return np.array([one.mean() for one in self.values])


def _measured(windows: Windows, first: int) -> list[tuple[Values, Numbers]]:
    """Values and windows of each quantity; the first window has the number `first`."""
    n, n_samples, rate_hz = len(windows), windows.length, windows.rate_hz
    pixels = windows.to_numpy("px").astype(np.float64)
    degrees = windows.to_numpy("deg").astype(np.float64)
    per_px = np.array([one.width_deg / one.width_px for one in windows.screens])
    per_px = per_px[windows.screen_index]
    speed = np.hypot(*np.diff(pixels).transpose(1, 0, 2)) * per_px[:, None] * rate_hz
    found = detect_in_degrees(speed, 1000 / rate_hz)
    of_saccade = found.saccades[:, 0] // n_samples
    begin, end = found.saccades.T
    way = pixels.transpose(1, 0, 2).reshape(2, -1)
    amplitude = np.hypot(*(way[:, end] - way[:, begin])) * per_px[of_saccade]
    rate = np.bincount(of_saccade, minlength=n) / n_samples * rate_hz
    spread = np.hypot(*degrees.std(axis=2).T)
    begin, end = found.fixations.T
    n_smooth = max(1, round(SMOOTHING_S * rate_hz))
    is_long = end - begin > 2 * n_smooth
    drift = _drift(degrees, n_smooth, begin[is_long], end[is_long]) * rate_hz
    of_fixation = begin // n_samples
    every = np.arange(n)
    values = [
        ((end - begin) / rate_hz * 1000, of_fixation),
        (rate, every),
        (amplitude, of_saccade),
        (found.saccade_peak_speed, of_saccade),
        (spread, every),
        (drift, of_fixation[is_long]),
    ]
    return [(np.asarray(one, dtype=float), number + first) for one, number in values]


def _drift(gaze: Values, n_smooth: int, begin: Numbers, end: Numbers) -> Values:
    """Mean step of gaze (window, 2, time) averaged over n_smooth samples, within each segment."""
    flat = gaze.transpose(1, 0, 2).reshape(2, -1)
    steps = np.hypot(*(flat[:, n_smooth:] - flat[:, :-n_smooth])) / n_smooth
    total = np.concatenate([[0.0], np.cumsum(steps)])
    return np.asarray((total[end - n_smooth] - total[begin]) / (end - n_smooth - begin))
