"""A fair queue: threads work for all jobs in turn, a small batch at a time.

After a batch, a job goes to the end of the queue. A short job beside a long one therefore waits
for batches, not for the end of the long one. The number of jobs is bounded. A job keeps its place
until it is released, so that the memory of waiting results is bounded too. With several threads, as
many jobs are worked for at the same time, each by one thread.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

from gazediffusion.errors import GazeError

log = logging.getLogger("gazediffusion.web")

# (kind, value): started, progress, result, done, or failed with the error.
Listener = Callable[[str, Any], None]
# The results of a job; after None it is another job's turn as well.
Steps = Generator[Any, None, None]
INTERNAL = "internal error; the server's own output describes it"
CANCELLED = "the job was cancelled"


class InternalError(Exception):
    """A defect of the server; its own output describes it."""


class QueueFullError(Exception):
    """As many jobs as are allowed are running or waiting."""


class JobCancelledError(Exception):
    """Raised inside a job that was cancelled."""


class Followed(Protocol):
    """What work is done for: a job of the queue, or what stands for it elsewhere."""

    def report(self, kind: str, value: Any, /) -> None:
        """Receive a message, as `progress`."""
        ...

    def require_active(self) -> None:
        """Raise where the work is to end."""
        ...


class Job:
    """Work done step by step. `report` calls its listener, in the worker's thread.

    ahead: how many jobs were in the queue before it. thread: the number of the one that works for
    it; is_bound: whether no other may.
    """

    def __init__(self, work: Callable[[Job], Steps], listener: Listener, ahead: int) -> None:
        self.id = secrets.token_hex(8)
        self.steps = work(self)
        self.report = listener
        self.ahead = ahead
        self.thread = 0
        self.is_bound = False
        self.is_started = False
        self.is_cancelled = False
        self.is_over = False

    def require_active(self) -> None:
        """Stop here if the job was cancelled; long steps call it repeatedly."""
        if self.is_cancelled:
            raise JobCancelledError


class JobQueue:
    """At most `max_jobs` jobs, worked for in turn by `n_threads` threads."""

    def __init__(self, max_jobs: int, n_threads: int = 1) -> None:
        self.max_jobs = max_jobs
        self.n_threads = n_threads
        self._held: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    @property
    def ids(self) -> list[str]:
        """Of all jobs that have a place."""
        return list(self._held)

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
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._work, args=(number,), name="jobs", daemon=True)
                    for number in range(self.n_threads)
                ]
                for thread in self._threads:
                    thread.start()
            self._changed.notify_all()
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
        """Cancel all jobs and end the threads."""
        for job_id in list(self._held):
            self.cancel(job_id)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=10)

    def _work(self, thread: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or self._next(thread) is not None)
                job = self._next(thread)
                if self._is_closed or job is None:
                    return
                self._waiting.remove(job)
                job.thread = thread
            if self._advance(job):
                with self._changed:
                    self._waiting.append(job)
                    self._changed.notify_all()

    def _next(self, thread: int) -> Job | None:
        """The first job that waits and that this thread may work for."""
        return next(
            (job for job in self._waiting if not job.is_bound or job.thread == thread), None
        )

    def _advance(self, job: Job) -> bool:
        """One step of a job; whether there may be more."""
        try:
            job.require_active()
            if not job.is_started:
                job.is_started = True
                job.report("started", None)
            result = next(job.steps)
            if result is not None:
                job.report("result", result)
            return True
        except StopIteration:
            self._end(job, "done", None)
        except JobCancelledError:
            self._end(job, "failed", GazeError(CANCELLED))
        except GazeError as error:
            self._end(job, "failed", error)
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
