"""Filling: the gaps of a recording, sampled given the gaze on both sides.

The recording is brought to the rate and the screen of a steerable model. Windows are placed around
the gaps, the model generates what is not known in them, and the course within each gap is brought
back to the recording's own times and pixels. Known samples are not touched.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.quantization import rounded_as
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.gaps import (
    CONTEXT_S,
    Gap,
    Gaps,
    Marks,
    find_gaps,
    place_windows,
)
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.model_grid import (
    model_screen,
    on_model_grid,
    require_screen,
)
from gazediffusion.generation.scheduling import Progress
from gazediffusion.geometry import Floats, Screen
from gazediffusion.seeds import seed_for
from gazediffusion.settings import Filling

Courses = list[NDArray[np.float32]]
_FILLING = 6  # names the stream of random numbers


@dataclass(frozen=True)
class Filler:
    """A steerable model that fills gaps; any other is refused."""

    generator: DiffusionGenerator
    config: Filling

    def __post_init__(self) -> None:
        config = self.generator.run.config
        self._steered(self.config.task, Constraints())
        longest_s = config.length / config.rate_hz / 2
        if self.config.max_gap_s > longest_s:
            raise GazeError(
                f"`max_gap_s` must be at most {longest_s:g} for this model, half its window, not "
                f"{self.config.max_gap_s:g}"
            )

    def gaps(self, recording: Recording) -> Gaps:
        """The gaps of a recording; one without a screen is refused."""
        try:
            require_screen(recording)
            return find_gaps(recording, self.config.cleaning, self.config.max_gap_s)
        except GazeError as error:
            if error.path is not None:
                raise
            where = f"participant {recording.participant}, trial {recording.trial}"
            raise GazeError(str(error), path=recording.path, place=where) from error

    def n_windows(self, gaps: Gaps) -> int:
        """Windows that are generated for all draws of a recording."""
        return self.config.draws * len(self._windows(gaps))

    def task_of(self, recording: Recording) -> str | None:
        """The task that gaps of a recording are generated with; None is without one."""
        if self.config.task is not None:
            return self.config.task
        known = self.generator.run.config.conditioning.tasks
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
        recording, config = gaps.recording, self.generator.run.config
        screen, own = require_screen(recording), self._screen(recording)
        known = on_model_grid(gaps, config.rate_hz, own)
        length = config.length
        padded = np.pad(known, ((0, 0), (0, length)), constant_values=np.nan)
        given = np.stack([padded[:, start : start + length] for start, _ in windows])
        generator = self._steered(self.task_of(recording), Constraints(known=given))
        courses: list[Courses] = [[] for _ in range(n_draws)]
        number = 0
        for piece in generator.pieces(0, n_draws * len(windows), self._seed(recording), progress):
            for window in piece:
                draw, k = divmod(number, len(windows))
                start, group = windows[k]
                gaze_px = screen.pixels_from(own, window)
                courses[draw] += [self._course(gaps, gaps.gaps[g], gaze_px, start) for g in group]
                number += 1
        known_px = gaps.cleaned.gaze_px
        return [rounded_as(np.concatenate(of_draw, axis=1), known_px) for of_draw in courses]

    def _steered(self, task: str | None, constraints: Constraints) -> DiffusionGenerator:
        return replace(self.generator, task=task, is_taskless=task is None, constraints=constraints)

    def _seed(self, recording: Recording) -> int:
        """A seed of the recording's own, whatever is filled beside it."""
        words = "\n".join((recording.participant, recording.task, recording.trial))
        return seed_for(self.config.seed, _FILLING, zlib.crc32(words.encode()))

    def _windows(self, gaps: Gaps) -> list[tuple[int, list[int]]]:
        config, time_ms = self.generator.run.config, gaps.cleaned.time_ms
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
        return model_screen(self.generator.run.config, self.task_of(recording))

    def _course(self, gaps: Gaps, gap: Gap, gaze_px: Floats, start: int) -> NDArray[np.float32]:
        """A gap's samples (2, time) at the recording's times, from a window that starts at `start`.

        Generated samples between the valid ones on both sides are joined monotonically.
        """
        from scipy.interpolate import PchipInterpolator

        cleaned, rate_hz = gaps.cleaned, self.generator.run.config.rate_hz
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
