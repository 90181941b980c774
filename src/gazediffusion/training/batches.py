"""Batches: what the network sees at each step, made from (seed, step) alone.

All runs lie on the device once; a batch is gathered from them, spread over the tracker's grid,
mirrored and reversed as the recipe says, encoded and given its noise. Nothing is carried from one
step to the next, so a resumed run sees what an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning.manner import Manners, measure, mirrored
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.models.checkpoint import RunConfig
from gazediffusion.models.recipes import TURNS, conditions
from gazediffusion.seeds import seed_for

# Clean windows, noise levels and noise; for a conditioned network also what it is told.
Batch = tuple[Tensor, ...]
_VALIDATION_BATCH, _CHUNK = 64, 512
# Names of the streams of random numbers.
_ORDER, _STEP, _MANNER = 1, 2, 3


class Batches:
    """Training batches on the device, each made from (seed, step) alone."""

    def __init__(
        self, parts: Sequence[Windows], config: RunConfig, seed: int, device: torch.device
    ) -> None:
        recipe = config.recipe
        self.recipe, self.seed, self.device = recipe, seed, device
        self.representation, self.process = config.representation, recipe.noise()
        self.n_tasks = len(config.tasks)
        self.gaze = torch.from_numpy(np.concatenate([p.gaze for p in parts], axis=1)).to(device)
        begins = np.cumsum([0, *(part.gaze.shape[1] for part in parts)])
        starts = [part.starts + begin for part, begin in zip(parts, begins, strict=False)]
        self.starts = torch.from_numpy(np.concatenate(starts)).to(device)
        grids = [part.grid_of_window for part in parts]
        self.grid = torch.from_numpy(np.concatenate(grids)).to(device)
        self.task = torch.from_numpy(_task_numbers(parts, config.tasks)).to(device)
        self.offsets = torch.arange(config.length, device=device)
        self.batch_size = min(recipe.batch_size, len(self.starts))
        # Whole batches only, so that every step has one shape; the order is new at each epoch.
        self.per_epoch = len(self.starts) // self.batch_size
        self.generator = torch.Generator(device=device)
        self._order = torch.empty(0, dtype=torch.long)
        self._order_epoch = -1
        # The manner of each window as it is, and with both axes mirrored.
        self._manner = self._told_of(config.manners, config.rate_hz) if config.manners else None

    def clean(self, indices: Tensor) -> Tensor:
        """Windows (batch, 2, time) of normalized gaze, as recorded."""
        return self.gaze[:, self.starts[indices, None] + self.offsets].transpose(0, 1)

    def at(self, step: int) -> Batch:
        """x0 (batch, channels, time), levels (batch,), eps (and condition) of step `step`."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._order_epoch:
            order = torch.Generator().manual_seed(seed_for(self.seed, _ORDER, epoch))
            self._order = torch.randperm(len(self.starts), generator=order).to(self.device)
            self._order_epoch = epoch
        indices = self._order[place * self.batch_size : (place + 1) * self.batch_size]
        self.generator.manual_seed(seed_for(self.seed, _STEP, step))
        gaze, turns = self._augmented(self._dequantized(self.clean(indices), indices))
        x0 = self.representation.encode(gaze)
        level = self.process.draw(len(x0), self.generator)
        eps = self._normal(x0.shape)
        if not self.recipe.is_conditioned:
            return x0, level, eps
        task = self.condition(indices) * self._is_told(len(x0))
        if self._manner is None:
            return x0, level, eps, conditions(task, turns)
        is_told = self._is_told(len(x0))
        return x0, level, eps, conditions(task, turns, self._turned(indices, turns), is_told)

    def condition(self, indices: Tensor) -> Tensor:
        """The windows' tasks, one column for each task the network knows."""
        return functional.one_hot(self.task[indices], self.n_tasks).float()

    def told(self, indices: Tensor) -> tuple[Tensor, ...]:
        """What a network is told of windows as they were recorded: task, no turn, and manner."""
        if not self.recipe.is_conditioned:
            return ()
        manner = None if self._manner is None else self._manner[0][indices]
        return (conditions(self.condition(indices), manner=manner),)

    def _told_of(self, manners: Manners, rate_hz: float) -> tuple[Tensor, Tensor]:
        """(window, number) each; measured once: the spread over the grid hardly changes it."""
        self.generator.manual_seed(seed_for(self.seed, _MANNER))
        measured = torch.cat(
            [
                measure(self._dequantized(self.clean(some), some), rate_hz)
                for some in torch.split(torch.arange(len(self.starts), device=self.device), _CHUNK)
            ]
        )
        return manners.scaled(measured), manners.scaled(mirrored(measured))

    def _turned(self, indices: Tensor, turns: Tensor) -> Tensor:
        """The manner (batch, number) of windows that were turned."""
        assert self._manner is not None
        as_is, both = (table[indices] for table in self._manner)
        of_axes = functional.pad(turns[:, :2], (as_is.shape[1] - 2, 0))
        return torch.where(of_axes, both, as_is)

    def _is_told(self, n: int) -> Tensor:
        return self._uniform((n, 1)) >= self.recipe.condition_dropout

    def _dequantized(self, gaze: Tensor, indices: Tensor) -> Tensor:
        """Gaze spread evenly over the tracker's grid cells, anew at every step."""
        spread = self._uniform(gaze.shape) - 0.5
        return (gaze + spread * self.grid[indices]).clamp(-CLIP, CLIP)

    def _augmented(self, gaze: Tensor) -> tuple[Tensor, Tensor]:
        """Each axis mirrored, and time reversed, with the recipe's probabilities; and which was."""
        batch = len(gaze)
        turns = torch.zeros((batch, TURNS), dtype=torch.bool, device=self.device)
        if self.recipe.flip > 0:
            mirrored = self._uniform((batch, 2, 1)) < self.recipe.flip
            gaze = torch.where(mirrored, -gaze, gaze)
            turns[:, :2] = mirrored[..., 0]
        if self.recipe.reversal > 0:
            backwards = self._uniform((batch, 1, 1)) < self.recipe.reversal
            gaze = torch.where(backwards, gaze.flip(-1), gaze)
            turns[:, 2:] = backwards[..., 0]
        return gaze, turns

    def _uniform(self, shape: Any) -> Tensor:
        return torch.rand(shape, generator=self.generator, device=self.device)

    def _normal(self, shape: Any) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device)


def fixed_validation(
    parts: Sequence[Windows], config: RunConfig, device: torch.device
) -> list[Batch]:
    """The held-out windows with noise that is the same at every epoch and in every run.

    Noise levels are spread evenly rather than drawn, which steadies the loss. A conditioned network
    is told the task.
    """
    n = sum(len(part) for part in parts)
    if n == 0:
        return []
    smooth = [part.dequantized(seed=0) for part in parts]
    batches = Batches(smooth, config, seed=0, device=device)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    level = config.recipe.noise().spread(n)[order].to(device)
    result: list[Batch] = []
    for first in range(0, n, _VALIDATION_BATCH):
        indices = torch.arange(first, min(first + _VALIDATION_BATCH, n), device=device)
        x0 = config.representation.encode(batches.clean(indices))
        noise = torch.Generator().manual_seed(seed_for(0, _STEP, first))
        eps = torch.randn(x0.shape, generator=noise).to(device)
        result.append((x0, level[indices], eps, *batches.told(indices)))
    return result


def some_held_out(windows: Windows, n: int) -> Tensor:
    """At most n held-out windows, evenly spread; of all windows where none is held out.

    Normalized gaze (window, 2, time), spread over the tracker's grid cells.
    """
    chosen = windows.held_out if len(windows.held_out) else windows
    places = torch.linspace(0, len(chosen) - 1, min(n, len(chosen))).round().long()
    return torch.from_numpy(chosen.dequantized(seed=0).cut(places.numpy()))


def _task_numbers(parts: Sequence[Windows], tasks: Sequence[str]) -> NDArray[np.int64]:
    """Each window's place in the network's tasks; zeros for a network that knows none."""
    if not tasks:
        return np.zeros(sum(len(part) for part in parts), dtype=np.int64)
    places = [np.array([tasks.index(task) for task in part.tasks]) for part in parts]
    numbers = [place[part.task] for place, part in zip(places, parts, strict=True)]
    return np.concatenate(numbers).astype(np.int64)
