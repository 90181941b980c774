"""Losses by noise level, against closed forms for a network that predicts no noise at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.data.windows import Windows
from gazediffusion.models.checkpoint import Run, load_run
from gazediffusion.models.recipes import Recipe
from gazediffusion.training.noise_levels import FIXATION_SPEED, loss_by_level
from tests.runs import TINY, TINY_VELOCITY, trained_run


def silent(folder: Path, recipe: Recipe) -> tuple[Run, Windows]:
    """A run whose network answers zero, and its windows."""
    run = load_run(trained_run(folder, recipe))
    for parameter in run.network.head[-1].parameters():
        parameter.zero_()
    return run, Windows.load(folder.with_suffix(".safetensors"))


def still(windows: Windows) -> Windows:
    """The same windows with slow gaze only: a line that creeps along."""
    gaze = np.zeros_like(windows.gaze)
    gaze[0] = np.arange(gaze.shape[1]) * 0.0004
    return Windows(**{**vars(windows), "gaze": gaze, "grid_px": None})


@pytest.mark.parametrize("recipe", [TINY, TINY_VELOCITY], ids=["position", "velocity"])
def test_a_network_that_knows_nothing(tmp_path: Path, recipe: Recipe) -> None:
    run, windows = silent(tmp_path / "run", recipe)
    result = loss_by_level(run, still(windows))
    sigmas = np.array([one["sigma"] for one in result["levels"]])
    assert np.all(np.diff(sigmas) > 0)
    assert sigmas[0] == pytest.approx(0.01, rel=1e-3)
    for one in result["levels"]:
        # x0 is said to be zero: all motion is missed, and nothing is added.
        assert one["unexplained_fixation"] == pytest.approx(1.0, rel=1e-4)


def test_the_error_of_a_silent_eps_network_is_the_noise_itself(tmp_path: Path) -> None:
    from dataclasses import replace

    run, windows = silent(tmp_path / "run", replace(TINY, objective="eps"))
    result = loss_by_level(run, still(windows))
    motion = 0.0004**2 / 2  # mean square over both axes
    for one in result["levels"]:
        assert one["loss"] == pytest.approx(1.0, abs=0.05)
        # The noise stays in the window: its steps have twice its variance.
        assert one["unexplained_fixation"] == pytest.approx(2 * one["sigma"] ** 2 / motion, rel=0.1)


def test_saccades_and_their_flanks_do_not_count(tmp_path: Path) -> None:
    run, windows = silent(tmp_path / "run", TINY)
    slow = still(windows)
    gaze = slow.gaze.copy()
    jumps = np.arange(10, gaze.shape[1], 40)
    for jump in jumps:
        gaze[0, jump:] += 20 * FIXATION_SPEED
        gaze[0, jump:] -= 20 * FIXATION_SPEED * (gaze[0, jump] > 0.5)
    jumping = Windows(**{**vars(slow), "gaze": gaze})
    for one in loss_by_level(run, jumping)["levels"]:
        assert one["unexplained_fixation"] == pytest.approx(1.0, rel=1e-3)
    assert torch.is_grad_enabled()
