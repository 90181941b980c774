"""Degree events: fixations, saccades and microsaccades in degrees, and the main sequence.

The paper's I-VT threshold is in normalized units, so it differs between screens and between the
axes of one screen. Here the field's own detectors work in degrees of visual angle: I-VT
(Salvucci & Goldberg 2000) and the noise-adaptive saccade detector of Engbert & Kliegl (2003).
Both give the events of pymovements 0.28 to the sample (a test compares them); many windows are
searched at once, which is ten times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import true_segments
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIXATION_DEG_S = 20.0  # pymovements' default for I-VT
MIN_FIXATION_MS = 100.0  # pymovements' default for I-VT
MIN_SACCADE_MS = 6.0  # Engbert & Kliegl 2003: three samples at 500 Hz
NOISE_FACTOR = 6.0  # Engbert & Kliegl 2003: the threshold in multiples of the noise
# Below this rate five samples outlast a saccade: velocity is taken over three of them, and no
# microsaccade can be separated from noise.
FINE_HZ = 200.0
MICROSACCADE_DEG = 1.0  # Engbert & Kliegl 2003: smaller saccades are microsaccades
_MIN_NOISE_DEG_S = 1e-10  # below this pymovements refuses to set a threshold
_CHUNK = 64  # windows searched at once


@dataclass(frozen=True, eq=False)
class DegreeEvents:
    """Events of some windows in degrees of visual angle.

    window: (examined,) the windows examined; the other *_window name windows the same way.
    fixation_duration_s, fixation_window: (fixation,).
    saccade_amplitude_deg: (saccade,) distance from onset to offset.
    saccade_peak_deg_s: (saccade,) the highest speed between them.
    microsaccades_per_s: (examined,) saccades smaller than a degree. NaN where the detector finds
        no noise to set its threshold by (half or more of the samples stand still along an axis),
        and below FINE_HZ.
    """

    window: Ints
    fixation_duration_s: Floats
    fixation_window: Ints
    saccade_amplitude_deg: Floats
    saccade_peak_deg_s: Floats
    saccade_window: Ints
    microsaccades_per_s: Floats


def degree_events(
    gaze: NDArray[np.floating[Any]],
    screens: Screen | Sequence[Screen],
    rate_hz: float,
    max_windows: int = 256,
) -> DegreeEvents:
    """Detect events in windows (window, 2, time) of normalized gaze.

    screens: one for all windows or one for each; windows whose screen has no size are passed over.
    Velocity is taken over five samples (pymovements' `smooth`), below FINE_HZ over three
    (`neighbors`), where peak velocities of short saccades are underestimated. At most
    `max_windows` windows, evenly spaced, are examined. Durations are in whole samples: the 6 ms of
    a shortest saccade are two sample intervals at 250 Hz.
    """
    if gaze.ndim != 3 or gaze.shape[1] != 2 or len(gaze) == 0 or max_windows < 1:
        raise GazeError(f"windows must have the shape (window, 2, time), not {gaze.shape}")
    length = gaze.shape[2]
    if length < 6:
        raise GazeError(f"a velocity needs windows of 6 samples or more, not {length}")
    of_window = [screens] * len(gaze) if isinstance(screens, Screen) else list(screens)
    known = np.flatnonzero([screen.has_degrees for screen in of_window])
    if len(known) == 0:
        raise GazeError("degrees need the screen's size and distance", remedy="give `screen`")
    # Truncated, not rounded: the packaged summaries were computed from these windows.
    chosen = np.linspace(0, len(known) - 1, min(max_windows, len(known))).astype(np.int64)
    window = known[np.unique(chosen)]
    if not np.isfinite(gaze[window]).all():
        raise GazeError("the windows hold NaN or infinite positions")
    found = []
    for first in range(0, len(window), _CHUNK):
        some = window[first : first + _CHUNK]
        degrees = _in_degrees(gaze[some], [of_window[k] for k in some])
        found.append(_events_of(degrees, rate_hz))
        for events in found[-1][:2]:
            events[:, 0] += first
    fixations, saccades, is_noisy = (np.concatenate(part) for part in zip(*found, strict=True))
    saccade, amplitude = saccades[:, 0].astype(np.int64), saccades[:, 1]
    n_small = np.bincount(saccade[amplitude < MICROSACCADE_DEG], minlength=len(window))
    is_noisy &= rate_hz >= FINE_HZ
    return DegreeEvents(
        window=window,
        fixation_duration_s=fixations[:, 1] / rate_hz,
        fixation_window=window[fixations[:, 0]],
        saccade_amplitude_deg=amplitude,
        saccade_peak_deg_s=saccades[:, 2],
        saccade_window=window[saccade],
        microsaccades_per_s=np.where(is_noisy, n_small / (length / rate_hz), np.nan),
    )


def _in_degrees(gaze: NDArray[np.floating[Any]], screens: Sequence[Screen]) -> Floats:
    """Degrees from the centre of each window's own screen, (window, 2, time)."""
    degrees = gaze.astype(np.float64)
    for screen in dict.fromkeys(screens):
        chosen = [one == screen for one in screens]
        degrees[chosen] = screen.to_degrees(screen.to_pixels(degrees[chosen]))
    return degrees


def _events_of(position: Floats, rate_hz: float) -> tuple[Ints, Floats, NDArray[np.bool_]]:
    """Events of a few windows, degrees (window, 2, time).

    Fixations (fixation, 2): window, duration in samples. Saccades (saccade, 3): window, amplitude,
    peak speed. Whether each window has noise to set the threshold by, (window,).
    """
    velocity = _smooth_velocity(position, rate_hz)
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    window, first, last = _spans(speed < FIXATION_DEG_S, MIN_FIXATION_MS, rate_hz)
    fixations = np.stack([window, last - first], axis=1)
    centred = velocity - np.median(velocity, axis=2, keepdims=True)
    noise = np.sqrt(np.median(centred**2, axis=2, keepdims=True))
    is_noisy = noise.min(axis=(1, 2)) >= _MIN_NOISE_DEG_S
    radius = np.where(is_noisy[:, None, None], noise * NOISE_FACTOR, np.inf)
    is_fast = ((velocity / radius) ** 2).sum(axis=1) > 1
    window, first, last = _spans(is_fast, MIN_SACCADE_MS, rate_hz)
    x, y = (position[window, :, last] - position[window, :, first]).T
    # Maxima over [first, last + 1); the spare column keeps the last border inside the array.
    flat = np.pad(speed, ((0, 0), (0, 1))).ravel()
    borders = window * (speed.shape[1] + 1) + np.stack([first, last + 1])
    peak = np.maximum.reduceat(flat, borders.T.ravel())[::2] if len(window) else np.empty(0)
    return fixations, np.stack([window, np.hypot(x, y), peak], axis=1), is_noisy


def _smooth_velocity(position: Floats, rate_hz: float) -> Floats:
    """Velocity over five samples (Engbert & Kliegl 2003) or three, fewer at a window's ends."""
    velocity = np.empty_like(position)
    p = position
    velocity[..., 1:-1] = (p[..., 2:] - p[..., :-2]) * rate_hz / 2
    if rate_hz >= FINE_HZ:
        velocity[..., 2:-2] = (p[..., 4:] + p[..., 3:-1] - p[..., 1:-3] - p[..., :-4]) * rate_hz / 6
    for k, after, before in ((0, 1, 0), (-1, -1, -2)):
        velocity[..., k] = (p[..., after] - p[..., before]) * rate_hz / 2
    return velocity


def _spans(
    mask: NDArray[np.bool_], min_duration_ms: float, rate_hz: float
) -> tuple[Ints, Ints, Ints]:
    """Window, first and last sample of the true stretches that last long enough."""
    n_intervals = np.ceil(min_duration_ms * rate_hz / 1000.0 - 1e-6)
    # A false column after each window keeps stretches from crossing its border.
    found = true_segments(np.pad(mask, ((0, 0), (0, 1))).ravel())
    found = found[found[:, 1] - 1 - found[:, 0] >= n_intervals]
    window, first = np.divmod(found[:, 0], mask.shape[1] + 1)
    return window, first, first + found[:, 1] - 1 - found[:, 0]


@dataclass(frozen=True)
class MainSequence:
    """log10(peak deg/s) = intercept + slope * log10(amplitude deg), fitted to n saccades.

    spread: standard deviation of the residuals (divisor n - 2), in log10 units.
    """

    slope: float
    intercept: float
    spread: float
    n: int


def main_sequence_fit(amplitude_deg: Floats, peak_deg_s: Floats) -> MainSequence:
    """Fit the main sequence (Bahill et al. 1975) by least squares in logarithms.

    Saccades that end where they began have no logarithm and are left out.
    """
    has_logarithm = (amplitude_deg > 0) & (peak_deg_s > 0)
    x = np.log10(amplitude_deg[has_logarithm])
    y = np.log10(peak_deg_s[has_logarithm])
    if len(x) < 3 or np.ptp(x) == 0:
        raise GazeError(f"the main sequence needs three saccades of different sizes, not {len(x)}")
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean()) / (centred @ centred))
    intercept = float(y.mean() - slope * x.mean())
    residual = y - intercept - slope * x
    spread = float(np.sqrt(residual @ residual / (len(x) - 2)))
    return MainSequence(slope, intercept, spread, len(x))
