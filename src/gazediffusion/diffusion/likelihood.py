"""The variational bound of a DDPM on given windows (paper, appendix B)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gazediffusion.diffusion.ddpm import Denoiser, Objective, Schedule


@dataclass(frozen=True)
class Bound:
    """The negative variational bound in nats per dimension, and its parts (appendix B).

    prior: L_T = KL(q(x_T | x_0) || p(x_T)).
    diffusion: the sum of L_{t-1} over t = 2..T.
    reconstruction: L_0 = -log p(x_0 | x_1), a density, so the total may be negative.
    """

    prior: float
    diffusion: float
    reconstruction: float

    @property
    def total(self) -> float:
        """prior + diffusion + reconstruction."""
        return self.prior + self.diffusion + self.reconstruction


@torch.no_grad()
def variational_bound(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Tensor,
    objective: Objective = "eps",
    n_times: int | None = None,
    seed: int = 0,
) -> Bound:
    """The bound for clean x0 (batch, channels, time), averaged over the batch.

    The reverse kernels have the posterior's variance (beta_1 at t = 1). With `n_times`, the sum
    over t is estimated from that many evenly spaced steps.
    """
    generator = torch.Generator().manual_seed(seed)

    def noise() -> Tensor:
        return torch.randn(x0.shape, generator=generator).to(x0)

    def mean_of(t: int) -> tuple[Tensor, Tensor]:
        """Posterior means with the true and with the predicted x_0, at one step."""
        steps = torch.full((len(x0),), t, dtype=torch.long, device=x0.device)
        xt = schedule.noisy(x0, steps, noise()).to(x0.dtype)
        predicted_x0, _ = schedule.both(denoiser(xt, steps), xt, steps, objective)
        true, _ = schedule.posterior(xt, steps, x0)
        predicted, _ = schedule.posterior(xt, steps, predicted_x0)
        return true, predicted

    last = schedule.alpha_bar[-1]
    prior = 0.5 * ((1 - last) + last * x0.double().square() - 1 - torch.log(1 - last)).mean()

    times = torch.arange(2, schedule.n_steps + 1)
    if n_times is not None and n_times < len(times):
        times = times[torch.linspace(0, len(times) - 1, n_times).round().long()]
    terms = []
    for t in times.tolist():
        true, predicted = mean_of(t)
        terms.append((true - predicted).square().mean() / (2 * schedule.beta_tilde[t]))
    diffusion = torch.stack(terms).mean() * (schedule.n_steps - 1) if terms else torch.zeros(())

    variance = schedule.beta[1]
    _, predicted = mean_of(1)
    squared = (x0 - predicted).square().mean()
    reconstruction = 0.5 * (squared / variance + torch.log(2 * math.pi * variance))
    return Bound(float(prior), float(diffusion), float(reconstruction))
