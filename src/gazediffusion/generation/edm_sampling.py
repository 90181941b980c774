"""Sampling with an EDM network: what is given stays in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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

# A denoiser, and noise of unit variance, to the windows after each step.
Solve = Callable[[solvers.CleanEstimate, Tensor], Iterator[Tensor]]


def sequences_of(
    representation: Joint,
    known: NDArray[np.float32] | None = None,
    fixations: NDArray[np.float32] | None = None,
    targets: NDArray[np.float32] | None = None,
) -> Sequences:
    """Constraints (window, 2, time), NaN where nothing is given, in the channels of a network."""

    def position(array: NDArray[np.float32] | None) -> Tensor | None:
        return None if array is None else representation.encode_position(torch.from_numpy(array))

    return Sequences(
        known=None if known is None else representation.encode(torch.from_numpy(known)),
        fixation=position(fixations),
        target=position(targets),
    )


def sample_edm(
    network: UNet,
    recipe: Recipe,
    noise: WindowNoise,
    condition: Condition,
    sequences: Sequences,
    solve: Solve,
) -> Iterator[Tensor]:
    """Yield windows (window, gaze channel, time) after each step; all tensors are on one device.

    solve: of the denoiser and noise of unit variance.
    """
    process, n_gaze = recipe.edm, recipe.gaze_channels
    n_labels = recipe.network.channels - n_gaze
    known, channels = sequences.known, sequences.channels()
    given = () if channels is None else (channels,)
    is_known = None if known is None else known[:, 0].isfinite()
    means = None if sequences.fixation is None else FixationMeans.of(sequences.fixation, is_known)

    def denoise(x: Tensor, sigma: float) -> Tensor:
        # Channels of labels are zero.
        x = functional.pad(x, (0, 0, 0, n_labels)) if n_labels else x
        level = torch.full((len(x),), sigma, device=x.device)
        clean = process.denoise(network, x, level, *condition, *given)
        return in_place(clean)

    def in_place(clean: Tensor) -> Tensor:
        """The channels of gaze, with fixations and known samples in their places."""
        gaze = clean[:, :n_gaze]
        if means is not None:
            gaze = torch.cat([means.moved(gaze[:, :2]), gaze[:, 2:]], dim=1)
        if known is not None:
            gaze = torch.where(known.isfinite(), known, gaze)
        return gaze

    # Estimates have what is given in its place; the windows between them do not.
    return map(in_place, solve(denoise, noise.draw()))
