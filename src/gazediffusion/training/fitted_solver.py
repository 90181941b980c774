"""Solvers fitted to a trained run, so that windows take few evaluations (diffusion/olss.py).

No recordings are needed: the coefficients follow from windows that the model generates in many
steps. They are fitted to unsteered windows of all tasks, and used for every window. Solvers of a
distilled network follow the windows of the model that it is distilled from.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.diffusion.ddim import WindowNoise
from gazediffusion.diffusion.olss import LinearSolver, reference
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.generation.edm_sampling import sample_edm
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.unet import UNet

# By searches (docs/log.md). Those of another number of steps of the model lie between its seven.
_LEVELS = (13.05, 5.233, 3.089, 2.026, 1.057, 0.3884, 0.0969)
_DISTILLED_LEVELS = ((13.63, 6.325, 2.936, 1.125, 0.2936), (11.25, 3.557, 1.651, 0.4309))
_STEERED_LEVELS = (13.0, 5.0, 2.2, 0.7, 0.12)
_MOST_WINDOWS = 32  # more do not change the coefficients by much
_SEED = 1000


def levels_of(n_steps: int) -> list[float]:
    """The noise levels of a model's solver with so many steps, from the highest."""
    place, known = np.linspace(0.0, 1.0, n_steps), np.linspace(0.0, 1.0, len(_LEVELS))
    found = np.exp(np.interp(place, known, np.log(_LEVELS)))
    return [float(f"{level:.4g}") for level in found]


def fitted_solver(run: Run, n_windows: int = _MOST_WINDOWS) -> LinearSolver | None:
    """The solver of a run, fitted by up to so many windows; None of one of the paper's."""
    recipe = run.config.recipe
    if recipe.process != "edm":
        return None
    return _fitted(run, run.network, {tuple(levels_of(recipe.solver_steps)): False}, n_windows)[0]


def distilled_solvers(run: Run, n_windows: int = _MOST_WINDOWS) -> tuple[LinearSolver, ...]:
    """The solvers of a run's distilled network, from the most steps to the fewest.

    The last is that of windows with constraints.
    """
    assert run.distilled is not None
    levels = {**dict.fromkeys(_DISTILLED_LEVELS, False), _STEERED_LEVELS: True}
    return _fitted(run, run.distilled.network, levels, n_windows)


@torch.inference_mode()
def _fitted(
    run: Run,
    network: UNet,
    levels: Mapping[tuple[float, ...], bool],
    n_windows: int,
) -> tuple[LinearSolver, ...]:
    """Solvers of a network, closest to many steps of the run's own network.

    levels: those of each solver, and whether it ends with an estimate.
    """
    config = run.config
    recipe, process = config.recipe, config.recipe.edm
    n_windows = min(n_windows, _MOST_WINDOWS)
    device = next(run.network.parameters()).device
    # Before its calibration, so that a second one finds the same.
    drawn = config.conditioning.uncalibrated().draw(0, n_windows, _SEED)
    condition = tuple(part.to(device) for part in drawn.condition)
    noise = WindowNoise(_SEED, range(n_windows), (recipe.gaze_channels, config.length), device)
    is_bf16 = DiffusionGenerator.of_quality(run, "best").bf16
    denoisers: list[CleanEstimate] = []

    def keep(denoise: CleanEstimate, x: Tensor) -> Iterator[Tensor]:
        denoisers.append(denoise)
        yield x

    for one in (run.network, network):
        used = copy.deepcopy(one).bfloat16() if is_bf16 else one
        list(sample_edm(used, recipe, noise, condition, Sequences(), keep))
    highest, lowest, x = process.sigma_max, process.sigma_min, noise.first
    solvers = []
    for some, ends in levels.items():
        states = reference(denoisers[0], x * highest, some, highest, lowest)
        solvers.append(LinearSolver.fit(denoisers[1], x, some, states, ends_with_estimate=ends))
    return tuple(solvers)
