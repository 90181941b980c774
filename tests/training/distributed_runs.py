"""The program that tests/training/test_distributed.py starts several times with torchrun.

    torchrun --nproc-per-node N -m tests.training.distributed_runs FOLDER

Each process reports its files and errors to FOLDER/N-RANK.json.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gazediffusion.cli import main
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.network.recipes import Recipe
from gazediffusion.training import calibration
from gazediffusion.training.training import train
from tests.runs import TINY
from tests.training.test_steering import STEERABLE

# Batches of 4 and 5 windows: neither 2 nor 3 processes divide both.
RECIPES: dict[str, Recipe] = {"position": TINY, "steerable": replace(STEERABLE, batch_size=5)}
KILLED_AT = 5  # of 9 steps


def trained(
    folder: Path,
    name: str,
    run: str,
    save_every_s: float = 60.0,
    should_stop: Callable[[], bool] = lambda: False,
) -> Path:
    """A run on the windows of a recipe, which tests have saved, with a small calibration."""
    windows = Windows.load(folder / f"{name}.safetensors")
    whole = calibration.calibrate
    calibration.calibrate = partial(whole, n=8, rounds=2)
    try:
        return train(
            windows,
            folder / run,
            RECIPES[name],
            seed=0,
            device="cpu",
            save_every_s=save_every_s,
            should_stop=should_stop,
        )
    finally:
        calibration.calibrate = whole


def called(n: int, action: Callable[[], Any]) -> Callable[[], bool]:
    """A `should_stop` that acts at its n-th call and never stops."""
    n_calls = 0

    def count() -> bool:
        nonlocal n_calls
        n_calls += 1
        if n_calls == n:
            action()
        return False

    return count


def is_restarted() -> bool:
    """Whether torchrun has started these processes anew after a failure."""
    return os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"


def resumed_and_killed(folder: Path) -> None:
    """Resume a run of one process; then the second process is killed once, in the middle."""
    if not is_restarted():
        trained(folder, "position", "resumed")
    is_victim = os.environ["RANK"] == "1" and not is_restarted()
    kill = partial(os.kill, os.getpid(), signal.SIGKILL)
    stop = called(KILLED_AT, kill) if is_victim else lambda: False
    trained(folder, "position", "killed", save_every_s=0.0, should_stop=stop)


def refused_and_stopped(folder: Path) -> dict[str, Any]:
    """More processes than windows; then a command that the test interrupts."""
    report: dict[str, Any] = {}
    windows = Windows.load(folder / "position.safetensors")
    try:
        train(windows, folder / "refused", replace(TINY, batch_size=2), device="cpu")
    except GazeError as error:
        report["error"] = str(error)
    words = "--recipe position-tiny --epochs 100000 --batch-size 4 --device cpu"
    files = [str(folder / "position.safetensors"), "-o", str(folder / "stopped")]
    sys.argv = ["gazediffusion", "train", *files, *words.split()]
    try:
        main()
    except SystemExit as end:
        report["code"] = end.code
    return report


def work(folder: Path) -> None:
    """Everything of one process."""
    n, rank = os.environ["WORLD_SIZE"], os.environ["RANK"]
    written: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        is_written = event in ("os.mkdir", "os.rename", "os.remove") or (
            event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if is_written and str(arguments[0]).startswith(str(folder)):
            written.append(str(arguments[0]))

    sys.addaudithook(watch)
    for name in () if is_restarted() else RECIPES:
        trained(folder, name, f"{name}-{n}")
    report: dict[str, Any] = {}
    if n == "2":
        resumed_and_killed(folder)
    else:
        report = refused_and_stopped(folder)
    report["written"] = list(written)
    (folder / f"{n}-{rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    work(Path(sys.argv[1]))
