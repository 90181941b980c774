"""The joint recipe: training on several files, and tasks in generation."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.statistics import STATISTICS, measure
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.network.checkpoint import Run, RunConfig, load_run
from gazediffusion.network.recipes import RECIPES, Recipe
from gazediffusion.network.unet import UNet, UNetConfig
from gazediffusion.screen import Screen
from gazediffusion.training.batches import Batches, fixed_validation
from gazediffusion.training.training import train_epochs
from tests.runs import short_windows

NETWORK = UNetConfig(channels=4, widths=(8, 16, 16), embedding=16, attention_blocks=2, rotary=True)
JOINT: Recipe = replace(
    RECIPES["joint-tiny"], network=NETWORK, epochs=2, batch_size=4, sampling_steps=4
)
CPU = torch.device("cpu")
SMALL_SCREEN = Screen(800, 600, 40.0, 30.0, 57.0)


def other_windows() -> Windows:
    """Windows of a second study: another screen, no grid, one task of its own."""
    windows = short_windows()
    return replace(
        windows,
        screens=(SMALL_SCREEN,),
        grid_px=None,
        tasks=("reading", "walking"),
        gaze=windows.gaze * np.float32(0.5),
    )


def parts() -> list[Windows]:
    return [short_windows(), other_windows()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("joint") / "run"
    list(train_epochs(parts(), folder, JOINT, seed=0, device="cpu"))
    return load_run(folder)


def test_the_condition_changes_the_output_and_zeros_do_not() -> None:
    torch.manual_seed(0)
    network = UNet(replace(NETWORK, condition_width=5))
    x, t = torch.randn(2, 4, 64), torch.tensor([10.0, 700.0])
    nothing, zeros = network(x, t), network(x, t, torch.zeros(2, 5))
    torch.testing.assert_close(nothing, zeros)
    assert float((network(x, t, torch.eye(5)[:2]) - nothing).detach().abs().max()) > 1e-4


def test_batches_mix_the_files_with_their_tasks_and_grids() -> None:
    files = parts()
    config = RunConfig.of(files, JOINT, 0, "fp32", "cpu")
    conditioning = config.conditioning
    assert conditioning.tasks == ("dots", "movies", "reading", "walking")
    assert conditioning.task_screens[0] == files[0].screen
    assert conditioning.task_screens[2] == SMALL_SCREEN
    assert sum(conditioning.task_shares) == pytest.approx(1)
    train_parts = [part.train for part in files]
    batches = Batches(train_parts, config, 0, CPU)
    everything = torch.arange(len(batches.starts))
    cut = np.concatenate([part.cut() for part in train_parts])
    np.testing.assert_array_equal(batches.clean(everything).numpy(), cut)
    assert float(batches.grid[0].max()) > 0
    assert float(batches.grid[-1].max()) == 0
    (vector,) = batches.condition(everything)
    one_hot = vector[:, conditioning.columns("task")]
    names = [conditioning.tasks[int(row.argmax())] for row in one_hot]
    assert names == [part.tasks[number] for part in train_parts for number in part.task]


def split(config: RunConfig, vector: torch.Tensor) -> list[torch.Tensor]:
    """Task, augmentation labels, statistics and their flag of condition vectors."""
    conditioning = config.conditioning
    return [vector[:, conditioning.columns(part)] for part in conditioning.schema]


def test_a_step_has_task_and_augmentation_labels() -> None:
    config = RunConfig.of(parts(), replace(JOINT, condition_dropout=0.5), 0, "fp32", "cpu")
    batches = Batches([part.train for part in parts()], config, 0, CPU)
    vectors = torch.cat([batches.at(step)[3] for step in range(60)])
    tasks, labels, statistics, is_known = split(config, vectors)
    assert set(tasks.sum(dim=1).tolist()) == {0.0, 1.0}
    assert float((tasks.sum(dim=1) == 0).float().mean()) == pytest.approx(0.5, abs=0.12)
    assert labels[:, :2].mean(dim=0).tolist() == pytest.approx([0.5, 0.5], abs=0.12)
    assert float(labels[:, 2].sum()) == 0  # the recipe does not reverse time
    # Statistics are dropped out independently, and a flag says whether they are given.
    assert float(is_known.mean()) == pytest.approx(0.5, abs=0.12)
    assert set(((statistics != 0).any(dim=1).float() - is_known[:, 0]).tolist()) == {0.0}
    both = (tasks.sum(dim=1) == 1) & (is_known[:, 0] == 1)
    assert float(both.float().mean()) == pytest.approx(0.25, abs=0.12)


def test_labels_and_statistics_are_those_of_the_augmented_window() -> None:
    config = RunConfig.of(parts(), replace(JOINT, batch_size=24), 0, "fp32", "cpu")
    batches = Batches([part.train for part in parts()], config, 0, CPU)
    x0, _, _, vector = batches.at(0)
    order = batches._order[: len(x0)]
    plain = config.representation.encode(batches.clean(order))
    _, labels, statistics, is_known = split(config, vector)
    sign = 1 - 2 * labels[:, :2]
    middle = x0[:, :2].mean(dim=-1)
    torch.testing.assert_close(middle, sign * plain[:, :2].mean(dim=-1), atol=0.01, rtol=0)
    prior = config.conditioning.prior
    assert prior is not None
    first = prior.names.index("mean_x")
    both = slice(first, first + 2)
    mean = statistics[:, both] * torch.tensor(prior.std[both]) + torch.tensor(prior.mean[both])
    expected = sign * batches.clean(order).mean(dim=-1)
    torch.testing.assert_close(mean.float() * is_known, expected * is_known, atol=0.01, rtol=0)


def test_validation_has_the_task_and_no_augmentation() -> None:
    config = RunConfig.of(parts(), JOINT, 0, "fp32", "cpu")
    (batch,) = fixed_validation([part.held_out for part in parts()], config, CPU)
    tasks, labels, statistics, is_known = split(config, batch[3])
    assert tasks.sum(dim=1).tolist() == [1.0] * len(batch[0])
    assert float(labels.abs().sum()) == 0
    held_out = np.concatenate([part.held_out.dequantized(seed=0).cut() for part in parts()])
    prior = config.conditioning.prior
    assert prior is not None
    expected = prior.standardized(measure(torch.from_numpy(held_out), config.rate_hz))
    torch.testing.assert_close(statistics, expected, atol=1e-4, rtol=1e-4)
    assert bool((is_known == 1).all())


def test_the_configuration_survives_json(run: Run) -> None:
    values = json.loads(json.dumps(run.config.to_json()))
    tables = run.config.conditioning.to_tensors()
    assert json.loads(json.dumps(RunConfig.from_json(values, tables).to_json())) == values
    assert run.config.recipe.network.condition_width == 4 + 3 + len(STATISTICS) + 1


def test_windows_are_the_same_for_every_batch_size(run: Run) -> None:
    one, many = (Sampler(run, batch_size=n, seed=1).windows(0, 5).cut() for n in (1, 5))
    np.testing.assert_allclose(one, many, atol=1e-4, rtol=1e-4)
    assert np.isfinite(one).all()


def test_without_a_task_each_window_has_its_own_task_and_screen(run: Run) -> None:
    sampler = Sampler(run)
    windows = sampler.windows(0, 40)
    assert {windows.tasks[k] for k in windows.task} > {"reading"}
    for k in range(len(windows)):
        task = windows.tasks[windows.task[k]]
        assert windows.screens[windows.screen_index[k]] == sampler.screens[task]
    assert sampler.screens["reading"] == SMALL_SCREEN


def test_the_task_changes_the_windows_and_brings_its_screen(run: Run) -> None:
    reading = Sampler(run, task="reading")
    assert reading.screens == {"reading": SMALL_SCREEN}
    assert reading.windows(0, 2).screen == SMALL_SCREEN
    dots = Sampler(run, task="dots")
    assert np.abs(reading.windows(0, 2).cut() - dots.windows(0, 2).cut()).max() > 1e-6


def test_bfloat16_stays_near_float32(run: Run) -> None:
    # In eight steps: the solver's four are too coarse for an untrained network.
    full, half = (Sampler(run, bf16=b, steps=8).windows(0, 3).cut() for b in (False, True))
    assert 0 < np.abs(full - half).max() < 0.05 * np.abs(full).max()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"task": "readin"}, "did you mean 'reading'"),
        ({"sampler": "ddim"}, "unipc or distilled"),
        ({"eta": 0.5}, "`eta` is for the paper's recipes"),
        ({"steps": 0}, "`steps` must be 1 or more"),
    ],
)
def test_bad_settings_are_refused(run: Run, settings: dict[str, object], problem: str) -> None:
    with pytest.raises(GazeError, match=problem):
        Sampler(run, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recipe", "change", "problem"),
    [
        (RECIPES["position-tiny"], {}, "takes one windows file"),
        (JOINT, {"length": 32}, "differ in length or rate"),
        (JOINT, {"tasks": ("dots", "walking")}, "two screens"),
    ],
)
def test_files_that_do_not_go_together_are_refused(
    tmp_path: Path, recipe: Recipe, change: dict[str, Any], problem: str
) -> None:
    files = [short_windows(), replace(other_windows(), **change)]
    with pytest.raises(GazeError, match=problem):
        next(train_epochs(files, tmp_path / "r", recipe, device="cpu"))
