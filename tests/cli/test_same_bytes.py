"""Every command writes the bytes that the public function behind it writes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gazediffusion as gd
from tests.conftest import SCREEN, RunCommand
from tests.runs import saved_windows
from tests.training.test_joint import JOINT


def content(path: Path) -> dict[str, bytes]:
    """Every file of a folder, or one file, by name."""
    if path.is_file():
        return {path.suffix: path.read_bytes()}
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "timing.jsonl"
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "recordings"
    config = gd.SimulationConfig(n_participants=4, minutes=0.5, rate_hz=250, screen=SCREEN)
    gd.write_simulation(config, folder, "parquet")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> gd.Model:
    """A small joint model; each task on the screen of its windows."""
    folder = tmp_path_factory.mktemp("model")
    windows = saved_windows(folder / "w.safetensors")
    recipe = replace(JOINT, epochs=1, sampling_steps=2)
    return gd.train(windows, folder / "run", recipe, device="cpu")


def test_simulate(run: RunCommand, tmp_path: Path) -> None:
    words = f"simulate -o {tmp_path / 'a'} --participants 2 --minutes 0.2 --rate 250 --format asc"
    assert run(*words.split())[0] == 0
    config = gd.SimulationConfig(n_participants=2, minutes=0.2, rate_hz=250.0)
    gd.write_simulation(config, tmp_path / "b", "asc")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_prepare(run: RunCommand, study: Path, tmp_path: Path) -> None:
    words = f"prepare {study} -o {tmp_path / 'a.safetensors'} --seconds 2 --split-seed 7"
    assert run(*words.split())[0] == 0
    config = gd.PrepareConfig(seconds=2.0, split_seed=7)
    gd.prepare(gd.read(study), config).save(tmp_path / "b.safetensors")
    assert content(tmp_path / "a.safetensors") == content(tmp_path / "b.safetensors")


def test_inspect(run: RunCommand, study: Path) -> None:
    code, said, _ = run("inspect", study)
    assert code == 0
    (summary,) = gd.inspect(gd.read(study), gd.PrepareConfig())
    for fact in (len(summary.participants), summary.n_trials, summary.position_windows):
        assert re.search(rf"\b{fact}\b", said)


@pytest.mark.slow
def test_train_fine_tune_and_calibrate(run: RunCommand, model: gd.Model, tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    words = f"train {tmp_path / 'w.safetensors'} --epochs 1 --device cpu -o"
    more = ["--from", model.run.path]
    assert run(*words.split(), tmp_path / "a", *more)[0] == 0
    tuned = model.fine_tune(windows, tmp_path / "b", epochs=1, device="cpu")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert tuned.is_calibrated
    assert tuned.config.recipe.learning_rate == model.config.recipe.learning_rate / 2
    small = "--recipe position-tiny --batch-size 4 --learning-rate 2e-3 --seed 5"
    assert run(*words.split(), tmp_path / "c", *small.split())[0] == 0
    settings: dict[str, Any] = {"epochs": 1, "batch_size": 4, "learning_rate": 2e-3, "seed": 5}
    gd.train(windows, tmp_path / "d", "position-tiny", device="cpu", **settings)
    assert content(tmp_path / "c") == content(tmp_path / "d")


@pytest.mark.parametrize("name", ["g.parquet", "g.csv", "g.npz", "bids", "asc"])
def test_generate(run: RunCommand, model: gd.Model, tmp_path: Path, name: str) -> None:
    format = name if "." not in name else None
    outputs = [tmp_path / folder / name for folder in "abc"]
    words = f"generate --model {model.run.path} -n 5 --seed 3 -o {outputs[0]} --device cpu"
    assert run(*words.split(), *(["--format", format] if format else []))[0] == 0
    model.sample_to(outputs[1], 5, seed=3, format=format)
    model.sample(5, seed=3).save(outputs[2], format)
    first, second, third = (content(path.parent) for path in outputs)
    assert first == second
    assert first == third
    assert any(file.endswith((".json", "card.json")) for file in first)


def test_info(run: RunCommand, model: gd.Model, tmp_path: Path) -> None:
    saved_windows(tmp_path / "w.safetensors")
    model.sample(2).save(tmp_path / "g.npz")
    for path in (model.run.path, tmp_path / "w.safetensors", tmp_path / "g.npz"):
        code, said, _ = run("info", path, "--json")
        assert code == 0
        assert json.loads(said) == json.loads(json.dumps(gd.describe(path)))
