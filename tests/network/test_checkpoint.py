from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import RunConfig, load_run, read_config, read_metrics
from gazediffusion.network.tensors import load_tensors, save_tensors
from tests.runs import TINY, TINY_VELOCITY, short_windows, trained_run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_run(tmp_path_factory.mktemp("checkpoint") / "run")


def test_a_configuration_survives_json() -> None:
    for recipe in (TINY, TINY_VELOCITY):
        config = RunConfig.of([short_windows(recipe.protocol)], recipe, 1, "fp32", "cpu")
        values = json.loads(json.dumps(config.to_json()))
        assert json.loads(json.dumps(RunConfig.from_json(values).to_json())) == values


def test_a_configuration_names_no_participant() -> None:
    config = RunConfig.of([short_windows()], TINY, 1, "fp32", "cpu")
    assert "anna" not in json.dumps(config.to_json())


def test_the_three_kinds_of_weights_can_be_loaded(run_folder: Path) -> None:
    best, last, raw = (load_run(run_folder, name) for name in ("best", "last", "raw"))
    lines = read_metrics(run_folder)
    losses = [line["validation_loss"] for line in lines]
    assert best.epoch == losses.index(min(losses))
    assert best.validation_loss == min(losses)
    assert last.epoch == len(lines) - 1
    weights = [dict(run.network.state_dict()) for run in (last, raw)]
    assert not torch.equal(weights[0]["stem.weight"], weights[1]["stem.weight"])
    assert not any(p.requires_grad for p in best.network.parameters())


def test_tensors_survive_saving_and_the_same_give_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"b": torch.randn(3), "a": torch.arange(4)}
    for name in ("one", "two"):
        save_tensors(tmp_path / name, tensors, {"epoch": 3})
    loaded, header = load_tensors(tmp_path / "one")
    assert header == {"epoch": 3}
    assert torch.equal(loaded["b"], tensors["b"])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(run_folder: Path, tmp_path: Path, keep: float) -> None:
    content = (run_folder / "best.safetensors").read_bytes()
    copy = tmp_path / "run"
    copy.mkdir()
    (copy / "config.json").write_bytes((run_folder / "config.json").read_bytes())
    size = int(keep * len(content)) if keep < 1 else int(keep)
    (copy / "best.safetensors").write_bytes(content[:size])
    with pytest.raises(GazeError, match=r"best\.safetensors: the (checkpoint|file) is"):
        load_run(copy)


def test_a_foreign_checkpoint_is_refused(run_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    (copy / "config.json").write_bytes((run_folder / "config.json").read_bytes())
    save_file({"weight": torch.zeros(3)}, copy / "best.safetensors")
    with pytest.raises(GazeError, match="not one of gazediffusion"):
        load_run(copy)
    save_tensors(copy / "best.safetensors", {"weight": torch.zeros(3)}, {})
    with pytest.raises(GazeError, match="weights are of another network"):
        load_run(copy)
    tensors, header = load_tensors(run_folder / "best.safetensors")
    tensors["stem.weight"] = torch.zeros(8, 2, 5)
    save_tensors(copy / "best.safetensors", tensors, header)
    with pytest.raises(GazeError, match=r"another network \(stem\.weight\)"):
        load_run(copy)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "gazediffusion-run"}'])
def test_a_damaged_configuration_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(GazeError, match=r"config\.json"):
        read_config(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"no run folder.*gazediffusion train"):
        load_run(tmp_path)
    with pytest.raises(GazeError, match="no run folder"):
        load_run(tmp_path / "nothing")


def test_weights_that_are_not_there_yet_are_said_to_be_so(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((run_folder / "config.json").read_bytes())
    with pytest.raises(GazeError, match="no best weights yet"):
        load_run(tmp_path)
