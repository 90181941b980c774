"""DDPM: the forward process, the prediction targets, the loss and the posterior.

Notation (paper, sections 2 and appendices A, B):

    t          diffusion step, 1..T; tensors of steps hold t, schedules are indexed by it
    beta_t     variance added at step t;  alpha_t = 1 - beta_t
    alpha_bar  prod_{s<=t} alpha_s, with alpha_bar_0 = 1
    x_t        sqrt(alpha_bar_t) x_0 + sqrt(1 - alpha_bar_t) eps                        (eq. 1)

A denoiser is any function (x_t, t) -> tensor of the shape of x_t, predicting eps or x_0. This
module knows nothing of networks and never clamps x_0: saccades live in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gazediffusion.diffusion.solvers import WindowNoise
from gazediffusion.errors import GazeError
from gazediffusion.seeds import DeviceDraws

Denoiser = Callable[[Tensor, Tensor], Tensor]
Objective = Literal["eps", "x0"]
Weighting = Literal["standard", "min-snr"]
Sampler = Literal["ddim", "ancestral"]


class Schedule:
    """The linear schedule: beta from `beta_1` to `beta_T` in T equal steps.

    beta, alpha_bar, alpha_bar_before and beta_tilde are (T + 1,) float64 and indexed by t;
    entry 0 is the clean data. They are computed once on the CPU and moved with `to`.
    """

    def __init__(
        self, n_steps: int = 1000, beta_first: float = 1e-4, beta_last: float = 2e-2
    ) -> None:
        if n_steps < 1 or not 0 < beta_first <= beta_last < 1:
            raise GazeError("a schedule needs one step or more and 0 < beta_1 <= beta_T < 1")
        self.n_steps = n_steps
        zero = torch.zeros(1, dtype=torch.float64)
        self.beta = torch.cat(
            [zero, torch.linspace(beta_first, beta_last, n_steps, dtype=torch.float64)]
        )
        self.alpha_bar = torch.cumprod(1 - self.beta, dim=0)
        self.alpha_bar_before = torch.cat([zero + 1, self.alpha_bar[:-1]])
        # Variance of q(x_{t-1} | x_t, x_0), appendix A; 0 at t = 1, where x_0 is certain.
        self.beta_tilde = torch.cat(
            [zero, ((1 - self.alpha_bar_before) / (1 - self.alpha_bar) * self.beta)[1:]]
        )

    def to(self, device: torch.device | str) -> Schedule:
        """The same schedule with its tensors on another device."""
        moved = Schedule.__new__(Schedule)
        moved.n_steps = self.n_steps
        for name in ("beta", "alpha_bar", "alpha_bar_before", "beta_tilde"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def noisy(self, x0: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        """x_t for clean x0 (batch, channels, time), steps t (batch,) and noise eps (eq. 1)."""
        alpha_bar = _over(self.alpha_bar[t], x0)
        return alpha_bar.sqrt() * x0 + (1 - alpha_bar).sqrt() * eps

    def x0_from_eps(self, xt: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        """The clean sample that x_t and its noise imply."""
        alpha_bar = _over(self.alpha_bar[t], xt)
        return (xt - (1 - alpha_bar).sqrt() * eps) / alpha_bar.sqrt()

    def eps_from_x0(self, xt: Tensor, t: Tensor, x0: Tensor) -> Tensor:
        """The noise that x_t and its clean sample imply."""
        alpha_bar = _over(self.alpha_bar[t], xt)
        return (xt - alpha_bar.sqrt() * x0) / (1 - alpha_bar).sqrt()

    def both(self, predicted: Tensor, xt: Tensor, t: Tensor, objective: Objective) -> tuple[
        Tensor, Tensor
    ]:  # fmt: skip
        """(x0, eps) from what a network predicts."""
        if objective == "eps":
            return self.x0_from_eps(xt, t, predicted), predicted
        return predicted, self.eps_from_x0(xt, t, predicted)

    def posterior(self, xt: Tensor, t: Tensor, x0: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(x_{t-1} | x_t, x_0), appendix A.

        mu = sqrt(ab_{t-1}) beta_t / (1 - ab_t) x_0 + sqrt(alpha_t) (1 - ab_{t-1}) / (1 - ab_t) x_t
        The variance has shape (batch, 1, 1).
        """
        alpha_bar, before = self.alpha_bar[t], self.alpha_bar_before[t]
        beta = self.beta[t]
        of_x0 = before.sqrt() * beta / (1 - alpha_bar)
        of_xt = (1 - beta).sqrt() * (1 - before) / (1 - alpha_bar)
        return _over(of_x0, x0) * x0 + _over(of_xt, xt) * xt, _over(self.beta_tilde[t], xt)

    def snr(self, t: Tensor) -> Tensor:
        """Signal-to-noise ratio alpha_bar / (1 - alpha_bar) at steps t (batch,)."""
        return self.alpha_bar[t] / (1 - self.alpha_bar[t])


def loss_weight(
    schedule: Schedule, t: Tensor, objective: Objective, weighting: Weighting, gamma: float = 5.0
) -> Tensor:
    """The weight of each sample's mean squared error, (batch,).

    Min-SNR (Hang et al. 2023) caps the weight of the x_0 error at gamma: min(SNR, gamma), which
    for an eps-predicting network is min(SNR, gamma) / SNR.
    """
    if weighting == "standard":
        return torch.ones_like(t, dtype=torch.float32)
    snr = schedule.snr(t)
    capped = snr.clamp(max=gamma)
    return (capped / snr if objective == "eps" else capped).float()


def denoising_loss(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Tensor,
    t: Tensor,
    eps: Tensor,
    objective: Objective = "eps",
    weighting: Weighting = "standard",
    gamma: float = 5.0,
) -> Tensor:
    """Each sample's weighted mean squared error, (batch,) (eq. 2, per dimension)."""
    predicted = denoiser(schedule.noisy(x0, t, eps), t)
    target = eps if objective == "eps" else x0
    error = (predicted.float() - target).square().mean(dim=(1, 2))
    return loss_weight(schedule, t, objective, weighting, gamma) * error


@dataclass(frozen=True)
class Ddpm:
    """The paper's process: steps 1..T of a schedule, and what the network predicts there."""

    schedule: Schedule
    objective: Objective = "eps"
    weighting: Weighting = "standard"
    gamma: float = 5.0

    def draw(self, n: int, draws: DeviceDraws) -> Tensor:
        """Training steps t (n,), uniform on 1..T."""
        return draws.integers(1, self.schedule.n_steps + 1, n)

    def stratified(self, n: int) -> Tensor:
        """n stratified steps t, even over 1..T."""
        return ((torch.arange(n) + 0.5) / n * self.schedule.n_steps).long() + 1

    def losses(self, network: Denoiser, x0: Tensor, t: Tensor, eps: Tensor) -> Tensor:
        """Each sample's weighted mean squared error, (batch,)."""
        return denoising_loss(
            network, self.schedule, x0, t, eps, self.objective, self.weighting, self.gamma
        )

    def to(self, device: torch.device | str) -> Ddpm:
        """The same process with its schedule on another device."""
        return replace(self, schedule=self.schedule.to(device))


def _over(values: Tensor, like: Tensor) -> Tensor:
    """Per-sample values (batch,) shaped to multiply (batch, channels, time), in its float type."""
    return values.to(like.dtype).view(-1, *([1] * (like.dim() - 1)))


def ddim_times(n_steps: int, total: int) -> list[int]:
    """The steps t that DDIM visits, from T down, evenly spaced ("trailing" spacing)."""
    if not 1 <= n_steps <= total:
        raise GazeError(f"`steps` must lie between 1 and {total}, not {n_steps}")
    return [round(total - k * total / n_steps) for k in range(n_steps)]


def sample(
    denoiser: Denoiser,
    schedule: Schedule,
    noise: WindowNoise,
    objective: Objective = "eps",
    sampler: Sampler = "ddim",
    n_steps: int = 100,
    eta: float = 0.0,
) -> Iterator[Tensor]:
    """Yield x after every step, (window, channels, time); the last one is the sample.

    Ancestral sampling takes all T steps and ignores `n_steps` and `eta`.
    """
    if not 0 <= eta <= 1:
        raise GazeError(f"`eta` must lie between 0 and 1, not {eta:g}")
    if sampler == "ancestral":
        n_steps, eta = schedule.n_steps, 1.0
    times = ddim_times(n_steps, schedule.n_steps)
    x = noise.draw()
    for t, s in zip(times, [*times[1:], 0], strict=True):
        steps = torch.full((len(x),), t, dtype=torch.long, device=x.device)
        predicted = denoiser(x, steps).float()
        x0, eps = schedule.both(predicted, x, steps, objective)
        if sampler == "ancestral":
            mean, variance = schedule.posterior(x, steps, x0)
            x = mean + variance.sqrt() * noise.draw() if s > 0 else mean
        else:
            x = _ddim_step(schedule, x0, eps, t, s, eta, noise)
        yield x


def _ddim_step(
    schedule: Schedule, x0: Tensor, eps: Tensor, t: int, s: int, eta: float, noise: WindowNoise
) -> Tensor:
    here, there = float(schedule.alpha_bar[t]), float(schedule.alpha_bar[s])
    variance = eta**2 * (1 - there) / (1 - here) * (1 - here / there)
    x = math.sqrt(there) * x0 + math.sqrt(max(1 - there - variance, 0.0)) * eps
    return x + math.sqrt(variance) * noise.draw() if variance > 0 else x
