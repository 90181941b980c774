"""The application and its server: routes, pages, responses to errors, one address until Ctrl-C.

The page that describes the API is written here because the usual ones load their scripts from other
servers.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.storage import sha256_source
from gazediffusion.web import compare, generate, recordings
from gazediffusion.web.queue import INTERNAL, DisconnectedError, InternalError, QueueFullError
from gazediffusion.web.schemas import HealthResponse, failures
from gazediffusion.web.security import SecurityMiddleware, queue_full
from gazediffusion.web.settings import Settings
from gazediffusion.web.state import Playground
from gazediffusion.web.worker import TooLargeError

STATIC, TEMPLATES = (Path(__file__).parent / name for name in ("static", "templates"))
_ABOUT = """Synthetic gaze over HTTP. Positions are in normalized units: x and y in [-1, 1], origin
at the centre of the screen, y down. Every window carries its task and its screen. Every failure is
`{"error": "one line"}`, with fields in backticks. With a token, send
`Authorization: Bearer TOKEN`."""
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;
color-scheme:light dark}code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;
padding:.6rem;border:1px solid #8885;border-radius:.4rem}h2{margin-top:2.2rem;font-size:1.1rem}
dt{font-weight:600}dd{margin:0 0 .3rem 1.5rem}"""
DOCS_POLICY = f"default-src 'none'; style-src {sha256_source(_STYLE)}; frame-ancestors 'none'"
_BEARER = "HTTPBearer"
_SHUTDOWN_S = 2  # for open streams after Ctrl-C


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
        version=gd.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.playground = play
    api = APIRouter(prefix="/api", responses=failures(401, 403))
    for part in (generate, recordings, compare):
        api.include_router(part.routes)
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


def add_names(app: FastAPI, play: Playground) -> None:
    """State models, tasks, limits and the token in the OpenAPI description."""
    describe = app.openapi
    served = play.models.served
    tasks = sorted({task for model in served.values() for task in model.about.tasks})
    most_s = max(model.about.max_seconds for model in served.values())
    most_hz = max(model.about.rate_hz for model in served.values())
    facts: dict[str, dict[str, Any]] = {
        "model": {"enum": [*served, None]},
        "task": {"enum": [*tasks, None]},
        "n": {"maximum": play.settings.limits.max_windows},
        "seconds": {"minimum": 1, "maximum": most_s},
        "rate_hz": {"minimum": 10, "maximum": most_hz},
    }
    if not any(model.about.has_losses for model in served.values()):
        facts["track_loss"] = {"enum": [False]}
    if not any(model.about.has_labels for model in served.values()):
        facts["labels"] = {"enum": [False]}
    if not any(model.about.is_steerable for model in served.values()):
        facts["at"] = {"maxItems": 0}
        facts |= {name: {"enum": [None]} for name in ("start", "scanpath", "targets")}

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = describe()
            for name, field in _fields(schema):
                field.update(facts.get(name, {}))
            schemes = {_BEARER: {"type": "http", "scheme": "bearer"}}
            schema["components"]["securitySchemes"] = schemes
            is_optional = play.settings.token is None
            schema["security"] = [{_BEARER: []}, *([{}] if is_optional else [])]
            schema["paths"]["/health"]["get"]["security"] = []
        return describe()

    app.openapi = openapi  # type: ignore[method-assign]


def _fields(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every field of a request, with its schema."""
    bodies = [
        (name, field)
        for title, one in schema["components"]["schemas"].items()
        if title == "GenerateRequest" or title.endswith("Form")
        for name, field in one["properties"].items()
    ]
    queries = [
        (one["name"], one["schema"])
        for methods in schema["paths"].values()
        for operation in methods.values()
        for one in operation.get("parameters", [])
    ]
    return bodies + queries


def docs_page(schema: dict[str, Any]) -> str:
    """The OpenAPI description as one plain page."""
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    return environment.get_template("docs.html").render(schema, style=Markup(_STYLE))


def listen(settings: Settings) -> socket.socket:
    """The socket, bound before anything is loaded: a port in use is reported at once."""
    host = settings.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, settings.port))
    except OSError as error:
        found.close()
        raise GazeError(
            f"cannot listen on {settings.host} port {settings.port} ({error.strerror})",
            remedy="choose another `port`",
        ) from error
    found.listen(128)
    return found


def address(settings: Settings, port: int) -> str:
    """The address of the page, with its token."""
    name = f"[{settings.host.strip('[]')}]" if ":" in settings.host else settings.host
    token = f"?token={quote(settings.token, safe='')}" if settings.token else ""
    return f"http://{name}:{port}/{token}"


def serve(settings: Settings, say: Callable[[str], None], opens: bool = False) -> None:
    """Serve until interrupted. say: called with the address of the page."""
    # By default OpenMP threads busy-wait, which slows a server on a busy machine twenty-fold.
    # torch reads the variable when it is loaded, which is later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _allow_open_files()
    # It warns of every damaged form, which anybody can send.
    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
    app = create_app(settings)
    with listen(settings) as bound:
        url = address(settings, bound.getsockname()[1])
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_S,
        )
        app.state.playground.reader.start()  # while the page is opened
        say(url)
        if opens:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[bound])


def _allow_open_files() -> None:
    """As many open files as the system allows: every part of an upload may be one."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
