"""Cleaning: which samples of a recording can be trusted, and how many cannot, by reason.

Nothing is interpolated or repaired; a sample is kept or not. The reasons are looked for in the
order of `CleaningCounts`, each sample counted under the first that applies, so the counts add
up to the recording. The paper asks for "contiguous valid runs" and leaves the test of validity
open; docs/method.md lists what we chose.
"""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import Bools, Eye, Recording, true_segments
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig, EyeChoice

# EyeLink writes 1e8 or -32768 for "no data" where a converter left it in.
_SENTINEL_PX = 30_000.0
BLINK_MS = (50.0, 1000.0)  # how long a loss lasts that is taken for a blink
_PART = 1 << 20  # samples of a long recording that are worked on at a time, for memory


@dataclass(frozen=True)
class CleaningCounts:
    """Counts of samples. `total` is the sum of the eight before it; the last three are extra.

    blinks: labelled blinks, or losses of 50 to 1000 ms where the tracker gave no labels.
    off_screen: valid samples outside the screen.
    gaps: places where the clock skips samples.
    """

    repeated_time: int = 0
    lost: int = 0
    zero: int = 0
    frozen: int = 0
    labelled_blink: int = 0
    padding: int = 0
    too_fast: int = 0
    valid: int = 0
    total: int = 0
    blinks: int = 0
    off_screen: int = 0
    gaps: int = 0

    def __add__(self, other: CleaningCounts) -> CleaningCounts:
        return CleaningCounts(*map(operator.add, astuple(self), astuple(other)))


# Why a sample is dropped, in the order the reasons are looked for.
REASONS = tuple(one.name for one in fields(CleaningCounts))[:7]


@dataclass(frozen=True)
class CleanRecording:
    """One eye of a recording, each sample valid or not.

    time_ms: (time,); gaze_px: (2, time), NaN where nothing was seen; is_valid: (time,).
    gaps: indices after which the clock skips.
    labels: (time,) and targets_px: (2, time), as in the recording.
    """

    eye: Eye
    time_ms: NDArray[np.float64]
    gaze_px: NDArray[np.float32]
    is_valid: Bools
    gaps: NDArray[np.int64]
    counts: CleaningCounts
    labels: NDArray[np.uint8] | None = None
    targets_px: NDArray[np.float32] | None = None

    def valid_segments(self) -> NDArray[np.int64]:
        """Segments (segment, 2) as [start, stop) that are valid and cross no gap of the clock."""
        edges = true_segments(self.is_valid)
        after_gap = self.gaps[self.is_valid[self.gaps] & self.is_valid[self.gaps + 1]] + 1
        starts = np.sort(np.append(edges[:, 0], after_gap))
        return np.column_stack([starts, np.sort(np.append(edges[:, 1], after_gap))])

    @property
    def longest_s(self) -> float:
        """Seconds from the first to the last sample of the longest valid segment, 0 if none."""
        first, stop = self.valid_segments().T
        return float((self.time_ms[stop - 1] - self.time_ms[first]).max(initial=0.0)) / 1000


def clean(
    recording: Recording, config: CleaningConfig | None = None, screen: Screen | None = None
) -> CleanRecording:
    """Mark every sample of the chosen eye as valid or not; speed needs the screen."""
    config, screen = config or CleaningConfig(), screen or recording.screen
    eye = choose_eye(recording, config.eye)
    time_ms = recording.time_ms
    gaze = recording.gaze_px[eye]
    labelled = recording.is_blink.get(eye)
    labels, targets_px = recording.labels, recording.targets_px

    is_new = np.diff(time_ms, prepend=-np.inf) > 0
    if not is_new.all():
        time_ms, gaze = time_ms[is_new], gaze[:, is_new]
        labelled = None if labelled is None else labelled[is_new]
        labels = None if labels is None else labels[is_new]
        targets_px = None if targets_px is None else targets_px[:, is_new]

    gaps = gaps_after(time_ms)
    # One comparison finds NaN, infinities and sentinels: a NaN compares as False.
    reasons: dict[str, Bools] = {
        "lost": np.any(~(np.abs(gaze) < _SENTINEL_PX), axis=0),
        "zero": np.all(gaze == 0, axis=0),
        "frozen": _frozen(time_ms, gaze, config.frozen_ms),
    }
    if labelled is not None:
        reasons["labelled_blink"] = labelled
    gone = np.logical_or.reduce(list(reasons.values()))
    # What was never seen has no speed, and comparisons with NaN are false.
    gaze = np.where(gone, np.float32(np.nan), gaze)
    reasons["padding"] = _padding(time_ms, gone, gaps, config)
    if screen is not None:
        reasons["too_fast"] = _too_fast(time_ms, gaze, screen, config.max_speed_deg_s)

    counted: dict[str, int] = {}
    is_valid = np.ones(len(time_ms), dtype=bool)
    for name, reason in reasons.items():
        counted[name] = int(np.count_nonzero(is_valid & reason))
        is_valid &= ~reason
    counts = CleaningCounts(
        **counted,
        repeated_time=int(np.count_nonzero(~is_new)),
        valid=int(np.count_nonzero(is_valid)),
        total=len(recording),
        blinks=_count_blinks(time_ms, labelled, reasons["lost"]),
        off_screen=_count_off_screen(gaze, is_valid, screen),
        gaps=len(gaps),
    )
    return CleanRecording(eye, time_ms, gaze, is_valid, gaps, counts, labels, targets_px)


def choose_eye(recording: Recording, choice: EyeChoice) -> Eye:
    """The requested eye; the only eye there is; or, for `best`, the one seen more often."""
    eyes = recording.gaze_px
    if choice in eyes:
        return choice  # type: ignore[return-value]  # "best" is never a key
    if len(eyes) == 1:
        return next(iter(eyes))

    def n_seen(eye: Eye) -> int:
        seen = np.isfinite(eyes[eye]).all(axis=0)
        if eye in recording.is_blink:
            seen &= ~recording.is_blink[eye]
        return int(seen.sum())

    # Two eyes seen equally often: the right one, as in the paper.
    return max(eyes, key=lambda eye: (n_seen(eye), eye == "right"))


def gaps_after(time_ms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Indices i where the clock skips between samples i and i + 1.

    A steady clock may not skip a single sample; a jittery one (Pupil Labs, or whole-millisecond
    stamps of an odd rate) is allowed to wander up to two and a half steps.
    """
    if len(time_ms) < 3:
        return np.empty(0, dtype=np.int64)
    steps = np.diff(time_ms)
    usual = float(np.median(steps))
    limit = 1.5 if is_steady(steps, usual) else 2.5
    return np.flatnonzero(steps > limit * usual)


def is_steady(steps: NDArray[np.float64], usual: float) -> bool:
    """Whether at least 99 % of the clock's steps lie within 10 % of the usual one."""
    off = steps - usual
    return bool(np.mean(np.abs(off, out=off) <= 0.1 * usual) >= 0.99)


def _frozen(time_ms: NDArray[np.float64], gaze_px: NDArray[np.float32], frozen_ms: float) -> Bools:
    """Samples in stretches where x and y do not change at all for `frozen_ms` or longer."""
    frozen = np.zeros(len(time_ms), dtype=bool)
    for start, stop in true_segments((gaze_px[:, 1:] == gaze_px[:, :-1]).all(axis=0)):
        # A segment of equal steps [start, stop) joins the samples [start, stop].
        if time_ms[stop] - time_ms[start] >= frozen_ms:
            frozen[start : stop + 1] = True
    return frozen


def _padding(
    time_ms: NDArray[np.float64], gone: Bools, gaps: NDArray[np.int64], config: CleaningConfig
) -> Bools:
    """Samples shortly before and after every loss, blink or gap of the clock."""
    segments = true_segments(gone)
    first_gone_ms = np.concatenate([time_ms[segments[:, 0]], time_ms[gaps]])
    last_gone_ms = np.concatenate([time_ms[segments[:, 1] - 1], time_ms[gaps + 1]])
    from_index = np.searchsorted(time_ms, first_gone_ms - config.blink_before_ms, side="left")
    to_index = np.searchsorted(time_ms, last_gone_ms + config.blink_after_ms, side="right")
    depth = np.zeros(len(time_ms) + 1, dtype=np.int32)
    np.add.at(depth, from_index, 1)
    np.add.at(depth, to_index, -1)
    return np.cumsum(depth[:-1], dtype=np.int32) > 0


def _too_fast(
    time_ms: NDArray[np.float64],
    gaze_px: NDArray[np.float32],
    screen: Screen,
    max_speed_deg_s: float,
) -> Bools:
    """Samples at either end of a step no eye can make.

    Speed is measured over about 4 ms whatever the rate, because single-sample noise at 1000 Hz
    would pass any limit.
    """
    too_fast = np.zeros(len(time_ms), dtype=bool)
    if len(time_ms) < 2:
        return too_fast
    usual_ms = float(np.median(np.diff(time_ms), overwrite_input=True))
    lag = max(1, min(round(4.0 / usual_ms), len(time_ms) - 1)) if usual_ms > 0 else 1
    degrees_per_px = screen.width_deg / screen.width_px
    for first in range(0, len(time_ms) - lag, _PART):
        part = slice(first, first + _PART + lag)
        times, gaze = time_ms[part], gaze_px[:, part]
        dx, dy = gaze[:, lag:] - gaze[:, :-lag]
        limit_px = max_speed_deg_s / degrees_per_px * (times[lag:] - times[:-lag]) / 1000.0
        for start in first + np.flatnonzero(dx * dx + dy * dy > limit_px * limit_px):
            too_fast[start : start + lag + 1] = True
    return too_fast


def likely_blinks(time_ms: NDArray[np.float64], is_lost: Bools) -> Bools:
    """Samples (time,) of the losses that last as long as a blink, 50 to 1000 ms."""
    is_blink = np.zeros(len(time_ms), dtype=bool)
    for start, stop in true_segments(is_lost).tolist():
        shortest_ms, longest_ms = BLINK_MS
        is_blink[start:stop] = shortest_ms <= time_ms[stop - 1] - time_ms[start] <= longest_ms
    return is_blink


def _count_blinks(time_ms: NDArray[np.float64], labelled: Bools | None, lost: Bools) -> int:
    if labelled is not None:
        return len(true_segments(labelled))
    return len(true_segments(likely_blinks(time_ms, lost)))


def _count_off_screen(gaze_px: NDArray[np.float32], is_valid: Bools, screen: Screen | None) -> int:
    if screen is None:
        return 0
    is_inside = ((gaze_px >= 0) & (gaze_px <= screen.size_px)).all(axis=0)
    return int(np.count_nonzero(is_valid & ~is_inside))
