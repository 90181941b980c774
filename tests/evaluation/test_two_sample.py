"""Samples of one law cannot be separated, samples of two can, and nobody is tested on himself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.features import ivt_statistics, kinematic_features
from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.evaluation.sets import participant_folds
from gazediffusion.evaluation.two_sample import CountTask, c2st_features, trtr, tstr

Floats = NDArray[np.float64]
N_PARTICIPANTS = 10
SCALES = np.logspace(-3, 2, 9)


def participants(n: int) -> NDArray[np.int64]:
    return np.arange(n) * N_PARTICIPANTS // n


def features(n: int, seed: int, shift: float = 0.0) -> Floats:
    return np.random.default_rng(seed).normal(shift, 1.0, (n, 9)) * SCALES


def interval_of(found: Estimate) -> list[float]:
    return [one for one in found.interval or () if one is not None]


# With 600 examples a side an accuracy of 0.5 has an SD of 0.014; four of them are allowed.
def is_near_chance(found: Estimate) -> bool:
    return abs((found.value or 0) - 0.5) < 0.06


@pytest.mark.parametrize("n", [600, 1200])
def test_features_of_one_law_are_not_separated(n: int) -> None:
    found = c2st_features(features(600, 0), participants(600), features(n, 1), seed=0)
    assert is_near_chance(found)
    assert interval_of(found)[0] < 0.5 < interval_of(found)[1]


def test_features_of_two_laws_are_separated() -> None:
    found = c2st_features(features(600, 0), participants(600), features(600, 1, shift=2.0), seed=0)
    assert (found.value or 0) > 0.98


@pytest.mark.parametrize("first", [0, N_PARTICIPANTS])
def test_habits_of_participants_do_not_count_as_differences(first: int) -> None:
    """Two windows of a participant are alike; that must not help, as it would in random folds.

    A participant on both sides is left out on both, or training on one side would teach lies.
    """
    habit = np.random.default_rng(5).normal(0, 3, (2 * N_PARTICIPANTS, 9))
    groups = participants(600)
    real = features(600, 0) / SCALES + habit[groups]
    other = features(600, 1) / SCALES + habit[first + groups]
    found = c2st_features(real, groups, other, 0, synthetic_groups=first + groups)
    assert (found.value or 0) < 0.65
    assert interval_of(found)[0] < 0.5
    assert first or is_near_chance(found)


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


GOOD, WHO = features(100, 0), participants(100)


@pytest.mark.parametrize(
    ("real", "groups", "synthetic", "other_groups", "words"),
    [
        pytest.param(GOOD, WHO // 5, GOOD, None, "2 real participants", id="two participants"),
        pytest.param(GOOD, WHO, GOOD, WHO // 5 + 50, "needed on either side", id="two others"),
        pytest.param(GOOD[:40], WHO[:40], GOOD, None, "40 real", id="few real"),
        pytest.param(GOOD, WHO, GOOD[:49], None, "49 synthetic", id="few synthetic"),
        pytest.param(GOOD, WHO, GOOD * np.nan, None, "NaN", id="NaN"),
        pytest.param(GOOD, WHO[:90], GOOD, None, "90 participant labels", id="labels"),
    ],
)
def test_what_cannot_be_separated_is_said(
    real: Floats, groups: NDArray[Any], synthetic: Floats, other_groups: Any, words: str
) -> None:
    with pytest.raises(GazeError, match=f"test on features.*{words}"):
        c2st_features(real, groups, synthetic, seed=0, synthetic_groups=other_groups)


def task(n: int, seed: int, noise: float = 1.0) -> CountTask:
    """Counts that follow from two of nine features, one of them bent, up to noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 1, (n, 9))
    count = 20 + 4 * features[:, 0] + 3 * np.tanh(features[:, 8]) + rng.normal(0, noise, n)
    return CountTask(features * np.logspace(-3, 1, 9), np.round(count))


REAL, TWIN, OF = task(300, 0), task(300, 1), participants(300)


def all_three(synthetic: CountTask, seed: int = 0) -> dict[str, dict[str, float]]:
    """The scores of the three ways against the same real windows."""
    return {
        "trtr": trtr(REAL, OF, seed),
        "tstr": tstr(REAL, synthetic, seed),
        "aug": trtr(REAL, OF, seed, synthetic),
    }


def test_real_windows_as_synthetic_score_like_real() -> None:
    found = all_three(TWIN)
    assert found["trtr"]["r2"] > 0.85
    for way in ("tstr", "aug"):
        assert found[way]["r2"] == pytest.approx(found["trtr"]["r2"], abs=0.05)
    assert found["tstr"]["mae"] == pytest.approx(found["trtr"]["mae"], rel=0.15)
    # Among noise of SD 1 and rounding, no predictor can have an MAE much below 0.84.
    assert 0.7 < found["trtr"]["mae"] < 1.2


def test_the_numbers_of_windows_are_given_and_a_seed_repeats() -> None:
    found = all_three(task(120, 1))
    n = {name: (scores["n_train"], scores["n_test"]) for name, scores in found.items()}
    assert n == {"trtr": (240, 300), "tstr": (120, 300), "aug": (360, 300)}
    assert all_three(task(120, 1)) == found
    table = (features(60, 0), participants(60), features(60, 1))
    assert c2st_features(*table, seed=3) == c2st_features(*table, seed=3)


@pytest.mark.parametrize("what", ["shuffled counts", "features of noise", "constant"])
def test_what_says_nothing_teaches_nothing(what: str) -> None:
    rng = np.random.default_rng(3)
    given = {
        "shuffled counts": CountTask(TWIN.features, rng.permutation(TWIN.fixation_count)),
        "features of noise": CountTask(
            rng.normal(0, 1, TWIN.features.shape) * np.logspace(-3, 1, 9), TWIN.fixation_count
        ),
        "constant": CountTask(np.zeros((60, 9)), np.full(60, 20.0)),
    }
    found = tstr(REAL, given[what], seed=0)
    assert found["r2"] < 0.1
    assert np.isfinite(list(found.values())).all()


def test_each_participant_is_predicted_by_others() -> None:
    """A count that only the participant explains cannot be predicted for a participant not seen."""
    rng = np.random.default_rng(4)
    place = rng.normal(0, 1, (N_PARTICIPANTS, 9))[OF]
    count = rng.normal(0, 5, N_PARTICIPANTS)[OF] + rng.normal(0, 1, 300)
    individual = CountTask(place + rng.normal(0, 0.1, (300, 9)), count)
    assert tstr(individual, individual, 0)["r2"] > 0.9
    assert trtr(individual, OF, 0)["r2"] < 0.0


def test_the_task_is_made_of_the_nine_features_and_the_fixation_count() -> None:
    steps = np.random.default_rng(0).normal(0, 1, (20, 2, 500))
    steps *= np.where(np.random.default_rng(1).random((20, 1, 500)) < 0.02, 0.05, 0.001)
    gaze = np.cumsum(steps, axis=2)
    found = CountTask.of(gaze, 250.0)
    assert found.features.shape == (20, 9)
    np.testing.assert_array_equal(found.features[:, 8], kinematic_features(gaze)["fixation_ratio"])
    np.testing.assert_array_equal(found.fixation_count, ivt_statistics(gaze, 250.0).fixation_count)


def test_too_few_participants_or_windows_are_refused() -> None:
    few, unknown = task(49, 0), CountTask(TWIN.features * np.nan, TWIN.fixation_count)
    refused: tuple[tuple[str, Callable[[], object]], ...] = (
        ("TRTR is not computable: 2 real participants", lambda: trtr(REAL, OF // 5, 0)),
        ("TSTR is not computable: .*49 synthetic", lambda: tstr(REAL, few, 0)),
        ("AUG is not computable: .*49 synthetic", lambda: trtr(REAL, OF, 0, few)),
        ("200 participant labels", lambda: trtr(REAL, OF[:200], 0)),
        ("NaN", lambda: tstr(REAL, unknown, 0)),
    )
    for match, call in refused:
        with pytest.raises(GazeError, match=match):
            call()
