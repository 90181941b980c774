"""Runs concurrently are the runs that training them alone gives."""

from __future__ import annotations

import multiprocessing
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import read_metrics
from gazediffusion.training.concurrent import Job, in_processes, train_concurrently
from gazediffusion.training.loop import Epoch, train_epochs
from tests.processes import START
from tests.runs import TINY, saved_windows


@pytest.fixture
def quick_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked from one that has loaded torch; that new ones do, one test shows."""
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: START)


def jobs_in(folder: Path, seeds: tuple[int, ...] = (0, 1)) -> list[Job]:
    windows = saved_windows(folder / "w.safetensors")
    return [Job(windows, folder / f"seed-{seed}", TINY, seed) for seed in seeds]


def alone(job: Job, folder: Path) -> bytes:
    list(train_epochs(job.windows, folder, job.recipe, seed=job.seed, device="cpu"))
    return (folder / "state.safetensors").read_bytes()


@pytest.mark.slow
def test_processes_give_the_bytes_of_training_alone(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
    received: list[tuple[Job, Epoch]] = []
    steps: set[Path] = set()
    for message in in_processes(
        jobs, "cpu", 60.0, lambda: False, lambda job, done, total: steps.add(job.folder)
    ):
        received.append(message)
    assert steps == {job.folder for job in jobs}
    for job in jobs:
        assert [epoch.epoch for of, epoch in received if of is job] == [0, 1, 2]
        expected = alone(job, tmp_path / f"alone-{job.seed}")
        assert (job.folder / "state.safetensors").read_bytes() == expected


@pytest.mark.slow
@pytest.mark.usefixtures("quick_start")
def test_a_stop_saves_every_run_and_the_same_call_goes_on(tmp_path: Path) -> None:
    jobs = [replace(job, recipe=replace(TINY, epochs=8)) for job in jobs_in(tmp_path)]
    asked: list[bool] = []
    for _ in in_processes(jobs, "cpu", 60.0, lambda: bool(asked), lambda *_: None):
        asked.append(True)
    done = [len(read_metrics(job.folder)) for job in jobs]
    assert max(done) < 8
    assert all((job.folder / "state.safetensors").is_file() for job in jobs)
    list(train_concurrently(jobs, device="cpu"))
    for job in jobs:
        assert len(read_metrics(job.folder)) == 8
        expected = alone(job, tmp_path / f"alone-{job.seed}")
        assert (job.folder / "state.safetensors").read_bytes() == expected


@pytest.mark.usefixtures("quick_start")
def test_one_that_fails_names_itself_and_stops_the_others(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
    wrong = replace(
        saved_windows(tmp_path / "v.safetensors"), protocol="velocity", velocity_scale=1.0
    )
    jobs = [
        replace(jobs[0], windows=wrong),
        replace(jobs[1], recipe=replace(TINY, epochs=100_000)),
    ]
    with pytest.raises(GazeError, match="velocity windows"):
        list(in_processes(jobs, "cpu", 60.0, lambda: False, lambda *_: None))
    assert len(read_metrics(jobs[1].folder)) < 100_000


def test_on_a_cpu_they_take_turns(tmp_path: Path) -> None:
    jobs = jobs_in(tmp_path)
    order = [job.seed for job, _ in train_concurrently(jobs, device="cpu")]
    assert order == [0, 0, 0, 1, 1, 1]
    shutil.rmtree(jobs[0].folder)
    assert [job.seed for job, _ in train_concurrently(jobs, device="cpu")] == [0, 0, 0]
