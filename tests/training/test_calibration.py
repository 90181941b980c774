"""Calibration of a run's response to its summary statistics."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.course import TargetPrior, response_gain
from gazediffusion.conditioning.prior import Prior
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.steering import Constraints
from gazediffusion.network.checkpoint import Run, load_run, read_config
from gazediffusion.network.recipes import RECIPES
from gazediffusion.network.unet import UNetConfig
from gazediffusion.training.calibration import ROUNDS, STATE, calibrate, calibrated_course, is_due
from gazediffusion.training.training import train_epochs
from tests.conditioning.test_prior import same
from tests.runs import short_windows

CPU = torch.device("cpu")
SMALL = UNetConfig(channels=4, widths=(8, 8), embedding=16, attention_blocks=2, rotary=True)
RECIPE = replace(RECIPES["joint-tiny"], network=SMALL, epochs=2, batch_size=4, sampling_steps=4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "run"
    list(train_epochs(short_windows(), path, RECIPE, device="cpu"))
    return path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def prior_of(folder: Path) -> Prior:
    prior = read_config(folder).conditioning.prior
    assert prior is not None
    return prior


def calibrated_by_hand(run: Run, n: int) -> Run:
    """The run after one round of calibration by n windows of each task."""
    conditioning = run.config.conditioning
    draws, generated = [], []
    for task in conditioning.tasks:
        sampler = Sampler.of_quality(run, "default", task=task)
        gaze = torch.from_numpy(replace(sampler, seed=1000).windows(0, n).cut())
        draws.append(conditioning.draw(0, n, 1000, task))
        measured = conditioning.measure(gaze, run.config.rate_hz)
        assert measured is not None
        generated.append(measured)
    found: Conditioning = conditioning.calibrate(draws, generated)
    return replace(run, config=replace(run.config, conditioning=found))


def test_calibration_repeats_what_one_round_does(folder: Path) -> None:
    run, before = load_run(folder, device=CPU), prior_of(folder)
    assert is_due(run.config)
    done: list[float] = []
    calibrate(folder, CPU, n=24, progress=lambda _, k, total, note: done.append(k / total))
    after = prior_of(folder)
    assert not is_due(read_config(folder))
    assert same(after.uncalibrated(), before)
    assert done == sorted(done)
    assert done[-1] == 1
    by_hand = run
    for _ in range(ROUNDS):
        by_hand = calibrated_by_hand(by_hand, 24)
    assert by_hand.config.conditioning.prior is not None
    assert same(by_hand.config.conditioning.prior, after)
    # A second calibration starts from the uncalibrated model and finds the same.
    calibrate(folder, CPU, n=24)
    assert same(prior_of(folder), after)
    calibrate(folder, CPU, n=24, rounds=1)
    once = calibrated_by_hand(run, 24).config.conditioning.prior
    assert once is not None
    assert same(prior_of(folder), once)


@pytest.mark.parametrize("n_pieces", [1, 3, 9])
def test_a_stopped_calibration_resumes_to_the_same_tables(
    trained: Path, folder: Path, n_pieces: int
) -> None:
    whole = Path(shutil.copytree(trained, folder.with_name("whole")))
    calibrate(whole, CPU, n=20)
    asked = iter([False] * (n_pieces - 1) + [True])
    with pytest.raises(StoppedError, match=r"calibration stopped in round \d of 4; .* is saved"):
        calibrate(folder, CPU, n=20, should_stop=lambda: next(asked))
    assert is_due(read_config(folder))
    done: list[float] = []
    said: list[str] = []
    calibrate(folder, CPU, n=20, progress=lambda _, k, total, note: done.append(k), say=said.append)
    number = 1 if n_pieces < 4 else 3
    assert said == [f"resuming the calibration of {folder} in round {number} of 4"]
    assert done[0] > 0
    assert same(prior_of(folder), prior_of(whole))
    assert not (folder / STATE).exists()


def test_a_calibration_of_other_weights_is_not_resumed(folder: Path) -> None:
    with pytest.raises(StoppedError):
        calibrate(folder, CPU, n=20, should_stop=lambda: True)
    shutil.copy(folder / "last.safetensors", folder / "best.safetensors")
    done: list[float] = []
    calibrate(folder, CPU, n=20, progress=lambda _, k, total, note: done.append(k))
    assert done[0] < 16


def test_a_calibrated_run_is_complete(folder: Path) -> None:
    calibrate(folder, CPU, n=8)
    assert list(train_epochs(short_windows(), folder, RECIPE, device="cpu")) == []


def test_a_model_without_statistics_is_refused(tmp_path: Path) -> None:
    plain = replace(RECIPE, has_statistics=False, epochs=1)
    list(train_epochs(short_windows(), tmp_path / "run", plain, device="cpu"))
    assert not is_due(read_config(tmp_path / "run"))
    with pytest.raises(GazeError, match="not conditioned on summary statistics"):
        calibrate(tmp_path / "run", CPU, n=4)


def test_the_gain_of_gaze_that_follows_a_target_is_measured(steerable_folder: Path) -> None:
    run = load_run(steerable_folder)
    prior = TargetPrior((1.0, 1.0), (-0.5, 0.5), (-0.5, 0.5), (0.9, 0.8), (0.7, 0.6))
    course = replace(run.config.conditioning.course, targets={"dots": prior})
    conditioning = replace(run.config.conditioning, course=course)
    run = replace(run, config=replace(run.config, conditioning=conditioning))
    n = 30
    found = calibrated_course(run, run.config.conditioning, n).targets["dots"]
    # By hand, with targets as they are drawn.
    plain = replace(prior, generated_gain=prior.recorded_gain)
    bare = replace(conditioning, course=replace(course, targets={"dots": plain}))
    targets = course.draw(["dots"] * n, 0, 64, 20.0, 1000)["targets"]
    sampler = Sampler.of_quality(
        replace(run, config=replace(run.config, conditioning=bare)),
        "default",
        task="dots",
        constraints=Constraints(targets=targets),
    )
    gaze = np.concatenate(list(replace(sampler, seed=1000).pieces(0, n)))
    assert found.generated_gain == response_gain(gaze, targets, 20.0)
    assert found.generated_gain != (1.0, 1.0)
    assert replace(found, generated_gain=prior.generated_gain) == prior
