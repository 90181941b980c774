"""What a network misses of the manner it is told, in the run's configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gazediffusion.calibration import calibrate
from gazediffusion.checkpoint import Run, load_run
from gazediffusion.errors import GazeError
from gazediffusion.generator import DiffusionGenerator
from gazediffusion.recipes import RECIPES
from gazediffusion.training import train
from gazediffusion.unet import UNetConfig

from .runs import short_windows

CPU = torch.device("cpu")
SMALL = UNetConfig(channels=4, widths=(8, 8), embedding=16, attentions=2, rotary=True)
RECIPE = replace(RECIPES["joint-tiny"], network=SMALL, epochs=2, batch_size=4, sampling_steps=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "run"
    list(train(short_windows(), path, RECIPE, device="cpu"))
    return path


def wanted_and_made(run: Run, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of the first task, (window, 12) each, as `calibrate` asks for them."""
    manners, tasks = run.config.manners, run.config.tasks
    assert manners is not None
    generator = DiffusionGenerator.of_quality(run, "default", task=tasks[0])
    gaze = torch.from_numpy(generator.sample(n, 1000).cut())
    wanted, _ = manners.drawn([0] * n, generator.places(0, n, 1000)[:, 1:])
    return wanted, manners.told(gaze, run.config.rate_hz)


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
    assert heard[-1] == 24 * len(before.tasks)
    # The lines go through what was wanted and missed on average.
    wanted, made = wanted_and_made(run, 24)
    (kind, *_) = corrected.tasks[0]
    constant, slope = torch.tensor(kind.missed).unbind(dim=-1)
    off = (made - wanted).mean(dim=0)
    torch.testing.assert_close(constant + slope * wanted.mean(dim=0), off, atol=1e-3, rtol=1e-3)
    assert float(off.abs().max()) > 0.1
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
