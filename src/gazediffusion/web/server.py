"""The server: one address, until Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from urllib.parse import quote

import uvicorn

from gazediffusion.errors import GazeError
from gazediffusion.web.app import create_app
from gazediffusion.web.settings import Settings

_SHUTDOWN_S = 2  # for open streams after Ctrl-C


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
        app.state.playground.start_processes()
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
