"""Diffusion in continuous noise levels: preconditioning and loss of Karras et al. (2022, "EDM").

A window is noised as x = x_0 + sigma eps. The network F sees scaled input and gives scaled output,
so that both have unit variance at every level (table 1 there):

    D(x, sigma) = c_skip x + c_out F(c_in x, level)
    c_skip = s^2 / (sigma^2 + s^2)    c_out = sigma s / sqrt(sigma^2 + s^2)
    c_in   = 1 / sqrt(sigma^2 + s^2)  s = the data's standard deviation

D estimates x_0. Its squared error is weighted by 1 / c_out^2, and ln sigma is drawn from a normal
distribution. Unlike the paper's schedule, nothing bounds the smallest level at a hundredth of the
screen: sigma_min lies below fixational motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.seeds import DeviceDraws

# (x, level, *condition) to a tensor of x's shape; a condition is a tuple of tensors, or empty.
Network = Callable[..., Tensor]
# The network's input for these two levels is 0 and 1000, whatever the sampler's range is.
_EMBEDDED, _LEVELS = (0.002, 20.0), 1000.0
_SMALLEST_SHARE = 0.1


@dataclass(frozen=True)
class Edm:
    """Noise levels, how they are drawn in training, and how the network is wrapped.

    log_mean, log_std: of ln sigma in training. sigma_min, sigma_max: the sampler's last and first
    level, the others even in ln sigma between them.
    amplitude_weighting: additional weight of the loss per sigma_data of the denoised amplitude. A
    weight that depends on the noised window alone leaves the optimal D unchanged.
    """

    sigma_data: float = 0.5
    log_mean: float = -1.2
    log_std: float = 1.6
    sigma_min: float = 0.02
    sigma_max: float = 80.0
    amplitude_weighting: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.sigma_min < self.sigma_max or not self.sigma_data > 0:
            raise GazeError("noise levels need 0 < sigma_min < sigma_max and sigma_data > 0")

    def draw(self, n: int, draws: DeviceDraws) -> Tensor:
        """Training levels sigma (n,), ln sigma normal."""
        return self._level(draws.normal(n))

    def stratified(self, n: int) -> Tensor:
        """n stratified levels, at even quantiles of the training distribution, for validation."""
        quantiles = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        return self._level(math.sqrt(2) * torch.erfinv(2 * quantiles - 1)).float()

    def to(self, device: torch.device | str) -> Edm:
        """The same; nothing of it lies on a device."""
        return self

    def sigma_schedule(self, n: int) -> Tensor:
        """The sampler's n levels from sigma_max down to sigma_min, and zero: (n + 1,) float64."""
        if n < 1:
            raise GazeError(f"`steps` must be 1 or more, not {n}")
        place = torch.linspace(0, 1, n, dtype=torch.float64) if n > 1 else torch.zeros(1).double()
        levels = self.sigma_max * (self.sigma_min / self.sigma_max) ** place
        return torch.cat([levels, torch.zeros(1, dtype=torch.float64)])

    def denoise(self, network: Network, x: Tensor, sigma: Tensor, *condition: Tensor) -> Tensor:
        """D(x, sigma) for x (batch, channels, time) and sigma (batch,)."""
        level = sigma.float().view(-1, *[1] * (x.ndim - 1))
        total = (level.square() + self.sigma_data**2).sqrt()
        out = network(x / total, self.embedded(sigma), *condition).float()
        return (self.sigma_data / total).square() * x + (level * self.sigma_data / total) * out

    def losses(
        self,
        network: Network,
        x0: Tensor,
        sigma: Tensor,
        eps: Tensor,
        *condition: Tensor,
        counts: Tensor | None = None,
    ) -> Tensor:
        """Each sample's weighted mean squared error of D, (batch,); about 1 for a new network.

        counts (batch, channels, time): 1 where the error counts, 0 elsewhere; everywhere if None.
        """
        level = sigma.view(-1, *[1] * (x0.ndim - 1))
        clean = self.denoise(network, x0 + level * eps, sigma, *condition)
        error = (clean - x0).square()
        if self.amplitude_weighting:
            error = error * (1 + self.amplitude_weighting * clean.detach().abs() / self.sigma_data)
        return self.weighted(error, sigma, counts)

    def weighted(self, error: Tensor, sigma: Tensor, counts: Tensor | None = None) -> Tensor:
        """Each sample's mean of squared errors of D (batch, ...), weighted by its level, (batch,).

        counts: as in `losses`.
        """
        weight = (sigma.square() + self.sigma_data**2) / (sigma * self.sigma_data).square()
        dims = tuple(range(1, error.ndim))
        if counts is None:
            return weight * error.mean(dim=dims)
        # A window of which little counts weighs less than the others.
        share = counts.mean(dim=dims).clamp_min(_SMALLEST_SHARE)
        return weight * (error * counts).mean(dim=dims) / share

    def _level(self, normal: Tensor) -> Tensor:
        return (self.log_mean + self.log_std * normal).exp()

    def embedded(self, sigma: Tensor) -> Tensor:
        """ln sigma, mapped to the range of the step embedding, 0 to 1000."""
        low, high = (math.log(level) for level in _EMBEDDED)
        return (sigma.float().log() - low) * (_LEVELS / (high - low))
