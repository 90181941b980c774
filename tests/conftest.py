"""Recordings made of known numbers, shared by the tests."""

from __future__ import annotations

import os

# Two test processes with two threads each would fight for two cores, and threads of the few tests
# that ask for more would spin while they wait. Set before torch is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.cli import main
from gazediffusion.data.recordings import Recording
from gazediffusion.screen import Screen

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)

# The files that take longest come first, so that no test process waits for the other at the end.
LONGEST = (
    "web/test_page.py",
    "reproduction/test_build.py",
    "generation/test_cluster.py",
    "web/test_generate.py",  # and all others of "web"
    "test_documents.py",
    "training/test_loop.py",
    "reproduction/test_claims.py",  # and all others of "evaluations"
    "evaluation/test_evaluation.py",
    "generation/test_sets.py",
    "training/test_distributed.py",
    "cli/test_interrupts.py",
    "test_architecture.py",
    "cli/test_cli.py",
    "evaluation/test_report.py",
    "evaluation/test_privacy.py",
)
# Files that run in the same process, because their fixtures take ten seconds.
TOGETHER = {
    "web": r"web/test_(?!page)\w+\.py",  # a model, its server and worker
    "evaluations": r"reproduction/test_(claims|figures|page|tables)\.py",  # those of made.py
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of LONGEST first, in their order."""
    folder = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        name = item.path.relative_to(folder).as_posix()
        return LONGEST.index(name) if name in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For --dist loadfile: each file in one process, and those of TOGETHER in the same one."""
    from xdist.scheduler import LoadFileScheduling

    class InFiles(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            found = [name for name, files in TOGETHER.items() if re.search(f"{files}$", scope)]
            return found[0] if found else scope

    return InFiles(config, log) if config.getoption("dist") == "loadfile" else None


MakeRecording = Callable[..., Recording]
RunCommand = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Run one command in this process; returns exit code, output and error lines."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gazediffusion", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


def wandering_gaze(n: int, seed: int = 0, grid_px: float | None = 0.1) -> NDArray[np.float32]:
    """A slow random walk around the middle of the screen, (2, n), that never stands still."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 1.0, (2, n)) + 0.3
    walk = np.cumsum(steps - steps.mean(axis=1, keepdims=True), axis=1)
    gaze = walk + np.array([[640.0], [360.0]])
    gaze = np.clip(gaze, [[10.0], [10.0]], [[1270.0], [710.0]])
    if grid_px is not None:
        gaze = np.round(gaze / grid_px) * grid_px
    return np.asarray(gaze, dtype=np.float32)


@pytest.fixture
def make_recording() -> MakeRecording:
    """Build a recording; by default one eye of valid, moving gaze at 250 Hz."""

    def make(
        n: int = 2500,
        rate_hz: float = 250.0,
        participant: str = "01",
        task: str = "viewing",
        trial: str = "0",
        seed: int = 0,
        gaze: NDArray[np.float32] | None = None,
        is_blink: NDArray[np.bool_] | None = None,
        screen: Screen | None = SCREEN,
        time_ms: NDArray[np.float64] | None = None,
    ) -> Recording:
        gaze = wandering_gaze(n, seed) if gaze is None else gaze
        n = gaze.shape[1]
        return Recording(
            participant=participant,
            task=task,
            trial=trial,
            time_ms=np.arange(n, dtype=np.float64) * (1000.0 / rate_hz)
            if time_ms is None
            else time_ms,
            gaze_px={"right": gaze},
            is_blink={} if is_blink is None else {"right": is_blink},
            path=Path("made.csv"),
            format="made",
            screen=screen,
        )

    return make


@pytest.fixture(scope="session")
def steerable_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A steerable run, trained once: windows of 64 samples at 20 Hz; no test writes into it."""
    from tests.training.test_steering import steerable_run

    return steerable_run(tmp_path_factory.mktemp("steerable") / "run")


@pytest.fixture(scope="session")
def labelling_run(steerable_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny steerable run, so sure of its labels that they change; with all their tables."""
    from gazediffusion.data.recordings import EVENT_CLASSES
    from gazediffusion.network.tensors import load_tensors, save_tensors

    folder = tmp_path_factory.mktemp("labelling") / "labelling"
    shutil.copytree(steerable_folder, folder)
    tensors, header = load_tensors(folder / "best.safetensors")
    tensors["head.2.weight"][-len(EVENT_CLASSES) :] *= 10
    tensors["head.2.bias"][-len(EVENT_CLASSES) :] = 0
    (folder / "best.safetensors").unlink()
    save_tensors(folder / "best.safetensors", tensors, header)
    return folder


@pytest.fixture
def small_calibration() -> Iterator[None]:
    """Training ends with a calibration of 8 windows in 2 rounds in the place of 128 in 4."""
    from gazediffusion.training import calibration

    with pytest.MonkeyPatch.context() as patch:
        small = partial(calibration.calibrate, n=8, rounds=2)
        patch.setattr(calibration, "calibrate", small)
        yield


@pytest.fixture
def one_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports draw one figure and the gallery; all others take seconds.

    Every figure of a report is drawn by tests/evaluation/test_report.py and by
    test_gaze_that_does_not_move_is_evaluated_without_a_crash.
    """
    from gazediffusion.plotting import evaluation

    one = {"floor_ratios": evaluation.FIGURES["floor_ratios"]}
    monkeypatch.setattr(evaluation, "FIGURES", one)
