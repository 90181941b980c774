"""Denoising errors: how well an EDM model restores a window from noise of a few fixed levels.

The squared error of D is weighted as in training, by (sigma^2 + s^2) / (sigma s)^2, s being the
data's standard deviation: it is about 1 for a network that has learned nothing, at every level.
Noise depends on the seed alone, so that a window's errors do not depend on those beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.seeds import seed_for

_NOISE = 13  # names the stream of random numbers


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

    Means over n_draws of noise, and over spans of so many samples; the last span may be shorter.
    progress(done, total) counts evaluations.
    """
    found = []
    for number, sigma in enumerate(levels):
        weight = (sigma**2 + sigma_data**2) / (sigma * sigma_data) ** 2
        total = torch.zeros_like(x0)
        for draw in range(n_draws):
            generator = torch.Generator().manual_seed(seed_for(seed, _NOISE, number, draw))
            noise = torch.randn(x0.shape[1:], generator=generator).to(x0)
            total += (denoise(x0 + sigma * noise, sigma) - x0).square()
            progress(number * n_draws + draw + 1, len(levels) * n_draws)
        parts = torch.split(total * (weight / n_draws), span, dim=-1)
        found.append(torch.stack([part.mean(dim=-1) for part in parts], dim=-1))
    return torch.stack(found, dim=1)
