"""A fair queue of jobs, and its results as server-sent events.

One thread works for all jobs in turn, a small step at a time, so that a short job beside a long one
waits for steps, not for the end of the long one. Windows of several jobs that one network can
compute together share a step. The number of jobs is bounded, and a job keeps its place until it is
released, so that the memory of waiting results is bounded too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, Protocol

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gazediffusion.errors import GazeError

log = logging.getLogger("gazediffusion.web")

# (kind, value): started, progress, result, done, or failed with the error.
Listener = Callable[[str, Any], None]
Messages = asyncio.Queue[tuple[str, Any]]
# The results of a job; after None it is another job's turn as well.
Steps = Generator[Any, None, None]
INTERNAL = "internal error; the server's own output describes it"
CANCELLED = "the job was cancelled"
HEADERS = {"X-Accel-Buffering": "no"}  # A reverse proxy passes each event on at once.
_POLL_S, _COUNT_EVERY_S = 0.5, 0.1
_MOST_TOGETHER = 16  # jobs that share a step


class InternalError(Exception):
    """A defect of the server; its own output describes it."""


class QueueFullError(Exception):
    """As many jobs as are allowed are running or waiting."""


class JobCancelledError(Exception):
    """Raised inside a job that was cancelled."""


class DisconnectedError(Exception):
    """The client has closed the connection."""


class Share(Protocol):
    """What a job needs for its next step, if it can be computed with that of other jobs."""

    @property
    def kind(self) -> Hashable:
        """Equal for what is computed together."""
        ...

    def compute(self, shares: Sequence[Any], /) -> None:
        """Compute what this and the others of its kind need."""
        ...


class Job:
    """Work done step by step. `report` calls its listener, in the thread of the queue.

    ahead: how many jobs were in the queue before it. share: set by the work.
    """

    def __init__(self, work: Callable[[Job], Steps], listener: Listener, ahead: int) -> None:
        self.id = secrets.token_hex(8)
        self.report = listener
        self.ahead = ahead
        self.is_started = False
        self.is_cancelled = False
        self.is_over = False
        self.share: Share | None = None
        self._counted = 0.0
        self.steps = work(self)

    def count(self, done: float, n: float) -> None:
        """Report how many windows of n are done, a few times a second and at the end."""
        now = time.monotonic()
        if done >= n or now - self._counted > _COUNT_EVERY_S:
            self._counted = now
            self.report("progress", done)

    def require_active(self) -> None:
        """Stop here if the job was cancelled; long steps call it repeatedly."""
        if self.is_cancelled:
            raise JobCancelledError


class JobQueue:
    """At most `max_jobs` jobs, worked for in turn by one thread."""

    def __init__(self, max_jobs: int) -> None:
        self.max_jobs = max_jobs
        self._held: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._is_closed = False

    @property
    def n_active(self) -> int:
        """How many jobs are running or waiting."""
        return sum(not job.is_over for job in list(self._held.values()))

    def submit(self, work: Callable[[Job], Steps], listener: Listener) -> Job:
        """Put work into the queue; the caller must release the job in the end."""
        with self._changed:
            if len(self._held) >= self.max_jobs:
                raise QueueFullError
            job = Job(work, listener, self.n_active)
            self._held[job.id] = job
            self._waiting.append(job)
            if self._thread.ident is None:
                self._thread.start()
            self._changed.notify()
        return job

    def cancel(self, job_id: str) -> bool:
        """Stop a job as soon as possible; whether there is one of that id."""
        with self._changed:
            job = self._held.get(job_id)
            if job is None:
                return False
            job.is_cancelled = True
            is_waiting = job in self._waiting
            if is_waiting:
                self._waiting.remove(job)
        if is_waiting:
            self._end(job, "failed", GazeError(CANCELLED))
        return True

    def release(self, job: Job) -> None:
        """Free the job's place, done or not."""
        self.cancel(job.id)
        with self._changed:
            self._held.pop(job.id, None)

    def close(self) -> None:
        """Cancel all jobs and end the thread."""
        for job_id in list(self._held):
            self.cancel(job_id)
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._waiting)
                if self._is_closed:
                    return
                jobs = self._next()
                self._waiting = deque(job for job in self._waiting if job not in jobs)
            error = self._computed(jobs)
            remaining = [job for job in jobs if self._advance(job, error)]
            with self._changed:
                self._waiting.extend(remaining)

    def _next(self) -> list[Job]:
        """The first job that waits, and those whose next steps are computed with its own."""
        first = self._waiting[0]
        if first.share is None:
            return [first]
        kind = first.share.kind
        alike = (job for job in self._waiting if job.share is not None and job.share.kind == kind)
        return list(islice(alike, _MOST_TOGETHER))

    def _computed(self, jobs: Sequence[Job]) -> Exception | None:
        """Compute what jobs share; gives the error where that failed."""
        for job in jobs:
            if not job.is_started:
                job.is_started = True
                job.report("started", None)
        try:
            if jobs[0].share is not None:
                jobs[0].share.compute([job.share for job in jobs])
        except Exception as error:
            return error
        return None

    def _advance(self, job: Job, error: Exception | None) -> bool:
        """One step of a job, into which an error is thrown; whether there may be more."""
        try:
            job.require_active()
            result = next(job.steps) if error is None else job.steps.throw(error)
            if result is not None:
                job.report("result", result)
            return True
        except StopIteration:
            self._end(job, "done", None)
        except JobCancelledError:
            self._end(job, "failed", GazeError(CANCELLED))
        except GazeError as invalid:
            self._end(job, "failed", invalid)
        except Exception:
            if not job.is_cancelled:
                log.exception("a job failed")
            self._end(job, "failed", InternalError(INTERNAL))
        return False

    def _end(self, job: Job, kind: str, value: Exception | None) -> None:
        job.is_over = True
        job.steps.close()
        job.report(kind, value)


def in_turns(work: Callable[[Callable[[], None]], Iterable[Any]]) -> Steps:
    """The results of work that can end its turn between results.

    work: called with a function that ends a turn and returns at the next. It runs in a thread of
    its own and only while it has its turn; a job that is closed raises there.
    """
    turns: queue.SimpleQueue[bool] = queue.SimpleQueue()
    found: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def pass_on(kind: str, value: Any = None) -> None:
        found.put((kind, value))
        if not turns.get():
            raise JobCancelledError

    def run() -> None:
        try:
            if not turns.get():
                return
            for result in work(lambda: pass_on("turn")):
                pass_on("turn", result)
            found.put(("end", None))
        except BaseException as error:
            found.put(("error", error))

    thread = threading.Thread(target=run, name="turns", daemon=True)
    thread.start()
    try:
        while True:
            turns.put(True)
            kind, value = found.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value
    finally:
        turns.put(False)
        thread.join()


def mailbox() -> tuple[Messages, Listener]:
    """A queue of this event loop, and a listener that fills it from any thread."""
    messages: Messages = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def listener(kind: str, value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the client is gone
            loop.call_soon_threadsafe(messages.put_nowait, (kind, value))

    return messages, listener


async def received(messages: Messages, request: Request) -> AsyncIterator[tuple[str, Any]]:
    """The messages of a job until it is over or its client disconnects."""
    while True:
        try:
            kind, value = await asyncio.wait_for(messages.get(), _POLL_S)
        except TimeoutError:
            if await request.is_disconnected():
                raise DisconnectedError from None
            continue
        yield kind, value
        if kind in ("done", "failed"):
            return


async def followed(
    jobs: JobQueue, work: Callable[[Job], Steps], request: Request
) -> AsyncIterator[tuple[str, Any]]:
    """The messages of a new job while its client is connected; a failed one raises its error."""
    messages, listener = mailbox()
    job = jobs.submit(work, listener)
    try:
        async for kind, value in received(messages, request):
            if kind == "failed":
                raise value
            yield kind, value
    finally:
        jobs.release(job)


class ReleasingResponse(StreamingResponse):
    """A stream that releases something when it has ended, however it ended."""

    def __init__(self, content: Any, release: Callable[[], Any], **more: Any) -> None:
        super().__init__(content, **more)
        self.release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end or until the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        except DisconnectedError:
            pass
        finally:
            self.release()


def event(name: str, data: dict[str, Any]) -> str:
    """One event; its data is JSON in one line."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def event_stream(
    queued: dict[str, Any],
    messages: AsyncIterator[tuple[str, Any]],
    release: Callable[[], Any],
    sent: Callable[[str, Any], str] = event,
) -> ReleasingResponse:
    """Server-sent events as a response: queued, then those of messages; the last may be failed.

    sent: the events of a message that is none of a failure.
    """

    async def events() -> AsyncIterator[str]:
        yield event("queued", queued)
        async for kind, value in messages:
            failed = kind == "failed"
            yield event(kind, {"error": str(value)}) if failed else sent(kind, value)

    return ReleasingResponse(events(), release, media_type="text/event-stream", headers=HEADERS)


def event_schema(*names: str) -> dict[str, Any]:
    """The response of a stream of these events, for its OpenAPI description."""
    schema = {
        "type": "object",
        "description": "One event; its data is JSON in one line.",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": list(names)},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    }
    example = {"event": "queued", "data": '{"job": "5f0c6f1c9d1b2a3e", "ahead": 0}'}
    content = {"text/event-stream": {"schema": schema, "example": example}}
    return {"description": "Server-sent events", "content": content}
