"""Percentiles: percentiles among held-out participants' windows, stored beside the weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from torch import Tensor

import gazediffusion as gd
from gazediffusion.network.pretrained import SCORES
from gazediffusion.scoring.percentiles import ALL_TASKS, NO_TASK, SHARES, Percentiles, n_to_score
from gazediffusion.scoring.scorer import RawScores, Scorer
from gazediffusion.settings import Scoring
from tests.scoring.test_scorer import QUICK, windows_20hz


@pytest.fixture(scope="module")
def scorer(steerable_folder: Path) -> Scorer:
    return Scorer(gd.load(steerable_folder, device="cpu").run, QUICK)


@pytest.fixture(scope="module")
def calibration(scorer: Scorer) -> Percentiles:
    return Percentiles.fit(scorer, [windows_20hz()])


def test_percentiles_of_the_held_out_windows_themselves_are_their_ranks(
    scorer: Scorer, calibration: Percentiles
) -> None:
    held_out = windows_20hz().held_out
    raw = scorer.scores(held_out)
    group = calibration.groups[ALL_TASKS]
    assert (group.n_windows, group.n_participants) == (24, 1)
    assert set(group.quantiles) == {
        "log_likelihood", "denoising_error", "profile_distance", "span_error", "level_0", "level_1",
        "mirrored_x", "mirrored_y", "no_task",
    }  # fmt: skip
    for score, values in (
        ("log_likelihood", raw.log_likelihood),
        ("denoising_error", raw.denoising_error),
        ("profile_distance", calibration.distances(raw)),
    ):
        found = group.percentile(score, values)
        ranks = 100 * values.argsort().argsort() / 23
        # Both lie between the same two of the quantiles that are kept, and are in the same order.
        above = np.searchsorted(SHARES, ranks / 100).clip(1)
        for between in (found / 100, ranks / 100):
            assert (between >= SHARES[above - 1] - 1e-6).all()
            assert (between <= SHARES[above] + 1e-6).all()
        assert found.argsort().tolist() == values.argsort().tolist()
        assert group.percentile(score, values + 1e6).tolist() == [100] * 24
        assert group.percentile(score, values - 1e6).tolist() == [0] * 24


def test_only_held_out_windows_are_scored_with_the_likelihood(
    scorer: Scorer, calibration: Percentiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_scored, flows = [], Scorer._flows

    def counted(self: Scorer, gaze: Tensor, *given: Any) -> Tensor:
        n_scored.append(len(gaze))
        return flows(self, gaze, *given)

    monkeypatch.setattr(Scorer, "_flows", counted)
    windows = windows_20hz()
    again = Percentiles.fit(scorer, [windows])
    assert sum(n_scored) == 2 * len(windows.held_out)  # with and without their task
    np.testing.assert_array_equal(again.covariances[ALL_TASKS], calibration.covariances[ALL_TASKS])


def test_distances_are_mahalanobis_from_the_training_participants(
    scorer: Scorer, calibration: Percentiles
) -> None:
    windows = windows_20hz()
    cheap = replace(scorer, config=replace(QUICK, has_likelihood=False))
    training, raw = (cheap.scores(one) for one in (windows.train, windows.held_out))
    mean = training.profiles.mean(axis=0)
    np.testing.assert_allclose(calibration.groups[ALL_TASKS].mean, mean, rtol=1e-6)
    precision = np.linalg.inv(calibration.covariances[ALL_TASKS])
    expected = [mahalanobis(one, mean, precision) / np.sqrt(11) for one in raw.profiles]
    np.testing.assert_allclose(calibration.distances(raw), expected, rtol=1e-6)
    spread = np.cov(training.profiles.T)
    ridge = 0.02 * np.diag(np.maximum(np.diag(spread), 1e-6))
    np.testing.assert_allclose(calibration.covariances[ALL_TASKS], spread + ridge, rtol=1e-5)


def test_errors_that_are_too_small_are_distant_too(calibration: Percentiles) -> None:
    mean = calibration.groups[NO_TASK].mean
    usual = np.exp(mean[:8].reshape(1, 2, 4, 1)).astype(np.float32)
    nan = np.full(1, np.nan)
    small, same, large = (
        RawScores(nan, nan, usual * factor, np.array([64]), mean[None, 8:], ("",))
        for factor in (0.1, 1.0, 10.0)
    )
    assert float(calibration.distances(same)[0]) < 1e-3
    np.testing.assert_allclose(
        calibration.distances(small), calibration.distances(large), rtol=1e-3
    )
    assert float(calibration.distances(small)[0]) > 1


def test_tables_are_stored_and_read(calibration: Percentiles, tmp_path: Path) -> None:
    assert Percentiles.load(tmp_path) is None
    calibration.save(tmp_path / SCORES)
    assert (tmp_path / SCORES).stat().st_size < 20_000
    again = Percentiles.load(tmp_path)
    assert again is not None
    for name, group in calibration.groups.items():
        for score, table in group.quantiles.items():
            assert len(table) == len(SHARES)
            np.testing.assert_allclose(again.groups[name].quantiles[score], table, rtol=1e-4)
    for name, covariance in calibration.covariances.items():
        np.testing.assert_allclose(again.covariances[name], covariance, rtol=1e-4)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / SCORES).read_bytes()
    for damaged in ('{"format": "other"}', '{"format": "gazediffusion-scores"}', "[]"):
        (tmp_path / SCORES).write_text(damaged)
        with pytest.raises(gd.GazeError, match="scores"):
            Percentiles.load(tmp_path)


def test_tasks_with_few_windows_are_compared_with_all_tasks(
    scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = replace(scorer, config=replace(QUICK, has_likelihood=False))
    few = Percentiles.fit(cheap, [windows_20hz()], 6)
    assert set(few.groups) == {ALL_TASKS, NO_TASK}
    assert "log_likelihood" not in few.groups[ALL_TASKS].quantiles
    assert np.isnan(few.groups[ALL_TASKS].percentile("log_likelihood", np.zeros(2))).all()
    assert few.group_of("dots") == ALL_TASKS
    assert few.group_of("") == NO_TASK
    monkeypatch.setattr("gazediffusion.scoring.percentiles._FEWEST_WINDOWS", 3)
    monkeypatch.setattr("gazediffusion.scoring.percentiles._FEWEST_PARTICIPANTS", 1)
    enough = Percentiles.fit(cheap, [windows_20hz()], 6)
    # Nobody has trained on movies, so that their profiles have no mean.
    assert set(enough.groups) == {ALL_TASKS, NO_TASK, "dots"}
    assert enough.groups["dots"].n_windows == 6


def test_other_weights_or_settings_are_not_compared(
    scorer: Scorer, calibration: Percentiles
) -> None:
    run = scorer.run
    assert calibration.mismatch(run, QUICK) is None
    assert calibration.mismatch(run, replace(QUICK, seed=3, n_draws=9)) is None
    assert "other n_steps" in str(calibration.mismatch(run, replace(QUICK, n_steps=9)))
    assert "other levels, n_noise" in str(calibration.mismatch(run, Scoring(n_steps=6, n_noise=2)))
    other = replace(run, weights_sha256="0")
    assert "other weights" in str(calibration.mismatch(other, QUICK))


def test_progress_counts_windows_with_and_without_their_task(scorer: Scorer) -> None:
    seen: list[float] = []
    quick = replace(scorer, config=replace(QUICK, has_likelihood=False))
    Percentiles.fit(quick, [windows_20hz()], 4, seen.append)
    # Dots of the training participant, dots and movies of the other.
    assert n_to_score([windows_20hz()], 4) == 24
    assert seen[-1] == pytest.approx(24)
    assert (np.diff(seen) >= 0).all()


def test_both_sides_of_the_split_are_needed(scorer: Scorer) -> None:
    windows = windows_20hz()
    with pytest.raises(gd.GazeError, match="windows of held-out participants"):
        Percentiles.fit(scorer, [replace(windows, validation=frozenset())])
    with pytest.raises(gd.GazeError, match="windows of training participants"):
        Percentiles.fit(scorer, [windows.held_out])


def test_files_with_different_tasks_are_calibrated_together(scorer: Scorer) -> None:
    cheap = replace(scorer, config=replace(QUICK, has_likelihood=False))
    windows = windows_20hz()
    other = replace(windows, tasks=("movies", "dots"))  # the training windows are of movies there
    found = Percentiles.fit(cheap, [windows, other])
    assert found.groups[ALL_TASKS].n_windows == 48
    profiles = [cheap.scores(one.train).profiles for one in (windows, other)]
    centred = np.concatenate([one - one.mean(axis=0) for one in profiles])
    covariance = centred.T @ centred / (len(centred) - 2)
    off_diagonal = ~np.eye(len(covariance), dtype=bool)
    np.testing.assert_allclose(
        found.covariances[ALL_TASKS][off_diagonal], covariance[off_diagonal], rtol=1e-5, atol=1e-9
    )
