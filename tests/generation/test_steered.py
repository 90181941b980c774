"""Steered generation: long windows, known samples, fixations and targets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.course import KNOTS_S, Beginning, Course, TargetPrior
from gazediffusion.conditioning.style import Style
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.steering import Constraints
from gazediffusion.network.checkpoint import Run, load_run
from tests.runs import trained_run
from tests.training.test_steering import labelled_windows


@pytest.fixture(scope="module")
def run(steerable_folder: Path) -> Run:
    return load_run(steerable_folder)


def gaze_of(sampler: Sampler, n: int = 3, seed: int = 0) -> np.ndarray:
    return np.concatenate(list(replace(sampler, seed=seed).pieces(0, n)))


def test_long_windows_are_the_same_for_every_batch_size(run: Run) -> None:
    short = gaze_of(Sampler(run))
    long = gaze_of(Sampler(run, length=300))
    assert long.shape == (3, 2, 300)
    alone = gaze_of(Sampler(run, length=300, batch_size=1))
    np.testing.assert_allclose(alone, long, atol=2e-3, rtol=2e-3)
    # What follows is new, and does not repeat.
    assert np.abs(long[:, :, 64:128] - short).max() > 1e-3
    windows = Sampler(run, length=300).as_windows(long)
    assert windows.length == 300


def test_long_windows_begin_with_the_short_ones_if_the_model_does_not_know_when_they_begin(
    run: Run,
) -> None:
    conditioning = run.config.conditioning
    assert conditioning.course.knots_s == KNOTS_S
    timeless = replace(conditioning, course=Course())
    drawn = timeless.draw(0, 3, 0)
    first, second = (timeless.of_part(drawn, part, 0.0, 0, 0).condition[0] for part in (0, 1))
    assert torch.equal(first, drawn.condition[0])
    assert torch.equal(second, timeless.without_statistics(drawn.condition)[0])


def test_parts_of_long_windows_have_their_elapsed_time_and_no_statistics(run: Run) -> None:
    course = Course(KNOTS_S, {"dots": 20.0, "movies": 5.0})
    conditioning = replace(run.config.conditioning, course=course)
    columns = conditioning.columns("elapsed")
    # A task whose training windows all begin earlier is generated without it.
    for task, share in (("dots", 1.0), ("movies", 0.0)):
        drawn = conditioning.draw(0, 2, 0, task)
        (vector,) = conditioning.of_part(drawn, 1, 12.0, 0, 0).condition
        assert vector[:, columns.start + KNOTS_S.index(12.0)].tolist() == [share] * 2
        assert vector[:, columns].sum(dim=1).tolist() == [share] * 2
        assert not vector[:, conditioning.columns("statistics")].any()
        assert not vector[:, conditioning.columns("statistics_known")].any()
        tasks = vector[:, conditioning.columns("task")]
        assert torch.equal(tasks, conditioning.one_hot(torch.tensor(drawn.tasks)))


def test_targets_are_drawn_for_long_windows_of_a_task_that_has_them(run: Run) -> None:
    prior = TargetPrior((0.5, 0.5), (-0.5, 0.5), (-0.5, 0.5))
    course = replace(run.config.conditioning.course, targets={"dots": prior})
    conditioning = replace(run.config.conditioning, course=course)
    steered = replace(run, config=replace(run.config, conditioning=conditioning))
    with_targets = Sampler(steered, length=200, task="dots")
    assert with_targets.settings["course"] == "targets or positions drawn"
    without = Sampler(run, length=200, task="dots")
    assert "course" not in without.settings
    assert np.abs(gaze_of(with_targets) - gaze_of(without)).max() > 1e-3
    # Neither short windows nor other tasks have any.
    for settings in ({"task": "dots"}, {"task": "movies", "length": 200}):
        np.testing.assert_array_equal(
            gaze_of(Sampler(steered, **settings)),
            gaze_of(Sampler(run, **settings)),
        )
    whole = course.draw(["dots"] * 4, 4, 200, 20.0, 0)
    assert list(whole) == ["targets"]
    np.testing.assert_array_equal(
        whole["targets"][1:2], course.draw(["dots"], 5, 200, 20.0, 0)["targets"]
    )
    assert course.draw(["movies"] * 2, 0, 9, 20.0, 0) == {}


def test_long_windows_begin_where_recordings_of_the_task_do(run: Run) -> None:
    place = Beginning(((0.3, 0.3), (0.5, 0.5)), ((-0.2, -0.2), (0.1, 0.1)))
    known = replace(run.config.conditioning.course, beginnings={"movies": place}, targets={})
    conditioning = replace(run.config.conditioning, course=known)
    begun = replace(run, config=replace(run.config, conditioning=conditioning))
    course = known.draw(["movies"] * 3, 0, 200, 20.0, 0)
    assert list(course) == ["fixations"]
    # 0.1 s are two samples, at the beginning and after a second.
    assert np.isfinite(course["fixations"]).sum(axis=2).tolist() == [[4, 4]] * 3
    np.testing.assert_allclose(course["fixations"][:, :, 0], [[0.3, -0.2]] * 3, rtol=1e-6)
    np.testing.assert_allclose(course["fixations"][:, :, 20], [[0.5, 0.1]] * 3, rtol=1e-6)
    gaze, other = (
        gaze_of(Sampler(one, length=200, task="movies"))[:, :, :2].mean(axis=2)
        for one in (begun, run)
    )
    far, off = (np.abs(one - [0.3, -0.2]).mean() for one in (other, gaze))
    assert off < far / 3


def test_progress_of_long_windows_goes_to_their_number(run: Run) -> None:
    seen: list[float] = []
    list(Sampler(run, length=200).pieces(0, 2, seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == 2


def test_known_samples_are_kept_to_the_bit(run: Run) -> None:
    known = np.full((2, 2, 64), np.nan, np.float32)
    known[:, :, :20] = labelled_windows().cut()[:2, :, :20]
    known[:, :, 40:50] = labelled_windows().cut()[:2, :, 40:50]
    sampler = Sampler(run, constraints=Constraints(known=known))
    gaze = gaze_of(sampler, 4)
    is_known = np.isfinite(known)
    for first in (0, 2):
        np.testing.assert_array_equal(gaze[first : first + 2][is_known], known[is_known])
    assert np.isfinite(gaze).all()
    # Two draws for one entry differ where nothing is known.
    assert np.abs(gaze[0] - gaze[2])[:, 25:35].max() > 1e-3


def test_fixations_and_targets_reach_the_network(run: Run) -> None:
    free = gaze_of(Sampler(run, constraints=Constraints()))
    for name in ("fixations", "targets"):
        given = np.full((1, 2, 64), 0.5, np.float32)
        steered = Sampler(run, constraints=Constraints(**{name: given}))
        assert np.abs(gaze_of(steered) - free).max() > 1e-4


def test_a_model_that_is_not_steerable_refuses(tmp_path: Path) -> None:
    plain = load_run(trained_run(tmp_path / "run"))
    with pytest.raises(GazeError, match="not steerable"):
        Sampler(plain, length=1000)
    with pytest.raises(GazeError, match="not steerable"):
        Sampler(plain, constraints=Constraints())


def test_a_style_keeps_its_statistics_beside_constraints(run: Run) -> None:
    prior = run.config.conditioning.prior
    assert prior is not None
    given = Constraints(fixations=np.full((1, 2, 64), 0.1, np.float32))
    styles = [Style.of_targets(prior, 0, 0, np.full(len(prior.names), k)) for k in (-2.0, 2.0)]
    low, high = (gaze_of(Sampler(run, task="dots", style=one, constraints=given)) for one in styles)
    free = gaze_of(Sampler(run, task="dots", constraints=given))
    assert np.abs(low - high).max() > 1e-4
    assert np.abs(low - free).max() > 1e-4
    long = gaze_of(Sampler(run, task="dots", style=styles[0], length=150), 1)
    assert long.shape == (1, 2, 150)
