"""Batches: the input of each training step, a function of (seed, step) alone.

All segments lie on the device once; a batch is gathered from them, dequantized, flipped and
reversed as the recipe says, encoded and given its noise and condition. Nothing is carried from one
step to the next, so a resumed run sees what an uninterrupted one would have seen. A batch of a
steerable recipe ends with where errors count (steering.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning import Condition
from gazediffusion.conditioning.conditioning import AUGMENTATIONS
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.models.checkpoint import RunConfig
from gazediffusion.models.representations import Joint
from gazediffusion.seeds import seed_for
from gazediffusion.training.steering import Steering

# Clean windows, noise levels, noise, the tensors of the condition, and where errors count.
Batch = tuple[Tensor, ...]
_VALIDATION_BATCH, _CHUNK = 64, 512
# Names of the streams of random numbers.
_ORDER, _STEP, _STATISTICS, _MASKS = 1, 2, 3, 4


class Batches:
    """Training batches on the device, each a function of (seed, step) alone."""

    def __init__(
        self, parts: Sequence[Windows], config: RunConfig, seed: int, device: torch.device
    ) -> None:
        recipe = config.recipe
        self.recipe, self.seed, self.device = recipe, seed, device
        self.representation, self.process = config.representation, recipe.noise()
        self.conditioning = config.conditioning
        self.gaze = torch.from_numpy(np.concatenate([p.gaze for p in parts], axis=1)).to(device)
        begins = np.cumsum([0, *(part.gaze.shape[1] for part in parts)])
        starts = [part.starts + begin for part, begin in zip(parts, begins, strict=False)]
        self.starts = torch.from_numpy(np.concatenate(starts)).to(device)
        grids = [part.grid_of_window for part in parts]
        self.grid = torch.from_numpy(np.concatenate(grids)).to(device)
        self.task = torch.from_numpy(self.conditioning.task_numbers(parts)).to(device)
        elapsed_s = np.concatenate([part.elapsed_s for part in parts])
        self.elapsed_s = torch.from_numpy(elapsed_s).float().to(device)
        self.offsets = torch.arange(config.length, device=device)
        self.batch_size = min(recipe.batch_size, len(self.starts))
        # Whole batches only, so that every step has one shape; the order is new at each epoch.
        self.per_epoch = len(self.starts) // self.batch_size
        self.generator = torch.Generator(device=device)
        self._order = torch.empty(0, dtype=torch.long)
        self._order_epoch = -1
        self._statistics = self._measured(config.rate_hz)
        self._steering = None
        if recipe.is_steerable and isinstance(self.representation, Joint):
            self._steering = Steering(parts, self.representation, device)

    def clean(self, indices: Tensor) -> Tensor:
        """Windows (batch, 2, time) of normalized gaze, as recorded."""
        return self.gaze[:, self._samples(indices)].transpose(0, 1)

    def _samples(self, indices: Tensor) -> Tensor:
        """Where the samples of windows lie in `gaze`, (batch, time)."""
        return self.starts[indices, None] + self.offsets

    def at(self, step: int) -> Batch:
        """x0 (batch, channels, time), levels (batch,), eps and the condition of step `step`."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._order_epoch:
            order = torch.Generator().manual_seed(seed_for(self.seed, _ORDER, epoch))
            self._order = torch.randperm(len(self.starts), generator=order).to(self.device)
            self._order_epoch = epoch
        indices = self._order[place * self.batch_size : (place + 1) * self.batch_size]
        self.generator.manual_seed(seed_for(self.seed, _STEP, step))
        gaze, augmentation = self._augmented(self._dequantized(self.clean(indices), indices))
        x0 = self.representation.encode(gaze)
        level = self.process.draw(len(x0), self.generator)
        eps = self._normal((len(x0), self.recipe.network.channels, x0.shape[-1]))
        given = (self.task[indices], self._statistics_of(indices), augmentation)
        dropout = self.recipe.condition_dropout
        if self._steering is None:
            condition = self.conditioning.of_training_windows(*given, dropout, self._uniform)
            return x0, level, eps, *condition
        flips = augmentation[:, :2]
        steered = self._steering.steer(x0, eps, self._samples(indices), flips, self._uniform)
        condition = self.conditioning.of_training_windows(
            *given, dropout, self._uniform, steered.is_steered, self.elapsed_s[indices]
        )
        return steered.x0, level, steered.eps, *condition, steered.sequences, steered.counts

    def validation(self, indices: Tensor, level: Tensor, eps: Tensor) -> Batch:
        """Windows as they were recorded, without augmentation or dropout, with this noise.

        What a steerable recipe's windows are given is drawn anew, always the same for one first
        window.
        """
        x0, condition = self.representation.encode(self.clean(indices)), self.condition(indices)
        if self._steering is None:
            return x0, level, eps, *condition
        self.generator.manual_seed(seed_for(self.seed, _MASKS, int(indices[0])))
        flips = torch.zeros((len(x0), 2), dtype=torch.bool, device=self.device)
        steered = self._steering.steer(x0, eps, self._samples(indices), flips, self._uniform)
        return steered.x0, level, steered.eps, *condition, steered.sequences, steered.counts

    def condition(self, indices: Tensor) -> Condition:
        """The condition of windows as they were recorded, without augmentation or dropout."""
        return self.conditioning.of_windows(
            self.task[indices], self._statistics_of(indices), self.elapsed_s[indices]
        )

    def _statistics_of(self, indices: Tensor) -> Tensor | None:
        return None if self._statistics is None else self._statistics[indices]

    def _measured(self, rate_hz: float) -> Tensor | None:
        """Statistics (window, statistic), measured once: dequantization hardly changes them."""
        if self.conditioning.prior is None:
            return None
        self.generator.manual_seed(seed_for(self.seed, _STATISTICS))
        chunks = torch.split(torch.arange(len(self.starts), device=self.device), _CHUNK)
        measured = [
            self.conditioning.measure(self._dequantized(self.clean(some), some), rate_hz)
            for some in chunks
        ]
        return torch.cat([one for one in measured if one is not None])

    def _dequantized(self, gaze: Tensor, indices: Tensor) -> Tensor:
        """Gaze dequantized: uniform over the cells of the tracker's grid, anew at every step."""
        offset = self._uniform(gaze.shape) - 0.5
        return (gaze + offset * self.grid[indices]).clamp(-CLIP, CLIP)

    def _augmented(self, gaze: Tensor) -> tuple[Tensor, Tensor]:
        """Axes flipped and time reversed with the recipe's probabilities; labels (batch, 3)."""
        batch = len(gaze)
        labels = torch.zeros((batch, len(AUGMENTATIONS)), dtype=torch.bool, device=self.device)
        if self.recipe.flip > 0:
            flips = self._uniform((batch, 2, 1)) < self.recipe.flip
            gaze = torch.where(flips, -gaze, gaze)
            labels[:, :2] = flips[..., 0]
        if self.recipe.reversal > 0:
            reversals = self._uniform((batch, 1, 1)) < self.recipe.reversal
            gaze = torch.where(reversals, gaze.flip(-1), gaze)
            labels[:, 2:] = reversals[..., 0]
        return gaze, labels

    def _uniform(self, shape: Any) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def _normal(self, shape: Any) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)


def fixed_validation(
    parts: Sequence[Windows], config: RunConfig, device: torch.device
) -> list[Batch]:
    """The held-out windows with noise that is the same at every epoch and in every run.

    Noise levels are stratified rather than drawn, which lowers the variance of the loss.
    """
    n = sum(len(part) for part in parts)
    if n == 0:
        return []
    smooth = [part.dequantized(seed=0) for part in parts]
    batches = Batches(smooth, config, seed=0, device=device)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    level = config.recipe.noise().stratified(n)[order].to(device)
    result: list[Batch] = []
    for first in range(0, n, _VALIDATION_BATCH):
        indices = torch.arange(first, min(first + _VALIDATION_BATCH, n), device=device)
        shape = (len(indices), config.recipe.network.channels, config.length)
        noise = torch.Generator().manual_seed(seed_for(0, _STEP, first))
        eps = torch.randn(shape, generator=noise).to(device)
        result.append(batches.validation(indices, level[indices], eps))
    return result


def some_held_out(windows: Windows, n: int) -> Windows:
    """At most n held-out windows, evenly spaced, dequantized; of all where none is held out."""
    chosen = windows.held_out if len(windows.held_out) else windows
    return chosen.dequantized(seed=0).subsample(n)
