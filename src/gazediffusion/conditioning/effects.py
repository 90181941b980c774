"""Random effects: what windows of one participant have in common, and in what they differ.

Summary statistics with normal margins are the sum of two Gaussians, z = p + e: p is the same in all
windows of a participant (covariance `between`), e is new in each (covariance `within`). Given some
windows of a participant, p has a Gaussian posterior, and new windows of the participant follow. It
shrinks towards the mean of all participants the less is known of this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LEAST = 1e-3  # of the total variance, in each direction
_MOST = 0.95  # of the total variance that is common to a participant's windows


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of a participant's common part p: mean (..., statistic) and covariance."""

    mean: Floats
    covariance: Floats


def fit_effects(z: Floats, participant: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Covariances between and within participants, (statistic, statistic) each.

    z (window, statistic): with normal margins, of windows that do not overlap. participant
    (window,). The covariance between is that of pairs of windows of one participant.
    """
    n_statistics = z.shape[1]
    total = z.T @ z / max(len(z), 1) + _LEAST * np.eye(n_statistics)
    pairs, n_pairs = np.zeros_like(total), 0.0
    for one in np.unique(participant):
        own = z[participant == one]
        if len(own) < 2:
            continue
        # All pairs of different windows; a participant counts as many times as windows.
        whole = own.sum(axis=0)
        pairs += (np.outer(whole, whole) - own.T @ own) / (len(own) - 1)
        n_pairs += len(own)
    between = pairs / n_pairs if n_pairs else np.zeros_like(total)
    # In the coordinates where the total is the identity, shares lie between 0 and _MOST.
    root = np.linalg.cholesky(total)
    whitened = np.linalg.solve(root, np.linalg.solve(root, (between + between.T) / 2).T)
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    shares = vectors @ np.diag(np.clip(values, 0.0, _MOST)) @ vectors.T
    between = root @ shares @ root.T
    return between, total - between


def posterior(between: Floats, within: Floats, mean: Floats, n_windows: float) -> Posterior:
    """Of p, given the mean (..., statistic) of so many independent windows of a participant."""
    gain = np.linalg.solve(between + within / n_windows, between).T
    return Posterior(np.asarray(mean @ gain.T), between - gain @ between)


def root_of(covariance: Floats) -> Floats:
    """A matrix R with R R^T the covariance, which may be singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root: Floats = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root
