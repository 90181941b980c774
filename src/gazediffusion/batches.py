"""Batches: what the network sees at each step, made from (seed, step) alone.

All runs lie on the device once; a batch is gathered from them, spread over the tracker's grid,
mirrored and reversed as the recipe says, encoded and given its noise. Nothing is carried from one
step to the next, so a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gazediffusion.checkpoint import RunConfig
from gazediffusion.seeds import seed_for
from gazediffusion.windows import CLIP, Windows

Batch = tuple[Tensor, Tensor, Tensor]
_VALIDATION_BATCH = 64
# Names of the streams of random numbers.
_ORDER, _STEP = 1, 2


class Batches:
    """Training batches on the device, each made from (seed, step) alone."""

    def __init__(
        self, windows: Windows, config: RunConfig, seed: int, device: torch.device
    ) -> None:
        recipe = config.recipe
        self.recipe, self.seed, self.device = recipe, seed, device
        self.representation = config.representation
        self.gaze = torch.from_numpy(windows.gaze).to(device)
        self.grid = torch.from_numpy(windows.grid_normalized).to(device)
        self.starts = torch.from_numpy(windows.starts).to(device)
        self.offsets = torch.arange(windows.length, device=device)
        self.batch_size = min(recipe.batch_size, len(windows))
        # Whole batches only, so that every step has one shape; the order is new at each epoch.
        self.per_epoch = len(windows) // self.batch_size
        self.generator = torch.Generator(device=device)
        self._order = torch.empty(0, dtype=torch.long)
        self._order_epoch = -1

    def clean(self, indices: Tensor) -> Tensor:
        """Windows (batch, 2, time) of normalized gaze, as recorded."""
        return self.gaze[:, self.starts[indices, None] + self.offsets].transpose(0, 1)

    def at(self, step: int) -> Batch:
        """x0 (batch, channels, time), t (batch,) and eps of training step `step`."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._order_epoch:
            order = torch.Generator().manual_seed(seed_for(self.seed, _ORDER, epoch))
            self._order = torch.randperm(len(self.starts), generator=order).to(self.device)
            self._order_epoch = epoch
        indices = self._order[place * self.batch_size : (place + 1) * self.batch_size]
        self.generator.manual_seed(seed_for(self.seed, _STEP, step))
        gaze = self._augmented(self._dequantized(self.clean(indices)))
        x0 = self.representation.encode(gaze)
        t, eps = self.noise(x0)
        return x0, t, eps

    def noise(self, x0: Tensor) -> tuple[Tensor, Tensor]:
        """Steps t, uniform on 1..T, and noise of the shape of x0."""
        t = torch.randint(
            1,
            self.recipe.diffusion_steps + 1,
            (len(x0),),
            generator=self.generator,
            device=self.device,
        )
        return t, self._normal(x0.shape)

    def _dequantized(self, gaze: Tensor) -> Tensor:
        """Gaze spread evenly over the tracker's grid cells, anew at every step."""
        spread = self._uniform(gaze.shape) - 0.5
        return (gaze + spread * self.grid).clamp(-CLIP, CLIP)

    def _augmented(self, gaze: Tensor) -> Tensor:
        """Each axis mirrored, and time reversed, with the recipe's probabilities."""
        batch = len(gaze)
        if self.recipe.flip > 0:
            mirrored = self._uniform((batch, 2, 1)) < self.recipe.flip
            gaze = torch.where(mirrored, -gaze, gaze)
        if self.recipe.reversal > 0:
            backwards = self._uniform((batch, 1, 1)) < self.recipe.reversal
            gaze = torch.where(backwards, gaze.flip(-1), gaze)
        return gaze

    def _uniform(self, shape: Any) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def _normal(self, shape: Any) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)


def fixed_validation(windows: Windows, config: RunConfig, device: torch.device) -> list[Batch]:
    """The held-out windows with noise that is the same at every epoch and in every run.

    Steps t are spread evenly over 1..T rather than drawn, which steadies the loss.
    """
    if len(windows) == 0:
        return []
    batches = Batches(windows.dequantized(seed=0), config, seed=0, device=device)
    n, total = len(windows), config.recipe.diffusion_steps
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    spread = ((torch.arange(n) + 0.5) / n * total).long() + 1
    t = spread[order].to(device)
    result = []
    for first in range(0, n, _VALIDATION_BATCH):
        indices = torch.arange(first, min(first + _VALIDATION_BATCH, n), device=device)
        x0 = config.representation.encode(batches.clean(indices))
        noise = torch.Generator().manual_seed(seed_for(0, _STEP, first))
        eps = torch.randn(x0.shape, generator=noise).to(device)
        result.append((x0, t[indices], eps))
    return result
