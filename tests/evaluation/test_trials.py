"""Nobody is in two parts of a trial, and both sides are of the same size and tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.trials import RealSets, Trial, jitter, median_step, scaled
from tests.conftest import SCREEN

LENGTH, RATE_HZ = 128, 250.0


def walks(n: int, seed: int, memory: float = 0.7, length: int = LENGTH) -> NDArray[np.float32]:
    """Gaze whose steps remember the one before, (n, 2, length)."""
    from scipy.signal import lfilter

    steps = np.random.default_rng(seed).normal(0, 0.01, (n, 2, length))
    steps = lfilter([np.sqrt(1 - memory**2)], [1.0, -memory], steps, axis=2)
    return np.cumsum(steps, axis=2).astype(np.float32)


def gaze_set(
    n: int,
    n_participants: int,
    seed: int,
    memory: float = 0.7,
    tasks: tuple[str, ...] = ("a", "b"),
    is_synthetic: bool = False,
) -> GazeSet:
    """Walks; the tasks change from window to window."""
    windows = Windows.from_array(
        walks(n, seed, memory),
        RATE_HZ,
        SCREEN,
        [f"p{k * n_participants // n}" for k in range(n)],
        [tasks[k % len(tasks)] for k in range(n)],
    )
    return GazeSet.of(f"set {seed}", windows, is_synthetic)


def real_sets(n_windows: int = 1000) -> RealSets:
    return RealSets(gaze_set(400, 10, 0), gaze_set(120, 4, 1), n_windows, seed=0)


def windows_of(one: GazeSet) -> set[bytes]:
    return {gaze.tobytes() for gaze in one.gaze}


def require_matched(trial: Trial) -> None:
    for first, second in (trial.train, trial.stop, trial.test):
        assert len(first.gaze) == len(second.gaze) >= 20
        assert sorted(first.tasks) == sorted(second.tasks)
    parts = [trial.train, trial.stop, trial.test]
    for k in (0, 1):
        found = [windows_of(part[k]) for part in parts]
        assert len(set.union(*found)) == sum(map(len, found))


@pytest.mark.parametrize("number", range(5))
def test_a_synthetic_set_is_tested_on_other_participants_and_other_windows(number: int) -> None:
    real = real_sets()
    trial = real.against(gaze_set(300, 1, 2, is_synthetic=True), number)
    require_matched(trial)
    assert not set(trial.train[0].group) & set(trial.stop[0].group)
    assert windows_of(trial.test[0]) <= windows_of(real.held_out)
    blocks = [set(part[1].group) for part in (trial.train, trial.stop, trial.test)]
    assert len(set.union(*blocks)) == sum(map(len, blocks))


def test_each_trial_stops_at_other_participants() -> None:
    real, synthetic = real_sets(), gaze_set(300, 1, 2, is_synthetic=True)
    stopping = [set(real.against(synthetic, k).stop[0].group.tolist()) for k in range(5)]
    assert len(set.union(*stopping)) == 10
    assert sum(map(len, stopping)) == 10


@pytest.mark.parametrize("number", range(3))
def test_the_floor_is_between_different_participants(number: int) -> None:
    trial = real_sets().between_participants(number)
    require_matched(trial)
    for first, second in (trial.train, trial.stop, trial.test):
        assert not set(first.group) & set(second.group)
    training = [set(one.group) for one in (*trial.train, *trial.stop)]
    assert sum(map(len, training)) == len(set.union(*training)) == 10


def test_a_planted_defect_is_in_the_second_side_alone() -> None:
    real = real_sets()
    trial = real.with_defect("shift", lambda one, rng: replace(one, gaze=one.gaze + 5), 0)
    require_matched(trial)
    for first, second in (trial.train, trial.stop, trial.test):
        assert first.gaze.mean() < 1 < 4 < second.gaze.mean()


def test_a_side_has_at_most_so_many_windows() -> None:
    trial = real_sets(n_windows=80).against(gaze_set(300, 1, 2, is_synthetic=True), 0)
    assert [len(part[0].gaze) for part in (trial.train, trial.stop, trial.test)] == [80, 20, 80]


def test_every_synthetic_set_meets_the_same_real_windows() -> None:
    real = real_sets()
    first, second = (real.against(gaze_set(300, 1, seed, is_synthetic=True), 1) for seed in (2, 3))
    assert windows_of(first.test[0]) == windows_of(second.test[0])
    assert windows_of(first.train[0]) == windows_of(second.train[0])


def test_sets_without_a_common_task_are_compared_as_they_are() -> None:
    trial = real_sets().against(gaze_set(300, 1, 2, tasks=("other",), is_synthetic=True), 0)
    assert len(trial.test[0].gaze) == len(trial.test[1].gaze) > 50


def test_jitter_has_the_stated_size() -> None:
    one = gaze_set(50, 2, 0)
    step = median_step(one.gaze)
    noise = jitter(0.5, step)(one, np.random.default_rng(0)).gaze - one.gaze
    assert noise.std() == pytest.approx(0.5 * step, rel=0.02)


def test_scaled_gaze_has_scaled_speeds_about_the_same_place() -> None:
    gaze = gaze_set(6, 2, 0).gaze
    found = scaled(1.25)(gaze_set(6, 2, 0), np.random.default_rng(0)).gaze
    assert np.diff(found) == pytest.approx(1.25 * np.diff(gaze), abs=1e-6)
    assert found.mean(axis=-1) == pytest.approx(gaze.mean(axis=-1), abs=1e-6)


def test_too_few_participants_are_one_clear_line() -> None:
    with pytest.raises(GazeError, match="3 training and 4 held-out participants") as caught:
        RealSets(gaze_set(100, 3, 0), gaze_set(100, 4, 1), 100, 0)
    assert "\n" not in str(caught.value)


def test_too_few_windows_are_one_clear_line() -> None:
    with pytest.raises(
        GazeError, match="16 windows a side to train on, of 320 of set 0 and 16 "
    ) as caught:
        real_sets().against(gaze_set(30, 1, 2, is_synthetic=True), 0)
    assert "\n" not in str(caught.value)
