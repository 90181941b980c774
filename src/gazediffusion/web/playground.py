"""What the routes share: settings, models, the two queues, and the recording given to `serve`.

Windows are made in one queue, recordings read and compared in another, so that a long evaluation
keeps nobody from generating.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.web.comparing import Real, read_real
from gazediffusion.web.jobs import Job, JobQueue, Steps
from gazediffusion.web.models import Models, Offer
from gazediffusion.web.settings import Settings

if TYPE_CHECKING:
    from gazediffusion.web.orders import Order

T = TypeVar("T")
_LISTEN_S = 0.5


class GoneError(Exception):
    """Who asked has hung up."""


class Playground:
    """The state of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(settings.model)
        self.making = JobQueue(settings.limits.max_jobs)
        self.comparing = JobQueue(settings.limits.max_jobs)
        self._real: dict[tuple[int, float], Real] = {}
        self._reading = threading.Lock()

    def warm_up(self) -> None:
        """Load the default model beside the start, so that the first request need not wait."""

        def load() -> None:
            with contextlib.suppress(GazeError):
                self.models.run(self.models.find(None))

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def close(self) -> None:
        """End all work."""
        self.making.close()
        self.comparing.close()

    def given_real(self, offer: Offer) -> Real:
        """The recording of --real in windows like the model's, read once."""
        path = self.settings.real
        if path is None:
            raise GazeError("no recording was given", remedy="send one, or start serve with --real")
        key = (offer.length, offer.rate_hz)
        with self._reading:
            if key not in self._real:
                self._real[key] = read_real([path], self.settings.screen, offer)
            return self._real[key]

    async def make(self, order: Order, request: Request) -> NDArray[np.float32]:
        """All windows of an order, made in turn with those of others."""
        pieces = [
            value
            async for kind, value in self.followed(self.making, order.pieces, request)
            if kind == "result"
        ]
        return np.concatenate(pieces)

    async def compare(self, function: Callable[[], T], request: Request) -> T:
        """A function's result, computed when its turn comes."""

        def work(job: Job) -> Steps:
            yield function()

        async for kind, value in self.followed(self.comparing, work, request):
            if kind == "result":
                result: T = value
        return result

    async def followed(
        self, queue: JobQueue, work: Callable[[Job], Steps], request: Request
    ) -> AsyncIterator[tuple[str, Any]]:
        """What a job tells while somebody listens; a failed one raises its error."""
        box, hear = mailbox()
        job = queue.submit(work, hear)
        try:
            async for kind, value in told(box, request):
                if kind == "failed":
                    raise value
                yield kind, value
        finally:
            queue.release(job)


def mailbox() -> tuple[asyncio.Queue[tuple[str, Any]], Callable[[str, Any], None]]:
    """A queue of this loop, and a function that puts into it from any thread."""
    box: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def hear(kind: str, value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(box.put_nowait, (kind, value))

    return box, hear


async def told(
    box: asyncio.Queue[tuple[str, Any]], request: Request
) -> AsyncIterator[tuple[str, Any]]:
    """What comes into the box, until the job is over or its reader gone."""
    while True:
        try:
            kind, value = await asyncio.wait_for(box.get(), _LISTEN_S)
        except TimeoutError:
            if await request.is_disconnected():
                raise GoneError from None
            continue
        yield kind, value
        if kind in ("done", "failed"):
            return
