"""The state that the routes share: settings, models, queues, worker processes, kept comparisons.

Windows are generated in one queue, in the server. Recordings are read and compared in another, by a
worker process, so that a long evaluation does not delay generation. In a third they are filled,
labelled, augmented and scored, by a worker with a model.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request, UploadFile

import gazediffusion as gd
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.web.queue import Job, JobQueue, Steps, followed
from gazediffusion.web.settings import Settings
from gazediffusion.web.uploads import MAX_EXPANSION, Upload
from gazediffusion.web.worker import PREFIX, Report, Worker

if TYPE_CHECKING:
    from gazediffusion.network.pretrained import ModelDescription

QUALITIES = ("default", "best")
_READING = ("gazediffusion.web.compare", "polars", "pyarrow.parquet", "scipy.signal")
_RECORDINGS = (
    *("gazediffusion.web.recordings", "gazediffusion.model"),
    *("polars", "scipy.interpolate"),
)
_MODEL_MB = 1024  # of torch and models


def nothing(progress: dict[str, Any]) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True)
class ServedModel:
    """A model by its name, described without torch, so that the server starts at once."""

    name: str
    about: ModelDescription

    @property
    def cut(self) -> tuple[float, float]:
        """Rate in Hz and length in s of the windows that are compared with the model's."""
        return self.about.rate_hz, self.about.seconds

    def describe(self) -> dict[str, Any]:
        """The model as the API states it."""
        about = self.about
        return {
            "name": self.name,
            "recipe": about.recipe,
            "tasks": list(about.tasks),
            "seconds": about.seconds,
            "rate_hz": about.rate_hz,
            "screen": asdict(about.screen),
            "task_screens": {task: asdict(screen) for task, screen in about.screens.items()},
            "qualities": list(QUALITIES),
            "trained_on": dict(about.trained_on),
            "has_losses": about.has_losses,
            "has_labels": about.has_labels,
            "is_steerable": about.is_steerable,
        }


class Models:
    """The packaged models and a run folder, by name; each is loaded at its first use."""

    def __init__(self, model: str | None = None) -> None:
        is_folder = model is not None and Path(model).is_dir()
        listed = gd.list_models([model] if is_folder and model is not None else [])
        self.served = {name: ServedModel(name, about) for name, about in listed.items()}
        if not self.served:
            raise GazeError(
                "there is no model to serve", remedy="train one, and give its run folder as `model`"
            )
        self.default = list(self.served)[-1 if is_folder else 0]
        if not is_folder and model not in (None, "default"):
            self.default = self.find(model).name
        self._loaded: dict[str, gd.Model] = {}
        self._loading = threading.Lock()

    def find(self, name: str | None) -> ServedModel:
        """The model of that name; None is the default."""
        found = self.served.get(name or self.default)
        if found is None:
            known = suggestion(str(name), list(self.served))
            raise GazeError(f"no `model` {name!r}", remedy=known)
        return found

    def load(self, served: ServedModel) -> gd.Model:
        """The model with its weights, loaded at the first call."""
        with self._loading:
            if served.name not in self._loaded:
                self._loaded[served.name] = gd.load(served.about.source)
            return self._loaded[served.name]


class KeptComparisons:
    """Evaluations as bytes, by id, so that the report of one need not repeat it.

    Bounded in time, number and bytes; the oldest leave first.
    """

    max_age_s = 900.0
    max_number = 16
    max_bytes = 64 * 2**20

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, bytes]] = {}

    def add(self, evaluation: bytes) -> str | None:
        """The id of an evaluation; None where it is too large to be kept."""
        if len(evaluation) > self.max_bytes:
            return None
        self._drop_old()
        room = self.max_bytes - len(evaluation)
        while len(self._kept) >= self.max_number or self._size > room:
            del self._kept[next(iter(self._kept))]
        name = secrets.token_hex(16)
        self._kept[name] = (time.monotonic(), evaluation)
        return name

    def find(self, name: str) -> bytes | None:
        """The evaluation of an id, if it is still kept."""
        self._drop_old()
        return self._kept[name][1] if name in self._kept else None

    @property
    def _size(self) -> int:
        return sum(len(evaluation) for _, evaluation in self._kept.values())

    def _drop_old(self) -> None:
        oldest = time.monotonic() - self.max_age_s
        self._kept = {name: one for name, one in self._kept.items() if one[0] >= oldest}


class Playground:
    """The state of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.models = Models(settings.model)
        limits = settings.limits
        self.generation = JobQueue(limits.max_jobs)
        self.comparison = JobQueue(limits.max_jobs)
        self.recordings = JobQueue(limits.max_jobs)
        # Of the queues of comparisons and recordings; started at their first calls.
        self.reader = Worker(limits, _READING)
        self.recorder = Worker(limits, _RECORDINGS, _MODEL_MB)
        self.comparisons = KeptComparisons()
        self.streams: dict[str, asyncio.Task[Any]] = {}
        self.reading = asyncio.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """A folder of the server's own."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        return Path(self._folder.name)

    @property
    def max_bytes(self) -> int:
        """To how much a file of an upload may expand."""
        return self.settings.limits.max_upload_bytes * MAX_EXPANSION

    def warm_up(self) -> None:
        """Load the default model in the background, so that the first request need not wait."""

        def load() -> None:
            with contextlib.suppress(GazeError):
                self.models.load(self.models.find(None))

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def close(self) -> None:
        """End all work."""
        for worker in (self.reader, self.recorder):
            worker.close()
        for jobs in (self.generation, self.comparison, self.recordings):
            jobs.close()
        if self._folder is not None:
            self._folder.cleanup()

    def cancel(self, job: str) -> bool:
        """Cancel the work of a stream; whether there is one of that id."""
        task = self.streams.get(job)
        if task is None:
            return self.generation.cancel(job)
        task.cancel()
        return True

    async def loaded(self, name: str | None) -> tuple[ServedModel, gd.Model]:
        """The model of that name, with its weights."""
        served = self.models.find(name)
        return served, await asyncio.to_thread(self.models.load, served)

    async def stored(self, files: list[UploadFile], settings: dict[str, Any]) -> Upload:
        """The files of a request in a folder; the caller closes it."""
        contents = [(file.filename or "", file.file) for file in files]
        return await asyncio.to_thread(Upload, contents, settings)

    async def read(
        self, upload: Upload, request: Request, report: Report, function: Any, *arguments: Any
    ) -> bytes:
        """What a function of the reader returns of an upload; errors are in words of the form."""
        with upload.naming_errors():
            return await self.compute(request, report, True, function, *arguments)

    async def compute(
        self,
        request: Request,
        report: Report,
        is_limited: bool,
        function: Callable[..., bytes],
        *arguments: Any,
    ) -> bytes:
        """What a function of the reader returns, called in turn with those of others."""

        def work(job: Job) -> Steps:
            yield self.reader.call(job, is_limited, function, *arguments)

        found: bytes = await self.result(self.comparison, work, request, report)
        return found

    async def result(
        self,
        jobs: JobQueue,
        work: Callable[[Job], Steps],
        request: Request,
        report: Report = nothing,
    ) -> Any:
        """The only result of a new job."""
        result = None
        async for kind, value in followed(jobs, work, request):
            if kind == "progress":
                report(value)
            elif kind == "result":
                result = value
        return result


def _of_request(request: Request) -> Playground:
    found: Playground = request.app.state.playground
    return found


Play = Annotated[Playground, Depends(_of_request)]
