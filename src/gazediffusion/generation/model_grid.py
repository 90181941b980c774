"""A recording on a model's grid: its valid gaze at the model's rate, on the model's screen.

Sizes in degrees are kept where both screens tell them; otherwise both screens are taken to cover
the same visual angle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.generation.gaps import Gaps, on_grid
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import RunConfig

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
