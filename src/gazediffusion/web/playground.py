"""The state that the routes share: settings, models, queues, workers, recordings of `serve`.

Windows are generated in one queue, in the server or by processes beside it. Recordings are read and
compared in another, by worker processes, so that a long evaluation does not delay generation. In a
third they are filled, labelled, augmented and scored, by workers with a model. Queues, limits and
results are those of this one process, however many work for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web import comparison, generating, recordings, steering
from gazediffusion.web.bounds import MAX_EXPANSION
from gazediffusion.web.generating import Generating, Generators
from gazediffusion.web.jobs import Job, JobQueue, Listener, Steps
from gazediffusion.web.kept import KeptComparisons
from gazediffusion.web.models import Models, ServedModel
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.settings import Settings
from gazediffusion.web.uploads import Upload
from gazediffusion.web.worker import PREFIX, Report, Worker

Messages = asyncio.Queue[tuple[str, Any]]
_POLL_S = 0.5


def _nothing(progress: dict[str, Any]) -> None:
    pass


class DisconnectedError(Exception):
    """The client has closed the connection."""


class Playground:
    """The state of one server.

    processes: that generate windows; None is those of the settings.
    """

    def __init__(self, settings: Settings, processes: Sequence[Generating] | None = None) -> None:
        self.settings = settings
        self.models = Models(settings.model)
        limits, n = settings.limits, settings.n_workers
        if processes is None:
            # One is the server itself.
            made = n if n > 1 else 0
            processes = [Worker(limits, generating.MODULES, None) for _ in range(made)]
        self.generation = JobQueue(limits.max_jobs, len(processes) or 1)
        self.generators = Generators(self.generation, processes)
        self.comparison = JobQueue(limits.max_jobs, n)
        self.recordings = JobQueue(limits.max_jobs, n)
        # One for each thread of a queue; started at its first call.
        self.workers = [Worker(limits) for _ in range(n)]
        self.model_workers = [
            Worker(limits, recordings.MODULES, recordings.OWN_MB) for _ in range(n)
        ]
        self.comparisons = KeptComparisons()
        self.streams: dict[str, asyncio.Task[None]] = {}
        self._real: dict[str, Path] = {}
        self._reading = asyncio.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start_processes(self) -> None:
        """Start the processes that nearly every use needs, while the page is opened."""
        self.workers[0].start()
        self.generators.start()

    def warm_up(self) -> None:
        """Load the default model in the background, so that the first request need not wait."""

        def load() -> None:
            with contextlib.suppress(GazeError):
                self.models.load(self.models.find(None))

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def close(self) -> None:
        """End all work."""
        self.generators.close()
        for worker in (*self.workers, *self.model_workers):
            worker.close()
        self.generation.close()
        self.comparison.close()
        self.recordings.close()
        if self._folder is not None:
            self._folder.cleanup()

    def cancel(self, job: str) -> bool:
        """Cancel the work of a stream; whether there is one of that id."""
        task = self.streams.get(job)
        if task is None:
            return self.generation.cancel(job)
        task.cancel()
        return True

    @property
    def max_bytes(self) -> int:
        """To how much a file of an upload may expand."""
        return self.settings.limits.max_upload_bytes * MAX_EXPANSION

    async def read(
        self, upload: Upload, model: ServedModel, request: Request, report: Report
    ) -> Path:
        """The windows of an upload, of the model's length, in a file of the worker."""
        given = (upload.source, upload.settings, *_cut(model), upload.windows, self.max_bytes)
        with upload.naming_errors():
            await self.compute(request, report, True, comparison.read, *given)
        return upload.windows

    async def read_table(
        self, kind: str, upload: Upload, screen: gd.Screen, request: Request
    ) -> bytes:
        """The scanpaths or targets of an upload, as `steering.read_table` gives them."""
        place = {name: upload.settings.get(name) for name in ("unit", "origin")}
        given = (kind, upload.source, screen, place, self.max_bytes)
        with upload.naming_errors():
            return await self.compute(request, _nothing, True, steering.read_table, *given)

    async def read_style(self, upload: Upload, model: ServedModel, request: Request) -> gd.Windows:
        """The windows of an upload in whose style others are to be generated."""
        kept = upload.windows.with_suffix(".safetensors")
        given = (upload.source, upload.settings, *_cut(model), kept, self.max_bytes)
        with upload.naming_errors():
            await self.compute(request, _nothing, True, steering.read_style, *given)
        return await asyncio.to_thread(gd.Windows.load, kept)

    async def served_real(self, model: ServedModel, request: Request, report: Report) -> Path:
        """The recordings that the server was started with, in windows of the model's length."""
        path = self.settings.real
        if path is None:
            raise GazeError(
                "no recording was given", remedy="send `files`, or start the server with `real`"
            )
        key = f"{model.about.length}-{model.about.rate_hz:g}"
        async with self._reading:
            if key not in self._real:
                if self._folder is None:
                    self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
                kept = Path(self._folder.name) / key
                given = (path, dict(self.settings.reading), *_cut(model), kept, None)
                await self.compute(request, report, False, comparison.read, *given)
                self._real[key] = kept
            return self._real[key]

    def pieces(self, requested: GenerationRequest, job: Job) -> Steps:
        """The pieces of a request, generated in the server or by its processes."""
        if not self.generators.processes:
            return requested.pieces(job)
        return self.generators.pieces(requested.served.about.source, requested.sampling, job)

    async def generate(
        self,
        requested: GenerationRequest,
        request: Request,
        report: Report = _nothing,
    ) -> gd.Windows:
        """All windows of a request, generated in turn with those of others."""
        pieces = []
        work = partial(self.pieces, requested)
        async for kind, value in self._followed(self.generation, work, request):
            if kind == "progress":
                report({"stage": "generating", "done": value, "n": requested.n})
            elif kind == "result":
                pieces.append(value)
        return requested.windows(pieces)

    async def requested(
        self, request: Request, make: Callable[[], GenerationRequest]
    ) -> GenerationRequest:
        """What `make` returns; called in turn with others, as it may itself generate windows."""

        def work(job: Job) -> Steps:
            yield make()

        found: list[GenerationRequest] = []
        async for kind, value in self._followed(self.generation, work, request):
            if kind == "result":
                found.append(value)
        return found[0]

    async def compute(
        self,
        request: Request,
        report: Report,
        is_limited: bool,
        function: Callable[..., bytes],
        *arguments: Any,
    ) -> bytes:
        """The result of a function of the worker, called in turn with those of others."""

        def work(job: Job) -> Steps:
            yield self.workers[job.thread].call(job, is_limited, function, *arguments)

        return await self._computed(self.comparison, work, request, report)

    async def write(self, upload: Upload, request: Request, *arguments: Any) -> bytes:
        """What `recordings.write` returns of an upload, one after the other."""
        limits = (self.settings.limits.max_windows, self.max_bytes)
        given = (upload.source, upload.settings, *arguments, *limits)

        def work(job: Job) -> Steps:
            yield self.model_workers[job.thread].call(job, True, recordings.write, *given)

        with upload.naming_errors():
            return await self._computed(self.recordings, work, request, _nothing)

    async def _computed(
        self,
        queue: JobQueue,
        work: Callable[[Job], Steps],
        request: Request,
        report: Report,
    ) -> bytes:
        result = b""
        async for kind, value in self._followed(queue, work, request):
            if kind == "progress":
                report(value)
            elif kind == "result":
                result = value
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


def _cut(model: ServedModel) -> tuple[float, float]:
    """Rate in Hz and length in s of the windows that are compared with a model's."""
    return model.about.rate_hz, model.about.seconds


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
