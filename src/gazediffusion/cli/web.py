"""The command of the playground: serve."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import reads_recordings
from gazediffusion.errors import GazeError
from gazediffusion.storage import fetched, is_remote

_NEEDED = ("fastapi", "uvicorn", "plotly", "python_multipart")


@reads_recordings
def serve(
    port: Annotated[int, typer.Option(help="The port to listen on; 0 chooses a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but loopback needs --token.")
    ] = "127.0.0.1",
    model: Annotated[
        str | None,
        typer.Option(
            help="A run folder, or the packaged model to list first.",
            show_default=False,
        ),
    ] = None,
    real: Annotated[
        Path | None,
        typer.Option(
            help="Recordings or a windows file to compare with; the page accepts others.",
            show_default=False,
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Token that every request must carry.",
            envvar="GAZEDIFFUSION_TOKEN",
            show_default=False,
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name of a reverse proxy; repeatable.",
            show_default=False,
        ),
    ] = None,
    max_windows: Annotated[int, typer.Option(help="Maximum number of windows per request.")] = 500,
    max_jobs: Annotated[
        int, typer.Option(help="Maximum number of jobs, running and waiting.")
    ] = 16,
    max_upload_mb: Annotated[int, typer.Option(help="Maximum size of an upload (MB).")] = 100,
    max_memory_mb: Annotated[
        int, typer.Option(help="Memory limit for reading and comparing an upload (MB).")
    ] = 2048,
    max_work_s: Annotated[
        int, typer.Option(help="Time limit for reading or comparing an upload (s).")
    ] = 120,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser; by default in a terminal.",
            show_default=False,
        ),
    ] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Generate, compare and export synthetic gaze in the browser or over HTTP.

    Uploaded recordings are read on this machine and not stored. The HTTP API is described at /docs.

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
        model=model if model is None or not is_remote(model) else str(fetched(model)),
        real=None if real is None else fetched(real),
        reading=reading,
        token=token,
        allowed_hosts=tuple(allowed_host or ()),
        limits=Limits(max_windows, max_jobs, max_upload_mb, max_memory_mb, max_work_s),
    )
    from gazediffusion.web.app import serve as serve_page

    def say(url: str) -> None:
        out.print(f"the playground is at {plain(url)} (Ctrl-C ends it)")

    is_interactive = sys.stdout.isatty() and settings.is_loopback
    serve_page(settings, say, is_interactive if opens is None else opens)
