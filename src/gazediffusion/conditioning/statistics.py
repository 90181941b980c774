"""Summary statistics of a window, on which a network can be conditioned.

A denoiser learns early what follows from neighbouring samples and late what holds for a whole
window: the tracker's noise, the saccade rate, the spatial extent. Unconditioned, it underestimates
the between-window variance of these. Statistics are measured on every training window; for a new
window they are drawn from the conditioning prior (prior.py).

Counts and scales are in logarithms, shares in log odds, so that all are roughly symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.errors import GazeError

# Saccades are counted by their least duration; the amplitude is of those of LONG_S or more.
DURATIONS_S = (0.012, 0.02, 0.028, 0.036, 0.044, 0.052)
LONG_S = 0.044
SLOW = 0.04  # normalized units per second: a tenth of a pixel per sample
FAST = 5.0  # normalized units per second: the paper's threshold of 0.02 per sample at 250 Hz
PRIOR_AMPLITUDE = 0.5  # normalized units: the pseudo-observation of a long saccade
# Small saccades too: 30 degrees per second where the screen is 48 degrees wide, for 12 ms or more.
MODERATE = 1.25  # normalized units per second
MODERATE_S = 0.012
FIXATIONS_S = (0.2, 0.4)  # fixations between these are counted by their least duration
SMOOTHING_S = 0.04  # drift is that of gaze averaged over so much, which removes the tracker's noise
# Eyes and trackers' signals overshoot after a saccade, by the recording's own strength.
OVERSHOOT_S = 0.044  # the return is the fastest within so long after the peak of a saccade
PRIOR_OVERSHOOT = 0.8  # normalized units per second: the pseudo-observation, 19 deg/s in films

# median_speed: of |velocity|, the tracker's noise level. slow_share: of samples below SLOW.
# reversal_share: of steps against the step before. acceleration_ratio: power of the change of
# velocity over the power of velocity. fast_samples, saccades, short_saccades (one sample),
# saccades_NNms (that long or longer): counts. std, range, mean: of the positions.
# moderate_saccades, fixations_NNms: counts with the threshold MODERATE. drift_speed: the median
# speed of averaged gaze. overshoot: mean speed of the return after saccades.
STATISTICS = (
    "median_speed_x",
    "median_speed_y",
    "slow_share_x",
    "slow_share_y",
    "reversal_share_x",
    "reversal_share_y",
    "acceleration_ratio_x",
    "acceleration_ratio_y",
    "mean_speed",
    "fast_samples",
    "saccades",
    "short_saccades",
    *(f"saccades_{1000 * seconds:.0f}ms" for seconds in DURATIONS_S),
    "long_saccade_amplitude",
    "std_x",
    "std_y",
    "range_x",
    "range_y",
    "mean_x",
    "mean_y",
    "moderate_saccades",
    *(f"fixations_{1000 * seconds:.0f}ms" for seconds in FIXATIONS_S),
    "drift_speed",
    "overshoot",
)
# Medians take discrete values where gaze is in coarse steps.
MEDIANS = STATISTICS[:2]
# Of the recording rather than of the gaze: calibrated in their mean only.
TRACKER = STATISTICS[:6]
# Statistics that change sign when an axis is flipped: name -> axis.
_SIGNED = {"mean_x": 0, "mean_y": 1}


def measure(gaze: Tensor, rate_hz: float, names: Sequence[str] = STATISTICS) -> Tensor:
    """Statistics (batch, statistic) of normalized gaze (batch, 2, time)."""
    require_known(names)
    velocity = gaze.diff(dim=-1) * rate_hz
    squares, axial = velocity.square(), velocity.abs()
    median = axial.median(dim=-1).values.clamp_min(1e-6)
    slow = (axial < SLOW).float().mean(dim=-1)
    reversals = (velocity[..., 1:] * velocity[..., :-1] < 0).float().mean(dim=-1)
    changes = velocity.diff(dim=-1).square()
    ratio = changes.mean(dim=-1).clamp_min(1e-9) / squares.mean(dim=-1).clamp_min(1e-9)
    speed = squares.sum(dim=1).sqrt()
    is_fast = speed > FAST
    n_saccades, n_two, *n_by_duration = (
        _n_segments(is_fast, length)
        for length in (1, 2, *(_n_samples(seconds, rate_hz) for seconds in DURATIONS_S))
    )
    counts = [is_fast.sum(dim=-1), n_saccades, n_saccades - n_two, *n_by_duration]
    is_long = _in_segments(is_fast, _n_samples(LONG_S, rate_hz))
    path = (speed * is_long).sum(dim=-1) / rate_hz
    # The mean with one pseudo-observation, so that windows without long saccades have a value.
    amplitude = (path + PRIOR_AMPLITUDE) / (n_by_duration[DURATIONS_S.index(LONG_S)] + 1)
    std = gaze.std(dim=-1).clamp_min(1e-4)
    extent = (gaze.amax(dim=-1) - gaze.amin(dim=-1)).clamp_min(1e-4)
    is_saccade = _in_segments(speed > MODERATE, _n_samples(MODERATE_S, rate_hz))
    fixation = [_n_segments(~is_saccade, _n_samples(one, rate_hz)) for one in FIXATIONS_S]
    n_smooth = min(_n_samples(SMOOTHING_S, rate_hz), gaze.shape[-1] - 1)
    drift = functional.avg_pool1d(gaze, n_smooth, stride=1).diff(dim=-1).square().sum(dim=1).sqrt()
    values = torch.cat(
        [
            median.log(),
            _log_odds(slow),
            _log_odds(reversals),
            ratio.log(),
            speed.mean(dim=-1, keepdim=True).clamp_min(1e-6).log(),
            torch.stack(counts, dim=1).log1p(),
            amplitude[:, None].log(),
            std.log(),
            extent.log(),
            gaze.mean(dim=-1),
            torch.stack([_n_segments(is_saccade, 1), *fixation], dim=1).log1p(),
            (drift.median(dim=-1, keepdim=True).values * rate_hz).clamp_min(1e-6).log(),
            _overshoot(velocity, speed, _n_samples(OVERSHOOT_S, rate_hz))[:, None].log(),
        ],
        dim=1,
    )
    if tuple(names) == STATISTICS:
        return values
    return values[:, [STATISTICS.index(name) for name in names]]


def _overshoot(velocity: Tensor, speed: Tensor, n_after: int) -> Tensor:
    """Mean speed of the return after saccades, (batch,), of velocity (batch, 2, step).

    A peak is the fastest step within n_after steps on either side, if faster than FAST. The return
    is the fastest movement against its direction in the n_after steps that follow; 0 without one.
    The mean has one pseudo-observation, so that windows without saccades have a value.
    """
    near = functional.max_pool1d(speed, 2 * n_after + 1, stride=1, padding=n_after)
    is_peak = (speed > FAST) & (speed == near)
    window, peak = is_peak.nonzero(as_tuple=True)
    direction = velocity[window, :, peak] / speed[window, peak, None]
    after = functional.pad(velocity, (0, n_after)).unfold(-1, n_after, 1)[window, :, peak + 1]
    back = -(direction[:, :, None] * after).sum(dim=1).amin(dim=-1).clamp_max(0.0)
    # Summed over dense rows: sums of scattered values depend on their order on a GPU.
    returns = torch.zeros_like(speed)
    returns[window, peak] = back
    return (returns.sum(dim=-1) + PRIOR_OVERSHOOT) / (is_peak.sum(dim=-1) + 1)


def flipped(values: Tensor, names: Sequence[str], flips: Tensor) -> Tensor:
    """Statistics (batch, statistic) of windows whose axes are flipped where flips (batch, 2)."""
    axes = [_SIGNED.get(name) for name in names]
    signed = [k for k, axis in enumerate(axes) if axis is not None]
    if not signed:
        return values
    result = values.clone()
    for k in signed:
        result[:, k] = torch.where(flips[:, axes[k]], -values[:, k], values[:, k])
    return result


def require_known(names: Sequence[str]) -> None:
    """Refuse statistics that this version cannot measure."""
    unknown = [name for name in names if name not in STATISTICS]
    if unknown:
        raise GazeError(
            f"the model is conditioned on {unknown[0]!r}, which this version cannot measure",
            remedy="train or calibrate it with the version named in its config.json",
        )


def _n_samples(seconds: float, rate_hz: float) -> int:
    return max(1, round(seconds * rate_hz))


def _n_segments(is_fast: Tensor, length: int) -> Tensor:
    """How many segments of `length` or more fast samples, (batch,), is_fast (batch, time) has."""
    before = functional.pad(is_fast, (1, 0))[:, :-1]
    return (_starts(is_fast, length) & ~before).sum(dim=-1)


def _in_segments(is_fast: Tensor, length: int) -> Tensor:
    """Which samples (batch, time) lie in segments of `length` or more fast ones."""
    padded = functional.pad(_starts(is_fast, length), (length - 1, 0)).long()
    # Some segment of this length began within the last `length` samples.
    total = functional.pad(padded.cumsum(dim=-1), (1, 0))
    return total[:, length:] > total[:, :-length]


def _starts(is_fast: Tensor, length: int) -> Tensor:
    """Which samples (batch, time) are the first of `length` fast ones in a row."""
    if length > is_fast.shape[-1]:
        return torch.zeros_like(is_fast)
    total = functional.pad(is_fast.long().cumsum(dim=-1), (1, 0))
    is_start = total[:, length:] - total[:, :-length] == length
    return functional.pad(is_start, (0, length - 1))


def _log_odds(share: Tensor) -> Tensor:
    return ((share + 0.01) / (1.01 - share)).log()
