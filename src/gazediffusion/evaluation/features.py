"""Features: what a window of gaze does, in numbers (paper, section "Evaluation protocols").

Pure functions of gaze (window, 2, time) in normalized units: the nine kinematic features, I-VT
events, the four-metric framework of Lencastre et al. (2023), and the velocity quantities with
their autocorrelations and spectra. A step joins two neighbouring samples, so a window of 2,000
samples has 1,999 steps. What is pooled over steps keeps its window: arrays are (window, step),
NaN where a value is not defined, so that callers can group by participant.

The paper's I-VT threshold is in normalized units, so it differs between screens and between the
axes of one screen. Degree events are those of the field's own detectors, in degrees of visual
angle: I-VT (Salvucci & Goldberg 2000) and the noise-adaptive saccade detector of Engbert & Kliegl
(2003). Both give the events of pymovements 0.28 to the sample (a test compares them); many windows
are searched at once, which is ten times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import MIN_FIXATION_MS, detect_ivt
from gazediffusion.data.recordings import true_segments
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Gaze = NDArray[np.floating[Any]]
PAPER_HZ = 250.0
IVT_THRESHOLD = 0.02  # normalized units per sample at 250 Hz; paper, "Evaluation protocols"
LOG_SPEED_FLOOR = 1e-3  # normalized units per second; a fortieth of 0.1 px per sample at 250 Hz
_CHUNK = 64  # windows worked on at once: 2 MB of float64 for 2,000 samples stay in the cache
FIXATION_DEG_S = 20.0  # pymovements' default for I-VT
DEGREE_FIXATION_MS = 100.0  # pymovements' default for I-VT
MIN_SACCADE_MS = 6.0  # Engbert & Kliegl 2003: three samples at 500 Hz
NOISE_FACTOR = 6.0  # Engbert & Kliegl 2003: the threshold in multiples of the noise
# Below this rate five samples outlast a saccade: velocity is taken over three of them, and no
# microsaccade can be separated from noise.
FINE_HZ = 200.0
MICROSACCADE_DEG = 1.0  # Engbert & Kliegl 2003: smaller saccades are microsaccades
_MIN_NOISE_DEG_S = 1e-10  # below this pymovements refuses to set a threshold


def ivt_threshold(rate_hz: float) -> float:
    """The paper's threshold of speed, 5 normalized units per second, in those per sample."""
    return IVT_THRESHOLD * PAPER_HZ / rate_hz


def kinematic_features(gaze: Gaze, rate_hz: float = PAPER_HZ) -> dict[str, Floats]:
    """The paper's nine features of each window, each (window,).

    mean_speed, max_speed: normalized units per sample. path_length: the sum of the speeds.
    x_range, y_range, x_std, y_std: of the positions (std with divisor n). displacement: from
    the first sample to the last. fixation_ratio: share of steps not above the I-VT threshold.
    """
    return _by_parts(gaze, partial(_features_of, ivt_threshold(rate_hz)))


def _features_of(threshold: float, gaze: Floats, first_window: int) -> dict[str, Floats]:
    speed = _lengths(np.diff(gaze, axis=2))
    (x_range, y_range), (x_std, y_std) = np.ptp(gaze, axis=2).T, gaze.std(axis=2).T
    return {
        "mean_speed": speed.mean(axis=1),
        "max_speed": speed.max(axis=1),
        "path_length": speed.sum(axis=1),
        "x_range": x_range,
        "y_range": y_range,
        "x_std": x_std,
        "y_std": y_std,
        "displacement": np.hypot(*(gaze[:, :, -1] - gaze[:, :, 0]).T),
        "fixation_ratio": (speed <= threshold).mean(axis=1),
    }


@dataclass(frozen=True, eq=False)
class EventStatistics:
    """Fixations and saccades of many windows, pooled, with the window each belongs to.

    A run of k steps lasts k / rate seconds and spans k + 1 samples.
    fixation_dispersion: sqrt(std_x^2 + std_y^2) of the fixation's samples, normalized units (the
        paper does not define its dispersion; this is our choice).
    saccade_amplitude: distance from the run's first sample to its last, normalized units.
    saccade_peak_speed: normalized units per sample.
    fixation_window, saccade_window: (event,) indices of windows, never decreasing.
    fixation_count, saccade_count: (window,).
    """

    fixation_duration_s: Floats
    fixation_dispersion: Floats
    fixation_window: Ints
    saccade_amplitude: Floats
    saccade_peak_speed: Floats
    saccade_duration_s: Floats
    saccade_window: Ints
    fixation_count: Ints
    saccade_count: Ints


def ivt_statistics(gaze: Gaze, rate_hz: float, threshold: float | None = None) -> EventStatistics:
    """Events by velocity threshold (`detect_ivt`), as the paper counts them.

    Every run of steps above `threshold` (normalized units per sample; None is the paper's speed
    at this rate, `ivt_threshold`) is a saccade, however short; a run of the other steps is a
    fixation if it lasts 60 ms or longer. No run crosses a window's border; events cut by the
    border count with what is seen of them.
    """
    threshold = ivt_threshold(rate_hz) if threshold is None else threshold
    return EventStatistics(**_by_parts(gaze, partial(_events_of, rate_hz, threshold)))


def _events_of(
    rate_hz: float, threshold: float, gaze: Floats, first_window: int
) -> dict[str, NDArray[Any]]:
    n, _, length = gaze.shape
    # A tolerance of a millionth of a step: 60 ms at 250 Hz is 15 steps, whatever floats say.
    min_steps = MIN_FIXATION_MS * rate_hz / 1000.0 - 1e-6
    found = detect_ivt(_lengths(np.diff(gaze, axis=2)), threshold, min_steps)
    samples = gaze.transpose(1, 0, 2).reshape(2, -1)
    (fixation, fixation_end), (saccade, saccade_end) = found.fixations.T, found.saccades.T
    return {
        "fixation_duration_s": (fixation_end - fixation) / rate_hz,
        "fixation_dispersion": _dispersion(samples, found.fixations),
        "fixation_window": fixation // length + first_window,
        "saccade_amplitude": np.hypot(*(samples[:, saccade_end] - samples[:, saccade])),
        "saccade_peak_speed": found.saccade_peak_speed,
        "saccade_duration_s": (saccade_end - saccade) / rate_hz,
        "saccade_window": saccade // length + first_window,
        "fixation_count": np.bincount(fixation // length, minlength=n),
        "saccade_count": np.bincount(saccade // length, minlength=n),
    }


def _dispersion(samples: Floats, runs: Ints) -> Floats:
    """sqrt(std_x^2 + std_y^2) over each run's samples, both ends included, (run,)."""
    n = runs[:, 1] - runs[:, 0] + 1
    borders = np.cumsum(n) - n  # of the runs' samples end to end
    inside = np.arange(n.sum()) + np.repeat(runs[:, 0] - borders, n)
    variance = np.zeros(len(runs))
    for values in samples[:, inside]:
        # Two passes: the spread of a fixation is a thousandth of its distance from the centre.
        centred = values - np.repeat(np.add.reduceat(values, borders) / n, n)
        variance += np.add.reduceat(centred * centred, borders) / n
    return np.sqrt(variance)


def motion_quantities(gaze: Gaze) -> dict[str, Floats]:
    """Speed, direction and signed turning angle of each step, each (window, step).

    speed: |u_i|, normalized units per sample. direction: atan2(dy, dx) in radians, y down as on
    the screen. turning_angle: change of direction since the step before, in [-pi, pi]. A step of
    no length has no direction: its direction and the turns into and out of it are NaN, as is the
    turn into a window's first step.
    """
    _require_windows(gaze)
    step = np.diff(gaze.astype(np.float64), axis=2)
    speed = _lengths(step)
    direction = np.where(speed > 0, np.arctan2(step[:, 1], step[:, 0]), np.nan)
    turning = np.full_like(direction, np.nan)
    turning[:, 1:] = wrapped(np.diff(direction, axis=1))
    return {"speed": speed, "direction": direction, "turning_angle": turning}


def velocity_quantities(gaze: Gaze, rate_hz: float) -> dict[str, Floats]:
    """The quantities of the paper's velocity protocol for each step, each (window, step).

    v_x, v_y, speed: normalized units per second. log_speed: natural logarithm of the speed,
    which is taken to be LOG_SPEED_FLOOR where it is less, so that standing still has a place in
    the series. turning_angle as in `motion_quantities`. The first sample, which the paper gives
    velocity zero, has none here. The reconstructed path length is the sum of the speeds over the
    rate: `kinematic_features(gaze)["path_length"]`.
    """
    motion = motion_quantities(gaze)
    v_x, v_y = np.diff(gaze.astype(np.float64), axis=2).swapaxes(0, 1) * rate_hz
    speed = motion["speed"] * rate_hz
    return {
        "v_x": v_x,
        "v_y": v_y,
        "speed": speed,
        "log_speed": np.log(np.maximum(speed, LOG_SPEED_FLOOR)),
        "turning_angle": motion["turning_angle"],
    }


def wrapped(angle: Floats) -> Floats:
    """Angles in radians brought to [-pi, pi]; an angle and its negative stay opposite."""
    turn = 2.0 * np.pi
    return np.asarray(angle - turn * np.rint(angle / turn))


def autocorrelation(series: Floats, max_lag: int) -> Floats:
    """The normalized autocorrelation of each window's series (window, time) for lags 0..max_lag.

    r_k = sum_i (x_i - m)(x_{i+k} - m) / sum_i (x_i - m)^2, shape (window, max_lag + 1). NaN for
    a constant series.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    length = series.shape[-1]
    if not 0 <= max_lag < length:
        raise GazeError(f"lags must be 0 to {length - 1}, not {max_lag}")
    # Zeros after the series keep its end from meeting its beginning within max_lag.
    padded = next_fast_len(length + max_lag, real=True)
    parts = []
    for centred in _centred(series):
        covariance = irfft(np.abs(rfft(centred, padded)) ** 2, padded)[:, : max_lag + 1]
        parts.append(_divided(covariance, (centred**2).sum(axis=1)))
    return np.concatenate(parts)


def lag_one_autocorrelation(series: Floats) -> Floats:
    """r_1 of `autocorrelation` for each window's series (window, time), (window,)."""
    parts = []
    for centred in _centred(series):
        covariance = np.einsum("wt,wt->w", centred[:, 1:], centred[:, :-1])
        parts.append(_divided(covariance[:, None], (centred**2).sum(axis=1))[:, 0])
    return np.concatenate(parts)


def normalized_spectra(series: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """Frequencies in Hz (frequency,) and each window's share of power there (window, frequency).

    The plain one-sided periodogram of the series (window, time) less its mean, each window's
    summing to one; frequency zero, empty by construction, is left out. NaN for a constant
    series.
    """
    from scipy.signal import periodogram

    parts = []
    for centred in _centred(series):
        frequency, power = periodogram(centred, fs=rate_hz, detrend=False)
        power = np.where((centred != 0).any(axis=1, keepdims=True), power[:, 1:], 0.0)
        parts.append(_divided(power, power.sum(axis=1)))
    return np.asarray(frequency[1:], dtype=np.float64), np.concatenate(parts)


def _centred(series: Floats) -> Iterator[Floats]:
    """Checked series (window, time) less their means, a few windows at a time."""
    if series.ndim != 2 or series.shape[0] == 0 or series.shape[1] < 2:
        raise GazeError(f"series must have the shape (window, time), not {series.shape}")
    if not np.isfinite(series).all():
        raise GazeError("a series holds NaN or infinite values")
    for first in range(0, len(series), _CHUNK):
        some = series[first : first + _CHUNK]
        centred: Floats = some - some.mean(axis=1, keepdims=True)
        centred[np.ptp(some, axis=1) == 0] = 0.0  # the mean of equal numbers may be off by a digit
        yield centred


def _divided(rows: Floats, total: Floats) -> Floats:
    """Rows (window, n) over their totals (window,), NaN where the total is zero."""
    return np.asarray(rows / np.where(total > 0, total, np.nan)[:, None])


def _lengths(step: Floats) -> Floats:
    """Lengths (window, step) of steps (window, 2, step)."""
    return np.asarray(np.sqrt(step[:, 0] ** 2 + step[:, 1] ** 2))


def _by_parts(
    gaze: Gaze, measured: Callable[[Floats, int], dict[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """What a function finds in checked gaze, a few windows at a time with the first one's index."""
    _require_windows(gaze)
    parts = [
        measured(gaze[first : first + _CHUNK].astype(np.float64), first)
        for first in range(0, len(gaze), _CHUNK)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _require_windows(gaze: Gaze) -> None:
    if gaze.ndim != 3 or gaze.shape[1] != 2 or gaze.shape[2] < 2:
        raise GazeError(f"windows must have the shape (window, 2, time), not {gaze.shape}")
    if len(gaze) == 0:
        raise GazeError("no windows")
    is_finite = np.isfinite(gaze).all(axis=(1, 2))
    if not is_finite.all():
        raise GazeError(f"window {int(np.argmin(is_finite))} holds NaN or infinite positions")


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
        found.append(_degree_events_of(degrees, rate_hz))
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


def _degree_events_of(position: Floats, rate_hz: float) -> tuple[Ints, Floats, NDArray[np.bool_]]:
    """Events of a few windows, degrees (window, 2, time).

    Fixations (fixation, 2): window, duration in samples. Saccades (saccade, 3): window, amplitude,
    peak speed. Whether each window has noise to set the threshold by, (window,).
    """
    velocity = _smooth_velocity(position, rate_hz)
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    window, first, last = _spans(speed < FIXATION_DEG_S, DEGREE_FIXATION_MS, rate_hz)
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
