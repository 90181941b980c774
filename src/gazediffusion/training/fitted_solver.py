"""A solver fitted to a trained run, so that windows take few evaluations (diffusion/olss.py).

No recordings are needed: the coefficients follow from windows that the model generates in many
steps. They are fitted to unsteered windows of all tasks, and used for every window.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.diffusion.ddim import WindowNoise
from gazediffusion.diffusion.olss import LinearSolver
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.generation.edm_sampling import sample_edm
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run

# Of seven steps, by a search (docs/log.md); those of another number of steps lie between them.
_LEVELS = (13.05, 5.233, 3.089, 2.026, 1.057, 0.3884, 0.0969)
_MOST_WINDOWS = 32  # more do not change the coefficients by much
_SEED = 1000


def levels_of(n_steps: int) -> list[float]:
    """The noise levels of a solver with so many steps, from the highest."""
    place, known = np.linspace(0.0, 1.0, n_steps), np.linspace(0.0, 1.0, len(_LEVELS))
    found = np.exp(np.interp(place, known, np.log(_LEVELS)))
    return [float(f"{level:.4g}") for level in found]


@torch.inference_mode()
def fitted_solver(run: Run, n_windows: int = _MOST_WINDOWS) -> LinearSolver | None:
    """The solver of a run, fitted by up to so many windows; None of a distilled model."""
    config = run.config
    recipe, process = config.recipe, config.recipe.edm
    if recipe.process != "edm" or recipe.is_distilled:
        return None
    n_windows = min(n_windows, _MOST_WINDOWS)
    device = next(run.network.parameters()).device
    # Before its calibration, so that a second one finds the same.
    drawn = config.conditioning.uncalibrated().draw(0, n_windows, _SEED)
    condition = tuple(part.to(device) for part in drawn.condition)
    fitted: list[LinearSolver] = []

    def fit(denoise: CleanEstimate, noise: Tensor) -> Iterator[Tensor]:
        levels = levels_of(recipe.solver_steps)
        fitted.append(
            LinearSolver.fit(denoise, noise, levels, process.sigma_max, process.sigma_min)
        )
        yield noise

    noise = WindowNoise(_SEED, range(n_windows), (recipe.gaze_channels, config.length), device)
    network = DiffusionGenerator.of_quality(run, "best").network
    list(sample_edm(network, recipe, noise, condition, Sequences(), fit))
    return fitted[0]
