"""Sampling with an EDM network: what is given stays in place, guidance strengthens the task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning import Condition
from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.diffusion import solvers
from gazediffusion.diffusion.ddim import WindowNoise
from gazediffusion.generation.fixation_means import FixationMeans
from gazediffusion.models.recipes import Recipe
from gazediffusion.models.representations import Joint
from gazediffusion.models.unet import UNet

_N_SHIFTS = 5  # shifts of noise in time that no other is equal to
_SOLVERS = {"unipc": solvers.unipc, "multistep": solvers.multistep, "heun": solvers.heun}


class Guidance(NamedTuple):
    """Classifier-free guidance: its scale, and the condition without the task."""

    scale: float
    without_task: Condition


def sequences_of(
    representation: Joint,
    known: NDArray[np.float32],
    fixations: NDArray[np.float32] | None = None,
    targets: NDArray[np.float32] | None = None,
) -> Sequences:
    """Constraints (window, 2, time), NaN where nothing is given, in the channels of a network."""

    def position(array: NDArray[np.float32] | None) -> Tensor | None:
        return None if array is None else representation.encode_position(torch.from_numpy(array))

    is_known = bool(np.isfinite(known).any())
    return Sequences(
        known=representation.encode(torch.from_numpy(known)) if is_known else None,
        fixation=position(fixations),
        target=position(targets),
    )


def sample_edm(
    network: UNet,
    recipe: Recipe,
    noise: WindowNoise,
    condition: Condition,
    sequences: Sequences,
    sampler: str,
    steps: int,
    guidance: Guidance | None = None,
) -> Iterator[Tensor]:
    """Yield windows (window, channels, time) after each step; all tensors are on one device."""
    process, n_gaze = recipe.edm, recipe.gaze_channels
    n_labels = recipe.network.channels - n_gaze
    known, channels = sequences.known, sequences.channels()
    given = () if channels is None else (channels,)
    is_known = None if known is None else known[:, 0].isfinite()
    means = None if sequences.fixation is None else FixationMeans.of(sequences.fixation, is_known)

    def denoise(x: Tensor, sigma: float) -> Tensor:
        level = torch.full((len(x),), sigma, device=x.device)
        clean = process.denoise(network, x, level, *condition, *given)
        if guidance is not None:
            without = process.denoise(network, x, level, *guidance.without_task, *given)
            clean = without + guidance.scale * (clean - without)
        return in_place(clean)

    def in_place(clean: Tensor) -> Tensor:
        """Fixations and known channels in their places; channels of labels stay zero."""
        if known is None and means is None and not n_labels:
            return clean
        gaze = clean[:, :n_gaze]
        if means is not None:
            gaze = torch.cat([means.moved(gaze[:, :2]), gaze[:, 2:]], dim=1)
        if known is not None:
            gaze = torch.where(known.isfinite(), known, gaze)
        return functional.pad(gaze, (0, 0, 0, n_labels))

    def padded(x: Tensor) -> Tensor:
        return functional.pad(x, (0, 0, 0, n_labels)) if n_labels else x

    if recipe.is_distilled:
        first = noise.draw()
        noises = (padded(further_noise(first, k)) for k in range(len(recipe.levels)))
        return solvers.renoising(denoise, noises, recipe.levels)
    sigmas: list[float] = process.sigma_schedule(steps).tolist()
    return _SOLVERS[sampler](denoise, padded(noise.draw() * sigmas[0]), sigmas)


def further_noise(first: Tensor, number: int) -> Tensor:
    """Noise (window, channel, time) of the number-th level, 0 being the first noise itself.

    The same numbers at other times and in other channels: as good as new ones, and no more are
    drawn, which for each window would take longer than an evaluation of the network on a GPU.
    """
    n_channels, n_samples = first.shape[1:]
    return first.roll((number % n_channels, number * n_samples // _N_SHIFTS), dims=(1, 2))
