"""Channels of a joint representation as those of the gaze that they decode to.

A network's four channels may contradict each other; those of gaze cannot. The same as decoding and
encoding again (`Joint`), differentiable, and with every table on the device, so that a
CUDA graph can contain it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.models.representations import JOINT_STD, Joint


class Consistency:
    """For windows on a device."""

    def __init__(self, joint: Joint, device: torch.device) -> None:
        self.joint = joint
        std = (*joint.position_std, *joint.velocity_std)
        self._scale = (torch.tensor(std, device=device) / JOINT_STD)[:, None]
        self._precision = joint.precision(self._scale.double())

    def __call__(self, channels: Tensor, is_known: Tensor) -> Tensor:
        """Channels (batch, 4, time); is_known (batch, time): of given samples."""
        position, compressed = (channels * self._scale).double().chunk(2, dim=1)
        gaze = self.joint.fused(position, compressed[..., 1:], self._precision, is_known)
        velocity = functional.pad(gaze.diff(dim=-1), (1, 0)) * self.joint.rate_hz
        compressed = torch.asinh(velocity / self.joint.asinh_scale)
        return torch.cat([gaze, compressed], dim=1).float() / self._scale
