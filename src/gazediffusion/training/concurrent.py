"""Training several runs concurrently on one GPU.

A small batch leaves most of a large GPU idle. Each run has a process of its own, and NVIDIA's MPS
(multi-process service) runs their kernels at the same time: on an H200 three position runs take
twice as long as one. Threads of one process gained nothing over sequential runs. On a CPU the runs
are sequential.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.models.recipes import Recipe
from gazediffusion.training.loop import Epoch, train_epochs

_POLL_S = 0.2
OnStep = Callable[["Job", int, int], None]


@dataclass(frozen=True, eq=False)
class Job:
    """One of the runs; windows as `train_epochs` takes them."""

    windows: Windows | Sequence[Windows]
    folder: Path
    recipe: Recipe
    seed: int


def train_concurrently(
    jobs: Sequence[Job],
    *,
    device: str = "auto",
    save_every_s: float = 60.0,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: OnStep = lambda job, done, total: None,
) -> Iterator[tuple[Job, Epoch]]:
    """Train several runs, each as `train_epochs` does, yielding epochs as they are done."""
    if choose_device(device).type == "cuda" and len(jobs) > 1:
        with _shared_gpu():
            yield from in_processes(jobs, device, save_every_s, should_stop, on_step)
        return
    for job in jobs:
        for epoch in _epochs(job, device, save_every_s, should_stop, partial(on_step, job)):
            yield job, epoch


def _epochs(
    job: Job,
    device: str,
    save_every_s: float,
    should_stop: Callable[[], bool],
    on_step: Callable[[int, int], None],
) -> Iterator[Epoch]:
    return train_epochs(
        job.windows,
        job.folder,
        job.recipe,
        seed=job.seed,
        device=device,
        save_every_s=save_every_s,
        should_stop=should_stop,
        on_step=on_step,
    )


def in_processes(
    jobs: Sequence[Job],
    device: str,
    save_every_s: float,
    should_stop: Callable[[], bool],
    on_step: OnStep,
) -> Iterator[tuple[Job, Epoch]]:
    """One process for each job. If one fails, the others save and stop, and its error is raised."""
    # A process that has used a GPU cannot be forked.
    start = multiprocessing.get_context("spawn")
    messages: Any = start.Queue()
    stop = start.Event()
    shared = (device, save_every_s, stop, messages)
    workers = [
        start.Process(target=_work, args=(n, job, *shared), daemon=True)
        for n, job in enumerate(jobs)
    ]
    for worker in workers:
        worker.start()
    running = set(range(len(jobs)))
    failure: GazeError | None = None
    try:
        while running:
            if should_stop():
                stop.set()
            try:
                number, kind, what = messages.get(timeout=_POLL_S)
            except queue.Empty:
                for number in [n for n in running if not workers[n].is_alive()]:
                    # Killed from outside, for example out of memory, without a message.
                    running.discard(number)
                    stop.set()
                    died = f"its process died (exit code {workers[number].exitcode})"
                    failure = failure or GazeError(died, path=jobs[number].folder)
                continue
            if kind == "epoch":
                yield jobs[number], what
            elif kind == "step":
                on_step(jobs[number], *what)
            else:
                running.discard(number)
                if what is not None:
                    stop.set()
                    failure = failure or GazeError(what)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    if failure is not None:
        raise failure


def _work(
    number: int, job: Job, device: str, save_every_s: float, stop: Any, messages: Any
) -> None:
    """Train one run in a process of its own and report its progress."""
    # Ctrl-C reaches every process of a terminal; the parent decides, and asks for a stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reported = 0.0

    def on_step(done: int, total: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > _POLL_S:
            reported = time.monotonic()
            messages.put((number, "step", (done, total)))

    problem: str | None = None
    try:
        for epoch in _epochs(job, device, save_every_s, stop.is_set, on_step):
            messages.put((number, "epoch", epoch))
    except GazeError as error:
        problem = str(error)
    except BaseException as error:
        problem = f"{job.folder}: {type(error).__name__}: {error}"
        raise
    finally:
        messages.put((number, "end", problem))


@contextmanager
def _shared_gpu() -> Iterator[None]:
    """Let processes started within share the GPU, where NVIDIA's MPS is installed."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gazediffusion-mps-") as folder:
        places = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        os.environ.update(places)
        subprocess.run([control, "-d"], check=False, capture_output=True)
        try:
            yield
        finally:
            subprocess.run([control], input=b"quit\n", check=False, capture_output=True)
            for name in places:
                del os.environ[name]
