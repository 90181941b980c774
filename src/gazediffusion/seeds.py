"""Seeds and draws: every random choice is a function of the seed and of its purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Version of the random streams, beside every measured number: it is raised when a seed begins to
# give other windows.
STREAMS = 1


def seed_for(*words: int) -> int:
    """A 63-bit seed for these numbers (0 or more), independent of that of any others."""
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def sobol_points(seed: int, first: int, stop: int, width: int) -> NDArray[np.float64]:
    """Points first..stop-1 of a seed's scrambled Sobol sequence (Owen 1998), (point, width).

    Each point is uniform in the unit cube. Means over the first n points have a smaller variance
    than those over independent draws, which is of order 1/n.
    """
    import torch

    engine: Any = torch.quasirandom.SobolEngine(width, True, seed)  # type: ignore[no-untyped-call]
    engine.fast_forward(first)
    points: NDArray[np.float64] = engine.draw(stop - first, dtype=torch.float64).numpy()
    return points


def categorical_draw(
    weights: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The category of each uniform number by inverse transform, and the uniform left within it.

    weights (category,) need not sum to one; uniforms (n,) lie in [0, 1). Both results are (n,).
    """
    edges = np.cumsum(weights)
    scaled = uniforms * edges[-1]
    category = np.searchsorted(edges[:-1], scaled, side="right")
    return category, (scaled - edges[category]) / weights[category] + 1


def quantile_draw(quantiles: Sequence[float], uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of uniform numbers by inverse transform, linear between quantiles at equal levels.

    >>> quantile_draw([0.0, 1.0, 4.0], np.array([0.25, 0.75])).tolist()
    [0.5, 2.5]
    """
    return np.interp(uniforms, np.linspace(0.0, 1.0, len(quantiles)), quantiles)
