"""The application: its routes and pages, and the responses to errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.storage import sha256_source
from gazediffusion.web import (
    comparison_routes,
    generation_routes,
    recording_routes,
    steering_routes,
)
from gazediffusion.web.descriptions import DOCS_POLICY, add_names, docs_page
from gazediffusion.web.generating import Generating
from gazediffusion.web.jobs import INTERNAL, InternalError, QueueFullError
from gazediffusion.web.playground import DisconnectedError, Playground
from gazediffusion.web.schemas import HealthResponse, failures
from gazediffusion.web.security import SecurityMiddleware, queue_full
from gazediffusion.web.settings import Settings
from gazediffusion.web.worker import TooLargeError

STATIC = Path(__file__).parent / "static"
_ABOUT = """Synthetic gaze over HTTP. Positions are in normalized units: x and y in [-1, 1], origin
at the centre of the screen, y down. Every window carries its task and its screen. Every failure is
`{"error": "one line"}`, with fields in backticks. With a token, send
`Authorization: Bearer TOKEN`."""


def create_app(
    settings: Settings | None = None, processes: Sequence[Generating] | None = None
) -> FastAPI:
    """The application of one server.

    processes: that generate its windows instead of those that the settings say.
    """
    play = Playground(settings or Settings(), processes)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        play.warm_up()
        yield
        play.close()

    app = FastAPI(
        title="gazediffusion",
        version=gd.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.playground = play
    api = APIRouter(prefix="/api", responses=failures(401, 403))
    api.include_router(generation_routes.routes)
    api.include_router(steering_routes.routes)
    api.include_router(recording_routes.routes)
    api.include_router(comparison_routes.routes)
    app.include_router(api)
    _add_pages(app)
    _add_errors(app, play)
    add_names(app, play)
    app.add_middleware(SecurityMiddleware, settings=play.settings)
    return app


def page_policy() -> str:
    """What the page may load: its own files, and the script of the report that it opens.

    Plotly writes styles of single elements, which only 'unsafe-inline' allows.
    """
    script = files("gazediffusion.evaluation").joinpath("templates/report.js").read_text("utf-8")
    report = sha256_source(f"\n{script}")
    return (
        f"default-src 'none'; script-src 'self' {report}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self' blob:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def _add_pages(app: FastAPI) -> None:
    policy = {"Content-Security-Policy": page_policy()}

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=policy)

    @app.get("/health", summary="Whether the server responds", response_model=HealthResponse)
    async def health() -> dict[str, str]:
        """For a reverse proxy or a monitor; needs no token."""
        return {"status": "ok", "version": gd.__version__}

    @app.get("/static/plotly.js", include_in_schema=False)
    def plotly() -> FileResponse:
        spec = find_spec("plotly")
        assert spec is not None
        (folder,) = spec.submodule_search_locations or []
        path = Path(folder) / "package_data" / "plotly.min.js"
        return FileResponse(path, media_type="text/javascript")

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(
            docs_page(app.openapi()), headers={"Content-Security-Policy": DOCS_POLICY}
        )

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _add_errors(app: FastAPI, play: Playground) -> None:
    def failed(status: int, line: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"error": line}, status, headers)

    @app.exception_handler(GazeError)
    async def invalid(request: Request, error: GazeError) -> JSONResponse:
        return failed(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
        return failed(422, f"`{place}`: {first['msg']}" if place else str(first["msg"]))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        return failed(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(QueueFullError)
    async def full(request: Request, error: QueueFullError) -> JSONResponse:
        return queue_full(play.settings.limits)

    @app.exception_handler(TooLargeError)
    async def large(request: Request, error: TooLargeError) -> JSONResponse:
        return failed(413, str(error))

    @app.exception_handler(DisconnectedError)
    async def disconnected(request: Request, error: DisconnectedError) -> Response:
        return Response(status_code=499)

    @app.exception_handler(InternalError)
    @app.exception_handler(Exception)
    async def internal(request: Request, error: Exception) -> JSONResponse:
        return failed(500, INTERNAL)
