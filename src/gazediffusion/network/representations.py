"""Representations: what the channels of a network tensor mean.

Position: the normalized coordinates themselves. Velocity (paper, eq. 3): first differences over
the sampling step, the first sample zero, divided by c_v, the joint 99.5th percentile of |v_x| and
|v_y| over the training windows. Decoding sums velocities from zero.

Joint: both at once, four channels of one standard deviation. The velocity is compressed by asinh,
so that the network resolves the motion within fixations, a thousandth of a saccade's. Generated
channels contradict each other a little. Decoding takes the gaze that is closest to both, with equal
errors in all channels: an error of the compressed velocity is the larger a step the faster gaze is,
so that saccades make up for the difference, not the fixations between them.

Position and Velocity take numpy arrays and torch tensors alike, shape (..., 2, time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import VELOCITY_QUANTILE, Windows
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def solve_tridiagonal(diagonal: Tensor, beside: Tensor, right: Tensor) -> Tensor:
    """The solution (..., n) of symmetric, diagonally dominant systems.

    diagonal, right: (..., n). beside: (..., n - 1), the entries beside the diagonal. By parallel
    cyclic reduction: each round removes the neighbours of every unknown and leaves those that are
    twice as far away, so that log2(n) rounds on whole tensors solve all systems.
    """
    from torch.nn.functional import pad

    n, stride = diagonal.shape[-1], 1
    while stride < n:
        # Of the equation one stride after, and before, each pair.
        after, before = beside / diagonal[..., stride:], beside / diagonal[..., :-stride]
        right = (
            right
            - pad(after * right[..., stride:], (0, stride))
            - pad(before * right[..., :-stride], (stride, 0))
        )
        diagonal = diagonal - pad(after * beside, (0, stride)) - pad(before * beside, (stride, 0))
        beside = -after[..., :-stride] * beside[..., stride:]
        stride *= 2
    return right / diagonal


JOINT_STD = 0.5  # of every channel
ASINH_SCALE = 0.02  # share of c_v above which velocities are compressed
_KNOWN = 1e6  # weight of a known position over that of a generated one


@dataclass(frozen=True)
class Position:
    """Channels are x and y, normalized to the screen."""

    def encode(self, gaze: Any) -> Any:
        """Normalized positions (..., 2, time) as they are."""
        return gaze

    def decode(self, channels: Any) -> Any:
        """Network tensors (..., 2, time) as they are."""
        return channels

    def log_determinant(self, length: int) -> float:
        """Of `encode`, per dimension: 0."""
        return 0.0


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

    def log_determinant(self, length: int) -> float:
        """Of `encode` for windows of `length` samples, given the first, per dimension.

        Differences have determinant 1; each of the length - 1 that are not zero by definition is
        multiplied by rate / c_v.
        """
        return (length - 1) / length * math.log(self.rate_hz / self.scale)


@dataclass(frozen=True)
class Joint:
    """Channels are x, y and compressed v_x, v_y, each divided to a standard deviation of 0.5.

    asinh_scale: normalized units per second above which velocities are compressed.
    position_std, velocity_std: of x and y, and of asinh(v / asinh_scale), in training windows.
    """

    asinh_scale: float
    position_std: tuple[float, float]
    velocity_std: tuple[float, float]
    rate_hz: float

    def encode(self, gaze: torch.Tensor) -> torch.Tensor:
        """Four channels (batch, 4, time) of normalized positions (batch, 2, time)."""
        import torch

        velocity = torch.nn.functional.pad(gaze.diff(dim=-1), (1, 0)) * self.rate_hz
        channels = torch.cat([gaze, torch.asinh(velocity / self.asinh_scale)], dim=-2)
        return channels * (JOINT_STD / self._std(gaze))

    def encode_position(self, position: torch.Tensor) -> torch.Tensor:
        """Normalized positions (..., 2, time) in the scale of the first two channels."""
        return position * (JOINT_STD / position.new_tensor(self.position_std)[:, None])

    def decode(self, channels: torch.Tensor, is_known: torch.Tensor | None = None) -> torch.Tensor:
        """Normalized positions (batch, 2, time) of channels (batch, 4, time).

        is_known (batch, time): of given samples, whose positions are kept.
        """
        wide = channels.double() * (self._std(channels).double() / JOINT_STD)
        position, compressed = wide.chunk(2, dim=-2)
        return self.fused(position, compressed[..., 1:], self.precision(wide), is_known).float()

    def precision(self, like: torch.Tensor) -> torch.Tensor:
        """Of compressed velocities over that of positions, (2, 1): all channels err alike."""
        ratio = [p / v for p, v in zip(self.position_std, self.velocity_std, strict=True)]
        return like.new_tensor(ratio)[:, None] ** 2

    def fused(
        self,
        position: torch.Tensor,
        compressed: torch.Tensor,
        precision: torch.Tensor,
        is_known: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The gaze (batch, 2, time) closest to positions and to compressed velocities between them.

        position (batch, 2, time), compressed (batch, 2, time - 1): asinh(v / asinh_scale). Weighted
        least squares; the error of a step is that of the velocity times the slope of sinh.
        """
        import torch

        per_step = self.asinh_scale / self.rate_hz
        slope = torch.cosh(compressed) * per_step
        weight = precision / slope.square()
        pull = precision / slope * torch.tanh(compressed)  # the weight times the step
        own = torch.ones_like(position)
        if is_known is not None:
            own = own + (_KNOWN - 1) * is_known[:, None]
        pad = torch.nn.functional.pad
        return solve_tridiagonal(
            own + pad(weight, (0, 1)) + pad(weight, (1, 0)),
            -weight,
            own * position - pad(pull, (0, 1)) + pad(pull, (1, 0)),
        )

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Joint:
        """Read what `to_json` wrote."""
        stds = {key: tuple(values[key]) for key in ("position_std", "velocity_std")}
        return cls(**{**values, **stds})

    @classmethod
    def fit(cls, parts: Sequence[Windows], asinh_scale: float = ASINH_SCALE) -> Joint:
        """Scales from the training participants of all the windows files together.

        asinh_scale: as a share of c_v.
        """
        gaze = [part.train.dequantized(seed=0).cut() for part in parts]
        return cls.of_gaze(np.concatenate(gaze), parts[0].rate_hz, asinh_scale)

    @classmethod
    def of_gaze(
        cls, gaze: NDArray[np.float32], rate_hz: float, asinh_scale: float = ASINH_SCALE
    ) -> Joint:
        """Scales of gaze (window, 2, time); asinh_scale as a share of c_v."""
        velocity = np.diff(gaze, axis=-1) * rate_hz
        scale = asinh_scale * float(np.quantile(np.abs(velocity).ravel(), VELOCITY_QUANTILE))
        if not scale > 0:
            raise GazeError("the training gaze does not move, so its velocity has no scale")
        position_std = gaze.std(axis=(0, 2))
        velocity_std = np.arcsinh(velocity / scale).std(axis=(0, 2))
        return cls(
            asinh_scale=scale,
            position_std=(float(position_std[0]), float(position_std[1])),
            velocity_std=(float(velocity_std[0]), float(velocity_std[1])),
            rate_hz=rate_hz,
        )

    def _std(self, like: torch.Tensor) -> torch.Tensor:
        std = (*self.position_std, *self.velocity_std)
        return like.new_tensor(std)[:, None]
