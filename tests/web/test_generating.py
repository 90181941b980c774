"""Processes that generate beside the server: the same answers, one queue, none lost with a process.

Most tests call what a process calls, here; one uses two real ones and kills them.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.models.tensors import load_tensors, save_tensors
from gazediffusion.web import generating
from gazediffusion.web.app import create_app
from gazediffusion.web.generating import MAX_LOST
from gazediffusion.web.jobs import INTERNAL
from gazediffusion.web.playground import Playground
from gazediffusion.web.settings import Limits, Settings
from gazediffusion.web.worker import WorkerEndedError
from tests.web.conftest import PATIENCE_S, Start, live_app


class Here:
    """Stands for a process: its calls are done in this one. `losses` of them end it."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.losses = self.n_started = 0
        self.spans: list[tuple[int, int]] = []

    def start(self) -> None:
        if self.pid is None:
            self.n_started += 1
            self.pid = self.n_started

    def call(
        self, job: Any, is_limited: bool, function: Callable[..., bytes], *arguments: Any
    ) -> bytes:
        self.spans.append(arguments[-1])
        if self.losses:
            self.losses -= 1
            generating._held.clear()
            self.pid = None
            raise WorkerEndedError("ended")
        return function(*arguments, lambda progress: job.report("progress", progress))

    def close(self) -> None:
        generating._held.clear()


@contextmanager
def served(model: Path, *processes: Here, **limits: int) -> Iterator[TestClient]:
    app = create_app(Settings(model=str(model), limits=Limits(**limits)), processes)
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


SHORT = {"n": 3, "seed": 5, "format": "parquet", "labels": True}
LONG = {"n": 2, "seed": 5, "seconds": 7, "task": "film"}


@pytest.fixture
def long(labelling_run: Path) -> dict[str, Any]:
    tasks = gd.load(labelling_run, device="cpu").tasks
    return {**LONG, "task": tasks[0]}


def answers(client: httpx2.Client | TestClient, *requests: dict[str, Any]) -> list[bytes]:
    found = [client.post("/api/generate", json=one) for one in requests]
    assert [one.status_code for one in found] == [200] * len(found), found[-1].text
    return [one.content for one in found]


def test_pieces_of_a_process_are_those_of_the_server(
    start: Start, labelling_run: Path, long: dict[str, Any]
) -> None:
    alone = start(model=str(labelling_run))
    steered = {**long, "n": 1, "seconds": 2, "at": ["1:640,360"], "labels": True}
    requests = (SHORT, long, steered)
    process = Here()
    with served(labelling_run, process) as client:
        assert answers(client, *requests) == answers(alone, *requests)
        assert process.spans[:3] == [(0, 1), (1, 2), (2, 3)]
        # A long window is continued, turn by turn.
        assert len(process.spans) > 3 + long["n"] + 1
        events = client.get("/api/generate/stream", params={"n": 2, "seed": 5})
        assert events.text.count("event: window") == 2
        assert "event: progress" in events.text
        assert len(generating._held) == 1, "requests of jobs that are over are forgotten"


def test_a_piece_whose_process_ends_is_generated_again(
    start: Start, labelling_run: Path, long: dict[str, Any]
) -> None:
    expected = answers(start(model=str(labelling_run)), SHORT, long)
    process = Here()
    with served(labelling_run, process) as client:
        process.losses = MAX_LOST - 1
        assert answers(client, SHORT, long) == expected
        assert process.spans[:MAX_LOST] == [(0, 1)] * MAX_LOST
        assert process.n_started == MAX_LOST
        process.losses = MAX_LOST
        failed = client.post("/api/generate", json=SHORT)
        assert failed.status_code == 500
        assert failed.json() == {"error": INTERNAL}
        assert answers(client, SHORT) == expected[:1], "others go on"


def test_an_order_carries_no_weights(labelling_run: Path) -> None:
    model = gd.load(labelling_run, device="cpu")
    sampling = model.sampling(1, precision="bf16", labels=True)
    list(sampling.pieces())  # leaves a copy of the network behind
    n_weights = sum(one.nbytes for one in model.run.network.parameters())
    assert len(generating._packed(sampling)) < n_weights / 10


def test_changed_weights_are_noticed(labelling_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(labelling_run, folder)
    with served(folder, Here()) as client:
        play: Playground = cast(Any, client.app).state.playground
        play.models.load(play.models.find(None))
        tensors, header = load_tensors(folder / "best.safetensors")
        (folder / "best.safetensors").unlink()
        save_tensors(folder / "best.safetensors", {k: v * 2 for k, v in tensors.items()}, header)
        failed = client.post("/api/generate", json=SHORT)
    assert failed.status_code == 422
    assert "have changed since the server loaded them" in failed.json()["error"]


def test_the_number_of_workers_is_checked() -> None:
    with pytest.raises(GazeError, match="`n_workers` must be 1 or more, not 0"):
        Settings(n_workers=0)


def playing(play: Playground) -> list[int]:
    """The numbers of the processes that generate."""
    return [process.pid for process in play.generators.processes if process.pid is not None]


def ended(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
def test_two_processes_answer_as_one_within_the_limits_and_a_killed_one_is_replaced(
    start: Start, labelling_run: Path
) -> None:
    requests = [{**SHORT, "seed": seed} for seed in range(3)]
    expected = answers(start(model=str(labelling_run)), *requests)
    limits = Limits(max_windows=5000, max_jobs=2)
    settings = Settings(model=str(labelling_run), limits=limits, n_workers=2)
    app = create_app(settings)
    play: Playground = app.state.playground
    endless: dict[str, str | int] = {"n": 5000, "quality": "best"}
    with live_app(app, settings) as url, httpx2.Client(base_url=url, timeout=PATIENCE_S) as client:
        assert answers(client, *requests) == expected
        streams = [client.stream("GET", "/api/generate/stream", params=endless) for _ in range(2)]
        with streams[0] as one, streams[1] as two:
            lines = [stream.iter_lines() for stream in (one, two)]
            for each in lines:
                assert any(line == "event: window" for line in each)
            # Both jobs have a process each, and the queue of all is full.
            first = playing(play)
            assert len(set(first)) == 2
            assert client.post("/api/generate", json=SHORT).status_code == 429
            for pid in first:
                os.kill(pid, signal.SIGKILL)
            for each in lines:
                for _ in range(3):
                    assert any(line == "event: window" for line in each), "both go on"
            second = playing(play)
            assert not set(first) & set(second)
        for _ in range(10 * PATIENCE_S):
            if not play.generation.ids:
                break
            time.sleep(0.1)
        assert answers(client, *requests) == expected
    assert ended([*first, *second])
