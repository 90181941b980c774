"""Channels of a joint representation as those of the gaze that they decode to.

A network's four channels may contradict each other; those of gaze cannot. The same as decoding and
encoding again (`Joint`), in float32, differentiable, and with every table on the device, so that a
CUDA graph can contain it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.models.representations import (
    JOINT_STD,
    SLOW_S,
    Joint,
    continued_difference,
    low_passed,
)


class Consistency:
    """For windows of `length` samples on a device."""

    def __init__(self, joint: Joint, length: int, device: torch.device) -> None:
        self.joint = joint
        std = (*joint.position_std, *joint.velocity_std)
        self._scale = (torch.tensor(std, device=device) / JOINT_STD)[:, None]
        # The filter as a matrix (time, time): row t is its response to an impulse at t.
        impulses = torch.eye(length, dtype=torch.float64)[:, None]
        filtered = low_passed(impulses, SLOW_S * joint.rate_hz)
        self._filter = filtered[:, 0].float().to(device)

    def __call__(self, channels: Tensor, is_known: Tensor) -> Tensor:
        """Channels (batch, 4, time); is_known (batch, time): of given samples."""
        rate_hz, asinh_scale = self.joint.rate_hz, self.joint.asinh_scale
        position, compressed = (channels * self._scale).chunk(2, dim=1)
        step = torch.sinh(compressed[..., 1:]) * (asinh_scale / rate_hz)
        summed = position[..., :1] + functional.pad(step.cumsum(dim=-1), (1, 0))
        difference = continued_difference(position - summed, is_known, rate_hz)
        difference = continued_difference(difference.flip(-1), is_known.flip(-1), rate_hz).flip(-1)
        gaze = summed + difference.float() @ self._filter
        velocity = functional.pad(gaze.diff(dim=-1), (1, 0)) * rate_hz
        return torch.cat([gaze, torch.asinh(velocity / asinh_scale)], dim=1) / self._scale
