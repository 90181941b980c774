"""What a network misses of the manner it is told, in the run's configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gazediffusion.errors import GazeError
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run, load_run
from gazediffusion.models.recipes import RECIPES
from gazediffusion.models.unet import UNetConfig
from gazediffusion.training.calibration import ROUNDS, calibrate
from gazediffusion.training.loop import train
from tests.runs import short_windows

CPU = torch.device("cpu")
SMALL = UNetConfig(channels=4, widths=(8, 8), embedding=16, attentions=2, rotary=True)
RECIPE = replace(RECIPES["joint-tiny"], network=SMALL, epochs=2, batch_size=4, sampling_steps=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "run"
    list(train(short_windows(), path, RECIPE, device="cpu"))
    return path


def corrected_by_hand(run: Run, n: int) -> Run:
    """The run, corrected once by what it makes of n windows of each task."""
    manners = run.config.manners
    assert manners is not None
    kinds, wanted, made = [], [], []
    for number, task in enumerate(run.config.tasks):
        generator = DiffusionGenerator.of_quality(run, "default", task=task)
        gaze = torch.from_numpy(generator.sample(n, 1000).cut())
        numbers, of_task = manners.drawn([number] * n, generator.places(0, n, 1000)[:, 1:])
        kinds.append(of_task)
        wanted.append(numbers)
        made.append(manners.told(gaze, run.config.rate_hz))
    corrected = manners.corrected(kinds, wanted, made)
    return replace(run, config=replace(run.config, manners=corrected))


def test_a_calibrated_model_is_told_what_it_missed(folder: Path) -> None:
    run = load_run(folder, device=CPU)
    before = run.config
    assert before.manners is not None
    assert before.manners == before.manners.uncorrected()
    heard: list[float] = []
    corrected = calibrate(folder, CPU, n=24, progress=heard.append)
    after = load_run(folder, device=CPU).config
    assert after.manners == corrected
    assert corrected.uncorrected() == before.manners
    assert replace(after, manners=None) == replace(before, manners=None)
    assert heard == sorted(heard)
    assert heard[-1] == 24 * len(before.tasks) * ROUNDS
    # What is still missed when the model is told more is told too.
    once = corrected_by_hand(run, 24)
    assert once.config.manners not in (before.manners, corrected)
    again = once
    for _ in range(ROUNDS - 1):
        again = corrected_by_hand(again, 24)
    assert again.config.manners == corrected
    assert calibrate(folder, CPU, n=24, rounds=1) == once.config.manners
    # Once calibrated, once more finds the same: it asks the network as it was.
    assert calibrate(folder, CPU, n=24) == corrected


def test_a_run_goes_on_after_it_was_calibrated(folder: Path) -> None:
    calibrate(folder, CPU, n=8)
    assert list(train(short_windows(), folder, RECIPE, device="cpu")) == []


def test_a_model_without_manner_is_refused(tmp_path: Path) -> None:
    plain = replace(RECIPE, is_told_manner=False, epochs=1)
    list(train(short_windows(), tmp_path / "run", plain, device="cpu"))
    with pytest.raises(GazeError, match="told no manner"):
        calibrate(tmp_path / "run", CPU, n=4)
