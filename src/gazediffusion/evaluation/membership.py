"""Membership: can one tell from a model whether a person's window was among its training windows?

The attack is the simple one that works on diffusion models (Carlini et al. 2023, Matsumoto et al.
2023): a window the model denoises better is more likely to be a training window. Its strength is
the area under the ROC curve (AUC): 0.5 is a coin, 1.0 knows everybody. Windows of one person are
alike, so the interval is drawn over people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.comparison import drawn_windows
from gazediffusion.models.checkpoint import Run
from gazediffusion.seeds import seed_for
from gazediffusion.training.batches import Batches

_BATCH = 32
_REPLICATES = 400


@dataclass(frozen=True)
class Membership:
    """How well the loss tells training windows from unseen people's.

    auc, interval: over windows, the interval from drawing people. auc_people: over people, each by
    the mean loss of their windows.
    """

    auc: float
    interval: tuple[float, float]
    auc_people: float
    n_members: int
    n_others: int
    n_levels: int


def membership(
    run: Run,
    parts: Sequence[Windows],
    n_windows: int = 500,
    n_levels: int = 16,
    progress: Callable[[float], None] = lambda share: None,
) -> Membership:
    """Attack a run with its own windows files: training people against held-out people.

    Each window's loss is its mean over noise levels spread as in training, the noise the same for
    all windows. At most `n_windows` of either side, evenly spread.
    """
    sides = []
    for number, side in enumerate(([p.train for p in parts], [p.held_out for p in parts])):
        some = [_some(part, side, n_windows) for part in side]
        if sum(len(part) for part in some) < 2:
            raise GazeError("membership needs windows of training and of held-out people")
        found = _losses(run, some, n_levels, partial(_tell, progress, number))
        sides.append((found, _people(some)))
    (members, of_member), (others, of_other) = sides
    rng = np.random.default_rng(0)
    draws = [
        auc(members[drawn_windows(of_member, rng)], others[drawn_windows(of_other, rng)])
        for _ in range(_REPLICATES)
    ]
    low, high = np.quantile(draws, [0.025, 0.975])
    return Membership(
        auc=auc(members, others),
        interval=(float(low), float(high)),
        auc_people=auc(_by_person(members, of_member), _by_person(others, of_other)),
        n_members=len(members),
        n_others=len(others),
        n_levels=n_levels,
    )


def auc(members: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """The chance that a member's loss is below another's; ties count half."""
    ranks = rankdata(np.concatenate([members, others]))
    above = ranks[len(members) :].sum() - len(others) * (len(others) + 1) / 2
    return float(above / (len(members) * len(others)))


def _some(part: Windows, chosen: Sequence[Windows], n: int) -> Windows:
    """This part's share of n windows, evenly spread."""
    total = sum(len(one) for one in chosen)
    wanted = round(len(part) * min(1.0, n / max(total, 1)))
    places = np.linspace(0, len(part) - 1, wanted).round().astype(int)
    return part.dequantized(seed=0).select(places)


@torch.no_grad()
def _losses(
    run: Run, parts: Sequence[Windows], n_levels: int, progress: Callable[[float], None]
) -> NDArray[np.float64]:
    """Each window's mean loss, (window,)."""
    device = next(run.network.parameters()).device
    config = run.config
    batches = Batches(parts, config, 0, device)
    process = config.recipe.noise().to(device)
    levels = process.stratified(n_levels).to(device)
    n = len(batches.starts)
    result = np.zeros(n)
    for first in range(0, n, _BATCH):
        indices = torch.arange(first, min(first + _BATCH, n), device=device)
        x0 = config.representation.encode(batches.clean(indices))
        condition = batches.condition(indices)
        for number in range(n_levels):
            noise = torch.Generator().manual_seed(seed_for(0, number))
            eps = torch.randn(x0.shape[1:], generator=noise).to(device).expand_as(x0)
            level = levels[number].expand(len(x0))
            losses = process.losses(run.network, x0, level, eps, *condition)
            result[indices.cpu().numpy()] += losses.double().cpu().numpy() / n_levels
        progress(min(1.0, (first + _BATCH) / n))
    return result


def _tell(progress: Callable[[float], None], side: int, done: float) -> None:
    progress((side + done) / 2)


def _people(parts: Sequence[Windows]) -> NDArray[np.int64]:
    """A number for each window's person; people of two files are different people."""
    names = [
        f"{n} {part.participants[p]}" for n, part in enumerate(parts) for p in part.participant
    ]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _by_person(losses: NDArray[np.float64], people: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(people, losses) / np.bincount(people)
