"""Precision and coverage of a set by fixed balls in the space of window features.

Coverage after Naeem et al. 2020, "Reliable fidelity and diversity metrics for generative models",
with balls around centres (k-means) in the place of balls around each real window, so that they can
be published where windows cannot. Every ball is of several participants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.quantities import FEATURES

Floats = NDArray[np.float64]

# Path length is mean speed again.
NAMES = tuple(name for name in FEATURES if name != "path_length")
# A ball holds this share of the windows that it was fitted to.
INSIDE = 0.95
MIN_PARTICIPANTS = 3
_N_INITIAL = 4


@dataclass(frozen=True, eq=False)
class Balls:
    """Balls of standardized features, and how much of the held-out windows each holds.

    mean, scale: of the features (feature,). centre (ball, feature), radius (ball,): of standardized
    features. share: of held-out windows that lie in each ball and nearest its centre, (ball,).
    """

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    centre: Floats
    radius: Floats
    share: Floats

    @classmethod
    def fit(
        cls, features: Floats, group: NDArray[np.int64], held_out: Floats, n_balls: int, seed: int
    ) -> Balls:
        """Balls around windows' features (window, feature) of participants `group` (window,).

        held_out: features of the held-out participants. Centres of fewer than MIN_PARTICIPANTS are
        left out.
        """
        from sklearn.cluster import KMeans

        if len(features) < 2 * n_balls:
            raise GazeError(f"{n_balls} balls need {2 * n_balls} windows, not {len(features)}")
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        points = (features - mean) / scale
        centre = KMeans(n_balls, n_init=_N_INITIAL, random_state=seed).fit(points).cluster_centers_
        while True:
            nearest, distance = _nearest(points, centre)
            of_ball = [np.flatnonzero(nearest == ball) for ball in range(len(centre))]
            is_kept = [len(np.unique(group[rows])) >= MIN_PARTICIPANTS for rows in of_ball]
            if all(is_kept):
                break
            centre = centre[is_kept]
        radius = np.array([np.quantile(distance[rows], INSIDE) for rows in of_ball])
        empty = cls(NAMES, mean, scale, centre, radius, np.zeros(len(centre)))
        counts, _ = empty.counted(held_out)
        return cls(NAMES, mean, scale, centre, radius, counts / len(held_out))

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Balls:
        """Read what `to_plain` gave."""
        arrays = {key: np.asarray(value) for key, value in row.items() if key != "names"}
        return cls(tuple(row["names"]), **arrays)

    def to_plain(self) -> dict[str, Any]:
        """As it stands in a definition."""
        return vars(self).copy()

    def counted(self, features: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Windows of each ball (ball,), and the ball of each window (window,), -1 for none."""
        nearest, distance = _nearest((features - self.mean) / self.scale, self.centre)
        ball = np.where(distance <= self.radius[nearest], nearest, -1)
        return np.bincount(ball[ball >= 0], minlength=len(self.centre)), ball

    def precision(self, ball: NDArray[np.int64]) -> float:
        """The share of windows that lie in a ball; `ball` (window,) as of `counted`."""
        return float((ball >= 0).mean())

    def coverage(self, ball: NDArray[np.int64]) -> float:
        """The share of held-out windows whose ball has a window of the set."""
        is_reached = np.bincount(ball[ball >= 0], minlength=len(self.share)) > 0
        return float(self.share[is_reached].sum() / self.share.sum())


def _nearest(points: Floats, centre: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The nearest centre of each point, and its distance."""
    from scipy.spatial.distance import cdist

    distance = cdist(points, centre)
    nearest = distance.argmin(axis=1)
    return nearest, distance[np.arange(len(points)), nearest]
