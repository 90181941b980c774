"""Gaps of a recording: what of it is lost, what of that can be filled, and in which windows.

A gap lies between two valid samples. Those at the beginning or the end of a recording have one side
only and stay lost, as do those longer than a limit.
"""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import CleanRecording, clean
from gazediffusion.data.recordings import Bools, Eye, Recording
from gazediffusion.data.resampling import Clock, low_passed, read_clock, thinning_factor
from gazediffusion.errors import GazeError
from gazediffusion.settings import CleaningConfig

MIN_RATE_HZ = 100.0
CONTEXT_S = 1.0  # of the window on each side of a gap, where the recording has it
FEWEST_SAMPLES = 3  # that tell a rate


@dataclass(frozen=True)
class GapCounts:
    """Counts of gaps and samples; `gaps` is the sum of the three after it.

    filled: between valid gaze and short enough. too_long, at_ends: stay lost. samples, valid,
    filled_samples: of the recording; samples are valid, filled or stay as recorded.
    """

    gaps: int = 0
    filled: int = 0
    too_long: int = 0
    at_ends: int = 0
    samples: int = 0
    valid: int = 0
    filled_samples: int = 0

    def __add__(self, other: GapCounts) -> GapCounts:
        return GapCounts(*map(operator.add, astuple(self), astuple(other)))


class Gap(NamedTuple):
    """Samples [start, stop) of a recording without repeated times, between two valid ones."""

    start: int
    stop: int


class Marks(NamedTuple):
    """Which samples (time,) of which eye are filled; rate_hz: read from the clock, 0 if unknown."""

    eye: Eye
    is_filled: Bools
    rate_hz: float


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps of one eye of a recording that are to be filled."""

    recording: Recording
    cleaned: CleanRecording
    clock: Clock | None
    gaps: tuple[Gap, ...]
    counts: GapCounts

    def rows(self, gap: Gap) -> slice:
        """The samples of a gap in the recording itself."""
        first_ms, last_ms = self.cleaned.time_ms[[gap.start, gap.stop - 1]]
        first = np.searchsorted(self.recording.time_ms, first_ms, side="left")
        return slice(
            int(first), int(np.searchsorted(self.recording.time_ms, last_ms, side="right"))
        )

    @property
    def is_filled(self) -> Bools:
        """Which samples of the recording are filled, (time,)."""
        mask = np.zeros(len(self.recording), dtype=np.bool_)
        for gap in self.gaps:
            mask[self.rows(gap)] = True
        return mask

    @property
    def marks(self) -> Marks:
        """What the filled recording states of its samples."""
        return Marks(self.cleaned.eye, self.is_filled, self.clock.rate_hz if self.clock else 0.0)


def find_gaps(recording: Recording, cleaning: CleaningConfig | None, max_gap_s: float) -> Gaps:
    """The gaps of the eye that cleaning chooses; a rate below `MIN_RATE_HZ` is refused."""
    cleaned = clean(recording, cleaning)
    time_ms = cleaned.time_ms
    if len(time_ms) < FEWEST_SAMPLES:
        counts = GapCounts(samples=len(recording), valid=cleaned.counts.valid)
        return Gaps(recording, cleaned, None, (), counts)
    clock = read_clock(time_ms, recording.rate_hz)
    if clock.rate_hz < MIN_RATE_HZ:
        raise GazeError(
            f"the rate of {clock.rate_hz:g} Hz is below {MIN_RATE_HZ:g} Hz: samples so far apart "
            "do not tell the speed of the eye on either side of a gap"
        )
    valid = cleaned.valid_segments().tolist()
    between = [Gap(one[1], other[0]) for one, other in pairwise(valid) if one[1] < other[0]]
    step_ms = 1000.0 / clock.rate_hz
    long_ms = 1000.0 * max_gap_s + step_ms * 1.1  # from the valid sample before to the one after
    gaps = tuple(gap for gap in between if time_ms[gap.stop] - time_ms[gap.start - 1] <= long_ms)
    n_ends = (valid[0][0] > 0) + (valid[-1][1] < len(time_ms)) if valid else 1
    counts = GapCounts(
        gaps=len(between) + n_ends,
        filled=len(gaps),
        too_long=len(between) - len(gaps),
        at_ends=n_ends,
        samples=len(recording),
        valid=cleaned.counts.valid,
    )
    found = Gaps(recording, cleaned, clock, gaps, counts)
    n_filled = int(np.count_nonzero(found.is_filled))
    return replace(found, counts=replace(counts, filled_samples=n_filled))


def on_grid(cleaned: CleanRecording, clock: Clock, rate_hz: float) -> NDArray[np.float32]:
    """Valid gaze (2, time) in pixels at a rate from the first sample on, NaN where there is none.

    Valid segments are thinned or filtered one by one, so that no sample depends on lost ones.
    """
    time_ms, step_ms, own_ms = cleaned.time_ms, 1000.0 / rate_hz, 1000.0 / clock.rate_hz
    n = int((time_ms[-1] - time_ms[0]) / step_ms + 0.1) + 1
    grid = np.full((2, n), np.nan, dtype=np.float32)
    is_faster = clock.rate_hz >= rate_hz
    factor = thinning_factor(clock, rate_hz) if is_faster else None
    for start, stop in cleaned.valid_segments().tolist():
        times = time_ms[start:stop]
        first = int(np.ceil((times[0] - time_ms[0]) / step_ms - 1e-6))
        onset_ms = time_ms[0] + first * step_ms
        # The last sample counts, also where its stamp is rounded down.
        n_even = int((times[-1] - onset_ms) / own_ms + 0.1) + 1
        n_here = min(int((times[-1] - onset_ms) / step_ms + 0.1) + 1, n - first)
        if times[-1] < onset_ms:
            continue
        even_ms = onset_ms + np.arange(n_even) * own_ms
        even = np.stack(
            [np.interp(even_ms, times, axis) for axis in cleaned.gaze_px[:, start:stop]]
        )
        if factor is None and n_even > 1:
            even = low_passed(even, clock.rate_hz, rate_hz)
        else:
            even = even[:, :: factor or 1]
        n_here = min(n_here, even.shape[1])
        grid[:, first : first + n_here] = even[:, :n_here]
    return grid


def place_windows(
    spans: list[tuple[int, int]], n_samples: int, length: int, context: int
) -> list[tuple[int, list[int]]]:
    """Windows that hold all gaps: where each starts, and the numbers of its gaps.

    spans: [first, stop) of each gap, in order. Gaps share a window where it has `context` samples
    before the first and after the last of them. A window is centred on its gaps, within the
    recording where that is longer.

    >>> place_windows([(100, 110), (120, 130), (900, 920)], 1000, 200, 50)
    [(15, [0, 1]), (800, [2])]
    """
    groups: list[list[int]] = []
    for number, (_, stop) in enumerate(spans):
        is_near = bool(groups) and stop - spans[groups[-1][0]][0] <= length - 2 * context
        if is_near:
            groups[-1].append(number)
        else:
            groups.append([number])
    windows = []
    for group in groups:
        middle = (spans[group[0]][0] + spans[group[-1]][1]) // 2
        start = max(0, min(middle - length // 2, n_samples - length))
        windows.append((start, group))
    return windows
