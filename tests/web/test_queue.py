"""The queue: jobs alternate and share batches, places are bounded, cancelled jobs free theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
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
from gazediffusion.web.state import KeptComparisons
from tests.web.conftest import PATIENCE_S, live_server, read_events, wait_for


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
        assert self.over.wait(PATIENCE_S)
        return self.messages

    @property
    def failure(self) -> tuple[type, str]:
        kind, error = self.wait()[-1]
        assert kind == "failed"
        return type(error), str(error)


@pytest.fixture
def queue() -> Iterator[JobQueue]:
    made = JobQueue(max_jobs=3)
    yield made
    made.close()


def counting(n: int, log: list[str], name: str, gate: threading.Event | None = None) -> Any:
    def work(job: Job) -> Steps:
        for number in range(n):
            if gate is not None:
                assert gate.wait(PATIENCE_S)
            log.append(name)
            yield number

    return work


def test_two_jobs_alternate_and_report_their_steps_in_order(queue: JobQueue) -> None:
    log: list[str] = []
    gate = threading.Event()
    long, short = Received(), Received()
    assert queue.submit(counting(6, log, "long", gate), long).ahead == 0
    assert queue.submit(counting(2, log, "short", gate), short).ahead == 1
    gate.set()
    results = [("result", 0), ("result", 1)]
    assert short.wait() == [("started", None), *results, ("done", None)]
    long.wait()
    # The short one is done after four steps, not after the six of the long one.
    assert sorted(log[:4]) == ["long", "long", "short", "short"]
    assert log[4:] == ["long"] * 4


class Shared:
    """What a job of some steps shares with others; `batches` are the jobs of each batch."""

    def __init__(self, job: Job, kind: str, n: int, batches: list[list[str]]) -> None:
        self.kind, self.left, self.batches = kind, n, batches
        self.job, self.name = job, f"{kind}{n}"

    def compute(self, shares: Sequence[Shared]) -> None:
        self.batches.append([one.name for one in shares])
        if self.kind == "broken":
            raise GazeError("no batch")

    def steps(self) -> Steps:
        while self.job.share is not None:
            self.left -= 1
            if not self.left:
                self.job.share = None
            yield self.left


def sharing(kind: str, n: int, batches: list[list[str]]) -> Callable[[Job], Steps]:
    def work(job: Job) -> Steps:
        job.share = shared = Shared(job, kind, n, batches)
        return shared.steps()

    return work


def test_steps_of_one_kind_are_computed_together_and_others_have_their_turns() -> None:
    queue = JobQueue(max_jobs=8)
    gate, log = threading.Event(), list[str]()
    batches: list[list[str]] = []
    received = [Received() for _ in range(6)]
    works = [
        counting(1, [], "first", gate),  # until all others wait
        *(sharing("a", n, batches) for n in (1, 2)),
        sharing("b", 1, batches),
        counting(2, log, "alone"),
        sharing("broken", 1, batches),
    ]
    jobs = [queue.submit(work, one) for work, one in zip(works, received, strict=True)]
    gate.set()
    for one in received[:5]:
        assert one.wait()[-1] == ("done", None)
    assert received[5].failure == (GazeError, "no batch")
    assert batches == [["a1", "a2"], ["b1"], ["broken1"], ["a2"]]
    assert [job.is_over for job in jobs] == [True] * 6
    queue.close()


def test_a_step_that_ends_its_turns_lets_others_go_on(queue: JobQueue) -> None:
    log: list[str] = []
    gate = threading.Event()

    def long(job: Job) -> Steps:
        def work(end_turn: Callable[[], None]) -> Any:
            assert gate.wait(PATIENCE_S)
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


def test_places_are_bounded_and_a_waiting_job_is_cancelled_at_once(queue: JobQueue) -> None:
    gate = threading.Event()
    first, waiting = Received(), Received()
    queue.submit(counting(1, [], "a", gate), first)
    jobs = [queue.submit(counting(1, [], "b"), one) for one in (waiting, Received())]
    with pytest.raises(QueueFullError):
        queue.submit(counting(1, [], "c"), Received())
    assert queue.cancel(jobs[0].id)
    assert waiting.failure == (GazeError, CANCELLED)
    assert ("started", None) not in waiting.messages
    assert not queue.cancel("nobody")
    queue.release(jobs[0])
    last = Received()
    queue.submit(counting(1, [], "c"), last)
    gate.set()
    assert last.wait()[-1] == ("done", None)


def test_a_running_job_stops_in_the_middle_of_a_step(queue: JobQueue) -> None:
    received, is_running = Received(), threading.Event()

    def work(job: Job) -> Steps:
        is_running.set()
        while not job.is_over:
            job.require_active()
            time.sleep(0.001)
        yield

    job = queue.submit(work, received)
    assert is_running.wait(PATIENCE_S)
    queue.cancel(job.id)
    assert received.failure == (GazeError, CANCELLED)
    after = Received()
    queue.submit(counting(1, [], "b"), after)
    assert after.wait()[-1] == ("done", None)


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
    assert invalid.failure == (GazeError, "no such task")
    kind, line = defect.failure
    assert kind is InternalError
    assert "secret" not in line
    assert "secret" in caplog.text


def test_comparisons_are_kept_for_a_while_and_the_oldest_leave_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    comparisons = KeptComparisons()
    monkeypatch.setattr(comparisons, "max_number", 3)
    monkeypatch.setattr(comparisons, "max_bytes", 10)
    names = [str(comparisons.add(b"1234")) for _ in range(4)]
    assert [comparisons.find(name) for name in names] == [None, None, b"1234", b"1234"]
    assert comparisons.add(b"x" * 11) is None
    monkeypatch.setattr(comparisons, "max_age_s", -1.0)
    assert comparisons.find(names[3]) is None


def test_jobs_of_a_server_alternate_are_bounded_and_end_with_their_clients(
    run_folder: Path,
) -> None:
    post = partial(httpx2.post, timeout=PATIENCE_S)
    limits = Limits(max_windows=4000, max_jobs=2)
    with live_server(Settings(model=str(run_folder), limits=limits)) as url:
        opened = partial(
            httpx2.stream,
            *("GET", f"{url}/api/generate/stream?n=4000&quality=best"),
            timeout=PATIENCE_S,
        )

        def has_a_place() -> bool:
            return post(f"{url}/api/generate", json={"n": 1}).status_code == 200

        with opened() as long:
            events = read_events(long.iter_lines())
            job = next(events)[1]["job"]
            assert next(name for name, _ in events if name == "window")
            short = httpx2.get(f"{url}/api/generate/stream?n=2", timeout=PATIENCE_S)
            assert "event: done" in short.text
            assert next(name for name, _ in events if name == "window"), "the long one still runs"
            with opened() as second:
                others = read_events(second.iter_lines())
                assert next(others)[0] == "queued"
                full = post(f"{url}/api/generate", json={"n": 1})
                assert full.status_code == 429
                assert int(full.headers["retry-after"]) > 0
                assert "2 jobs are running or waiting" in full.json()["error"]
                assert post(f"{url}/api/jobs/{job}/cancel").status_code == 204
                assert list(events)[-1] == ("failed", {"error": CANCELLED})
        wait_for(has_a_place)
        assert post(f"{url}/api/jobs/{job}/cancel").status_code == 404
        for _ in range(3):  # more than there are places
            with opened() as response:
                assert next(
                    name for name, _ in read_events(response.iter_lines()) if name == "window"
                )
        wait_for(has_a_place)
