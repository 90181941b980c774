"""The queue: jobs alternate, places are bounded, cancelled jobs free theirs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gazediffusion.errors import GazeError
from gazediffusion.web.queue import (
    CANCELLED,
    InternalError,
    Job,
    JobQueue,
    QueueFullError,
    Steps,
    in_turns,
)
from gazediffusion.web.settings import Limits, Settings
from tests.web.conftest import PATIENCE_S, live_server


class Received:
    """The messages of a job, and waiting for its end."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Any]] = []
        self.over = threading.Event()

    def __call__(self, kind: str, value: Any) -> None:
        self.messages.append((kind, value))
        if kind in ("done", "failed"):
            self.over.set()

    def wait(self) -> list[tuple[str, Any]]:
        assert self.over.wait(10)
        return self.messages


@pytest.fixture
def queue() -> Any:
    made = JobQueue(max_jobs=3)
    yield made
    made.close()


def counting(n: int, log: list[str], name: str, gate: threading.Event | None = None) -> Any:
    def work(job: Job) -> Steps:
        for number in range(n):
            if gate is not None:
                assert gate.wait(10)
            log.append(name)
            yield number

    return work


def test_a_job_reports_its_steps_in_order(queue: JobQueue) -> None:
    received = Received()
    queue.submit(counting(3, [], "a"), received)
    results = [("result", 0), ("result", 1), ("result", 2)]
    assert received.wait() == [("started", None), *results, ("done", None)]


def test_two_jobs_alternate(queue: JobQueue) -> None:
    log: list[str] = []
    gate = threading.Event()
    long, short = Received(), Received()
    assert queue.submit(counting(6, log, "long", gate), long).ahead == 0
    assert queue.submit(counting(2, log, "short", gate), short).ahead == 1
    gate.set()
    long.wait(), short.wait()
    # The short one is done after four batches, not after the six of the long one.
    assert sorted(log[:4]) == ["long", "long", "short", "short"]
    assert log[4:] == ["long"] * 4


def test_a_step_that_ends_its_turns_lets_others_go_on(queue: JobQueue) -> None:
    log: list[str] = []
    gate = threading.Event()

    def long(job: Job) -> Steps:
        def work(end_turn: Callable[[], None]) -> Any:
            assert gate.wait(10)
            for _ in range(6):
                log.append("long")
                end_turn()
            yield "whole"

        yield from in_turns(work)

    received, short = Received(), Received()
    queue.submit(long, received)
    queue.submit(counting(2, log, "short", gate), short)
    gate.set()
    assert received.wait() == [("started", None), ("result", "whole"), ("done", None)]
    short.wait()
    assert sorted(log[:4]) == ["long", "long", "short", "short"]


def test_two_threads_work_for_two_jobs_at_once_and_a_bound_job_keeps_its_thread() -> None:
    both = threading.Barrier(2, timeout=10)
    threads: list[int] = []

    def meeting(job: Job) -> Steps:
        both.wait()  # passed only where both jobs are worked for at the same time
        yield job.thread

    def bound(job: Job) -> Steps:
        for _ in range(20):
            threads.append(job.thread)
            job.is_bound = True
            yield None

    queue = JobQueue(max_jobs=3, n_threads=2)
    received = [Received() for _ in range(3)]
    try:
        jobs = [queue.submit(meeting, one) for one in received[:2]]
        assert {one.wait()[1] for one in received[:2]} == {("result", 0), ("result", 1)}
        for job in jobs:
            queue.release(job)
        log: list[str] = []
        queue.submit(bound, received[2])
        others = [Received() for _ in range(2)]
        for one in others:
            queue.submit(counting(20, log, "other"), one)
        for one in (received[2], *others):
            one.wait()
        with pytest.raises(QueueFullError):
            queue.submit(meeting, Received())
    finally:
        queue.close()
    assert len(threads) == 20
    assert len(set(threads)) == 1


def test_work_in_turns_ends_where_it_is_closed_and_raises_its_own_errors() -> None:
    ended: list[str] = []

    def work(end_turn: Callable[[], None]) -> Any:
        try:
            end_turn()
            yield 1
        finally:
            ended.append(threading.current_thread().name)

    steps = in_turns(work)
    assert next(steps) is None
    assert ended == []
    steps.close()
    assert ended == ["turns"]
    assert [one.name for one in threading.enumerate()].count("turns") == 0

    def broken(end_turn: Callable[[], None]) -> Any:
        yield 1
        raise GazeError("no more")

    steps = in_turns(broken)
    assert next(steps) == 1
    with pytest.raises(GazeError, match="no more"):
        next(steps)


def test_no_more_jobs_than_allowed_are_accepted_until_one_is_released(queue: JobQueue) -> None:
    gate = threading.Event()
    jobs = [queue.submit(counting(1, [], "a", gate), Received()) for _ in range(3)]
    with pytest.raises(QueueFullError):
        queue.submit(counting(1, [], "b"), Received())
    queue.release(jobs[2])
    received = Received()
    queue.submit(counting(1, [], "b"), received)
    gate.set()
    assert received.wait()[-1] == ("done", None)


def failure_of(received: Received) -> tuple[type, str]:
    kind, error = received.wait()[-1]
    assert kind == "failed"
    return type(error), str(error)


def test_a_waiting_job_is_cancelled_at_once(queue: JobQueue) -> None:
    gate = threading.Event()
    first, second = Received(), Received()
    queue.submit(counting(1, [], "a", gate), first)
    waiting = queue.submit(counting(1, [], "b"), second)
    assert queue.cancel(waiting.id)
    assert failure_of(second) == (GazeError, CANCELLED)
    assert ("started", None) not in second.messages
    gate.set()
    first.wait()


def test_a_running_job_stops_in_the_middle_of_a_step(queue: JobQueue) -> None:
    received, is_running = Received(), threading.Event()

    def work(job: Job) -> Steps:
        is_running.set()
        while not job.is_over:
            job.require_active()
            time.sleep(0.001)
        yield

    job = queue.submit(work, received)
    assert is_running.wait(10)
    queue.cancel(job.id)
    assert failure_of(received) == (GazeError, CANCELLED)
    after = Received()
    queue.submit(counting(1, [], "b"), after)
    assert after.wait()[-1] == ("done", None)


def test_an_unknown_job_cannot_be_cancelled(queue: JobQueue) -> None:
    assert not queue.cancel("nobody")


def test_invalid_input_is_reported_and_a_defect_is_not_shown(
    queue: JobQueue, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(error: Exception) -> Callable[[Job], Steps]:
        def work(job: Job) -> Steps:
            if error:
                raise error
            yield

        return work

    invalid, defect = Received(), Received()
    queue.submit(failing(GazeError("no such task")), invalid)
    queue.submit(failing(ZeroDivisionError("secret")), defect)
    assert failure_of(invalid) == (GazeError, "no such task")
    kind, line = failure_of(defect)
    assert kind is InternalError
    assert "secret" not in line
    assert "secret" in caplog.text


get, post = partial(httpx2.get, timeout=PATIENCE_S), partial(httpx2.post, timeout=PATIENCE_S)
opened = partial(httpx2.stream, "GET", timeout=PATIENCE_S)


def read_events(response: httpx2.Response) -> Any:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.fixture
def url(run_folder: Path) -> Any:
    limits = Limits(max_windows=4000, max_jobs=2)
    with live_server(Settings(model=str(run_folder), limits=limits)) as address:
        yield address


def test_a_short_job_is_done_while_a_long_one_runs(url: str) -> None:
    with opened(f"{url}/api/generate/stream?n=4000&quality=best") as long:
        events = read_events(long)
        assert next(name for name, _ in events if name == "window")
        response = get(f"{url}/api/generate/stream?n=2")
        assert "event: done" in response.text
        assert next(name for name, _ in events if name == "window"), "the long one still runs"


def test_cancelling_ends_the_stream_and_frees_the_place(url: str) -> None:
    stream = f"{url}/api/generate/stream?n=4000&quality=best"
    with opened(stream) as first, opened(stream) as second:
        streams = [read_events(one) for one in (first, second)]
        jobs = [next(events)[1]["job"] for events in streams]
        full = post(f"{url}/api/generate", json={"n": 1})
        assert full.status_code == 429
        assert int(full.headers["retry-after"]) > 0
        assert "2 jobs are running or waiting" in full.json()["error"]
        for job in jobs:
            assert post(f"{url}/api/jobs/{job}/cancel").status_code == 204
        *_, (name, data) = streams[0]
        assert (name, data) == ("failed", {"error": CANCELLED})
    for _ in range(10 * PATIENCE_S):
        if post(f"{url}/api/generate", json={"n": 1}).status_code == 200:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the places were not freed")
    assert post(f"{url}/api/jobs/{jobs[0]}/cancel").status_code == 404


def test_disconnecting_ends_the_job(url: str) -> None:
    stream = f"{url}/api/generate/stream?n=4000&quality=best"
    for _ in range(3):  # more than there are places
        with opened(stream) as response:
            assert next(name for name, _ in read_events(response) if name == "window")
    for _ in range(10 * PATIENCE_S):
        if post(f"{url}/api/generate", json={"n": 1}).status_code == 200:
            return
        time.sleep(0.1)
    pytest.fail("the places were not freed")
