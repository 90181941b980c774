"""Rates: bring a valid segment from the tracker's clock to the model's rate.

A whole multiple of the target is thinned by keeping every k-th sample, as in the paper. Any
other rate, and any unsteady clock, goes through an even grid and a polyphase anti-alias filter.
A segment never contains a gap, so nothing is ever interpolated across one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import gaps_after, is_steady
from gazediffusion.errors import GazeError


@dataclass(frozen=True)
class Clock:
    """How a recording was sampled: its nominal rate, and whether every step is the same."""

    rate_hz: float
    is_steady: bool


def read_clock(time_ms: NDArray[np.float64], stated_hz: float | None = None) -> Clock:
    """The clock of a recording from its time stamps (time,), gaps left out.

    The rate is the mean one, since stamps in whole milliseconds hide an odd rate from the
    median. It becomes the stated rate, or else a whole number of Hz, if that lies within 0.5 %.
    """
    gaps = gaps_after(time_ms)
    steps = np.diff(time_ms)
    is_step = steps > 0
    is_step[gaps] = False
    steps = steps[is_step]
    if len(steps) == 0:
        raise GazeError("too short to tell its sampling rate")
    measured_hz = 1000.0 / float(np.mean(steps))
    has_even_steps = is_steady(steps, float(np.median(steps, overwrite_input=True)))
    for nominal_hz in (stated_hz, float(round(measured_hz))):
        if nominal_hz and abs(measured_hz - nominal_hz) <= 0.005 * nominal_hz:
            return Clock(nominal_hz, has_even_steps)
    return Clock(measured_hz, has_even_steps)


def thinning_factor(clock: Clock, target_hz: float) -> int | None:
    """k where every k-th sample gives the target rate; None where a filter is needed.

    A rate below the target is refused: the missing motion cannot be invented.
    """
    ratio = clock.rate_hz / target_hz
    if ratio < 1 - 1e-6:
        raise GazeError(
            f"the rate of {clock.rate_hz:g} Hz is below the target of {target_hz:g} Hz",
            remedy=f"choose a `rate_hz` of {clock.rate_hz:g} or lower",
        )
    factor = round(ratio)
    if clock.is_steady and abs(ratio - factor) <= 1e-6 * ratio:
        return factor
    return None


def resample_segment(
    time_ms: NDArray[np.float64],
    gaze_px: NDArray[np.float32],
    clock: Clock,
    target_hz: float,
) -> NDArray[np.float32]:
    """One gap-free segment, gaze_px (2, time), at the target rate: (2, fewer) float32."""
    factor = thinning_factor(clock, target_hz)
    if factor is not None:
        return gaze_px[:, ::factor]
    from scipy.signal import resample_poly

    even_ms = np.arange(time_ms[0], time_ms[-1], 1000.0 / clock.rate_hz)
    even = np.stack([np.interp(even_ms, time_ms, axis) for axis in gaze_px])
    ratio = Fraction(target_hz / clock.rate_hz).limit_denominator(1000)
    if ratio != 1:
        # Padding along the line through both ends keeps the filter from pulling them to zero.
        even = resample_poly(even, ratio.numerator, ratio.denominator, axis=1, padtype="line")
    return np.asarray(even, dtype=np.float32)
