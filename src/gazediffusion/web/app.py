"""The application: routes, and what becomes of errors. Everything else is in the modules beside."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import (
    APIRouter,
    Body,
    Depends,
    FastAPI,
    File,
    Form,
    HTTPException,
    Query,
    Request,
    UploadFile,
)
from fastapi.exceptions import RequestValidationError
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    Response,
    StreamingResponse,
)
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import Receive, Scope, Send

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.version import __version__
from gazediffusion.web.comparing import (
    Real,
    describe,
    evaluate_both,
    read_real,
    report_page,
    trimmed,
)
from gazediffusion.web.describing import add_names, docs_page
from gazediffusion.web.guard import Guard, queue_full
from gazediffusion.web.jobs import BROKEN, BrokenError, Job, QueueFullError, Steps
from gazediffusion.web.models import Offer
from gazediffusion.web.orders import Order
from gazediffusion.web.playground import GoneError, Playground, mailbox, told
from gazediffusion.web.schemas import (
    EMPTY_IS_NONE,
    MEDIA_TYPES,
    Asked,
    AskedFile,
    EvaluationAnswer,
    Failure,
    GazeAnswer,
    ModelsAnswer,
    RealAnswer,
)
from gazediffusion.web.settings import Settings
from gazediffusion.web.uploads import TooLargeError, stored

STATIC = Path(__file__).parent / "static"
# The report forbids all but itself in its own head; the page's policy would forbid its script.
_REPORT_POLICY = "frame-ancestors 'none'"
_N_COMPARED = 32
_ABOUT = """Synthetic gaze over HTTP. Positions are normalized screen units: x and y in [-1, 1],
origin at the screen's centre, y down. Every failure is `{"error": "one clear line"}`. With a token,
send `Authorization: Bearer TOKEN` or `?token=TOKEN`."""


def _fails(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        400: "The body cannot be read",
        401: "The token is missing or wrong",
        403: "Sent by the page of another site",
        404: "There is no such thing",
        413: "Too large",
        422: "Impossible, said in the words of the command line",
        429: "As many jobs as are allowed are running or waiting; see Retry-After",
    }
    return {one: {"model": Failure, "description": words[one]} for one in statuses}


api = APIRouter(prefix="/api", responses=_fails(401, 403))


def playground(request: Request) -> Playground:
    """The state of the server that is asked."""
    found: Playground = request.app.state.playground
    return found


Play = Annotated[Playground, Depends(playground)]


class Held(StreamingResponse):
    """A stream that gives something back when it has ended, however it ended."""

    def __init__(self, content: Any, give_back: Callable[[], None], **more: Any) -> None:
        super().__init__(content, **more)
        self.give_back = give_back

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all of it, or as much as is wanted."""
        try:
            await super().__call__(scope, receive, send)
        except GoneError:
            pass
        finally:
            self.give_back()


@api.get("/models", summary="What is on offer", response_model=ModelsAnswer)
def models(play: Play) -> dict[str, Any]:
    """The models with their tasks, screens and lengths, and how much one request may ask."""
    offers = play.models.offers.values()
    limits = play.settings.limits
    return {
        "models": [offer.describe() for offer in offers],
        "default": play.models.default,
        "limits": {
            **vars(limits),
            "max_seconds": max(offer.length / offer.rate_hz for offer in offers),
        },
        "has_real": play.settings.real is not None,
        "version": __version__,
    }


_EVENTS = {
    "schema": {
        "type": "object",
        "description": "One event; its data is JSON in one line.",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": ["queued", "started", "progress", "window", "done", "failed"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    },
    "example": {"event": "queued", "data": '{"job": "5f0c6f1c9d1b2a3e", "ahead": 0}'},
}


@api.get(
    "/generate/stream",
    summary="Windows as they are made",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events",
            "content": {"text/event-stream": _EVENTS},
        },
        **_fails(422, 429),
    },
)
async def stream(asked: Annotated[Asked, Query()], play: Play, request: Request) -> Response:
    """Server-sent events: queued, started, progress, window (with its fixations and saccades; a
    fixation's place is its mean, a saccade's where it lands), and in the end done or failed. The
    job ends when the connection is closed."""
    order = await asyncio.to_thread(Order.of, asked, play.models, play.settings.limits)
    box, hear = mailbox()

    def work(job: Job) -> Steps:
        first = 0
        for piece in order.pieces(job):
            yield "".join(_event("window", one) for one in order.windows_with_events(piece, first))
            first += len(piece)

    job = play.making.submit(work, hear)

    async def events() -> AsyncIterator[str]:
        yield _event("queued", {"job": job.id, "ahead": job.ahead})
        begun = time.monotonic()
        async for kind, value in told(box, request):
            if kind == "started":
                begun = time.monotonic()
                yield _event("started", {"job": job.id})
            elif kind == "progress":
                yield _event("progress", {"done": value, "n": order.n})
            elif kind == "result":
                yield value
            elif kind == "failed":
                yield _event("failed", {"error": str(value)})
            else:
                yield _event("done", _done(job, order, time.monotonic() - begun))

    return Held(
        events(),
        lambda: play.making.release(job),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def _done(job: Job, order: Order, seconds: float) -> dict[str, Any]:
    return {
        "job": job.id,
        "n": order.n,
        "seconds_taken": round(seconds, 3),
        "command": order.command(),
        "python": order.python(),
        "card": order.card(),
    }


@api.post(
    "/jobs/{job}/cancel",
    summary="Stop a job",
    status_code=204,
    response_class=Response,
    responses=_fails(404),
)
def cancel(job: str, play: Play) -> Response:
    """The job's stream ends with `failed`, and its place in the queue is free."""
    if not play.making.cancel(job):
        raise HTTPException(404, f"there is no job {job!r}")
    return Response(status_code=204)


_FILE = {"schema": {"type": "string", "format": "binary"}}


@api.post(
    "/generate",
    summary="A set of windows as JSON or as a file",
    response_class=Response,
    responses={
        200: {
            "description": "The set, with a file name",
            "model": GazeAnswer,
            "content": {kind: _FILE for kind in MEDIA_TYPES.values() if "json" not in kind},
        },
        **_fails(400, 413, 422, 429),
    },
)
async def generate(asked: Annotated[AskedFile, Body()], play: Play, request: Request) -> Response:
    """The same windows, and the same bytes of a file, as the command line that
    /api/generate/stream tells in its last event. A set of many windows takes its time: the answer
    comes when all are made."""
    from gazediffusion.web.packing import chunks, file_name, packed, packed_json

    kind = "parquet" if asked.format == "json" else asked.format
    order = await asyncio.to_thread(Order.of, asked, play.models, play.settings.limits, kind)
    gaze = await play.make(order, request)
    is_json = asked.format == "json"
    content = await asyncio.to_thread(packed_json if is_json else packed, order, gaze)
    named = {"Content-Disposition": f'attachment; filename="{file_name(order)}"'}
    return Held(
        chunks(content),
        content.close,
        media_type=MEDIA_TYPES[asked.format],
        headers={} if is_json else named,
    )


_RECORDINGS = File(description="Recordings in any format that `gazediffusion inspect` reads.")
Uploads = list[UploadFile]
Files = Annotated[Uploads, _RECORDINGS]
Text = Annotated[str | None, EMPTY_IS_NONE, Form()]
Number = Annotated[float | None, EMPTY_IS_NONE, Form()]


def _recorded_on(
    screen: Annotated[Text, Form(description="As 1280x720, where the file is silent.")] = None,
    screen_cm: Annotated[Text, Form(description="As 40x22.5.")] = None,
    distance_cm: Annotated[Number, Form(description="From eye to screen.")] = None,
) -> Screen | None:
    """The screen of a form, refused in the words of the command line."""
    return Screen.parse(screen, screen_cm, distance_cm)


async def _asked(
    play: Play,
    model: Text = None,
    task: Text = None,
    n: Annotated[
        int | None,
        EMPTY_IS_NONE,
        Form(description="Synthetic windows; 32 if left out.", json_schema_extra={"minimum": 1}),
    ] = None,
    seed: Annotated[int, Form(json_schema_extra={"minimum": 0})] = 0,
    quality: Annotated[
        str, Form(json_schema_extra={"enum": ["fast", "default", "best"]})
    ] = "default",
) -> Asked:
    n = min(_N_COMPARED, play.settings.limits.max_windows) if n is None else n
    return Asked(model=model, task=task, n=n, seed=seed, quality=quality, seconds=None)


RecordedOn = Annotated[Screen | None, Depends(_recorded_on)]


def _read(
    play: Playground, files: list[UploadFile] | None, screen: Screen | None, offer: Offer
) -> Real:
    """The recordings of a request, or else those given to `serve`."""
    if not files:
        return play.given_real(offer)
    contents = [(file.filename or "", file.file) for file in files]
    with stored(contents, play.settings.limits.max_upload_bytes) as paths:
        return read_real(paths, screen, offer)


_REAL: dict[str, Any] = {"response_model": RealAnswer, "response_class": JSONResponse}


@api.get("/real", summary="The recording of --real", responses=_fails(404, 422, 429), **_REAL)
async def given(
    play: Play,
    request: Request,
    model: Annotated[str | None, EMPTY_IS_NONE, Query()] = None,
    seconds: Annotated[float | None, EMPTY_IS_NONE, Query()] = None,
) -> Response:
    """What `serve --real` was given, in windows like the model's."""
    if play.settings.real is None:
        raise HTTPException(404, "no recording was given with --real")
    offer = play.models.find(model)
    found = await play.compare(lambda: describe(play.given_real(offer), seconds), request)
    return JSONResponse(found)


@api.post("/real", summary="Look at a recording", responses=_fails(400, 413, 422, 429), **_REAL)
async def real(
    play: Play,
    request: Request,
    screen: RecordedOn,
    files: Files,
    model: Text = None,
    seconds: Number = None,
) -> Response:
    """Cleaned, resampled and cut into windows like the model's. Read in a temporary folder that is
    deleted at once; stored nowhere."""
    offer = play.models.find(model)
    found = await play.compare(
        lambda: describe(_read(play, files, screen, offer), seconds), request
    )
    return JSONResponse(found)


@api.post(
    "/evaluate",
    summary="How near synthetic windows come to a recording",
    response_model=EvaluationAnswer,
    responses=_fails(400, 413, 422, 429),
)
async def evaluate(
    play: Play,
    request: Request,
    asked: Annotated[Asked, Depends(_asked)],
    screen: RecordedOn,
    files: Files | None = None,
) -> Response:
    """What `gazediffusion evaluate --quick` finds, with one synthetic set named `synthetic`.
    Without files, the recording of --real is taken."""
    results, _, _ = await _compared(play, request, asked, files, screen)
    return JSONResponse(trimmed(results))


@api.post(
    "/report",
    summary="The full report of the same comparison",
    response_class=Response,
    responses={
        200: {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}},
        **_fails(400, 413, 422, 429),
    },
)
async def report(
    play: Play,
    request: Request,
    asked: Annotated[Asked, Depends(_asked)],
    screen: RecordedOn,
    files: Files | None = None,
) -> Response:
    """One HTML page with everything inside it, as `gazediffusion evaluate` writes it."""
    compared = await _compared(play, request, asked, files, screen)
    page = await play.compare(lambda: report_page(*compared), request)
    return HTMLResponse(page, headers={"Content-Security-Policy": _REPORT_POLICY})


async def _compared(
    play: Playground,
    request: Request,
    asked: Asked,
    files: list[UploadFile] | None,
    screen: Screen | None,
) -> tuple[dict[str, Any], Real, Any]:
    """Results, real and synthetic windows. The recording is read first: it is soon refused."""
    order = await asyncio.to_thread(Order.of, asked, play.models, play.settings.limits)
    people = await play.compare(lambda: _read(play, files, screen, order.offer), request)
    gaze = await play.make(order, request)
    synthetic = order.generator.as_windows(gaze, order.config.seed)
    results = await play.compare(lambda: evaluate_both(people, synthetic), request)
    return results, people, synthetic


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application of one server."""
    play = Playground(settings or Settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        play.warm_up()
        yield
        play.close()

    app = FastAPI(
        title="gazediffusion",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.playground = play
    app.include_router(api)
    _add_pages(app)
    _add_errors(app, play)
    add_names(app, play)
    app.add_middleware(Guard, settings=play.settings)
    return app


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/static/plotly.js", include_in_schema=False)
    def plotly() -> FileResponse:
        spec = find_spec("plotly")
        assert spec is not None
        (folder,) = spec.submodule_search_locations or []
        path = Path(folder) / "package_data" / "plotly.min.js"
        return FileResponse(path, media_type="text/javascript")

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()))

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _add_errors(app: FastAPI, play: Playground) -> None:
    def failed(status: int, line: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"error": line}, status, headers)

    @app.exception_handler(GazeError)
    async def refused(request: Request, error: GazeError) -> JSONResponse:
        return failed(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
        return failed(422, f"{place}: {first['msg']}" if place else str(first["msg"]))

    @app.exception_handler(StarletteHTTPException)
    async def http(request: Request, error: StarletteHTTPException) -> JSONResponse:
        return failed(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(QueueFullError)
    async def full(request: Request, error: QueueFullError) -> JSONResponse:
        return queue_full(play.settings.limits)

    @app.exception_handler(TooLargeError)
    async def large(request: Request, error: TooLargeError) -> JSONResponse:
        return failed(413, str(error))

    @app.exception_handler(GoneError)
    async def gone(request: Request, error: GoneError) -> Response:
        return Response(status_code=499)

    @app.exception_handler(BrokenError)
    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> JSONResponse:
        return failed(500, BROKEN)
