"""DDIM sampling in any number of steps, and ancestral sampling.

Notation is that of ddpm.py. DDIM (Song et al. 2021) goes from step t to an earlier step s:

    sigma^2 = eta^2 (1 - ab_s) / (1 - ab_t) (1 - ab_t / ab_s)
    x_s     = sqrt(ab_s) x_0 + sqrt(1 - ab_s - sigma^2) eps + sigma z

eta = 0 is deterministic (the paper's choice); eta = 1 over all T steps is ancestral sampling.
Every window has a seed of its own, so window k is the same whatever it is batched with.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import Tensor

from gazediffusion.device import sent
from gazediffusion.diffusion.ddpm import Denoiser, Objective, Schedule
from gazediffusion.errors import GazeError
from gazediffusion.seeds import seed_for

Sampler = Literal["ddim", "ancestral"]


class WindowNoise:
    """Gaussian noise for a batch of windows, each from a generator of its own.

    Drawn on the CPU, so that a window starts from the same noise on every device; the first noise
    is drawn when this is made, which may be well before it is needed and in another thread: row by
    row, since a second thread that computes in parallel slows down the first.
    """

    def __init__(
        self, seed: int, indices: Sequence[int], shape: tuple[int, int], device: torch.device
    ) -> None:
        self.shape, self.device = shape, device
        self.generators = [
            torch.Generator().manual_seed(seed_for(seed, index)) for index in indices
        ]
        self.first = self._fresh()
        self._is_new = True

    @classmethod
    def joined(cls, parts: Sequence[WindowNoise]) -> WindowNoise:
        """The noise of several batches as that of one."""
        found = copy.copy(parts[0])
        found.generators = [one for part in parts for one in part.generators]
        found.first = torch.cat([part.first for part in parts])
        return found

    def draw(self) -> Tensor:
        """Fresh noise (window, channels, time) float32; `first` is what it gave first."""
        if self._is_new:
            self._is_new = False
            self.first = sent(self.first, self.device)
            return self.first
        return sent(self._fresh(), self.device)

    def _fresh(self) -> Tensor:
        noise = torch.empty(len(self.generators), *self.shape)
        for row, generator in zip(noise, self.generators, strict=True):
            torch.randn(self.shape, generator=generator, out=row)
        return noise


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
