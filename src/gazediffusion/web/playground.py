"""The state that the routes share: settings, models, two queues, and the recordings of `serve`.

Windows are generated in one queue; recordings are read and compared in another, so that a long
evaluation does not delay generation.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import Depends, Request

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.comparison import RealWindows, read_real
from gazediffusion.web.jobs import Job, JobQueue, Listener, Steps
from gazediffusion.web.models import Models, ServedModel
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.settings import Settings

T = TypeVar("T")
Messages = asyncio.Queue[tuple[str, Any]]
_POLL_S = 0.5


class DisconnectedError(Exception):
    """The client has closed the connection."""


class Playground:
    """The state of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(settings.model)
        self.generation = JobQueue(settings.limits.max_jobs)
        self.comparison = JobQueue(settings.limits.max_jobs)
        self._real: dict[tuple[int, float], RealWindows] = {}
        self._reading = threading.Lock()

    def warm_up(self) -> None:
        """Load the default model in the background, so that the first request need not wait."""

        def load() -> None:
            with contextlib.suppress(GazeError):
                self.models.load(self.models.find(None))

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def close(self) -> None:
        """End all work."""
        self.generation.close()
        self.comparison.close()

    def served_real(self, model: ServedModel) -> RealWindows:
        """The recordings that the server was started with, in windows of the model's length."""
        path = self.settings.real
        if path is None:
            raise GazeError(
                "no recording was given", remedy="send `files`, or start the server with `real`"
            )
        key = (model.about.length, model.about.rate_hz)
        with self._reading:
            if key not in self._real:
                self._real[key] = read_real([path], self.settings.screen, model.about)
            return self._real[key]

    async def generate(self, requested: GenerationRequest, request: Request) -> gd.Windows:
        """All windows of a request, generated in turn with those of others."""
        pieces = [
            value
            async for kind, value in self._followed(self.generation, requested.pieces, request)
            if kind == "result"
        ]
        return requested.sampling.windows(np.concatenate(pieces))

    async def compute(self, function: Callable[[], T], request: Request) -> T:
        """The result of a function, computed in the queue of comparisons."""

        def work(job: Job) -> Steps:
            yield function()

        async for kind, value in self._followed(self.comparison, work, request):
            if kind == "result":
                result: T = value
        return result

    async def _followed(
        self, queue: JobQueue, work: Callable[[Job], Steps], request: Request
    ) -> AsyncIterator[tuple[str, Any]]:
        """The messages of a job while the client is connected; a failed job raises its error."""
        messages, listener = mailbox()
        job = queue.submit(work, listener)
        try:
            async for kind, value in received(messages, request):
                if kind == "failed":
                    raise value
                yield kind, value
        finally:
            queue.release(job)


def _of_request(request: Request) -> Playground:
    found: Playground = request.app.state.playground
    return found


Play = Annotated[Playground, Depends(_of_request)]


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
