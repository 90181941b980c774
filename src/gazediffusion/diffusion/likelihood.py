"""The variational bound of a DDPM on given windows (paper, appendix B), estimated without bias.

Every term is a squared error of the predicted x_0 times a weight that the schedule fixes:

    L_{t-1} = (SNR(t-1) - SNR(t)) / 2 ‖x_0 - predicted x_0‖²     for t = 2..T
    L_0     = ‖x_0 - predicted x_0‖² / (2 beta_1) + log(2 pi beta_1) / 2

The terms differ by orders of magnitude, so a sum over some of the steps takes each step with a
known probability and divides its term by it (Horvitz and Thompson 1952).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.diffusion import solvers
from gazediffusion.diffusion.ddpm import Denoiser, Objective, Schedule
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.errors import GazeError
from gazediffusion.seeds import Stream, rng

# Ends of the fourth-order Gregory rule; all weights between them are 1 (Fornberg 2021, table 2).
_ENDS = (3 / 8, 7 / 6, 23 / 24)
BATCH = 32  # evaluations of the network at a time


@dataclass(frozen=True)
class Bound:
    """The negative variational bound in nats per dimension, and its parts (appendix B).

    prior: L_T = KL(q(x_T | x_0) || p(x_T)).
    diffusion: the sum of L_{t-1} over t = 2..T.
    reconstruction: L_0 = -log p(x_0 | x_1), a density, so the total may be negative.
    standard_error: of the total. Steps and noise are drawn anew for every window, so the spread
        over windows contains theirs. Windows of one participant are taken as dependent where
        participants are given (cluster-robust), otherwise all windows as independent.
    n_windows: windows averaged over. n_steps: steps t = 2..T evaluated for each of them.
    log_determinant: of the change of variables from position to the network's tensor, per
        dimension.
    """

    prior: float
    diffusion: float
    reconstruction: float
    standard_error: float
    n_windows: int
    n_steps: int
    log_determinant: float = 0.0

    @classmethod
    def of_windows(
        cls,
        prior: Tensor,
        diffusion: Tensor,
        reconstruction: Tensor,
        n_steps: int,
        participants: Sequence[Any] | None = None,
        log_determinant: float = 0.0,
    ) -> Bound:
        """The mean of the parts (window,), with its standard error over participants."""
        parts = torch.stack([prior, diffusion, reconstruction]).double().cpu()
        total = parts.sum(dim=0)
        error = standard_error_of_mean(total, participants)
        prior_mean, diffusion_mean, reconstruction_mean = parts.mean(dim=1).tolist()
        return cls(
            prior_mean,
            diffusion_mean,
            reconstruction_mean,
            error,
            len(total),
            n_steps,
            log_determinant,
        )

    @property
    def total(self) -> float:
        """prior + diffusion + reconstruction."""
        return self.prior + self.diffusion + self.reconstruction

    @property
    def total_in_position(self) -> float:
        """The total as a density of normalized positions, in which all models compare.

        p(position) = p(tensor) |det|, so the logarithm of the determinant is subtracted.
        """
        return self.total - self.log_determinant

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the network: the steps and t = 1 of each window."""
        return self.n_windows * (self.n_steps + 1)

    def to_json(self) -> dict[str, float | int]:
        """All of it as plain values; all but the counts in nats per dimension."""
        return {
            "prior": self.prior,
            "diffusion": self.diffusion,
            "reconstruction": self.reconstruction,
            "total": self.total,
            "standard_error": self.standard_error,
            "total_in_position": self.total_in_position,
            "n_windows": self.n_windows,
            "n_steps": self.n_steps,
        }


@torch.no_grad()
def variational_bound(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Tensor,
    objective: Objective = "eps",
    n_times: int | None = None,
    seed: int = 0,
    participants: Sequence[Any] | None = None,
    log_determinant: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Bound:
    """The bound for clean x0 (window, channels, time), averaged over the windows.

    The reverse kernels have the posterior's variance (beta_1 at t = 1). n_times: steps t = 2..T
    drawn for each window (`draw_steps`); None takes all. Either way the estimate is unbiased.
    participants: of each window. `progress(done, total)` counts evaluations of the network.
    """
    if n_times is not None and n_times < 1:
        raise GazeError(f"`n_times` must be 1 or more, not {n_times}")
    draws = rng(seed, Stream.LIKELIHOOD, "bound")
    weight = _weights(schedule)
    n_steps = min(n_times or schedule.n_steps, schedule.n_steps - 1)
    probability = probabilities(expected_sizes(schedule), n_steps)
    diffusion, reconstruction = (torch.zeros(len(x0), dtype=torch.float64) for _ in range(2))
    for window, clean in enumerate(x0):
        drawn = draw_steps(probability, float(draws.random()))
        times = torch.cat([torch.ones(1, dtype=torch.long), drawn + 2])
        errors = []
        for t in torch.split(times, BATCH):
            noise = draws.standard_normal((len(t), *clean.shape), np.float32)
            eps = torch.from_numpy(noise).to(x0)
            steps, many = t.to(x0.device), clean.expand_as(eps)
            xt = schedule.noisy(many, steps, eps)
            predicted, _ = schedule.both(denoiser(xt, steps), xt, steps, objective)
            errors.append((many - predicted).double().square().mean(dim=(1, 2)).cpu())
            done = window * len(times) + sum(map(len, errors))
            progress(done, len(x0) * len(times))
        terms = torch.cat(errors) * weight[times]
        reconstruction[window] = terms[0]
        diffusion[window] = (terms[1:] / probability[drawn]).sum()
    reconstruction += 0.5 * math.log(2 * math.pi * float(schedule.beta[1]))
    last = schedule.alpha_bar[-1].cpu()
    squared = x0.double().square().mean(dim=(1, 2)).cpu()
    prior = 0.5 * (last * squared - last - torch.log(1 - last))
    return Bound.of_windows(
        prior, diffusion, reconstruction, n_steps, participants, log_determinant
    )


def expected_sizes(schedule: Schedule) -> Tensor:
    """How large the terms of t = 2..T are expected to be (T - 1,), up to a factor.

    A term is half the decrease of log SNR times the mean squared error of eps. That error falls
    with the noise, about as SNR^(1/4) for gaze, position and velocity alike (docs/method.md).
    """
    snr = _snr(schedule)
    return (snr[1:-1] / snr[2:] - 1) * snr[2:] ** 0.25


def probabilities(sizes: Tensor, n: int) -> Tensor:
    """Probabilities (step,) proportional to `sizes`, none above 1, that add up to n.

    >>> probabilities(torch.tensor([8.0, 1.0, 1.0]), 2)
    tensor([1.0000, 0.5000, 0.5000])
    """
    certain = torch.zeros(len(sizes), dtype=torch.bool)
    while True:
        factor = (n - certain.sum()) / sizes[~certain].sum()
        probability = torch.where(certain, 1.0, sizes * factor)
        if (probability[~certain] <= 1).all():
            return probability
        certain |= probability >= 1


def draw_steps(probability: Tensor, start: float) -> Tensor:
    """Indices of steps drawn systematically, each with its own probability (step,).

    Systematic sampling: a uniform start in [0, 1) and every integer after it are compared with the
    cumulative probabilities. Steps of probability 1 are always drawn, the others evenly.
    """
    met = torch.ceil(probability.double().cumsum(0) - start).clamp(min=0)
    return torch.diff(met, prepend=torch.zeros(1)).nonzero().squeeze(1)


def standard_error_of_mean(values: Tensor, groups: Sequence[Any] | None = None) -> float:
    """The standard error of the mean of values (window,), dependent within groups.

    Without two groups the windows are taken as independent; of one window it is not a number.
    """
    names = list(groups) if groups is not None and len(set(groups)) > 1 else range(len(values))
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    n = len(places)
    if n < 2:
        return math.nan
    index = torch.tensor([places[name] for name in names])
    sums = torch.zeros(n, dtype=values.dtype).index_add(0, index, values - values.mean())
    return math.sqrt(n / (n - 1) * float(sums.square().sum())) / len(values)


def _weights(schedule: Schedule) -> Tensor:
    """The weight of the squared error of x_0 in the term of each step (T + 1,), indexed by t."""
    snr = _snr(schedule)
    first = 1 / (2 * schedule.beta[1:2].cpu())
    return torch.cat([torch.zeros(1), first, (snr[1:-1] - snr[2:]) / 2])


def _snr(schedule: Schedule) -> Tensor:
    """The signal-to-noise ratio (T + 1,), indexed by t; infinite at t = 0."""
    return (schedule.alpha_bar / (1 - schedule.alpha_bar)).cpu()


@dataclass(frozen=True)
class Flow:
    """How the density is computed: levels, steps even in ln sigma, and draws.

    n_steps: of the solver, each one evaluation of D and of a product with its Jacobian; one more at
    the end. n_draws: of noise and signs; two or more have a standard error.
    """

    sigma_min: float
    sigma_max: float
    n_steps: int = 16
    n_draws: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_steps < 2 * len(_ENDS) - 1:
            raise GazeError(f"`n_steps` must be {2 * len(_ENDS) - 1} or more, not {self.n_steps}")
        if self.n_draws < 1:
            raise GazeError(f"`n_draws` must be 1 or more, not {self.n_draws}")
        if not 0 < self.sigma_min < self.sigma_max:
            raise GazeError("noise levels need 0 < sigma_min < sigma_max")

    @property
    def levels(self) -> list[float]:
        """sigma_min to sigma_max, even in ln sigma, (n_steps + 1,)."""
        first, last = math.log(self.sigma_min), math.log(self.sigma_max)
        places = torch.linspace(first, last, self.n_steps + 1, dtype=torch.float64)
        return [float(place) for place in places.exp()]

    def log_densities(
        self,
        denoise: CleanEstimate,
        x0: Tensor,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Tensor:
        """log p_min of clean x0 (window, channels, time) for each draw, (window, draw), in nats.

        denoise: D(x, sigma), differentiable in x; each window must be denoised by itself.
        progress(done, total) counts evaluations.
        """
        per_draw = self.n_steps + 1
        values = []
        for draw in range(self.n_draws):

            def show(done: int, before: int = draw * per_draw) -> None:
                progress(before + done, self.n_draws * per_draw)

            x = x0 + self.sigma_min * self._noise(draw, x0)
            values.append(self.log_density(denoise, x, draw, show))
        return torch.stack(values, dim=1)

    def log_density(
        self,
        denoise: CleanEstimate,
        x: Tensor,
        draw: int = 0,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Tensor:
        """log p_min at x (window, channels, time) itself, (window,), by the signs of one draw."""
        traces: list[Tensor] = []

        def recorded(x: Tensor, sigma: float) -> Tensor:
            clean, trace = with_trace(denoise, x, sigma, self._signs(draw, len(traces), x))
            traces.append(trace)
            progress(len(traces))
            return clean

        for after in solvers.unipc(recorded, x, self.levels):
            x = after
        recorded(x, self.sigma_max)
        step = math.log(self.sigma_max / self.sigma_min) / self.n_steps
        weights = gregory_weights(self.n_steps + 1).to(x.device) * step
        size = x[0].numel()
        integral = ((size - torch.stack(traces, dim=1)) * weights).sum(dim=1)
        squared = (x.double() / self.sigma_max).square().flatten(1).sum(dim=1)
        normalizer = size * math.log(2 * math.pi * self.sigma_max**2)
        return integral - 0.5 * (squared + normalizer)

    def _noise(self, draw: int, like: Tensor) -> Tensor:
        draws = rng(self.seed, Stream.LIKELIHOOD, "noise", draw)
        return torch.from_numpy(draws.standard_normal(like.shape[1:], np.float32)).to(like)

    def _signs(self, draw: int, node: int, like: Tensor) -> Tensor:
        bits = rng(self.seed, Stream.LIKELIHOOD, "signs", draw, node).integers(0, 2, like.shape[1:])
        return torch.from_numpy(2 * bits - 1).to(like)


def with_trace(
    denoise: CleanEstimate, x: Tensor, sigma: float, probe: Tensor
) -> tuple[Tensor, Tensor]:
    """D(x, sigma), and the estimate v dD/dx v of its Jacobian's trace, (window,) float64.

    probe v: (channels, time), of independent entries with mean 0 and variance 1.
    """
    with torch.enable_grad():
        leaf = x.detach().requires_grad_(True)
        clean = denoise(leaf, sigma)
        (product,) = torch.autograd.grad((clean * probe).sum(), leaf)
    trace = (product.double() * probe).flatten(1).sum(dim=1)
    return clean.detach(), trace


def gregory_weights(n: int) -> Tensor:
    """Weights of n evenly spaced values, at distance 1, in an integral of fourth order, (n,).

    >>> round(float(gregory_weights(11) @ torch.linspace(0, 1, 11).double() ** 3) / 10, 6)  # x^3
    0.25
    """
    weights = torch.ones(n, dtype=torch.float64)
    ends = torch.tensor(_ENDS, dtype=torch.float64)
    weights[: len(ends)] = ends
    weights[n - len(ends) :] = ends.flip(0)
    return weights


@torch.no_grad()
def denoising_errors(
    denoise: CleanEstimate,
    x0: Tensor,
    levels: Sequence[float],
    n_draws: int,
    sigma_data: float,
    span: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tensor:
    """Weighted squared errors of x0 (window, channels, time): (window, level, channel, span).

    Means over n_draws of noise, and over spans of this many samples; the last span may be shorter.
    progress(done, total) counts evaluations.
    """
    found = []
    for number, sigma in enumerate(levels):
        weight = (sigma**2 + sigma_data**2) / (sigma * sigma_data) ** 2
        total = torch.zeros_like(x0)
        for draw in range(n_draws):
            draws = rng(seed, Stream.DENOISING, number, draw)
            noise = torch.from_numpy(draws.standard_normal(x0.shape[1:], np.float32)).to(x0)
            total += (denoise(x0 + sigma * noise, sigma) - x0).square()
            progress(number * n_draws + draw + 1, len(levels) * n_draws)
        parts = torch.split(total * (weight / n_draws), span, dim=-1)
        found.append(torch.stack([part.mean(dim=-1) for part in parts], dim=-1))
    return torch.stack(found, dim=1)
