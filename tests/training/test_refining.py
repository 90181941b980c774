"""Refinement: the direction of the step, the folder, resuming, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run, load_run
from gazediffusion.models.tensors import load_tensors
from gazediffusion.training import calibration, refining
from gazediffusion.training.batches import Batches
from gazediffusion.training.learner import Learner
from gazediffusion.training.refining import (
    GENERATED,
    SETTINGS,
    STATE,
    Refinement,
    extrapolated,
    rate_at,
    refine,
)
from tests.training.test_steering import labelled_windows

CPU = torch.device("cpu")
SMALL = Refinement(n_windows=6, n_steps=4, batch_size=3)


def windows() -> gd.Windows:
    return replace(labelled_windows(), rate_hz=20.0)


@pytest.fixture(autouse=True, scope="module")
def small_calibration() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibration, "calibrate", partial(calibration.calibrate, n=4, rounds=1))
        yield


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> Run:
    return load_run(steerable_folder)


@pytest.fixture(scope="module")
def folder(model: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model refined in one go; no test writes into it."""
    path = tmp_path_factory.mktemp("refined") / "run"
    return refine(model, windows(), path, SMALL, device="cpu")


def learner_of(model: Run) -> Learner:
    return Learner(model.config.recipe, 0, CPU, "fp32", weights=model.network.state_dict())


def test_the_weights_move_away_from_those_of_the_copy(model: Run) -> None:
    learner = learner_of(model)
    with torch.no_grad():
        for parameter in learner.average.parameters():
            parameter.add_(2.0)
    for name, weight in extrapolated(model, learner, 0.5).items():
        own = model.network.get_parameter(name)
        torch.testing.assert_close(weight, own - 1.0)
    unchanged = extrapolated(model, learner, 0.0)
    assert all(torch.equal(w, model.network.get_parameter(n)) for n, w in unchanged.items())


def test_the_refined_model_fits_its_own_windows_worse(model: Run, tmp_path: Path) -> None:
    """The copy lowers the loss on the model's windows, so the extrapolation raises it."""
    settings = Refinement(weight=1.0, n_windows=24, n_steps=60, batch_size=12, learning_rate=1e-3)
    path = refine(model, windows(), tmp_path / "run", settings, device="cpu")
    # Windows with another seed than those that the copy was trained on.
    made = DiffusionGenerator.of_quality(model, "default").sample(24, seed=77)
    recipe = replace(model.config.recipe, batch_size=24)
    batches = Batches([made], replace(model.config, recipe=recipe), 5, CPU)

    def loss(run: Run) -> float:
        learner = learner_of(run)
        with torch.no_grad():
            found = [learner._losses(run.network, batches.at(k)).mean() for k in range(8)]
        return float(torch.stack(found).mean())

    assert loss(load_run(path)) > loss(model)


def test_a_stopped_refinement_ends_as_an_uninterrupted_one(
    model: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refining, "_LEAST", 3)
    monkeypatch.setattr(refining, "default_batch_size", lambda run: 3)
    path, said, counts = tmp_path / "run", list[str](), list[int]()
    made: list[int] = []
    stops = {"generating": True, "training": True}

    def stop() -> bool:
        if len(counts) == 3 and stops["training"]:
            stops["training"] = False
            return True
        return bool(stops.pop("generating", False))

    def go() -> None:
        refine(
            model,
            windows(),
            path,
            SMALL,
            device="cpu",
            on_generation=lambda done, total: made.append(done),
            on_step=lambda done, total: counts.append(done),
            should_stop=stop,
            say=said.append,
        )

    with pytest.raises(StoppedError, match="while generating"):
        go()
    assert len(list((path / GENERATED).iterdir())) == 1
    with pytest.raises(StoppedError, match="after 3 of 4 steps"):
        go()
    assert any("are there" in line for line in said)
    assert (path / STATE).is_file()
    assert not (path / "best.safetensors").exists()
    go()
    assert any("after 3 of 4 steps" in line for line in said)
    assert not (path / STATE).exists()
    assert not (path / GENERATED).exists()
    here, there = (load_tensors(one / "best.safetensors")[0] for one in (path, folder))
    for name in there:
        torch.testing.assert_close(here[name], there[name], atol=1e-5, rtol=1e-4)
    before = (path / "best.safetensors").read_bytes()
    go()  # complete already
    assert (path / "best.safetensors").read_bytes() == before


def test_the_refined_model_is_used_as_any_other(folder: Path, model: Run) -> None:
    run = load_run(folder)
    assert run.config.conditioning.is_calibrated
    assert run.config.recipe == model.config.recipe
    assert run.config.initialised_from == model.weights_sha256
    assert np.isfinite(DiffusionGenerator.of_quality(run, "default").sample(2).cut()).all()
    found = json.loads((folder / SETTINGS).read_text())
    assert found["model"] == model.weights_sha256
    assert found["settings"]["weight"] == SMALL.weight


def test_the_model_itself_stays_as_it_was(steerable_folder: Path, tmp_path: Path) -> None:
    model = load_run(steerable_folder)
    before = {name: tensor.clone() for name, tensor in model.network.state_dict().items()}
    refine(model, windows(), tmp_path / "run", SMALL, device="cpu")
    after = model.network.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_what_cannot_be_refined_is_refused(model: Run, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="64 at 250 Hz"):
        refine(model, labelled_windows(), tmp_path / "run", SMALL)
    assert not (tmp_path / "run").exists()
    with pytest.raises(GazeError, match="a refinement with other settings"):
        refine(model, windows(), folder, replace(SMALL, weight=0.1), device="cpu")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(GazeError, match="something else"):
        refine(model, windows(), tmp_path, SMALL, device="cpu")


@pytest.mark.parametrize(
    "settings", [{"weight": -1.0}, {"n_windows": 0}, {"n_steps": 0}, {"learning_rate": -1.0}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(GazeError, match=next(iter(settings))):
        Refinement(**settings)  # type: ignore[arg-type]


def test_rates_warm_up_and_end_at_zero() -> None:
    assert rate_at(0, 1000) == pytest.approx(0.01)
    assert rate_at(500, 1000) == pytest.approx(0.5)
    assert rate_at(999, 1000) < 1e-4
