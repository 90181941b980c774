"""Membership inference: does a model's loss identify the windows it was trained on?

The attack is the loss threshold that works on diffusion models (Carlini et al. 2023, Matsumoto et
al. 2023): a window the model denoises better is more likely to be a training window. Its strength
is the area under the ROC curve (AUC): 0.5 is chance, 1.0 identifies every window. Windows of one
participant are not independent, so the interval is a bootstrap over participants.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.data.subsampling import evenly_spaced
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.distances import drawn_windows
from gazediffusion.models.checkpoint import Run
from gazediffusion.seeds import seed_for
from gazediffusion.training.batches import Batches

Floats = NDArray[np.float64]

_BATCH = 32
_REPLICATES = 400


@dataclass(frozen=True)
class Membership:
    """How well the loss separates training windows from windows of held-out participants.

    auc, interval: over windows, the 95 % interval from drawing participants. auc_participants: over
    participants, each by the mean loss of their windows.
    """

    auc: float
    interval: tuple[float, float]
    auc_participants: float
    n_members: int
    n_others: int
    n_levels: int


def membership(
    run: Run, training: Windows, held_out: Windows, n_windows: int = 200, n_levels: int = 8
) -> Membership:
    """Attack a run with windows of its training participants and of held-out participants.

    Each window's loss is its mean over noise levels distributed as in training, the noise the same
    for all windows. At most `n_windows` of either side, evenly spaced.
    """
    sides = []
    for side in (training, held_out):
        if len(side) < 2:
            raise GazeError("membership needs windows of training and of held-out participants")
        some = side.dequantized(seed=0).select(evenly_spaced(len(side), n_windows))
        names = [some.participants[number] for number in some.participant]
        participant = np.unique(names, return_inverse=True)[1].astype(np.int64)
        sides.append((_losses(run, some, n_levels), participant))
    (members, of_member), (others, of_other) = sides
    rng = np.random.default_rng(0)
    draws = [
        auc(members[drawn_windows(of_member, rng)], others[drawn_windows(of_other, rng)])
        for _ in range(_REPLICATES)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    by_participant = [np.bincount(of, losses) / np.bincount(of) for losses, of in sides]
    return Membership(
        auc=auc(members, others),
        interval=(float(low), float(high)),
        auc_participants=auc(*by_participant),
        n_members=len(members),
        n_others=len(others),
        n_levels=n_levels,
    )


def auc(members: Floats, others: Floats) -> float:
    """The probability that a member's loss is below another's; ties count half."""
    ordered = np.sort(members)
    n_below, n_not_above = (np.searchsorted(ordered, others, side) for side in ("left", "right"))
    return float((n_below + n_not_above).mean() / (2 * len(members)))


@torch.no_grad()
def _losses(run: Run, windows: Windows, n_levels: int) -> Floats:
    """Each window's mean loss, (window,).

    A steerable network is given no sequences. Its channels of labels are zero, without noise, and
    do not count.
    """
    device = next(run.network.parameters()).device
    config = run.config
    batches = Batches([windows], config, 0, device)
    process = config.recipe.noise().to(device)
    levels = process.stratified(n_levels).to(device)
    n_labels = config.recipe.network.channels - config.recipe.gaze_channels
    n = len(batches.starts)
    result = np.zeros(n)

    def padded(gaze: Tensor) -> Tensor:
        """With zeros for the channels of labels."""
        return functional.pad(gaze, (0, 0, 0, n_labels))

    for first in range(0, n, _BATCH):
        indices = torch.arange(first, min(first + _BATCH, n), device=device)
        x0 = config.representation.encode(batches.clean(indices))
        condition = batches.condition(indices)
        for number in range(n_levels):
            noise = torch.Generator().manual_seed(seed_for(0, number))
            eps = torch.randn(x0.shape[1:], generator=noise).to(device).expand_as(x0)
            level = levels[number].expand(len(x0))
            counts = {"counts": padded(torch.ones_like(x0))} if n_labels else {}
            losses = process.losses(
                run.network, padded(x0), level, padded(eps), *condition, **counts
            )
            result[indices.cpu().numpy()] += losses.double().cpu().numpy() / n_levels
    return result
