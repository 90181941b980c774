"""Area under the ROC curve with an interval over participants, windows and trials.

The AUC is the share of pairs, a snippet of one side and one of the other, that a score puts in
order. Pairs are counted by the groups of both snippets, so that a bootstrap draw of groups weights
the counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.document import Estimate
from gazediffusion.evaluation.gaze_sets import GazeSet

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Wins:
    """Pairs of a first and a second side's snippet, by the groups of both, (group, group).

    n_won: pairs in which the second side's score is higher, ties half. n_all: all pairs.
    """

    n_won: Floats
    n_all: Floats

    @classmethod
    def of(
        cls,
        sides: tuple[GazeSet, GazeSet],
        scores: Sequence[Floats],
        rows: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
    ) -> Wins:
        """Of scores (window, snippet) of both sides, or of some windows of them."""
        groups = [one.group for one in sides]
        n_groups = [int(one.max()) + 1 for one in groups]
        if rows is not None:
            groups = [one[row] for one, row in zip(groups, rows, strict=True)]
            scores = [one[row] for one, row in zip(scores, rows, strict=True)]
        first, second = (np.repeat(g, s.shape[1]) for g, s in zip(groups, scores, strict=True))
        n_won = np.zeros((n_groups[0], n_groups[1]))
        order = np.argsort(second, kind="stable")
        edges = np.flatnonzero(np.diff(second[order], prepend=-1))
        labels, of_second = second[order][edges], scores[1].ravel()[order]
        for group in np.unique(first):
            own = scores[0].ravel()[first == group][:, None]
            won = (of_second > own).sum(axis=0) + 0.5 * (of_second == own).sum(axis=0)
            n_won[group, labels] = np.add.reduceat(won, edges)
        counts = [np.bincount(g, minlength=n) for g, n in
                  zip((first, second), n_groups, strict=True)]  # fmt: skip
        return cls(n_won, np.outer(*counts).astype(np.float64))

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return float(self.n_won.sum() / self.n_all.sum())


class Draws:
    """Participants, blocks of synthetic windows and trials, drawn with replacement."""

    def __init__(self, first: Floats, second: Floats, n_trials: int, rng: Any) -> None:
        self.first, self.second = first, second
        self.trial = rng.integers(0, n_trials, (len(first), n_trials))

    def estimate(self, trials: list[Wins]) -> Estimate:
        """Mean AUC of the trials, with the central 95 % of its replicates."""
        drawn = np.stack([self._auc(one) for one in trials], axis=1)
        # Where a set has no window of a task in some trial, the others stand for it.
        picked = np.take_along_axis(drawn, self.trial % len(trials), axis=1)
        known = np.isfinite(picked)
        with np.errstate(invalid="ignore"):
            means = np.where(known, picked, 0.0).sum(axis=1) / known.sum(axis=1)
        low, high = np.percentile(means[np.isfinite(means)], [2.5, 97.5])
        return Estimate(float(np.mean([one.auc for one in trials])), (float(low), float(high)))

    def _auc(self, one: Wins) -> Floats:
        """AUC of each replicate, NaN where no pair is drawn."""
        n_first, n_second = one.n_all.shape
        a, b = self.first[:, :n_first], self.second[:, :n_second]
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.einsum("rp,pq,rq->r", a, one.n_won, b, optimize=True)
                / np.einsum("rp,pq,rq->r", a, one.n_all, b, optimize=True)
            )
