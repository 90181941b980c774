"""Representations: what the channels of a network tensor mean.

Position: the normalized coordinates themselves. Velocity (paper, eq. 3): first differences over
the sampling step, the first sample zero, divided by c_v, the joint 99.5th percentile of |v_x| and
|v_y| over the training windows. Decoding sums velocities from zero.

Joint: both at once, four channels of one standard deviation. The velocity is compressed by asinh,
so that the network resolves the motion within fixations, a thousandth of a saccade's. Decoding
takes local motion from the velocity and global position from the position: velocities are summed,
and the low-pass part of position minus sum is added.

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

JOINT_STD = 0.5  # of every channel
ASINH_SCALE = 0.02  # share of c_v above which velocities are compressed
SLOW_S = 0.1  # standard deviation of the Gaussian low-pass filter
JUMP_S = 0.1  # over which the difference after known samples is averaged
DECAY_S = 2.0  # of any offset of generated gaze beyond them: slower than drift


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
        """Normalized positions (batch, 2, time): integrated velocities, slowly kept to positions.

        is_known (batch, time): of given samples. Beyond them the difference of both is continued.
        """
        import torch

        wide = channels.double() * (self._std(channels).double() / JOINT_STD)
        position, compressed = wide.chunk(2, dim=-2)
        step = torch.sinh(compressed) * (self.asinh_scale / self.rate_hz)
        step[..., 0] = 0
        summed = position[..., :1] + step.cumsum(-1)
        difference = position - summed
        if is_known is not None:
            difference = continued_difference(difference, is_known, self.rate_hz)
            difference = continued_difference(
                difference.flip(-1), is_known.flip(-1), self.rate_hz
            ).flip(-1)
        return (summed + low_passed(difference, SLOW_S * self.rate_hz)).float()

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Joint:
        """Read what `to_json` wrote."""
        plain = dict(values)
        if "knee" in plain:  # its name in earlier versions
            plain["asinh_scale"] = plain.pop("knee")
        for key in ("position_std", "velocity_std"):
            plain[key] = tuple(plain[key])
        return cls(**plain)

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


def continued_difference(
    difference: torch.Tensor, is_known: torch.Tensor, rate_hz: float
) -> torch.Tensor:
    """The difference (batch, 2, time) without a jump after the last known sample of each window.

    A generated position is off by some tenths of a degree, which would otherwise be made up for
    within SLOW_S, as a drift that recordings do not have.
    """
    import torch

    n_samples = difference.shape[-1]
    time = torch.arange(n_samples, device=difference.device)
    last = torch.where(is_known, time, -1).amax(dim=-1)  # -1 where nothing is known
    after = time - last[:, None]
    n_mean = max(1, round(JUMP_S * rate_hz))
    is_first = ((after > 0) & (after <= n_mean)).double()[:, None]
    mean = (difference * is_first).sum(dim=-1) / is_first.sum(dim=-1).clamp_min(1)
    at_last = difference.gather(-1, last.clamp_min(0)[:, None, None].expand(-1, 2, 1))
    is_free = (last >= 0) & (last < n_samples - 1)
    jump = (mean[..., None] - at_last) * is_free[:, None, None]
    decay = torch.exp(-after / (DECAY_S * rate_hz)) * (after > 0)
    return difference - jump * decay[:, None]


def low_passed(signal: torch.Tensor, std_samples: float) -> torch.Tensor:
    """The signal (batch, channels, time) through a Gaussian filter, mirrored at its ends."""
    import torch

    n_samples = signal.shape[-1]
    reach = min(round(4 * std_samples), n_samples - 1)
    place = torch.arange(-reach, reach + 1, dtype=signal.dtype, device=signal.device)
    kernel = torch.exp(-0.5 * (place / std_samples) ** 2)
    padded = torch.nn.functional.pad(signal, (reach, reach), mode="reflect")
    # With thousands of taps a product of transforms is many times faster than a convolution. What
    # wraps around lies in the first 2 reach samples, which are left out.
    n = 1 << (padded.shape[-1] - 1).bit_length()
    response = torch.fft.rfft(kernel / kernel.sum(), n)
    filtered: torch.Tensor = torch.fft.irfft(torch.fft.rfft(padded, n) * response, n)
    return filtered[..., 2 * reach : 2 * reach + n_samples]
