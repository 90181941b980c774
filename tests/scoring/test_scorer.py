"""Raw scores: a function of the window, its task and the seed, worse for planted oddities."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.data.windows import Windows
from gazediffusion.scoring.scorer import CONTRASTS, Scorer
from gazediffusion.screen import Screen
from gazediffusion.settings import Scoring
from tests.runs import trained_run
from tests.training.test_steering import labelled_windows

QUICK = Scoring(n_steps=6, n_draws=2, levels=(0.1, 1.0), n_noise=1)


def windows_20hz() -> Windows:
    return replace(labelled_windows(), rate_hz=20.0)


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


def test_scores_do_not_depend_on_batch_order_or_neighbours(model: gd.Model) -> None:
    windows = windows_20hz().subsample(12)
    together = Scorer(model.run, QUICK).scores(windows)
    again = Scorer(model.run, QUICK).scores(windows)
    assert np.array_equal(together.errors, again.errors)
    assert np.array_equal(together.log_likelihood, again.log_likelihood)
    some = np.array([11, 3, 7])
    alone = Scorer(model.run, QUICK, batch_size=1).scores(windows.select(some))
    np.testing.assert_allclose(alone.errors, together.errors[some], rtol=1e-4)
    np.testing.assert_allclose(alone.log_likelihood, together.log_likelihood[some], rtol=1e-4)
    np.testing.assert_allclose(alone.standard_error, together.standard_error[some], rtol=0.05)


def test_the_seed_changes_scores_within_their_standard_error(model: gd.Model) -> None:
    windows = windows_20hz().subsample(4)
    one, other = (
        Scorer(model.run, replace(QUICK, n_draws=6, seed=seed)).scores(windows) for seed in (0, 1)
    )
    off = np.abs(one.log_likelihood - other.log_likelihood)
    assert (off > 0).all()
    assert (off < 5 * np.hypot(one.standard_error, other.standard_error)).all()


def test_shapes_means_and_spans_agree(model: gd.Model) -> None:
    raw = Scorer(model.run, QUICK).scores(windows_20hz().subsample(5))
    # 64 samples at 20 Hz in spans of half a second: six of 10 and one of 4.
    assert raw.errors.shape == (5, 2, 4, 7)
    assert raw.sizes.tolist() == [10] * 6 + [4]
    weighted = (raw.errors * raw.sizes).sum(axis=3) / 64
    np.testing.assert_allclose(raw.denoising_error, weighted.mean(axis=(1, 2)), rtol=1e-5)
    logarithms = np.log(weighted).reshape(5, 8)
    np.testing.assert_allclose(raw.profiles[:, :8], logarithms, rtol=1e-4, atol=1e-5)
    assert np.array_equal(raw.profiles[:, 8:], raw.contrasts)


def test_contrasts_are_the_errors_under_another_condition(model: gd.Model) -> None:
    windows = windows_20hz().subsample(4)
    scorer = Scorer(model.run, replace(QUICK, has_likelihood=False))
    raw, taskless = scorer.scores(windows), scorer.scores(windows, tasks=[""] * 4)
    ratio = np.log(taskless.by_level / raw.by_level).mean(axis=1)
    np.testing.assert_allclose(raw.contrasts[:, CONTRASTS.index("no_task")], ratio, atol=1e-6)
    assert not taskless.contrasts[:, CONTRASTS.index("no_task")].any()
    assert np.abs(raw.contrasts).min(axis=0).max() > 0
    conditioning, gaze = model.config.conditioning, torch.from_numpy(windows.cut())
    for contrast, expected in (
        ("", [0, 0, 0]),
        ("mirrored_x", [1, 0, 0]),
        ("mirrored_y", [0, 1, 0]),
    ):
        (vector, *_) = scorer._condition(gaze, ["dots"] * 4, contrast)
        assert vector[0, conditioning.columns("augmentation")].tolist() == expected


def test_noise_scores_worse_than_gaze_and_shows_where_it_is(model: gd.Model) -> None:
    windows = windows_20hz().subsample(6)
    gaze = windows.cut()
    odd = gaze.copy()
    odd[:, :, 20:30] += np.random.default_rng(0).normal(0, 0.5, (6, 2, 10))
    first = windows.tasks[windows.task[0]]
    clean, noisy = (
        Scorer(model.run, QUICK).scores(Windows.from_array(one, 20.0, windows.screen, tasks=first))
        for one in (gaze, odd)
    )
    assert (noisy.denoising_error > clean.denoising_error).all()
    assert (noisy.log_likelihood < clean.log_likelihood).all()
    assert ((noisy.by_span - clean.by_span).argmax(axis=1) == 2).all()


def test_the_task_is_given_and_statistics_are_not(model: gd.Model) -> None:
    windows = windows_20hz().subsample(4)
    scorer = Scorer(model.run, QUICK)
    conditioning = model.config.conditioning
    known = conditioning.tasks
    gaze = torch.from_numpy(windows.cut())
    (with_task, *_), (without, *_) = (
        scorer._condition(gaze, [task] * 4) for task in (known[0], "")
    )
    assert with_task[:, conditioning.columns("task")].sum(dim=1).tolist() == [1] * 4
    assert not without.any()
    assert not with_task[:, conditioning.columns("statistics")].any()
    assert not with_task[:, conditioning.columns("statistics_known")].any()
    given = Scorer(model.run, replace(QUICK, has_statistics=True))._condition(gaze, [""] * 4)[0]
    assert given[:, conditioning.columns("statistics_known")].all()
    expected = conditioning.of_windows(
        torch.zeros(4, dtype=torch.long), conditioning.measure(gaze, 20.0)
    )
    columns = conditioning.columns("statistics")
    assert torch.equal(given[:, columns], expected[0][:, columns])
    foreign = replace(windows, tasks=tuple(f"no {name}" for name in windows.tasks))
    assert set(scorer.given_tasks(foreign)) == {""}
    named = Scorer(model.run, replace(QUICK, task=known[0]))
    assert set(named.given_tasks(foreign)) == {known[0]}
    np.testing.assert_array_equal(
        scorer.scores(foreign).errors, scorer.scores(windows, tasks=[""] * 4).errors
    )


def test_gaze_of_another_screen_is_scored_in_degrees(model: gd.Model) -> None:
    windows = windows_20hz().subsample(4)
    own = model.screen_of(windows.tasks[windows.task[0]])
    assert own.has_degrees
    near = Screen(800, 600, 30.0, 22.5, 30.0)
    gaze = windows.dequantized(0).cut()
    moved = near.to_normalized(near.from_degrees(own.to_degrees(own.to_pixels(gaze))))
    names = [windows.tasks[k] for k in windows.task]
    here, there = (
        Windows.from_array(one, 20.0, screen, tasks=names)
        for one, screen in ((gaze, own), (moved, near))
    )
    scorer = Scorer(model.run, QUICK)
    one, other = scorer.scores(here), scorer.scores(there)
    np.testing.assert_allclose(one.denoising_error, other.denoising_error, rtol=1e-3)
    unsized = replace(there, screens=(Screen(800, 600),))
    assert not np.allclose(scorer.scores(unsized).denoising_error, one.denoising_error, rtol=1e-2)


def test_gaze_on_a_grid_is_spread_over_its_cells(model: gd.Model) -> None:
    windows = windows_20hz().subsample(3)
    scorer = Scorer(model.run, QUICK)
    gaze = scorer._on_model_screens(windows, scorer.given_tasks(windows))
    off = np.abs(gaze - windows.cut())
    assert windows.grid_px is not None
    assert (off <= windows.grid_of_window / 2 + 1e-6).all()
    assert off.max() > 0


def test_without_a_likelihood_there_is_none(model: gd.Model) -> None:
    seen: list[float] = []
    config = replace(QUICK, has_likelihood=False)
    raw = Scorer(model.run, config).scores(windows_20hz().subsample(3), seen.append)
    assert np.isnan(raw.log_likelihood).all()
    assert np.isnan(raw.standard_error).all()
    assert seen[-1] == pytest.approx(3)
    assert (np.diff(seen) >= 0).all()
    assert Scorer(model.run, config).n_evaluations == 2 * 4
    assert Scorer(model.run, QUICK).n_evaluations == 2 * 4 + 3 * 2 * 7


def test_what_cannot_be_scored_is_refused(model: gd.Model, tmp_path: Path) -> None:
    windows, scorer = windows_20hz(), Scorer(model.run, QUICK)
    with pytest.raises(gd.GazeError, match=r"have 50 samples at 20 Hz, the model's 64 at 20 Hz"):
        scorer.scores(replace(windows, length=50))
    lost = Windows.from_array(np.full((1, 2, 64), np.nan), 20.0, windows.screen)
    with pytest.raises(gd.GazeError, match="lost samples"):
        scorer.scores(lost)
    with pytest.raises(gd.GazeError, match="no window to score"):
        scorer.scores(windows.select(np.array([], dtype=int)))
    with pytest.raises(gd.GazeError, match="`levels` must be positive"):
        Scoring(levels=(0.0,))
    with pytest.raises(gd.GazeError, match="no task 'nothing'"):
        Scorer(model.run, replace(QUICK, task="nothing"))
    with pytest.raises(gd.GazeError, match="`batch_size` must be 1 or more"):
        Scorer(model.run, QUICK, batch_size=0)
    paper = gd.load(trained_run(tmp_path / "paper"), device="cpu")
    with pytest.raises(gd.GazeError, match=r"position-tiny has no scores.*`recipe` joint"):
        Scorer(paper.run, QUICK)
