"""Seeds and draws: every random choice is a function of the run's seed and of what it is for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def seed_for(*words: int) -> int:
    """A 63-bit seed for these numbers (0 or more), unrelated to that of any others."""
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def evenly_spread(seed: int, first: int, stop: int, width: int) -> NDArray[np.float64]:
    """Points first..stop-1 of a seed's sequence that fills the unit cube evenly, (point, width).

    Scrambled Sobol numbers (Owen 1998): as random as independent ones point by point, but any first
    n of them have nearly the mean of the whole, where independent ones miss it by 1 / sqrt(n).
    """
    import torch

    engine: Any = torch.quasirandom.SobolEngine(width, True, seed)  # type: ignore[no-untyped-call]
    engine.fast_forward(first)
    points: NDArray[np.float64] = engine.draw(stop - first, dtype=torch.float64).numpy()
    return points


def fallen_on(
    shares: NDArray[np.float64], places: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which of several with these shares each place between 0 and 1 falls on, and where on it."""
    edges = np.cumsum(shares)
    along = places * edges[-1]
    which = np.searchsorted(edges[:-1], along, side="right")
    return which, (along - edges[which]) / shares[which] + 1
