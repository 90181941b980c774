"""Packaged models: listed without torch, checked on loading, equal but for rounding."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import torch

from gazediffusion.data.writers.card import read_card
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.network import pretrained
from gazediffusion.network.checkpoint import CONFIG, config_from, load_run
from gazediffusion.network.pretrained import find_model, list_models, pretrained_models
from gazediffusion.network.tensors import rounded
from tests.conftest import RunCommand
from tests.runs import trained_run


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder that holds one tiny model."""
    run = load_run(trained_run(tmp_path / "run"))
    pretrained.save_pretrained(run, tmp_path / "models" / "small", 31)
    monkeypatch.setattr(pretrained, "pretrained_folder", lambda: tmp_path / "models")
    return tmp_path


def test_a_packaged_model_is_its_run_with_rounded_weights(package: Path) -> None:
    run, model = load_run(package / "run"), pretrained.load_model("small")
    assert pretrained.pretrained_models() == ["small"]
    assert model.config.to_json() == run.config.to_json()
    expected = rounded(run.network.state_dict(), 31)
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, expected[name])
    assert len(Sampler(model).windows(0, 2)) == 2


def test_a_run_folder_is_taken_as_it_is(package: Path) -> None:
    assert pretrained.load_model(package / "run").path == package / "run"


def test_a_name_that_is_not_there_is_answered_with_one_that_is(package: Path) -> None:
    with pytest.raises(GazeError, match="did you mean 'small'"):
        pretrained.load_model("smal")


def test_damaged_weights_are_refused(package: Path) -> None:
    path = package / "models" / "small" / pretrained.WEIGHTS
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(GazeError, match="not those of this model"):
        pretrained.load_model("small")


def test_only_the_averaged_weights_are_packaged(package: Path) -> None:
    with pytest.raises(GazeError, match="no raw weights"):
        pretrained.load_model("small", "raw")


def test_without_a_name_the_joint_model_is_taken(tmp_path: Path, run: RunCommand) -> None:
    path = tmp_path / "gaze.parquet"
    words = f"generate -n 2 --task reading --seconds 2 -o {path}"
    assert run(*words.split())[0] == 0
    card = read_card(path)
    assert card is not None
    assert card["model"]["weights_sha256"] == pretrained.load_model("joint").weights_sha256
    assert card["sampling"]["task"] == "reading"
    assert len(pl.read_parquet(path)) == 2 * 500


@pytest.mark.parametrize("name", pretrained.pretrained_models())
def test_every_model_of_the_package_opens_and_denoises(name: str) -> None:
    run = pretrained.load_model(name)
    shape = (1, run.config.recipe.network.channels, 64)
    with torch.no_grad():
        out = run.network(torch.randn(shape), torch.ones(1, dtype=torch.long))
    assert out.shape == shape
    assert bool(torch.isfinite(out).all())


@pytest.mark.parametrize("name", pretrained_models())
def test_a_packaged_model_is_described_as_its_configuration_states(name: str) -> None:
    found, folder = list_models()[name], find_model(name)
    config = config_from(without_hash(folder), folder)
    assert found.source == name
    assert found.recipe == config.recipe.name
    assert found.tasks == config.conditioning.tasks
    assert tuple(found.screens.values()) == config.conditioning.task_screens
    assert found.screen == config.screen
    assert (found.length, found.rate_hz) == (config.length, config.rate_hz)
    assert found.seconds == config.length / config.rate_hz
    assert found.trained_on == config.data


def without_hash(folder: Path) -> dict[str, object]:
    values: dict[str, object] = json.loads((folder / CONFIG).read_text())
    values.pop("weights_sha256")
    return values


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="this is no run folder"):
        list_models([tmp_path])
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(GazeError, match="the configuration is damaged"):
        list_models([tmp_path])
