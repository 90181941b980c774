"""Training on several processes, started by torchrun, gives the run of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.network.checkpoint import CONFIG, load_run, read_metrics
from gazediffusion.network.tensors import load_tensors
from gazediffusion.training import distributed
from gazediffusion.training.distributed import joined
from tests.runs import saved_windows
from tests.training.distributed_runs import RECIPES, trained
from tests.training.test_steering import labelled_windows

ROOT = Path(__file__).parents[2]
LIMIT_S = 180


def started(folder: Path, n: int, *options: str) -> subprocess.Popen[str]:
    """Torchrun with n processes of distributed_runs.py."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    program = ["-m", "tests.training.distributed_runs", str(folder)]
    return subprocess.Popen(
        [*torchrun, f"--nproc-per-node={n}", *options, *program],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, output and errors; torchrun ends its processes with itself."""
    try:
        said, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        said, errors = process.communicate(timeout=60)
        pytest.fail(f"torchrun did not end:\n{said}\n{errors}")
    return process.returncode, said, errors


class Done(NamedTuple):
    folder: Path
    two: tuple[int, str, str]
    three: tuple[int, str, str]

    def report(self, n: int, rank: int) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / f"{n}-{rank}.json").read_text())
        return report


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Runs of one, two and three processes in one folder."""
    folder = tmp_path_factory.mktemp("distributed")
    saved_windows(folder / "position.safetensors")
    labelled_windows().save(folder / "steerable.safetensors")
    for name in RECIPES:
        trained(folder, name, f"{name}-1")
    n_asked = 0

    def after_four() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked >= 4

    with pytest.raises(StoppedError):
        trained(folder, "position", "resumed", should_stop=after_four)
    three = started(folder, 3)
    end = time.monotonic() + LIMIT_S
    while three.poll() is None and not (folder / "stopped" / "metrics.jsonl").exists():
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    three.send_signal(signal.SIGINT)
    end_of_three = ended(three)
    return Done(folder, ended(started(folder, 2, "--max-restarts=1")), end_of_three)


def assert_same_run(one: Path, other: Path) -> None:
    """Weights, moments of the gradients and losses are equal to float tolerance.

    The bias before a group norm has no effect. Its gradient is rounding error, which AdamW brings
    to the size of any other, so it differs between numbers of processes.
    """
    (tensors, header), (others, its_header) = (
        load_tensors(folder / "state.safetensors") for folder in (one, other)
    )
    assert header["step"] == its_header["step"]
    assert tensors.keys() == others.keys()
    n_without_effect = 0
    for name, tensor in tensors.items():
        kind, _, parameter = name.partition(".")
        difference = (others[name] - tensor).abs()
        if kind in ("net", "ema") and f"adam.exp_avg_sq.{parameter}" in tensors:
            has_no_effect = tensors[f"adam.exp_avg_sq.{parameter}"].sqrt() < 1e-7
            n_without_effect += int(has_no_effect.sum())
            difference = difference.masked_fill(has_no_effect, 0.0)
        # Seen: 8e-6 in weights of order 0.1, 1e-7 in moments.
        assert difference.max() < (5e-5 if kind in ("net", "ema") else 1e-6), name
    assert n_without_effect < 100  # of 84,000 and more, each with its average
    metrics, its_metrics = read_metrics(one), read_metrics(other)
    assert len(metrics) == len(its_metrics) > 0
    for line, its_line in zip(metrics, its_metrics, strict=True):
        assert its_line == pytest.approx(line, rel=1e-5)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.slow
def test_several_processes_train_the_run_of_one(done: Done, name: str, n: int) -> None:
    assert_same_run(done.folder / f"{name}-1", done.folder / f"{name}-{n}")
    one, several = (json.loads((done.folder / f"{name}-{k}" / CONFIG).read_text()) for k in (1, n))
    assert several == one
    assert load_run(done.folder / f"{name}-{n}").config.conditioning.is_calibrated


@pytest.mark.slow
def test_a_run_of_one_process_is_resumed_by_two(done: Done) -> None:
    assert_same_run(done.folder / "position-1", done.folder / "resumed")


@pytest.mark.slow
def test_torchrun_restarts_after_a_kill_and_the_run_ends_as_the_straight_one(done: Done) -> None:
    code, _, errors = done.two
    assert code == 0, errors
    assert "SIGKILL" in errors or "-9" in errors
    straight, killed = (
        (done.folder / name / "state.safetensors").read_bytes() for name in ("position-2", "killed")
    )
    assert killed == straight
    assert_same_run(done.folder / "position-1", done.folder / "killed")


@pytest.mark.slow
def test_the_first_process_alone_writes(done: Done) -> None:
    for n in (2, 3):
        assert [bool(done.report(n, rank)["written"]) for rank in range(n)] == [
            True, *[False] * (n - 1)
        ]  # fmt: skip


@pytest.mark.slow
def test_an_interrupt_stops_every_process_at_one_step(done: Done) -> None:
    _, said, errors = done.three
    assert [done.report(3, rank)["code"] for rank in range(3)] == [130] * 3, errors
    assert said.count("the same command resumes") == 1
    assert "lost each other" not in errors
    step = load_tensors(done.folder / "stopped" / "state.safetensors")[1]["step"]
    assert len(read_metrics(done.folder / "stopped")) == step // 3 > 0


@pytest.mark.slow
def test_more_processes_than_windows_in_a_batch_are_refused(done: Done) -> None:
    for rank in range(3):
        assert done.report(3, rank)["error"] == (
            "a batch of 2 windows cannot be shared by 3 processes; "
            "start fewer processes, or raise `batch_size`"
        )
    assert not (done.folder / "refused").exists()


def test_without_torchrun_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert joined("cpu") is None


def test_what_cannot_be_joined_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(GazeError, match=r"WORLD_SIZE without RANK, LOCAL_RANK.* torchrun"):
        joined("cpu")
    for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"):
        monkeypatch.setenv(name, "3")
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    with pytest.raises(GazeError, match=r"`device` must be auto, cpu or cuda .* not cuda:1"):
        joined("cuda:1")


def test_processes_beyond_the_gpus_share_them_by_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 3 of a machine with two GPUs takes the second one."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(distributed, "choose_device", torch.device)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert distributed._own_device("cuda") == torch.device("cuda:1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert distributed._shares_gpu()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert not distributed._shares_gpu()
