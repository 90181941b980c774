"""Features: what a window of gaze does, in numbers (paper, section "Evaluation protocols").

Pure functions of gaze (window, 2, time) in normalized units: the nine kinematic features, I-VT
events, the four-metric framework of Lencastre et al. (2023), and the velocity quantities with
their autocorrelations and spectra. A step joins two neighbouring samples, so a window of 2,000
samples has 1,999 steps. What is pooled over steps keeps its window: arrays are (window, step),
NaN where a value is not defined, so that callers can group by participant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import true_segments
from gazediffusion.errors import GazeError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Gaze = NDArray[np.floating[Any]]

IVT_THRESHOLD = 0.02  # normalized units per sample; paper, "Evaluation protocols"
MIN_FIXATION_MS = 60.0  # paper, "Evaluation protocols"
LOG_SPEED_FLOOR = 1e-3  # normalized units per second; a fortieth of 0.1 px per sample at 250 Hz
_CHUNK = 64  # windows worked on at once: 2 MB of float64 for 2,000 samples stay in the cache


def kinematic_features(gaze: Gaze) -> dict[str, Floats]:
    """The paper's nine features of each window, each (window,).

    mean_speed, max_speed: normalized units per sample. path_length: the sum of the speeds.
    x_range, y_range, x_std, y_std: of the positions (std with divisor n). displacement: from
    the first sample to the last. fixation_ratio: share of steps not above the I-VT threshold.
    """
    parts = [_features_of(part) for _, part in _parts(gaze)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _features_of(gaze: Floats) -> dict[str, Floats]:
    speed = _lengths(np.diff(gaze, axis=2))
    extent = np.ptp(gaze, axis=2)
    spread = gaze.std(axis=2)
    return {
        "mean_speed": speed.mean(axis=1),
        "max_speed": speed.max(axis=1),
        "path_length": speed.sum(axis=1),
        "x_range": extent[:, 0],
        "y_range": extent[:, 1],
        "x_std": spread[:, 0],
        "y_std": spread[:, 1],
        "displacement": np.hypot(*(gaze[:, :, -1] - gaze[:, :, 0]).T),
        "fixation_ratio": (speed <= IVT_THRESHOLD).mean(axis=1),
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


def ivt_statistics(
    gaze: Gaze,
    rate_hz: float,
    threshold: float = IVT_THRESHOLD,
    min_fixation_ms: float = MIN_FIXATION_MS,
) -> EventStatistics:
    """Events by velocity threshold (I-VT, Salvucci & Goldberg 2000), as the paper counts them.

    Every run of steps above `threshold` (normalized units per sample) is a saccade, however
    short; a run of the other steps is a fixation if it lasts `min_fixation_ms` or longer. No run
    crosses a window's border; events cut by the border count with what is seen of them.
    """
    # A tolerance of a millionth of a step: 60 ms at 250 Hz is 15 steps, whatever floats say.
    min_steps = min_fixation_ms * rate_hz / 1000.0 - 1e-6
    parts = [_events_of(part, first, rate_hz, threshold, min_steps) for first, part in _parts(gaze)]
    return EventStatistics(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(EventStatistics)
        }
    )


def _events_of(
    gaze: Floats, first_window: int, rate_hz: float, threshold: float, min_steps: float
) -> EventStatistics:
    n, _, length = gaze.shape
    # The column after a window's last step is neither fast nor slow. It breaks runs at the border,
    # and makes step i start at sample i when both are flattened.
    padded = np.full((n, length), np.nan)
    padded[:, :-1] = _lengths(np.diff(gaze, axis=2))
    speed = padded.reshape(-1)
    samples = gaze.transpose(1, 0, 2).reshape(2, -1)
    saccades = true_segments(speed > threshold)
    slow = true_segments(speed <= threshold)
    fixations = slow[slow[:, 1] - slow[:, 0] >= min_steps]

    fast, borders = _joined(saccades[:, 0], saccades[:, 1])
    way = samples[:, saccades[:, 1]] - samples[:, saccades[:, 0]]
    fixation_window = fixations[:, 0] // length
    saccade_window = saccades[:, 0] // length
    return EventStatistics(
        fixation_duration_s=(fixations[:, 1] - fixations[:, 0]) / rate_hz,
        fixation_dispersion=_dispersion(samples, fixations),
        fixation_window=fixation_window + first_window,
        saccade_amplitude=np.hypot(way[0], way[1]),
        saccade_peak_speed=np.maximum.reduceat(speed[fast], borders) if len(fast) else np.empty(0),
        saccade_duration_s=(saccades[:, 1] - saccades[:, 0]) / rate_hz,
        saccade_window=saccade_window + first_window,
        fixation_count=np.bincount(fixation_window, minlength=n),
        saccade_count=np.bincount(saccade_window, minlength=n),
    )


def _dispersion(samples: Floats, runs: Ints) -> Floats:
    """sqrt(std_x^2 + std_y^2) over each run's samples, both ends included, (run,)."""
    if len(runs) == 0:
        return np.empty(0)
    inside, borders = _joined(runs[:, 0], runs[:, 1] + 1)
    n = runs[:, 1] - runs[:, 0] + 1
    variance = np.zeros(len(runs))
    for axis in samples:
        values = axis.take(inside)
        # Two passes: the spread of a fixation is a thousandth of its distance from the centre.
        values -= np.repeat(np.add.reduceat(values, borders) / n, n)
        values *= values
        variance += np.add.reduceat(values, borders) / n
    return np.sqrt(variance)


def _joined(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """The indices of all the ranges [start, stop) end to end, and where each range begins."""
    lengths = stops - starts
    borders = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - borders, lengths), borders


def motion_quantities(gaze: Gaze) -> dict[str, Floats]:
    """Speed, direction and signed turning angle of each step, each (window, step).

    speed: |u_i|, normalized units per sample. direction: atan2(dy, dx) in radians, y down as on
    the screen. turning_angle: change of direction since the step before, in [-pi, pi]. A step of
    no length has no direction: its direction and the turns into and out of it are NaN, as is the
    turn into a window's first step.
    """
    return _motion(_steps(gaze))


def _motion(step: Floats) -> dict[str, Floats]:
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
    step = _steps(gaze)
    motion = _motion(step)
    velocity = step * rate_hz
    speed = motion["speed"] * rate_hz
    return {
        "v_x": velocity[:, 0],
        "v_y": velocity[:, 1],
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

    _require_series(series)
    length = series.shape[1]
    if not 0 <= max_lag < length:
        raise GazeError(f"lags must be 0 to {length - 1}, not {max_lag}")
    # Zeros after the series keep its end from meeting its beginning within max_lag.
    padded = next_fast_len(length + max_lag, real=True)
    result = np.empty((len(series), max_lag + 1))
    for first in range(0, len(series), _CHUNK):
        centred = _centred(series[first : first + _CHUNK])
        power = np.abs(rfft(centred, padded)) ** 2
        covariance = irfft(power, padded)[:, : max_lag + 1]
        result[first : first + _CHUNK] = _divided(covariance, (centred**2).sum(axis=1))
    return result


def lag_one_autocorrelation(series: Floats) -> Floats:
    """r_1 of `autocorrelation` for each window's series (window, time), (window,)."""
    _require_series(series)
    parts = []
    for first in range(0, len(series), _CHUNK):
        centred = _centred(series[first : first + _CHUNK])
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

    _require_series(series)
    parts = []
    for first in range(0, len(series), _CHUNK):
        centred = _centred(series[first : first + _CHUNK])
        frequency, power = periodogram(centred, fs=rate_hz, detrend=False)
        power = np.where((centred != 0).any(axis=1, keepdims=True), power[:, 1:], 0.0)
        parts.append(_divided(power, power.sum(axis=1)))
    return np.asarray(frequency[1:], dtype=np.float64), np.concatenate(parts)


def _centred(series: Floats) -> Floats:
    """Each row less its mean; exactly zero where the row is constant."""
    centred: Floats = series - series.mean(axis=1, keepdims=True)
    centred[np.ptp(series, axis=1) == 0] = 0.0  # the mean of equal numbers may be off by a digit
    return centred


def _divided(rows: Floats, total: Floats) -> Floats:
    """Rows (window, n) over their totals (window,), NaN where the total is zero."""
    return np.asarray(rows / np.where(total > 0, total, np.nan)[:, None])


def _steps(gaze: Gaze) -> Floats:
    """Steps (window, 2, step) of checked gaze."""
    _require_windows(gaze)
    return np.asarray(np.diff(gaze.astype(np.float64), axis=2))


def _lengths(step: Floats) -> Floats:
    """Lengths (window, step) of steps (window, 2, step)."""
    return np.asarray(np.sqrt(step[:, 0] ** 2 + step[:, 1] ** 2))


def _parts(gaze: Gaze) -> Iterator[tuple[int, Floats]]:
    """Checked gaze in float64, a few windows at a time with the first one's index."""
    _require_windows(gaze)
    for first in range(0, len(gaze), _CHUNK):
        yield first, gaze[first : first + _CHUNK].astype(np.float64)


def _require_windows(gaze: Gaze) -> None:
    if gaze.ndim != 3 or gaze.shape[1] != 2 or gaze.shape[2] < 2:
        raise GazeError(f"windows must have the shape (window, 2, time), not {gaze.shape}")
    if len(gaze) == 0:
        raise GazeError("no windows")
    is_finite = np.isfinite(gaze).all(axis=(1, 2))
    if not is_finite.all():
        raise GazeError(f"window {int(np.argmin(is_finite))} holds NaN or infinite positions")


def _require_series(series: Floats) -> None:
    if series.ndim != 2 or series.shape[0] == 0 or series.shape[1] < 2:
        raise GazeError(f"series must have the shape (window, time), not {series.shape}")
    if not np.isfinite(series).all():
        raise GazeError("a series holds NaN or infinite values")
