"""Solvers fitted to a trained run, so that windows take few evaluations (diffusion/olss.py).

No recordings are needed: the coefficients follow from windows that the model generates in many
steps, or a distilled network in the steps that it is trained for. They are fitted to unsteered
windows of all tasks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.diffusion.ddim import WindowNoise
from gazediffusion.diffusion.olss import LinearSolver, ddim_states, reference
from gazediffusion.diffusion.solvers import CleanEstimate
from gazediffusion.generation.edm_sampling import sample_edm
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.unet import UNet

_LEVELS = (13.05, 5.233, 3.089, 2.026, 1.057, 0.3884, 0.0969)  # by a search (docs/log.md)
_MOST_WINDOWS = 32  # more do not change the coefficients by much
_SEED = 1000


def levels_of(n_steps: int, known: Sequence[float] = _LEVELS) -> list[float]:
    """So many noise levels that lie along the known ones, from the highest."""
    places = np.linspace(0.0, len(known) - 1, n_steps)
    found = np.exp(np.interp(places, np.arange(len(known)), np.log(known)))
    return [float(f"{level:.4g}") for level in found]


@torch.inference_mode()
def fitted_solver(run: Run, n_windows: int = _MOST_WINDOWS) -> LinearSolver | None:
    """The solver of a run, fitted by up to so many windows; None of one of the paper's."""
    recipe = run.config.recipe
    if recipe.process != "edm":
        return None
    denoise, noise = _denoiser(run, run.network, n_windows)
    levels, highest = levels_of(recipe.solver_steps), recipe.edm.sigma_max
    states = reference(denoise, noise * highest, levels, highest, recipe.edm.sigma_min)
    return LinearSolver.fit(denoise, noise, levels, states)


@torch.inference_mode()
def distilled_solvers(run: Run, n_windows: int = _MOST_WINDOWS) -> tuple[LinearSolver, ...]:
    """The solvers of a run's distilled network: the steps it is trained for, and one step fewer.

    The second is fitted to windows of the first, so that one calibration serves both.
    """
    distilled = run.distilled
    assert distilled is not None
    trained = distilled.settings["settings"]["levels"]
    denoise, noise = _denoiser(run, distilled.network, n_windows)
    own = LinearSolver.ddim(trained, noise.shape[1])
    if len(trained) == 1:
        return (own,)
    fewer = levels_of(len(trained) - 1, trained)
    states = ddim_states(denoise, noise, trained, fewer)
    return own, LinearSolver.fit(denoise, noise, fewer, states)


def _denoiser(run: Run, network: UNet, n_windows: int) -> tuple[CleanEstimate, Tensor]:
    """The estimate of a network for windows of all tasks, and their noise of unit variance."""
    config = run.config
    recipe = config.recipe
    n_windows = min(n_windows, _MOST_WINDOWS)
    device = next(run.network.parameters()).device
    # Before its calibration, so that a second one finds the same.
    drawn = config.conditioning.uncalibrated().draw(0, n_windows, _SEED)
    condition = tuple(part.to(device) for part in drawn.condition)
    noise = WindowNoise(_SEED, range(n_windows), (recipe.gaze_channels, config.length), device)
    is_bf16 = DiffusionGenerator.of_quality(run, "best").bf16
    found: list[CleanEstimate] = []

    def keep(denoise: CleanEstimate, x: Tensor) -> Iterator[Tensor]:
        found.append(denoise)
        yield x

    used = copy.deepcopy(network).bfloat16() if is_bf16 else network
    list(sample_edm(used, recipe, noise, condition, Sequences(), keep))
    return found[0], noise.first
