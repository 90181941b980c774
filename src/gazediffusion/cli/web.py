"""The command of the playground: serve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import DistanceCm, ScreenCm, ScreenPx, screen_of
from gazediffusion.errors import GazeError

_NEEDED = ("fastapi", "uvicorn", "plotly", "python_multipart")


def serve(
    port: Annotated[int, typer.Option(help="Where to listen; 0 is any that is free.")] = 8000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's needs --token.")
    ] = "127.0.0.1",
    model: Annotated[
        str | None,
        typer.Option(
            help="A run folder, or the model inside the package to begin with.",
            show_default=False,
        ),
    ] = None,
    real: Annotated[
        Path | None,
        typer.Option(
            help="Recordings or a windows file to compare with; the page takes others as well.",
            show_default=False,
        ),
    ] = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="What every request must bring along.",
            envvar="GAZEDIFFUSION_TOKEN",
            show_default=False,
        ),
    ] = None,
    max_windows: Annotated[int, typer.Option(help="Windows that one request may ask.")] = 500,
    max_jobs: Annotated[int, typer.Option(help="Jobs running and waiting.")] = 16,
    max_upload_mb: Annotated[int, typer.Option(help="Size of the files of one request.")] = 100,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser; by default where a person started it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explore, compare and export synthetic gaze in the browser, or over HTTP.

    Recordings that the page is given are read here and stored nowhere. The HTTP API is described
    at /docs.

    Example: [bold]gazediffusion serve --real study/ --screen 1280x720[/bold]
    """
    from importlib.util import find_spec

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise GazeError(
            f"the playground needs {', '.join(missing)}", remedy="pip install 'gazediffusion[web]'"
        )
    from gazediffusion.web.settings import Limits, Settings

    settings = Settings(
        host=host,
        port=port,
        model=model,
        real=real,
        screen=screen_of(screen, screen_cm, distance_cm),
        token=token,
        limits=Limits(max_windows, max_jobs, max_upload_mb),
    )
    from gazediffusion.web.server import serve as serve_page

    def say(url: str) -> None:
        out.print(f"the playground is at {plain(url)} (Ctrl-C ends it)")

    is_person = sys.stdout.isatty() and settings.is_loopback
    serve_page(settings, say, is_person if opens is None else opens)
