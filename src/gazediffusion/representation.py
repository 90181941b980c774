"""Representations: what the two channels of a network tensor mean.

Position: the normalized coordinates themselves. Velocity (paper, eq. 3): first differences over
the sampling step, the first sample zero, divided by c_v, the joint 99.5th percentile of |v_x| and
|v_y| over the training windows. Decoding sums velocities from zero.

The functions take numpy arrays and torch tensors alike, shape (..., 2, time).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gazediffusion.errors import GazeError
from gazediffusion.windows import Windows

VELOCITY_QUANTILE = 0.995  # paper: "the joint training-set 99.5th percentile"


@dataclass(frozen=True)
class Position:
    """Channels are x and y, normalized to the screen."""

    def encode(self, gaze: Any) -> Any:
        """Normalized positions (..., 2, time) as they are."""
        return gaze

    def decode(self, channels: Any) -> Any:
        """Network tensors (..., 2, time) as they are."""
        return channels


@dataclass(frozen=True)
class Velocity:
    """Channels are v_x / c_v and v_y / c_v."""

    scale: float
    rate_hz: float

    def encode(self, gaze: Any) -> Any:
        """Scaled velocities (..., 2, time) of normalized positions; the first sample is zero."""
        velocity = gaze * 0
        velocity[..., 1:] = (gaze[..., 1:] - gaze[..., :-1]) * (self.rate_hz / self.scale)
        return velocity

    def decode(self, channels: Any) -> Any:
        """Positions (..., 2, time) by summation from zero at the first sample."""
        steps = channels * (self.scale / self.rate_hz)
        steps[..., 0] = 0
        return steps.cumsum(-1)


def fit_velocity_scale(windows: Windows) -> float:
    """c_v in normalized units per second, from the training participants' windows alone."""
    training = windows.train
    if len(training) == 0:
        raise GazeError("no training windows to take the velocity scale from")
    velocity = Velocity(scale=1.0, rate_hz=windows.rate_hz).encode(training.cut())
    scale = float(np.quantile(np.abs(velocity).ravel(), VELOCITY_QUANTILE))
    if not scale > 0:
        raise GazeError("the training gaze does not move, so its velocity has no scale")
    return scale
