"""Rates: bring segments from the tracker's clock to the model's rate, and windows to a lower one.

A whole multiple of the target is thinned by keeping every k-th sample, as in the paper. Any
other rate, and any unsteady clock, goes through an even grid and a polyphase anti-alias filter.
A segment never contains a gap, so nothing is ever interpolated across one. Synthetic windows
are brought to the rate of slower trackers by the same filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import gaps_after, is_steady
from gazediffusion.data.windows import CLIP, Windows, joined
from gazediffusion.errors import GazeError


class LowRateError(GazeError):
    """A recording's rate, `rate_hz`, is below the target."""

    def __init__(self, rate_hz: float, target_hz: float) -> None:
        self.rate_hz = rate_hz
        super().__init__(
            f"the rate of {rate_hz:g} Hz is below the target of {target_hz:g} Hz",
            remedy=f"choose a `rate_hz` of {rate_hz:g} or lower",
        )


@dataclass(frozen=True)
class Clock:
    """How a recording was sampled: its nominal rate, and whether every step is the same."""

    rate_hz: float
    is_steady: bool


def read_clock(time_ms: NDArray[np.float64], stated_hz: float | None = None) -> Clock:
    """The clock of a recording from its time stamps (time,), gaps left out.

    The rate is the mean one, since stamps in whole milliseconds hide an odd rate from the
    median. It becomes the stated rate, or else a whole number of Hz, if that lies within 0.5 %.
    Stamps in whole milliseconds that nowhere leave the stated rate by a millisecond are steady.
    """
    gaps = gaps_after(time_ms)
    steps = np.diff(time_ms)
    is_step = steps > 0
    is_step[gaps] = False
    steps = steps[is_step]
    if len(steps) == 0:
        raise GazeError("too short to tell its sampling rate")
    measured_hz = 1000.0 / float(np.mean(steps))
    steady = is_steady(steps, float(np.median(steps, overwrite_input=True)))
    for nominal_hz in (stated_hz, float(round(measured_hz))):
        if nominal_hz and abs(measured_hz - nominal_hz) <= 0.005 * nominal_hz:
            is_stated = nominal_hz == stated_hz
            return Clock(nominal_hz, steady or (is_stated and _is_rounded(steps, nominal_hz)))
    return Clock(measured_hz, steady)


def _is_rounded(steps_ms: NDArray[np.float64], rate_hz: float) -> bool:
    """Whether these are the steps of an even clock whose stamps are in whole milliseconds."""
    is_whole = np.array_equal(steps_ms, np.rint(steps_ms))
    return is_whole and bool((np.abs(steps_ms - 1000.0 / rate_hz) < 1.0).all())


def thinning_factor(clock: Clock, target_hz: float) -> int | None:
    """k where every k-th sample gives the target rate; None where a filter is needed.

    A rate below the target is refused: the missing motion cannot be invented.
    """
    ratio = clock.rate_hz / target_hz
    if ratio < 1 - 1e-6:
        raise LowRateError(clock.rate_hz, target_hz)
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
    step_ms = 1000.0 / clock.rate_hz
    # The last sample counts, also where its stamp is rounded down.
    n_even = int((time_ms[-1] - time_ms[0]) / step_ms + 0.1) + 1
    even_ms = time_ms[0] + np.arange(n_even) * step_ms
    even = np.stack([np.interp(even_ms, time_ms, axis) for axis in gaze_px])
    return low_passed(even, clock.rate_hz, target_hz)


def source_samples(
    time_ms: NDArray[np.float64], clock: Clock, target_hz: float, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each of n samples that `resample_segment` gives: the nearest and the last sample before.

    Labels follow the nearest; a target stays where the last sample had it.
    """
    factor = thinning_factor(clock, target_hz)
    if factor is not None:
        return np.arange(n) * factor, np.arange(n) * factor
    at_ms = time_ms[0] + np.arange(n) * (1000.0 / target_hz)
    nearest = np.searchsorted((time_ms[1:] + time_ms[:-1]) / 2, at_ms, side="right")
    return nearest, np.searchsorted(time_ms, at_ms + 1e-6, side="right") - 1


def low_passed(gaze: NDArray[Any], rate_hz: float, target_hz: float) -> NDArray[np.float32]:
    """Even gaze (..., time) at a rate, through the anti-alias filter, at the target rate."""
    from scipy.signal import resample_poly

    ratio = Fraction(target_hz / rate_hz).limit_denominator(1000)
    even = gaze.astype(np.float64)
    if ratio != 1:
        # Padding along the line through both ends keeps the filter from pulling them to zero.
        even = resample_poly(even, ratio.numerator, ratio.denominator, axis=-1, padtype="line")
    return np.asarray(even, dtype=np.float32)


def windows_at(windows: Windows, rate_hz: float, thins: bool = False) -> Windows:
    """Windows at a lower rate, each filtered as a whole, so that none depends on the others.

    thins: keep every k-th sample instead, where that gives the rate, as `prepare` does. The
    tracker's grid and resolution do not survive the filter; labels and targets do.

    >>> from gazediffusion.screen import Screen
    >>> windows = Windows.from_array(np.zeros((3, 2, 2000)), 250, Screen(1280, 720))
    >>> windows_at(windows, 60)
    Windows(3 of 8 s at 60 Hz, participants: 1, tasks: synthetic)
    """
    if rate_hz == windows.rate_hz:
        return windows
    clock = Clock(windows.rate_hz, True)
    factor = thinning_factor(clock, rate_hz)
    is_thinned = thins and factor is not None
    gaze = windows.cut()
    if is_thinned:
        gaze = gaze[:, :, ::factor]
    else:
        gaze = low_passed(gaze, windows.rate_hz, rate_hz).clip(-CLIP, CLIP)
    length = round(windows.length * rate_hz / windows.rate_hz)
    of_window = windows.segment_of_window
    starts = np.arange(len(windows), dtype=np.int64) * length
    onset_ms = (windows.starts - windows.segment_starts[of_window]) * 1000.0 / windows.rate_hz
    step = windows.segment_step
    times_ms = np.arange(windows.length, dtype=np.float64) * (1000.0 / windows.rate_hz)
    nearest, held = source_samples(times_ms, clock, rate_hz, length)
    labels, targets = windows.labels, windows.targets
    how = {"from_hz": windows.rate_hz, "how": "thinned" if is_thinned else "low-passed"}
    return replace(
        windows,
        gaze=joined(gaze[:, :, :length]),
        labels=None if labels is None else windows.cut_labels()[:, nearest].ravel(),
        targets=None if targets is None else joined(windows.cut_targets()[:, :, held]),
        starts=starts,
        length=length,
        rate_hz=float(rate_hz),
        segment_starts=starts,
        segment_participant=windows.participant,
        segment_task=windows.task,
        segment_screen=windows.screen_index,
        segment_trial=tuple(windows.segment_trial[k] for k in of_window),
        segment_onset_ms=windows.segment_onset_ms[of_window] + onset_ms,
        segment_elapsed_ms=None if windows.segment_elapsed_ms is None else 1000 * windows.elapsed_s,
        segment_step=step[of_window] if is_thinned and step is not None else None,
        grid_px=windows.grid_px if is_thinned else None,
        provenance={**windows.provenance, "resampled": how},
    )
