"""Generators: anything that makes windows from a number and a seed.

Window k of a seed is always the same window, whatever the batch size: models and baselines give
windows in pieces, so that a set larger than memory can be written as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from gazediffusion.checkpoint import Run
from gazediffusion.errors import GazeError
from gazediffusion.sampling import Sampler, WindowNoise, ddim_times, sample
from gazediffusion.windows import Windows

Progress = Callable[[float], None]


class Generator(Protocol):
    """Makes windows of normalized gaze."""

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = ...
    ) -> Iterator[NDArray[np.float32]]:
        """Windows first..stop-1 of this seed, in pieces (window, 2, time)."""
        ...

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed."""
        ...


@dataclass(frozen=True)
class DiffusionGenerator:
    """A trained run with its sampler. `batch_size` changes speed, never the windows."""

    run: Run
    sampler: Sampler = "ddim"
    steps: int | None = None
    eta: float | None = None
    batch_size: int = 16

    def __post_init__(self) -> None:
        if self.sampler not in ("ddim", "ancestral"):
            raise GazeError(f"--sampler must be ddim or ancestral, not {self.sampler!r}")
        if self.batch_size < 1:
            raise GazeError(f"--batch-size must be 1 or more, not {self.batch_size}")
        if not 0 <= self.settings["eta"] <= 1:
            raise GazeError(f"--eta must lie between 0 and 1, not {self.settings['eta']:g}")
        ddim_times(self.settings["steps"], self.run.config.recipe.diffusion_steps)

    @property
    def settings(self) -> dict[str, Any]:
        """Sampler, steps and eta in force; ancestral sampling takes every step."""
        recipe = self.run.config.recipe
        if self.sampler == "ancestral":
            return {"sampler": "ancestral", "steps": recipe.diffusion_steps, "eta": 1.0}
        return {
            "sampler": "ddim",
            "steps": recipe.sampling_steps if self.steps is None else self.steps,
            "eta": recipe.eta if self.eta is None else self.eta,
        }

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = lambda done: None
    ) -> Iterator[NDArray[np.float32]]:
        """Windows in batches; `progress` hears how many windows are done, in fractions."""
        for start in range(first, stop, self.batch_size):
            end = min(start + self.batch_size, stop)
            yield self._batch(list(range(start, end)), seed, progress)

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed, in memory."""
        if n < 1:
            raise GazeError(f"-n must be 1 or more, not {n}")
        return self.as_windows(np.concatenate(list(self.pieces(0, n, seed))), seed)

    def as_windows(self, gaze: NDArray[np.float32], seed: int) -> Windows:
        """Generated gaze (window, 2, time) of a seed, with where it comes from."""
        config = self.run.config
        return Windows.of_array(
            gaze,
            rate_hz=config.rate_hz,
            screen=config.screen,
            recipe=config.recipe.representation,
            provenance={"seed": seed, "weights_sha256": self.run.weights_sha256, **self.settings},
        )

    @torch.no_grad()
    def _batch(self, indices: list[int], seed: int, progress: Progress) -> NDArray[np.float32]:
        config, network = self.run.config, self.run.network
        recipe = config.recipe
        device = next(network.parameters()).device
        shape = (recipe.network.channels, config.length)
        noise = WindowNoise(seed, indices, shape, device)
        steps = sample(
            network, recipe.schedule().to(device), noise, recipe.objective, **self._how()
        )
        x = torch.empty(0)
        for number, after in enumerate(steps, start=1):
            x = after
            progress(indices[0] + len(indices) * number / self.settings["steps"])
        gaze: NDArray[np.float32] = config.representation.decode(x).float().cpu().numpy()
        return gaze

    def _how(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "sampler": settings["sampler"],
            "n_steps": settings["steps"],
            "eta": settings["eta"],
        }
