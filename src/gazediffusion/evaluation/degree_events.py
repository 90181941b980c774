"""Degree events: fixations, saccades and microsaccades by pymovements, and the main sequence.

The paper's I-VT threshold is in normalized units, so it differs between screens and between the
axes of one screen. Here the field's own detectors work in degrees of visual angle: I-VT
(Salvucci & Goldberg 2000) and the noise-adaptive saccade detector of Engbert & Kliegl (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIXATION_DEG_S = 20.0  # pymovements' default for I-VT
MIN_FIXATION_MS = 100.0  # pymovements' default for I-VT
MIN_SACCADE_MS = 6.0  # Engbert & Kliegl 2003: three samples at 500 Hz
MICROSACCADE_DEG = 1.0  # Engbert & Kliegl 2003: smaller saccades are microsaccades
_MIN_NOISE_DEG_S = 1e-10  # below this pymovements refuses to set a threshold


@dataclass(frozen=True, eq=False)
class DegreeEvents:
    """Events of some windows in degrees of visual angle.

    window: (examined,) the windows looked at; the other *_window name windows the same way.
    fixation_duration_s, fixation_window: (fixation,).
    saccade_amplitude_deg: (saccade,) distance from onset to offset.
    saccade_peak_deg_s: (saccade,) the highest speed between them.
    fixations_per_s, saccades_per_s, microsaccades_per_s: (examined,). Saccades include the
        microsaccades, those smaller than a degree. NaN where the detector finds no noise to set
        its threshold by (half or more of the samples stand still along an axis).
    """

    window: Ints
    fixation_duration_s: Floats
    fixation_window: Ints
    saccade_amplitude_deg: Floats
    saccade_peak_deg_s: Floats
    saccade_window: Ints
    fixations_per_s: Floats
    saccades_per_s: Floats
    microsaccades_per_s: Floats


def degree_events(
    gaze: NDArray[np.floating[Any]], screen: Screen, rate_hz: float, max_windows: int = 256
) -> DegreeEvents:
    """Detect events in windows (window, 2, time) of normalized gaze with pymovements.

    Velocity is pymovements' `smooth` (five samples). At most `max_windows` windows, evenly
    spread over all, are looked at. Durations are in whole samples: the 6 ms of a shortest
    saccade are two sample intervals at 250 Hz.
    """
    import pymovements as pm

    if gaze.ndim != 3 or gaze.shape[1] != 2 or len(gaze) == 0 or max_windows < 1:
        raise GazeError(f"windows must have the shape (window, 2, time), not {gaze.shape}")
    length = gaze.shape[2]
    if length < 6:
        raise GazeError(f"a velocity needs windows of 6 samples or more, not {length}")
    window = np.unique(np.linspace(0, len(gaze) - 1, min(max_windows, len(gaze))).astype(np.int64))
    if not np.isfinite(gaze[window]).all():
        raise GazeError("the windows hold NaN or infinite positions")
    degrees = screen.to_degrees(screen.to_pixels(gaze[window].astype(np.float64)))
    fixations, saccades, amplitudes, peaks = [], [], [], []
    is_noisy = np.ones(len(window), dtype=bool)
    for number, position in enumerate(degrees.transpose(0, 2, 1)):
        velocity = pm.transforms.numpy.pos2vel(position, sampling_rate=rate_hz, method="smooth")
        found = pm.events.ivt(
            velocity,
            minimum_duration=_whole_samples(MIN_FIXATION_MS, rate_hz),
            velocity_threshold=FIXATION_DEG_S,
        )
        fixations.append(_spans(found))
        noise = np.median(np.abs(velocity - np.median(velocity, axis=0)), axis=0)
        is_noisy[number] = noise.min() >= _MIN_NOISE_DEG_S
        if not is_noisy[number]:
            saccades.append(np.empty((0, 2), dtype=np.int64))
            continue
        found = pm.events.microsaccades(
            velocity, minimum_duration=_whole_samples(MIN_SACCADE_MS, rate_hz)
        )
        spans = _spans(found)
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        saccades.append(spans)
        amplitudes.append(np.hypot(*(position[spans[:, 1]] - position[spans[:, 0]]).T))
        peaks.append(np.array([speed[onset : offset + 1].max() for onset, offset in spans]))
    amplitude = np.concatenate([*amplitudes, np.empty(0)])
    saccade_number = np.repeat(np.arange(len(window)), [len(spans) for spans in saccades])
    seconds = length / rate_hz
    small = saccade_number[amplitude < MICROSACCADE_DEG]
    unknown = np.where(is_noisy, 0.0, np.nan)
    return DegreeEvents(
        window=window,
        fixation_duration_s=np.concatenate([np.diff(spans)[:, 0] for spans in fixations]) / rate_hz,
        fixation_window=np.repeat(window, [len(spans) for spans in fixations]),
        saccade_amplitude_deg=amplitude,
        saccade_peak_deg_s=np.concatenate([*peaks, np.empty(0)]),
        saccade_window=window[saccade_number],
        fixations_per_s=np.array([len(spans) for spans in fixations]) / seconds,
        saccades_per_s=np.bincount(saccade_number, minlength=len(window)) / seconds + unknown,
        microsaccades_per_s=np.bincount(small, minlength=len(window)) / seconds + unknown,
    )


def _whole_samples(duration_ms: float, rate_hz: float) -> int:
    """The fewest sample intervals that last `duration_ms`."""
    return int(np.ceil(duration_ms * rate_hz / 1000.0 - 1e-6))


def _spans(events: Any) -> Ints:
    """First and last sample (event, 2) of pymovements' events, which count in samples."""
    return np.stack(
        [events.frame[name].to_numpy().astype(np.int64) for name in ("onset", "offset")], axis=1
    )


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
    if amplitude_deg.shape != peak_deg_s.shape:
        raise GazeError("the main sequence needs one peak for each amplitude")
    has_logarithm = (amplitude_deg > 0) & (peak_deg_s > 0)
    x = np.log10(amplitude_deg[has_logarithm])
    y = np.log10(peak_deg_s[has_logarithm])
    if len(x) < 3 or np.ptp(x) == 0:
        raise GazeError(f"the main sequence needs three saccades of different sizes, not {len(x)}")
    centred = x - x.mean()
    slope = float(centred @ (y - y.mean()) / (centred @ centred))
    intercept = float(y.mean() - slope * x.mean())
    residual = y - intercept - slope * x
    return MainSequence(
        slope, intercept, float(np.sqrt(residual @ residual / (len(x) - 2))), len(x)
    )
