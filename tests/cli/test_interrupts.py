"""Ctrl-C keeps what is done and says how to resume; models that are not calibrated say so."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import gazediffusion as gd
from gazediffusion.training.training import train_epochs
from tests.conftest import RunCommand
from tests.processes import Command
from tests.runs import saved_windows
from tests.training.test_joint import JOINT


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A joint run that was trained but never calibrated."""
    path = tmp_path_factory.mktemp("interrupted")
    windows = saved_windows(path / "w.safetensors")
    recipe = replace(JOINT, epochs=1, sampling_steps=4)
    list(train_epochs(windows, path / "run", recipe, device="cpu"))
    return path


def interrupted(
    arguments: list[str], folder: Path, is_due: Callable[[], bool]
) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that gets Ctrl-C once `is_due`."""
    command = Command(arguments, folder)
    command.wait_for(is_due)
    command.send(signal.SIGINT)
    return command.end()


def test_an_uncalibrated_model_says_so(run: RunCommand, folder: Path, tmp_path: Path) -> None:
    code, said, _ = run("info", folder / "run")
    assert code == 0
    assert "30 summary statistics, not calibrated: train it on" in said
    code, _, errors = run("generate", "--model", folder / "run", "-n", 2, "-o", tmp_path / "g.npz")
    assert code == 0
    assert "is not calibrated" in errors
    assert not gd.load(folder / "run").is_calibrated


def test_ctrl_c_in_generate_keeps_the_windows_and_the_same_command_resumes(
    folder: Path, run: RunCommand, tmp_path: Path
) -> None:
    words = ["generate", "--model", str(folder / "run"), "-n", "600", "--batch-size", "2"]
    words += ["--steps", "40", "-o", str(tmp_path / "g.npz"), "--device", "cpu"]
    code, said, errors = interrupted(
        words, tmp_path, lambda: len(list(tmp_path.glob(".*.work/*.npz"))) > 2
    )
    assert code == 130, errors
    assert "Traceback" not in errors
    (line,) = [one for one in said.splitlines() if one.startswith("stopped")]
    assert "of 600" in line
    assert line.endswith("the same command resumes")
    n_pieces = len(list(tmp_path.glob(".*.work/*.npz")))
    small = [word if word != "600" else str(2 * n_pieces) for word in words]
    code, said, _ = run(*small)
    assert code == 0
    assert f"resuming {tmp_path / 'g.npz'}: {2 * n_pieces} of {2 * n_pieces} windows" in said
