"""Windows that together are most like a recording."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import wasserstein_distance

from gazediffusion.conditioning.style import N_CANDIDATES_COUNT, QUANTITIES, Movements, choose

N_EVENTS = 20


def movements(rng: np.random.Generator, means: ArrayLike) -> Movements:
    """Windows whose values of every quantity scatter about these means."""
    centre = np.asarray(means, dtype=float)
    window = np.repeat(np.arange(len(centre)), N_EVENTS)
    n = len(QUANTITIES)
    values = tuple(rng.normal(centre[window], 1.0) for _ in range(n))
    return Movements(values, (window,) * n)


def taken(candidates: Movements, chosen: list[int], quantity: int = 0) -> np.ndarray:
    return candidates.values[quantity][np.isin(candidates.window[quantity], chosen)]


def test_chosen_windows_have_the_distribution_of_the_recording() -> None:
    rng = np.random.default_rng(0)
    candidates = movements(rng, rng.normal(0, 2, 64))
    like = movements(rng, [1.0, 3.0] * 50)  # two kinds of windows
    chosen = choose(candidates, 64, like, 1000.0, 8)
    assert len(set(chosen)) == 8
    for k in range(len(QUANTITIES)):
        apart, at_first = (
            wasserstein_distance(taken(candidates, one, k), like.values[k])
            for one in (chosen, list(range(8)))
        )
        assert apart < at_first / 4


def test_the_first_are_the_same_for_every_number() -> None:
    rng = np.random.default_rng(1)
    candidates, like = movements(rng, rng.normal(0, 2, 32)), movements(rng, [1.0] * 5)
    assert choose(candidates, 32, like, 5.0, 3) == choose(candidates, 32, like, 5.0, 8)[:3]


def test_a_short_recording_counts_less() -> None:
    rng = np.random.default_rng(2)
    candidates, like = movements(rng, rng.normal(0, 2, 64)), movements(rng, [3.0] * 40)
    means = [
        taken(candidates, choose(candidates, 64, like, n_windows, 8)).mean()
        for n_windows in (1e-6, 1.0, N_CANDIDATES_COUNT, 1e6)
    ]
    assert means == sorted(means)
    assert abs(means[0] - candidates.values[0].mean()) < 0.3
    assert means[-1] == pytest.approx(3.0, abs=0.5)
    # As many windows as the candidates count for: half of the way.
    assert means[2] == pytest.approx((means[0] + means[-1]) / 2, abs=0.5)


def test_windows_without_an_event_are_chosen_last() -> None:
    rng = np.random.default_rng(3)
    like = movements(rng, [0.0] * 5)
    found = movements(rng, np.zeros(6))
    values = tuple(one[found.window[0] % 2 == 1] for one in found.values)
    window = tuple(one[one % 2 == 1] for one in found.window)
    chosen = choose(Movements(values, window), 6, like, 100.0, 6)
    assert {k % 2 for k in chosen[:1]} == {1}
    assert sorted(chosen) == list(range(6))


def test_a_quantity_that_the_recording_does_not_have_is_left_out() -> None:
    rng = np.random.default_rng(4)
    candidates, like = movements(rng, rng.normal(0, 2, 32)), movements(rng, [2.0] * 8)
    none = (np.zeros(0),) * 5
    one = Movements((like.values[0], *none), (like.window[0], *(n.astype(int) for n in none)))
    chosen = choose(candidates, 32, one, 1e6, 4)
    assert taken(candidates, chosen).mean() == pytest.approx(2.0, abs=0.5)
