"""Samples of one law cannot be separated, samples of two can, and nobody is tested on himself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.sets import participant_folds
from gazediffusion.evaluation.two_sample import C2ST, c2st_features

Floats = NDArray[np.float64]
N_PARTICIPANTS = 10


def participants(n: int) -> NDArray[np.int64]:
    return np.arange(n) * N_PARTICIPANTS // n


def features(n: int, seed: int, shift: float = 0.0) -> Floats:
    return np.random.default_rng(seed).normal(shift, 1.0, (n, 9)) * np.logspace(-3, 2, 9)


# With 600 examples a side an accuracy of 0.5 has an SD of 0.014; four of them are allowed.
def is_near_chance(found: C2ST) -> bool:
    return abs(found.accuracy - 0.5) < 0.06


def test_features_of_one_law_are_not_separated() -> None:
    found = c2st_features(features(600, 0), participants(600), features(600, 1), seed=0)
    assert is_near_chance(found)
    assert found.interval[0] < 0.5 < found.interval[1]
    assert found.n == 600


def test_features_of_two_laws_are_separated() -> None:
    found = c2st_features(features(600, 0), participants(600), features(600, 1, shift=2.0), seed=0)
    assert found.accuracy > 0.98


def test_a_larger_side_gives_no_advantage() -> None:
    found = c2st_features(features(600, 0), participants(600), features(1200, 1), seed=0)
    assert is_near_chance(found)
    assert found.n == 600


def test_habits_of_participants_do_not_count_as_differences() -> None:
    """Two windows of a participant are alike; that must not help, as it would in random folds."""
    habit = np.random.default_rng(5).normal(0, 3, (2 * N_PARTICIPANTS, 9))
    real = features(600, 0) / np.logspace(-3, 2, 9) + habit[participants(600)]
    other = features(600, 1) / np.logspace(-3, 2, 9) + habit[N_PARTICIPANTS + participants(600)]
    found = c2st_features(
        real, participants(600), other, 0, synthetic_groups=N_PARTICIPANTS + participants(600)
    )
    assert found.accuracy < 0.65
    assert found.interval[0] < 0.5


def test_windows_of_the_same_participants_are_not_separated() -> None:
    """A participant on both sides is left out on both, or training on one side would teach lies."""
    habit = np.random.default_rng(5).normal(0, 3, (N_PARTICIPANTS, 9))[participants(600)]
    real, other = (features(600, seed) / np.logspace(-3, 2, 9) + habit for seed in (0, 1))
    found = c2st_features(real, participants(600), other, 0, synthetic_groups=participants(600))
    assert is_near_chance(found)


def test_the_same_seed_gives_the_same_result() -> None:
    table = (features(60, 0), participants(60), features(60, 1))
    assert c2st_features(*table, seed=3) == c2st_features(*table, seed=3)


@given(st.lists(st.integers(0, 30), min_size=20, max_size=200), st.integers(2, 5))
def test_no_participant_is_in_two_folds(labels: list[int], n_folds: int) -> None:
    groups = np.array(labels)
    fold = participant_folds(groups, n_folds)
    assert all(len(set(fold[groups == label])) == 1 for label in set(labels))
    assert set(fold) == set(range(min(n_folds, len(set(labels)))))


def test_folds_are_even_and_known_participants_keep_theirs() -> None:
    groups = np.repeat(np.arange(6), [60, 50, 40, 30, 20, 10])
    assert np.bincount(participant_folds(groups, 3)).tolist() == [70, 70, 70]
    fold = participant_folds(groups, 3, known={0: 2, 1: 2})
    assert set(fold[groups <= 1]) == {2}
    assert np.bincount(fold).tolist() == [50, 50, 110]


GOOD = features(100, 0)


@pytest.mark.parametrize(
    ("real", "groups", "synthetic", "words"),
    [
        pytest.param(
            GOOD, participants(100) // 5, GOOD, "2 real participants", id="two participants"
        ),
        pytest.param(GOOD[:40], participants(40), GOOD, "40 real", id="few real"),
        pytest.param(GOOD, participants(100), GOOD[:49], "49 synthetic", id="few synthetic"),
        pytest.param(GOOD, participants(100), GOOD * np.nan, "NaN", id="NaN"),
        pytest.param(GOOD, participants(90), GOOD, "90 participant labels", id="labels"),
    ],
)
def test_what_cannot_be_computed_is_said(
    real: Floats, groups: NDArray[Any], synthetic: Floats, words: str
) -> None:
    with pytest.raises(GazeError, match=f"test on features.*{words}"):
        c2st_features(real, groups, synthetic, seed=0)


def test_two_participants_in_place_of_synthetic_windows_are_too_few() -> None:
    with pytest.raises(GazeError, match="at least 3 are needed on either side"):
        c2st_features(
            GOOD, participants(100), GOOD, 0, synthetic_groups=participants(100) // 5 + 50
        )
