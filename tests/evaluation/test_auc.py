"""AUC equals scikit-learn's; its interval is over groups."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gazediffusion.evaluation.auc import Draws, Wins
from gazediffusion.evaluation.distances import draw_weights
from gazediffusion.evaluation.gaze_sets import GazeSet
from tests.evaluation.test_trials import gaze_set


def two_sides() -> tuple[GazeSet, GazeSet]:
    return gaze_set(40, 5, seed=0), gaze_set(60, 6, seed=1)


def test_auc_equals_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    scores = [rng.integers(0, 9, (40, 2)), rng.integers(2, 12, (60, 2))]
    found = Wins.of(two_sides(), [one.astype(float) for one in scores])
    labels = np.repeat([0, 1], [80, 120])
    expected = roc_auc_score(labels, np.concatenate([one.ravel() for one in scores]))
    assert found.auc == pytest.approx(expected, abs=1e-12)
    assert found.n_all.sum() == 80 * 120


def test_auc_of_one_task_counts_its_windows_only() -> None:
    rng = np.random.default_rng(1)
    scores = [rng.normal(size=(40, 1)), rng.normal(1, 1, (60, 1))]
    rows = np.arange(40) % 2 == 0, np.arange(60) % 3 == 0
    found = Wins.of(two_sides(), scores, rows)
    kept = [one[row].ravel() for one, row in zip(scores, rows, strict=True)]
    expected = roc_auc_score(np.repeat([0, 1], [20, 20]), np.concatenate(kept))
    assert found.auc == pytest.approx(expected, abs=1e-12)


def test_the_interval_widens_when_groups_differ() -> None:
    rng = np.random.default_rng(2)
    first, second = two_sides()
    noise, other = rng.normal(size=(40, 1)), rng.normal(1, 1, (60, 1))
    draws = Draws(draw_weights(5, 400, rng), draw_weights(6, 400, rng), 2, rng)

    def width(scores: np.ndarray) -> float:
        one = draws.estimate([Wins.of((first, second), [scores, other])] * 2)
        assert one.interval is not None
        low, high = one.interval
        assert low is not None
        assert high is not None
        assert low < (one.value or 0.0) < high
        return high - low

    assert width(noise + 2.0 * first.group[:, None]) > 2 * width(noise)
