"""The log-density of windows under an EDM model, by its probability-flow equation.

In u = ln sigma the equation is dx / du = x - D(x, sigma) (Karras et al. 2022, eq. 1). It carries a
window x at sigma_min to x_max at sigma_max, where the model's density is that of its noise. The
instantaneous change of variables (Chen et al. 2018; Song et al. 2021, eq. 39) gives

    log p_min(x) = log N(x_max; 0, sigma_max^2 I) + int (d - tr dD/dx) du

over u from ln sigma_min to ln sigma_max, d being the number of dimensions. p_min is the density
that the sampler's continuous equation has before its last step: that of windows with Gaussian noise
of sigma_min. A window without noise is not typical of it, so noise is added to clean windows, and
log p_min is averaged over draws of it.

The trace is estimated by v dD/dx v with random signs v (Hutchinson 1990), new ones at every level.
Noise and signs depend on the seed alone: windows share them, and a window's value does not depend
on those beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gazediffusion.diffusion import solvers
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.errors import GazeError
from gazediffusion.seeds import seed_for

# Ends of the fourth-order Gregory rule; all weights between them are 1 (Fornberg 2021, table 2).
_ENDS = (3 / 8, 7 / 6, 23 / 24)
_NOISE, _SIGNS = 11, 12  # name the streams of random numbers


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
            values.append(self._log_density(denoise, x, draw, show))
        return torch.stack(values, dim=1)

    def log_density(self, denoise: CleanEstimate, x: Tensor, draw: int = 0) -> Tensor:
        """log p_min at x (window, channels, time) itself, (window,), by the signs of one draw."""
        return self._log_density(denoise, x, draw, lambda done: None)

    def _log_density(
        self, denoise: CleanEstimate, x: Tensor, draw: int, progress: Callable[[int], None]
    ) -> Tensor:
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
        generator = torch.Generator().manual_seed(seed_for(self.seed, _NOISE, draw))
        return torch.randn(like.shape[1:], generator=generator).to(like)

    def _signs(self, draw: int, node: int, like: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(seed_for(self.seed, _SIGNS, draw, node))
        bits = torch.randint(0, 2, like.shape[1:], generator=generator)
        return (2 * bits - 1).to(like)


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
