"""Scanpaths, targets, waypoints and length by the public functions and the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.data.scanpaths import Scanpath, Targets
from gazediffusion.data.writers.card import CARD_KEY
from gazediffusion.errors import GazeError
from tests.conftest import RunCommand


def one_scanpath(duration_ms: float) -> Scanpath:
    x = np.array([0.1, -0.3], np.float32)
    return Scanpath("a", x, -x, np.full(2, np.nan), np.full(2, duration_ms))


def test_the_length_is_that_of_the_scanpath_or_as_asked_for(steerable_folder: Path) -> None:
    model = gd.load(steerable_folder, device="cpu")
    given = {"task": "dots", "scanpath": [one_scanpath(2000.0)]}
    sampler = model.sampler(n=3, **given)  # type: ignore[arg-type]
    assert sampler.constraints is not None
    fixations = sampler.constraints.fixations
    assert fixations is not None
    assert sampler.n_samples == fixations.shape[2] == pytest.approx(20 * 4, abs=3)
    assert model.sample(2, seconds=12, **given).length == 240  # type: ignore[arg-type]
    assert model.sample(2, seconds=12, task="dots").length == 240
    assert model.sample(2, seconds=2, task="dots").length == 40
    # 64 samples, of which 30 are those of the window before.
    described = (model.sampler(seconds=s, task="dots").describe() for s in (3.2, 4, 12))
    assert [one["windows_each"] for one in described] == [1, 2, 7]


def test_windows_take_scanpaths_in_turn_beside_waypoints(steerable_folder: Path) -> None:
    model = gd.load(steerable_folder, device="cpu")
    scanpaths = [one_scanpath(500.0), one_scanpath(900.0)]
    settings = {"scanpath": scanpaths, "at": [(3.0, 0.5, 0.5)], "task": "dots"}
    sampler = model.sampler(n=4, seconds=4.0, **settings)  # type: ignore[arg-type]
    assert sampler.constraints is not None
    found = sampler.constraints.of(0, 4, 80)["fixations"]
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1], equal_nan=True)
    assert (found[:, :, 60] == 0.5).all()
    with pytest.raises(GazeError, match="falls into a fixation"):
        model.sampler(n=1, scanpath=scanpaths, start=(0.0, 0.0), task="dots")


def test_targets_of_other_lengths_share_one(steerable_folder: Path) -> None:
    x = np.array([0.5, -0.5], np.float32)
    targets = [Targets("a", np.array([0.0, t]), x, x) for t in (500.0, 2500.0)]
    sampler = gd.load(steerable_folder, device="cpu").sampler(n=2, targets=targets, task="dots")
    assert sampler.n_samples == 70
    card = sampler.describe()["sampling"]["constraints"]["targets"]
    assert card["entries"] == 2


def test_the_command_line_steers_and_says_so(
    steerable_folder: Path, tmp_path: Path, run: RunCommand
) -> None:
    table = tmp_path / "fixations.csv"
    table.write_text("id,x_px,y_px,duration_ms\na,640,360,1500\na,800,300,1500\nb,600,360,2500\n")
    words = ["generate", "--model", steerable_folder, "--task", "dots", "--device", "cpu"]
    code, output, error = run(*words, "--scanpath", table, "-o", tmp_path / "gaze.npz")
    assert code == 0, error
    assert "2 synthetic windows" in output
    card = json.loads((tmp_path / "gaze.json").read_text())[CARD_KEY]
    assert card["sampling"]["constraints"]["fixations"]["entries"] == 2
    code, _, error = run(*words, "--at", "2:640", "-n", 1, "-o", tmp_path / "b.npz")
    assert code == 2
    assert "position in pixels" in error


def test_a_packaged_model_that_is_not_steerable_says_so(tmp_path: Path, run: RunCommand) -> None:
    words = ["generate", "--model", "position", "--at", "0:640,360", "-n", 1]
    code, _, error = run(*words, "-o", tmp_path / "gaze.npz")
    assert code == 2
    assert "not steerable" in error
