"""A fair queue: one thread works for every job in turn, a small batch at a time.

Jobs stand in a ring: who has had a batch goes to its end, so a short job beside a long one waits
for batches, never for the whole other job. The number of jobs is bounded; a job keeps its place
until it is released, so what the queue holds in memory is bounded too.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from gazediffusion.errors import GazeError

log = logging.getLogger("gazediffusion.web")

# (kind, value): started, progress, result, done, or failed with the error.
Hear = Callable[[str, Any], None]
Steps = Generator[Any, None, None]
BROKEN = "something broke inside; the server's own output says what"
CANCELLED = "the job was cancelled"


class BrokenError(Exception):
    """Not the fault of who asked; what it was is in the server's own output."""


class QueueFullError(Exception):
    """As many jobs as are allowed are running or waiting."""


class JobCancelledError(Exception):
    """Raised inside a job that nobody waits for any more."""


class Job:
    """Work done step by step. `hear` is told of it, in the worker's thread.

    ahead: how many jobs were in the queue before it.
    """

    def __init__(self, work: Callable[[Job], Steps], hear: Hear, ahead: int) -> None:
        self.id = secrets.token_hex(8)
        self.steps = work(self)
        self.hear = hear
        self.ahead = ahead
        self.is_started = False
        self.is_cancelled = False
        self.is_over = False

    def require_wanted(self) -> None:
        """Stop here if the job was cancelled; long steps call it now and then."""
        if self.is_cancelled:
            raise JobCancelledError


class JobQueue:
    """At most `max_jobs` jobs, worked for in turn by one thread."""

    def __init__(self, max_jobs: int) -> None:
        self.max_jobs = max_jobs
        self._held: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._held)

    def submit(self, work: Callable[[Job], Steps], hear: Hear) -> Job:
        """Put work into the queue; the caller must release the job in the end."""
        with self._changed:
            if len(self._held) >= self.max_jobs:
                raise QueueFullError
            ahead = sum(not job.is_over for job in self._held.values())
            job = Job(work, hear, ahead)
            self._held[job.id] = job
            self._waiting.append(job)
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._worker.start()
            self._changed.notify()
        return job

    def cancel(self, job_id: str) -> bool:
        """Stop a job as soon as can be; whether there was one of that id."""
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
        """Give the job's place back, done or not."""
        self.cancel(job.id)
        with self._changed:
            self._held.pop(job.id, None)

    def close(self) -> None:
        """Cancel everything and let the worker go."""
        for job_id in list(self._held):
            self.cancel(job_id)
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._worker is not None:
            self._worker.join(timeout=10)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                job = self._waiting.popleft()
            if self._advance(job):
                with self._changed:
                    self._waiting.append(job)

    def _advance(self, job: Job) -> bool:
        """One step of a job; whether there may be more."""
        try:
            job.require_wanted()
            if not job.is_started:
                job.is_started = True
                job.hear("started", None)
            job.hear("result", next(job.steps))
            return True
        except StopIteration:
            self._end(job, "done", None)
        except JobCancelledError:
            self._end(job, "failed", GazeError(CANCELLED))
        except GazeError as error:
            self._end(job, "failed", error)
        except Exception:
            if not job.is_cancelled:
                log.exception("a job broke")
            self._end(job, "failed", BrokenError(BROKEN))
        return False

    def _end(self, job: Job, kind: str, value: Exception | None) -> None:
        job.is_over = True
        job.steps.close()
        job.hear(kind, value)
