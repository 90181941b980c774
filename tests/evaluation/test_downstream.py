"""Real windows as synthetic ones score as real; what says nothing of the count teaches nothing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.features import ivt_statistics, kinematic_features
from gazediffusion.evaluation.two_sample import CountTask, aug, trtr, tstr

N_PARTICIPANTS = 6


def participants(n: int) -> NDArray[np.int64]:
    return np.arange(n) * N_PARTICIPANTS // n


def task(n: int, seed: int, noise: float = 1.0) -> CountTask:
    """Counts that follow from two of nine features, one of them bent, up to noise."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 1, (n, 9))
    count = 20 + 4 * features[:, 0] + 3 * np.tanh(features[:, 8]) + rng.normal(0, noise, n)
    return CountTask(features * np.logspace(-3, 1, 9), np.round(count))


REAL, TWIN = task(300, 0), task(300, 1)


def all_three(synthetic: CountTask, seed: int) -> dict[str, dict[str, float]]:
    """The scores of the three ways against the same real windows."""
    return {
        "trtr": trtr(REAL, participants(300), seed),
        "tstr": tstr(REAL, synthetic, seed),
        "aug": aug(REAL, participants(300), synthetic, seed),
    }


def test_real_windows_as_synthetic_score_like_real() -> None:
    found = all_three(TWIN, seed=0)
    assert found["trtr"]["r2"] > 0.85
    assert found["tstr"]["r2"] == pytest.approx(found["trtr"]["r2"], abs=0.05)
    assert found["tstr"]["mae"] == pytest.approx(found["trtr"]["mae"], rel=0.15)
    assert found["aug"]["r2"] == pytest.approx(found["trtr"]["r2"], abs=0.05)
    # Among noise of SD 1 and rounding, no predictor can have an MAE much below 0.84.
    assert 0.7 < found["trtr"]["mae"] < 1.2


def test_the_numbers_of_windows_are_given() -> None:
    found = all_three(task(120, 1), seed=0)
    n = {name: (scores["n_train"], scores["n_test"]) for name, scores in found.items()}
    assert n == {"trtr": (240, 300), "tstr": (120, 300), "aug": (360, 300)}


def test_shuffled_counts_teach_nothing() -> None:
    shuffled = np.random.default_rng(3).permutation(TWIN.fixation_count)
    assert tstr(REAL, CountTask(TWIN.features, shuffled), seed=0)["r2"] < 0.1


def test_features_of_noise_teach_nothing() -> None:
    noise = np.random.default_rng(3).normal(0, 1, TWIN.features.shape) * np.logspace(-3, 1, 9)
    assert tstr(REAL, CountTask(noise, TWIN.fixation_count), seed=0)["r2"] < 0.1


def test_a_wrong_synthetic_set_spoils_augmentation() -> None:
    wrong = CountTask(task(600, 2).features, task(600, 2).fixation_count[::-1].copy())
    assert (
        aug(REAL, participants(300), wrong, 0)["r2"] < trtr(REAL, participants(300), 0)["r2"] - 0.1
    )


def test_each_participant_is_predicted_by_others() -> None:
    """A count that only the participant explains cannot be predicted for a participant not seen."""
    rng = np.random.default_rng(4)
    place = rng.normal(0, 1, (N_PARTICIPANTS, 9))[participants(300)]
    count = rng.normal(0, 5, N_PARTICIPANTS)[participants(300)] + rng.normal(0, 1, 300)
    individual = CountTask(place + rng.normal(0, 0.1, (300, 9)), count)
    assert tstr(individual, individual, 0)["r2"] > 0.9
    assert trtr(individual, participants(300), 0)["r2"] < 0.0


def test_the_task_is_made_of_the_nine_features_and_the_fixation_count() -> None:
    steps = np.random.default_rng(0).normal(0, 1, (20, 2, 500))
    steps *= np.where(np.random.default_rng(1).random((20, 1, 500)) < 0.02, 0.05, 0.001)
    gaze = np.cumsum(steps, axis=2)
    found = CountTask.of(gaze, 250.0)
    assert found.features.shape == (20, 9)
    np.testing.assert_array_equal(found.features[:, 8], kinematic_features(gaze)["fixation_ratio"])
    np.testing.assert_array_equal(found.fixation_count, ivt_statistics(gaze, 250.0).fixation_count)


def test_the_same_seed_gives_the_same_result() -> None:
    real, synthetic = (task(60, 0), participants(60)), task(60, 1)
    first, again = (
        (trtr(*real, 5), tstr(real[0], synthetic, 5), aug(*real, synthetic, 5)) for _ in range(2)
    )
    assert first == again


def test_constant_features_and_counts_are_no_obstacle() -> None:
    flat = CountTask(np.zeros((60, 9)), np.full(60, 20.0))
    found = tstr(REAL, flat, seed=0)
    assert found["r2"] < 0.1
    assert np.isfinite(list(found.values())).all()


def test_too_few_participants_or_windows_are_refused() -> None:
    with pytest.raises(GazeError, match="TRTR is not computable: 2 real participants"):
        trtr(REAL, participants(300) // 3, 0)
    with pytest.raises(GazeError, match="TSTR is not computable: 49 windows"):
        tstr(REAL, task(49, 0), 0)
    with pytest.raises(GazeError, match="AUG is not computable: 49 windows"):
        aug(REAL, participants(300), task(49, 0), 0)
    with pytest.raises(GazeError, match="200 participant labels"):
        trtr(REAL, participants(200), 0)
    with pytest.raises(GazeError, match="NaN"):
        tstr(REAL, CountTask(TWIN.features * np.nan, TWIN.fixation_count), 0)
