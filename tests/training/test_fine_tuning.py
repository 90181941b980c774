"""Training initialised from a trained model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.statistics import STATISTICS
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import Run, load_run
from gazediffusion.training.fine_tuning import initial_weights, transferred
from gazediffusion.training.training import train_epochs
from tests.conftest import RunCommand
from tests.runs import saved_windows, short_windows
from tests.training.test_joint import JOINT, other_windows

# With a learning rate of zero the weights stay the initial ones.
FROZEN = replace(JOINT, learning_rate=0.0, epochs=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("model") / "run"
    list(train_epochs([short_windows(), other_windows()], folder, JOINT, seed=0, device="cpu"))
    return load_run(folder)


def renamed(*tasks: str) -> Windows:
    windows = short_windows()
    return replace(windows, tasks=tasks, gaze=windows.gaze * np.float32(0.8))


def test_a_run_takes_weights_and_scales_of_its_initial_model(model: Run, tmp_path: Path) -> None:
    windows = renamed("walking", "juggling")
    list(train_epochs(windows, tmp_path / "run", FROZEN, initial=model, device="cpu"))
    run = load_run(tmp_path / "run")
    assert run.config.initialised_from == model.weights_sha256
    assert run.config.joint == model.config.joint
    assert run.config.conditioning.tasks == ("walking", "juggling")
    old, new = model.network.state_dict(), run.network.state_dict()
    for name in set(old) - {"condition.0.weight"}:
        assert torch.equal(old[name], new[name]), name
    columns = old["condition.0.weight"], new["condition.0.weight"]
    known = model.config.conditioning.tasks.index("walking")
    assert torch.equal(columns[0][:, known], columns[1][:, 0])
    assert not columns[1][:, 1].any()  # a new task starts at zero
    assert torch.equal(columns[0][:, -3:], columns[1][:, -3:])
    assert old["condition.0.weight"][:, known].any()


def test_fine_tuning_starts_from_a_lower_loss(model: Run, tmp_path: Path) -> None:
    windows = renamed("walking", "reading")
    recipe = replace(JOINT, epochs=1)
    (epoch,) = train_epochs(windows, tmp_path / "from", recipe, initial=model, seed=0, device="cpu")
    (alone,) = train_epochs(windows, tmp_path / "new", recipe, seed=0, device="cpu")
    assert epoch.training_loss < alone.training_loss
    moved = load_run(tmp_path / "from").network.state_dict()
    first = initial_weights(model, load_run(tmp_path / "from").config)
    assert not torch.equal(moved["stem.weight"], first["stem.weight"])


def test_another_network_rate_or_representation_is_refused(model: Run, tmp_path: Path) -> None:
    wider = replace(JOINT, network=replace(JOINT.network, widths=(8, 16, 24)))
    with pytest.raises(GazeError, match="another network"):
        next(train_epochs(short_windows(), tmp_path / "a", wider, initial=model))
    slow = replace(short_windows(), rate_hz=125.0)
    with pytest.raises(GazeError, match=r"250 samples a second.*have 125.*`rate_hz` 250"):
        next(train_epochs(slow, tmp_path / "b", JOINT, initial=model))
    assert not any(tmp_path.iterdir())


def test_a_run_initialised_otherwise_is_not_resumed(model: Run, tmp_path: Path) -> None:
    list(train_epochs(short_windows(), tmp_path / "run", FROZEN, device="cpu"))
    with pytest.raises(
        GazeError, match=r"initialised from: None in the folder, [0-9a-f]{64} asked for"
    ):
        next(train_epochs(short_windows(), tmp_path / "run", FROZEN, initial=model, device="cpu"))


def test_the_command_takes_the_recipe_of_the_model(
    model: Run, tmp_path: Path, run: RunCommand
) -> None:
    saved_windows(tmp_path / "windows.safetensors")
    words: list[object] = ["train", tmp_path / "windows.safetensors", "-o", tmp_path / "run"]
    words += ["--epochs", 1, "--device", "cpu", "--from"]
    assert run(*words, model.path)[0] == 0
    tuned = load_run(tmp_path / "run").config
    assert tuned.recipe.name == "joint-tiny"
    assert tuned.initialised_from == model.weights_sha256
    assert tuned.recipe.learning_rate == model.config.recipe.learning_rate / 2
    for more, problem in (
        (
            [model.path, "--learning-rate", "1e-3"],
            "learning rate: 0.0005 in the folder, 0.001 asked",
        ),
        (
            [model.path, "--learning-rate", "-1"],
            "must be a positive number, not -1.0",
        ),
        (["nothing"], "no run folder and no packaged model 'nothing'"),
    ):
        code, _, error = run(*words, *more)
        assert code == 2
        assert problem in error


def test_weights_are_transferred_by_part_and_name() -> None:
    few = ("saccades", "mean_x", "std_y")
    source = Conditioning.fit([short_windows()], few)
    new = Conditioning.fit([replace(short_windows(), tasks=("movies", "juggling"))], STATISTICS)
    weight = torch.arange(2.0 * source.width).reshape(2, -1)
    moved = transferred(weight, source, new)
    assert moved.shape == (2, new.width)
    assert torch.equal(moved[:, 0], weight[:, 1])  # movies
    assert not moved[:, 1].any()  # juggling is new
    here = new.columns("statistics").start + STATISTICS.index("std_y")
    there = source.columns("statistics").start + few.index("std_y")
    assert torch.equal(moved[:, here], weight[:, there])
    assert torch.equal(moved[:, -1], weight[:, -1])
