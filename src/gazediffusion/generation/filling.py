"""Filling: the gaps of a recording, sampled given the gaze on both sides.

The recording is brought to the rate and the screen of a steerable model. Windows are placed around
the gaps, the model generates what is not known in them, and the course within each gap is brought
back to the recording's own times and pixels. Known samples are not touched.
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
from gazediffusion.data.resolution import rounded_as
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.scheduling import Progress
from gazediffusion.generation.steering import Constraints
from gazediffusion.network.checkpoint import RunConfig
from gazediffusion.screen import Floats, Screen
from gazediffusion.seeds import Stream, derived_seed
from gazediffusion.settings import CleaningConfig, Filling

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


def gaps_of(recording: Recording, cleaning: CleaningConfig | None, max_gap_s: float) -> Gaps:
    """`find_gaps` of a recording with a screen; what is refused is named."""
    try:
        require_screen(recording)
        return find_gaps(recording, cleaning, max_gap_s)
    except GazeError as error:
        if error.path is not None:
            raise
        where = f"participant {recording.participant}, trial {recording.trial}"
        raise GazeError(str(error), path=recording.path, place=where) from error


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


OTHER_ANGLE = (
    "the size of the recording's or of the model's screen is not known: gaze is {done} as if both "
    "covered the same visual angle"
)


def require_screen(recording: Recording) -> Screen:
    """The screen of a recording; one without is refused."""
    if recording.screen is None:
        raise GazeError("the file does not say how large the screen was", remedy="give `screen`")
    return recording.screen


def model_screen(config: RunConfig, task: str | None) -> Screen:
    """The model's screen for a task of its own; None is no task."""
    return config.screen if task is None else config.conditioning.screen_of(task)


def on_model_grid(gaps: Gaps, rate_hz: float, own: Screen) -> NDArray[np.float32]:
    """Valid gaze (2, time) at the model's rate, normalized to its screen, NaN where unknown."""
    assert gaps.clock is not None
    screen = require_screen(gaps.recording)
    gaze_px = on_grid(gaps.cleaned, gaps.clock, rate_hz)
    if screen != own and screen.is_comparable_with(own):
        screen, gaze_px = own, own.from_degrees(screen.to_degrees(gaze_px))
    return screen.to_normalized(gaze_px).astype(np.float32)


Courses = list[NDArray[np.float32]]


@dataclass(frozen=True)
class Filler:
    """A steerable model that fills gaps; any other is refused."""

    sampler: Sampler
    config: Filling

    def __post_init__(self) -> None:
        config = self.sampler.run.config
        self._steered(self.config.task, Constraints())
        longest_s = config.length / config.rate_hz / 2
        if self.config.max_gap_s > longest_s:
            raise GazeError(
                f"`max_gap_s` must be at most {longest_s:g} for this model, half its window, not "
                f"{self.config.max_gap_s:g}"
            )

    def gaps(self, recording: Recording) -> Gaps:
        """The gaps of a recording; one without a screen is refused."""
        return gaps_of(recording, self.config.cleaning, self.config.max_gap_s)

    def n_windows(self, gaps: Gaps) -> int:
        """Windows that are generated for all draws of a recording."""
        return self.config.draws * len(self._windows(gaps))

    def task_of(self, recording: Recording) -> str | None:
        """The task that gaps of a recording are generated with; None is without one."""
        if self.config.task is not None:
            return self.config.task
        known = self.sampler.run.config.conditioning.tasks
        return recording.task if recording.task in known else None

    def is_in_degrees(self, recording: Recording) -> bool:
        """Whether sizes on the recording's screen are those on the model's in degrees."""
        return require_screen(recording).is_comparable_with(self._screen(recording))

    def courses(self, gaps: Gaps, progress: Progress = lambda done: None) -> Courses:
        """The filled samples of each draw, (2, filled) in pixels, one gap after another.

        progress: called with the number of windows done. Draw d does not depend on the number of
        draws, nor on the batch size.
        """
        n_draws, windows = self.config.draws, self._windows(gaps)
        if not windows:
            return [np.empty((2, 0), dtype=np.float32) for _ in range(n_draws)]
        recording, config = gaps.recording, self.sampler.run.config
        screen, own = require_screen(recording), self._screen(recording)
        known = on_model_grid(gaps, config.rate_hz, own)
        length = config.length
        padded = np.pad(known, ((0, 0), (0, length)), constant_values=np.nan)
        given = np.stack([padded[:, start : start + length] for start, _ in windows])
        steered = self._steered(self.task_of(recording), Constraints(known=given))
        sampler = replace(steered, seed=self._seed(recording))
        courses: list[Courses] = [[] for _ in range(n_draws)]
        number = 0
        for piece in sampler.pieces(0, n_draws * len(windows), progress):
            for window in piece:
                draw, k = divmod(number, len(windows))
                start, group = windows[k]
                gaze_px = screen.pixels_from(own, window)
                courses[draw] += [self._course(gaps, gaps.gaps[g], gaze_px, start) for g in group]
                number += 1
        known_px = gaps.cleaned.gaze_px
        return [rounded_as(np.concatenate(of_draw, axis=1), known_px) for of_draw in courses]

    def _steered(self, task: str | None, constraints: Constraints) -> Sampler:
        return replace(self.sampler, task=task, is_taskless=task is None, constraints=constraints)

    def _seed(self, recording: Recording) -> int:
        """A seed of the recording's own, whatever is filled beside it."""
        place = recording.participant, recording.task, recording.trial
        return derived_seed(self.config.seed, Stream.FILLING, *place)

    def _windows(self, gaps: Gaps) -> list[tuple[int, list[int]]]:
        config, time_ms = self.sampler.run.config, gaps.cleaned.time_ms
        if not gaps.gaps:
            return []
        per_ms = config.rate_hz / 1000.0
        bounds = [(time_ms[gap.start], time_ms[gap.stop - 1]) for gap in gaps.gaps]
        spans = [
            (int((a - time_ms[0]) * per_ms), int((b - time_ms[0]) * per_ms) + 1) for a, b in bounds
        ]
        context = min(round(CONTEXT_S * config.rate_hz), config.length // 4)
        n = int((time_ms[-1] - time_ms[0]) * per_ms + 0.1) + 1
        return place_windows(spans, n, config.length, context)

    def _screen(self, recording: Recording) -> Screen:
        """The model's screen."""
        return model_screen(self.sampler.run.config, self.task_of(recording))

    def _course(self, gaps: Gaps, gap: Gap, gaze_px: Floats, start: int) -> NDArray[np.float32]:
        """A gap's samples (2, time) at the recording's times, from a window that starts at `start`.

        Generated samples between the valid ones on both sides are joined monotonically.
        """
        from scipy.interpolate import PchipInterpolator

        cleaned, rate_hz = gaps.cleaned, self.sampler.run.config.rate_hz
        ends = [gap.start - 1, gap.stop]
        before_ms, after_ms = cleaned.time_ms[ends]
        times_ms = cleaned.time_ms[0] + (start + np.arange(gaze_px.shape[1])) * (1000.0 / rate_hz)
        is_within = (times_ms > before_ms) & (times_ms < after_ms)
        at_ms = np.concatenate([[before_ms], times_ms[is_within], [after_ms]])
        edges = cleaned.gaze_px[:, ends]
        course = np.concatenate([edges[:, :1], gaze_px[:, is_within], edges[:, 1:]], axis=1)
        own_ms = gaps.recording.time_ms[gaps.rows(gap)]
        return PchipInterpolator(at_ms, course, axis=1)(own_ms).astype(np.float32)


def filled(recording: Recording, marks: Marks, course: NDArray[np.float32]) -> Recording:
    """The eye of a recording with the samples (2, filled) of a draw in its gaps.

    Filled samples are marked, and have neither blink label nor event class. Others are as recorded.
    """
    eye, mask, rate_hz = marks
    gaze_px = recording.gaze_px[eye].copy()
    gaze_px[:, mask] = course
    labels = recording.labels
    return replace(
        recording,
        gaze_px={eye: gaze_px},
        is_blink={one: blink & ~mask for one, blink in recording.is_blink.items() if one == eye},
        is_filled={eye: mask},
        labels=None if labels is None else np.where(mask, np.uint8(0), labels),
        rate_hz=rate_hz or recording.rate_hz,
    )
