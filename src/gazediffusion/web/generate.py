"""Windows over HTTP: requests checked by the library, generated in batches, sent as JSON or files.

Windows of several requests are computed in one batch. The command and the Python program of a
request write the same windows as its export. What windows keep to is read from tables and
recordings by the worker: the functions that take a `Report` run there.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import re
import shlex
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import numpy as np
from fastapi import APIRouter, Body, Form, HTTPException, Query, Request, UploadFile
from fastapi.responses import Response, StreamingResponse
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.options import words_of
from gazediffusion.settings import Finishing, Generating, Numbered
from gazediffusion.settings import Steering as SteeringOptions
from gazediffusion.web.queue import (
    Job,
    JobCancelledError,
    ReleasingResponse,
    Steps,
    event,
    event_schema,
    event_stream,
    followed,
    in_turns,
    log,
    mailbox,
    received,
)
from gazediffusion.web.schemas import (
    FILE,
    MEDIA_TYPES,
    GenerateRequest,
    GenerateResponse,
    GenerationFields,
    ModelsResponse,
    UploadForm,
    failures,
)
from gazediffusion.web.settings import Limits
from gazediffusion.web.state import Models, Play, Playground, ServedModel, nothing
from gazediffusion.web.uploads import require_all_bounds
from gazediffusion.web.worker import PREFIX, Report, TooLargeError

if TYPE_CHECKING:
    from gazediffusion.data.events import Event
    from gazediffusion.generation.sampler import Sampler
    from gazediffusion.generation.sets import Sampling

routes = APIRouter()
# Gaze (window, 2, time), and its labels (window, time) where they are asked for.
Piece = tuple[NDArray[np.float32], NDArray[np.uint8] | None]
# Windows of a batch; of a CPU, one in each of its threads and of each request that waits. Few, so
# that the first window comes soon and other requests wait briefly.
BATCH_CPU, BATCH_GPU = 1, 64
MAX_ROWS = 100_000  # of a table of fixations or jumps
MAX_LIKE = 2000  # windows of a recording, a second apart
_SHORTEST_S = 0.04  # of a fixation whose duration is left free
_ROUNDING = 1e-6  # of a share of windows done
_LIMIT = "the limit is `max_windows` of the server"
_DECIMALS = 5  # of normalized positions: less than a hundredth of a pixel
_FOLDERS = ("bids", "asc")
_ZIPPED = ("csv", *_FOLDERS)
_CHUNK = 1 << 16
_DATE = (1980, 1, 1, 0, 0, 0)


def read_table(
    kind: str, path: Path, screen: gd.Screen, place: dict[str, Any], max_bytes: int, report: Report
) -> bytes:
    """The scanpaths or targets of a table as JSON.

    kind: scanpath or targets. place: unit and origin of positions.
    """
    require_all_bounds(path, max_bytes)
    read = gd.read_scanpaths if kind == "scanpath" else gd.read_targets
    found: list[Any] = list(read(path, screen, **place))
    if sum(len(one.x) for one in found) > MAX_ROWS:
        raise TooLargeError(f"more than {MAX_ROWS:,} rows", path=path.name)
    return json.dumps([vars(one) for one in found], default=np.ndarray.tolist).encode()


def _from_table(kind: str, content: bytes) -> tuple[Any, ...]:
    """The scanpaths or targets that `read_table` returned."""
    made = gd.Scanpath if kind == "scanpath" else gd.Targets

    def array(name: str, values: Any) -> Any:
        dtype = np.float32 if name in ("x", "y") else np.float64
        return values if name == "name" else np.array(values, dtype)

    rows = json.loads(content)
    return tuple(made(**{name: array(name, one[name]) for name in one}) for one in rows)


def read_style(
    source: Path,
    settings: dict[str, Any],
    rate_hz: float,
    seconds: float,
    kept: Path,
    max_bytes: int,
    report: Report,
) -> bytes:
    """The windows of `like`, from recordings or a windows file, written to `kept`.

    rate_hz, seconds: of the model's windows.
    """
    require_all_bounds(source, max_bytes)
    if source.suffix == ".safetensors":
        windows = gd.Windows.load(source)
        if np.isnan(windows.gaze).any():
            raise GazeError(
                "these windows have losses", path=source, remedy="cut between them with `prepare`"
            )
        windows = replace(windows, provenance={"sources": _sources(windows, source)})
    else:
        windows = gd.style_windows(gd.read(source, **settings), rate_hz, seconds)
    if len(windows) > MAX_LIKE:
        raise TooLargeError(
            f"`like` has {len(windows):,} windows, and {MAX_LIKE:,} are the most here",
            path=source.name,
            remedy="give a shorter recording",
        )
    windows.save(kept)
    return b""


def _sources(windows: gd.Windows, path: Path) -> list[dict[str, str]]:
    """The recordings that a windows file names, as a card does."""
    try:
        listed = windows.provenance.get("sources", [])
        return [{key: str(one[key]) for key in ("name", "sha256")} for one in listed]
    except (TypeError, KeyError, IndexError) as error:
        raise GazeError("the sources of this windows file are damaged", path=path) from error


# The options of a request that the command line has too.
_OPTIONS = (Numbered, Generating, SteeringOptions, Finishing)
_SETTINGS = (
    *("task", "quality", "seed", "seconds", "rate_hz", "track_loss", "labels"),
    "candidates",  # of forms alone
)


@dataclass(frozen=True)
class Steering:
    """What a request gives beside its fields.

    screen: of positions in pixels; None is that of the task. like: windows of one participant.
    """

    scanpath: tuple[gd.Scanpath, ...] = ()
    targets: tuple[gd.Targets, ...] = ()
    like: gd.Windows | None = None
    screen: gd.Screen | None = None

    @property
    def n_entries(self) -> int:
        """How many windows are to be different."""
        return max(len(self.scanpath), len(self.targets))

    def require_short(self, n: int, max_s: float) -> None:
        """Refuse scanpaths and targets that would take more than `max_s` seconds of gaze.

        Checked before arrays of that length are made.
        """
        lengths = [*map(_least_s, self.scanpath), *(one.time_ms[-1] / 1000 for one in self.targets)]
        n_all = max(n, self.n_entries)
        if n_all * max(lengths, default=0.0) > max_s:
            raise GazeError(
                f"{n_all} windows of {max(lengths):.0f} s or more are asked for, and {max_s:.0f} s "
                "in all are the most here",
                remedy="give fewer or shorter ones, with times in milliseconds; the limit is "
                "`max_windows` of the server",
            )

    def settings(self, model: gd.Model, fields: GenerationFields) -> dict[str, Any]:
        """The settings of `Model.sample` that this and the fields state."""
        found: dict[str, Any] = {}
        if fields.at or fields.start:
            screen = self.screen or model.screen_of(fields.task)
            found["at"] = [gd.parse_waypoint(one, screen) for one in fields.at]
            if fields.start:
                found["start"] = gd.parse_position(fields.start, screen)
        given = {"scanpath": self.scanpath, "targets": self.targets}
        found |= {name: list(value) for name, value in given.items() if value}
        return found if self.like is None else {**found, "like": self.like}


def _least_s(scanpath: gd.Scanpath) -> float:
    """What a scanpath lasts at the least."""
    lasts = np.nan_to_num(scanpath.duration_ms / 1000, nan=_SHORTEST_S).sum()
    return float(max(lasts, np.nan_to_num(scanpath.onset_ms).max() / 1000))


@dataclass(frozen=True)
class GenerationRequest:
    """Windows that can be generated: the model is loaded and every setting is valid.

    settings: those of `Model.sample` that are not its defaults; waypoints and start are as sent.
    """

    served: ServedModel
    n: int
    settings: dict[str, Any]
    sampling: Sampling

    @classmethod
    def of(
        cls,
        fields: GenerationFields,
        models: Models,
        limits: Limits,
        format: str = "parquet",
        steering: Steering | None = None,
    ) -> GenerationRequest:
        """Check the fields of a request; loads the model.

        steering: what was read from tables and recordings of the request.
        """
        steering = steering or Steering()
        n = fields.n if "n" in fields.model_fields_set else steering.n_entries or fields.n
        if n > limits.max_windows:
            raise GazeError(
                f"`n` must be {limits.max_windows} or fewer here, not {n}", remedy=_LIMIT
            )
        served = models.find(fields.model)
        model = models.load(served)
        steering.require_short(n, limits.max_windows * served.about.seconds)
        own = {"seconds": served.about.seconds, "rate_hz": served.about.rate_hz}
        given = {
            **{name: getattr(fields, name, None) for name in _SETTINGS},
            "batch_size": BATCH_GPU if model.device.type == "cuda" else BATCH_CPU,
        }
        settings = {
            name: value
            for name, value in given.items()
            if value is not None and value is not False and value != own.get(name)
        }
        steered = steering.settings(model, fields)
        sampling = model.sampling(n, format=format, **settings, **steered)
        sent = {"at": fields.at, "start": fields.start}
        settings |= {name: value for name, value in sent.items() if value}
        found = cls(served, n, settings, sampling)
        described = sampling.sampler.describe()
        n_all = n * int(described["windows_each"])
        if n_all > limits.max_windows:
            raise GazeError(
                f"{n} windows of {described['window_samples'] / described['rate_hz']:g} s are "
                f"generated as {n_all} of {served.about.seconds:g} s, and {limits.max_windows} are "
                "the most here",
                remedy=f"give a smaller `n` or shorter windows; {_LIMIT}",
            )
        return found

    def pieces(self, job: Job) -> Steps:
        """All pieces of gaze with their labels; ends when the job is cancelled."""
        share = _Share(self.sampling, job)
        if share.kind is None:
            return in_turns(lambda end_turn: _one_by_one(self.sampling, job, end_turn))
        job.share = share
        return share.pieces()

    def windows(self, pieces: Sequence[Piece], first: int = 0) -> gd.Windows:
        """Pieces that follow one another as windows first.. of the request."""
        gaze = np.concatenate([gaze for gaze, _ in pieces])
        labels = [found for _, found in pieces if found is not None]
        return self.sampling.windows(gaze, first, np.concatenate(labels) if labels else None)

    def command(self) -> str:
        """The command line that writes the same windows."""
        source = self.served.about.source
        words = ["gazediffusion", "generate", "-o", "gaze.parquet", "--model", source]
        given = {"n": self.n, **self.settings}
        if (start := given.pop("start", None)) is not None:
            given["at"] = [f"0:{start}", *given.get("at", ())]
        return shlex.join([*words, *words_of(given, *_OPTIONS)])

    def python(self) -> str:
        """The Python program that writes the same windows."""

        def quoted(value: object) -> str:
            return json.dumps(value, ensure_ascii=False)

        def code(name: str, value: Any) -> str:
            if name == "at":
                points = (f"gd.parse_waypoint({quoted(one)}, screen)" for one in value)
                return f"[{', '.join(points)}]"
            if name == "start":
                return f"gd.parse_position({quoted(value)}, screen)"
            return "True" if value is True else quoted(value)

        given = ", ".join(f"{name}={code(name, value)}" for name, value in self.settings.items())
        task = quoted(self.settings["task"]) if "task" in self.settings else ""
        is_steered = "at" in self.settings or "start" in self.settings
        screen = f"screen = model.screen_of({task})\n" if is_steered else ""
        return (
            "import gazediffusion as gd\n\n"
            f"model = gd.load({quoted(self.served.about.source)})\n"
            f"{screen}windows = model.sample({self.n}, {given})\n"
            'windows.save("gaze.parquet")\n'
        )


class _Share:
    """The next windows of a job, computed in one batch with those of other jobs."""

    def __init__(self, sampling: Sampling, job: Job) -> None:
        self.sampling, self.job = sampling, job
        self.sampler = cast("Sampler", sampling.sampler)
        self.kind: Hashable = self.sampler.batch_kind  # None: with those of none
        self.first, self.n = 0, sampling.n  # windows that are done, and all
        self.gaze: NDArray[np.float32] = np.empty((0, 2, 0), np.float32)

    def compute(self, shares: Sequence[_Share]) -> None:
        """The gaze of the next windows of each."""
        import torch

        most = max(self.sampler.batch_size, torch.get_num_threads())
        each = max(1, most // len(shares))
        asked = [(one.sampler, (one.first, min(one.first + each, one.n))) for one in shares]
        most_done = 0.0  # of two parts that are computed at the same time

        def progress(done: float) -> None:
            nonlocal most_done
            if all(one.job.is_cancelled for one in shares):
                raise JobCancelledError
            most_done = max(done, most_done)
            for one, (_, (first, stop)) in zip(shares, asked, strict=True):
                one.job.count(first + most_done * (stop - first), one.n)

        for one, gaze in zip(shares, self.sampler.in_one_batch(asked, progress), strict=True):
            one.gaze = gaze

    def pieces(self) -> Steps:
        """The windows that were computed before each step, with their labels."""
        while self.job.share is not None:
            self.first += len(self.gaze)
            self.job.count(self.first, self.n)
            if self.first == self.n:
                self.job.share = None
            yield self.gaze, self.sampling.labels(self.gaze)


def _one_by_one(sampling: Sampling, job: Job, end_turn: Callable[[], None]) -> Iterator[Piece]:
    """Windows that share no batch; a turn ends with every window of the model's length."""
    n, each = sampling.n, int(sampling.sampler.describe()["windows_each"])
    ended = 0

    def progress(done: float) -> None:
        nonlocal ended
        job.require_active()
        job.count(done, n)
        if int(done * each + _ROUNDING) > ended:
            ended = int(done * each + _ROUNDING)
            end_turn()

    def labelled(done: float) -> None:
        job.require_active()
        end_turn()

    for gaze in sampling.pieces(progress):
        yield gaze, sampling.labels(gaze, labelled)


async def generated(
    play: Playground, requested: GenerationRequest, request: Request, report: Report = nothing
) -> gd.Windows:
    """All windows of a request, generated in turn with those of others."""
    pieces = []
    async for kind, value in followed(play.generation, requested.pieces, request):
        if kind == "progress":
            report({"stage": "generating", "done": value, "n": requested.n})
        elif kind == "result" and value is not None:
            pieces.append(value)
    return requested.windows(pieces)


def windows_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """Each window as JSON: index, task, screen and normalized x and y, to five decimals.

    A sample where the eye is lost is null. Windows with labels have their events as well.
    """
    screens = [asdict(screen) for screen in windows.screens]
    labels = None if windows.labels is None else windows.cut_labels()
    identity = zip(windows.task, windows.screen_index, windows.cut(), strict=True)
    for number, (task, screen, gaze) in enumerate(identity):
        x, y = (
            [None if value != value else value for value in axis]
            for axis in np.round(gaze.astype(np.float64), _DECIMALS).tolist()
        )
        yield {
            "index": first + number,
            "task": windows.tasks[task],
            "screen": screens[screen],
            "x": x,
            "y": y,
            **({} if labels is None else {"labels": _runs(labels[number])}),
        }


def _runs(labels: NDArray[np.uint8]) -> list[tuple[str, int, int]]:
    """The events of labels (time,): class, first sample, and the sample after the last."""
    edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    return [
        (gd.EVENT_CLASSES[labels[first] - 1], first, stop)
        for first, stop in pairwise(edges)
        if labels[first]
    ]


def windows_with_events_json(windows: gd.Windows, first: int = 0) -> Iterator[dict[str, Any]]:
    """The same with the events of each window, in degrees of its own screen.

    They are those of the labels, or fixations and saccades by threshold where there are none.
    """
    has_labels = windows.labels is not None
    for number, window in enumerate(windows_json(windows, first)):
        gaze = windows[number]
        events = []
        for found in windows.events(number, by_labels=has_labels):
            begin, end = (
                round(ms * windows.rate_hz / 1000) for ms in (found.onset_ms, found.offset_ms)
            )
            # A labelled event ends before the sample on which the next one begins.
            events.append(_event_json(found, gaze[:, begin : end if has_labels else end + 1]))
        yield {**window, "events": events}


def _event_json(event: Event, gaze: NDArray[np.float32]) -> dict[str, Any]:
    """An event with its mean position, or a saccade with its end point; null where it is lost.

    gaze: of the event, (2, time).
    """
    span = gaze[:, -1:] if event.event == "saccade" else gaze
    x, y = span.astype(np.float64).mean(axis=1)

    def rounded(value: float, decimals: int = 3) -> float | None:
        return round(float(value), decimals) if math.isfinite(value) else None

    return {
        "kind": event.event,
        "onset_ms": event.onset_ms,
        "offset_ms": event.offset_ms,
        "x": rounded(x, _DECIMALS),
        "y": rounded(y, _DECIMALS),
        "amplitude_deg": rounded(event.amplitude_deg),
        "peak_deg_s": rounded(event.peak_velocity_deg_s),
    }


def windows_file(windows: gd.Windows, format: str) -> BinaryIO:
    """What `Windows.save` writes, as an open file: as it is, or a zip with card or folder.

    It is written in a temporary folder, which is deleted before the first byte is sent. json: the
    card and the windows, written a window at a time.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder:
        path = Path(folder) / ("gaze" if format in _FOLDERS else f"gaze.{format}")
        if format == "json":
            with path.open("w") as stream:
                stream.write(f'{{"card": {json.dumps(windows.provenance["card"])}, "windows": [')
                for window in windows_json(windows):
                    stream.write((", " if window["index"] else "") + json.dumps(window))
                stream.write("]}")
        else:
            path, *_ = windows.save(path, format)
        return packed(Path(folder), None if format in _ZIPPED else path)


def packed(folder: Path, path: Path | None) -> BinaryIO:
    """A file, or the zip of a folder, as an unnamed open file; the same files give the same bytes.

    The system deletes it when it is closed.
    """
    stream = tempfile.TemporaryFile(prefix=PREFIX)  # noqa: SIM115  # closed when it is sent
    if path is not None:
        with path.open("rb") as content:
            shutil.copyfileobj(content, stream)
    else:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in sorted(one for one in folder.rglob("*") if one.is_file()):
                entry = zipfile.ZipInfo(one.relative_to(folder).as_posix(), _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                with one.open("rb") as content, archive.open(entry, "w") as target:
                    shutil.copyfileobj(content, target)
    stream.seek(0)
    return stream


def file_response(
    content: BinaryIO, kind: str, name: str | None, headers: Mapping[str, str] | None = None
) -> Response:
    """An open file as a response; closed at its end. kind: media type. name: of the download."""

    def chunks() -> Iterator[bytes]:
        while chunk := content.read(_CHUNK):
            yield chunk

    named = {} if name is None else {"Content-Disposition": f'attachment; filename="{name}"'}
    given = {**named, **(headers or {})}
    return ReleasingResponse(chunks(), content.close, media_type=kind, headers=given)


def _file_name(request: GenerationRequest, format: str) -> str:
    """A name that states model, task, seed and format."""
    settings = request.settings
    words = ["gaze", request.served.name, settings.get("task", ""), f"seed{settings['seed']}"]
    plain = [re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:40] for word in words]
    ending = f"{format}.zip" if format in _ZIPPED else format
    return f"{'-'.join(filter(None, plain))}.{ending}"


_WINDOWS: dict[str, Any] = {
    "description": "The windows; a file has a name",
    "model": GenerateResponse,
    "content": {kind: FILE for kind in MEDIA_TYPES.values() if "json" not in kind},
}


@routes.get("/models", summary="List the models", response_model=ModelsResponse)
async def models(play: Play) -> dict[str, Any]:
    """The models with their tasks, screens and lengths, and the limits of one request."""
    served = play.models.served.values()
    limits = play.settings.limits
    return {
        "models": [model.describe() for model in served],
        "default": play.models.default,
        "limits": {**vars(limits), "max_seconds": max(one.about.max_seconds for one in served)},
        "has_real": play.settings.real is not None,
        "version": gd.__version__,
    }


@routes.get(
    "/generate/stream",
    summary="Stream windows as they are generated",
    response_class=StreamingResponse,
    responses={
        200: event_schema("queued", "started", "progress", "window", "done", "failed"),
        **failures(422, 429),
    },
)
async def stream(
    fields: Annotated[GenerationFields, Query()], play: Play, request: Request
) -> Response:
    """Server-sent events: queued, started, progress, window, then done or failed. A window has its
    task, screen and events, fixations (position: the mean) and saccades (position: the end point)
    by threshold, or those of its labels. The job ends when the connection is closed."""
    requested = await asyncio.to_thread(
        GenerationRequest.of, fields, play.models, play.settings.limits
    )
    messages, listener = mailbox()
    card: dict[str, Any] = {}
    n_sent, started = 0, 0.0

    def as_events(piece: Piece | None) -> str | None:
        nonlocal n_sent
        if piece is None:  # the end of a turn within a long window
            return None
        windows = requested.windows([piece], n_sent)
        card.update(windows.provenance["card"])
        found = windows_with_events_json(windows, n_sent)
        n_sent += len(windows)
        return "".join(event("window", one) for one in found)

    def sent(kind: str, value: Any) -> str:
        nonlocal started
        if kind == "result":
            return str(value)
        if kind == "started":
            started = time.monotonic()
            return event(kind, {"job": job.id})
        if kind == "progress":
            return event(kind, {"done": value, "n": requested.n})
        done = {
            "job": job.id,
            "n": requested.n,
            "seconds_taken": round(time.monotonic() - started, 3),
            "command": requested.command(),
            "python": requested.python(),
            "card": card,
        }
        return event(kind, done)

    def work(job: Job) -> Steps:
        return (as_events(piece) for piece in requested.pieces(job))

    job = play.generation.submit(work, listener)
    queued = {"job": job.id, "ahead": job.ahead}
    release = partial(play.generation.release, job)
    return event_stream(queued, received(messages, request), release, sent)


@routes.post(
    "/jobs/{job}/cancel",
    summary="Cancel a job",
    status_code=204,
    response_class=Response,
    responses=failures(404),
)
async def cancel(job: str, play: Play) -> Response:
    """The job's stream ends with `failed`, and its place in the queue is free."""
    if not play.cancel(job):
        raise HTTPException(404, f"there is no job {job!r}")
    return Response(status_code=204)


@routes.post(
    "/generate",
    summary="Generate windows as JSON or as a file",
    response_class=Response,
    responses={200: _WINDOWS, **failures(400, 413, 422, 429)},
)
async def generate(
    fields: Annotated[GenerateRequest, Body()], play: Play, request: Request
) -> Response:
    """The same windows and the same bytes as the command line in the `done` event of
    /api/generate/stream. The response begins when all windows are generated. Files that steer
    windows go to /api/generate/upload."""
    sent = {
        name: [UploadFile(io.BytesIO(text.encode()), filename=f"{name}.csv")]
        for name in ("scanpath", "targets")
        if (text := getattr(fields, name)) is not None
    }
    return await _response(play, request, fields, sent, {})


@routes.post(
    "/generate/upload",
    summary="Generate windows that are steered by files",
    response_class=Response,
    responses={200: _WINDOWS, **failures(400, 408, 413, 422, 429)},
)
async def generate_upload(
    form: Annotated[UploadForm, Form(media_type="multipart/form-data")],
    play: Play,
    request: Request,
) -> Response:
    """The windows of `gazediffusion generate` with `scanpath`, `targets` and `like` as files.
    Pixels are those of `screen`, or of the task's screen, on which the windows are in any case.
    `screen`, `unit`, `origin`, `columns` and `source_rate` say what the files do not state."""
    given: dict[str, Sequence[UploadFile | None]]
    given = {"scanpath": [form.scanpath], "targets": [form.targets], "like": form.like}
    sent = {name: [one for one in files if one is not None] for name, files in given.items()}
    return await _response(play, request, form, sent, form.reading)


async def _response(
    play: Playground,
    request: Request,
    fields: GenerateRequest | UploadForm,
    sent: Mapping[str, list[UploadFile]],
    reading: dict[str, Any],
) -> Response:
    """The windows of a request in its format, json or that of a file.

    sent: scanpath, targets and like. reading: what the sender says of these files.
    """
    is_json = fields.format == "json"
    format = "parquet" if is_json else fields.format
    is_steered = any(sent.values())
    steering = await _read_steering(play, request, fields, sent, reading) if is_steered else None

    def requested() -> GenerationRequest:
        limits = play.settings.limits
        try:
            return GenerationRequest.of(fields, play.models, limits, format, steering)
        except Exception as error:
            if isinstance(error, GazeError) or not is_steered:
                raise
            # What was read and cannot be used is the sender's error.
            log.error("steering failed: %s", type(error).__name__)
            raise GazeError(
                f"this cannot be used ({type(error).__name__}); the file may be damaged"
            ) from None

    def in_queue(job: Job) -> Steps:
        yield requested()

    if is_steered:  # Checking what steers windows may itself generate some.
        checked = await play.result(play.generation, in_queue, request)
    else:
        checked = await asyncio.to_thread(requested)
    windows = await generated(play, checked, request)
    content = await asyncio.to_thread(windows_file, windows, fields.format)
    name = None if is_json else _file_name(checked, format)
    return file_response(content, MEDIA_TYPES[fields.format], name)


async def _read_steering(
    play: Playground,
    request: Request,
    fields: GenerationFields,
    sent: Mapping[str, list[UploadFile]],
    reading: dict[str, Any],
) -> Steering:
    """What the files of scanpath, targets and like contain; read by the worker."""
    served, model = await play.loaded(fields.model)
    screen = reading.get("screen")
    place = {name: reading.get(name) for name in ("unit", "origin")}
    given: dict[str, Any] = {}
    for kind, files in sent.items():
        if not files:
            continue
        with closing(await play.stored(files, reading)) as upload:
            if kind == "like":
                kept = upload.windows.with_suffix(".safetensors")
                how = (upload.source, reading, *served.cut, kept, play.max_bytes)
                await play.read(upload, request, nothing, read_style, *how)
                given[kind] = await asyncio.to_thread(gd.Windows.load, kept)
            else:
                on = screen or model.screen_of(fields.task)
                table = (kind, upload.source, on, place, play.max_bytes)
                content = await play.read(upload, request, nothing, read_table, *table)
                given[kind] = _from_table(kind, content)
    return Steering(screen=screen, **given)
