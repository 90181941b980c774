"""Settings of the server: its address, models and recordings, and the limits of a request."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.options import Options, option
from gazediffusion.storage import fetched, is_remote

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d{1,5})?", re.ASCII)


def host_name(header: str) -> str | None:
    """The name in a Host header, in small letters; None where it is no name with a port."""
    found = _HOST.fullmatch(header.lower())
    if found is None or int((found[3] or ":0")[1:]) > 65535:
        return None
    return found[1]


@dataclass(frozen=True)
class Limits(Options):
    """Limits of one request, and of the process that reads and compares an upload."""

    PANEL = "Limits"

    max_windows: int = option(500, "Maximum number of windows per request.", ge=1)
    max_jobs: int = option(16, "Maximum number of jobs, running and waiting.", ge=1)
    max_upload_mb: int = option(100, "Maximum size of an upload (MB).", ge=1)
    max_memory_mb: int = option(
        2048, "Memory limit for reading and comparing an upload (MB).", ge=1
    )
    max_work_s: int = option(120, "Time limit for reading or comparing an upload (s).", ge=1)

    @property
    def max_upload_bytes(self) -> int:
        """The total size of the files of one request."""
        return self.max_upload_mb * 2**20


def _model_here(model: str) -> str:
    return str(fetched(model)) if is_remote(model) else model


@dataclass(frozen=True)
class Settings(Options):
    """Everything that a server is started with.

    reading: options of `gd.read` for the recordings to compare with.
    """

    port: int = option(8000, "The port to listen on; 0 chooses a free one.", ge=0, le=65535)
    host: str = option("127.0.0.1", "The address to listen on; any but loopback needs --token.")
    model: str | None = option(
        None, "A run folder, or the packaged model to list first.", parse=_model_here
    )
    real: Path | None = option(
        None,
        "Recordings or a windows file to compare with; the page accepts others.",
        parse=fetched,
    )
    reading: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = option(
        None, "Token that every request must carry.", envvar="GAZEDIFFUSION_TOKEN", repr=False
    )
    allowed_hosts: tuple[str, ...] = option(
        (), "Host name of a reverse proxy; repeatable.", flag="--allowed-host"
    )
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is not None and not self.token.strip():
            raise GazeError("`token` must not be empty")
        for name in self.allowed_hosts:
            if host_name(name) != name.lower():
                raise GazeError(f"`allowed_hosts` must be a name without port, not {name!r}")
        if self.token is None and (self.allowed_hosts or not self.is_loopback):
            raise GazeError(
                f"{(*self.allowed_hosts, self.host)[0]} can be reached from other machines, and "
                "there is no token",
                remedy="give `token`, or listen on 127.0.0.1",
            )
        if self.real is not None and not self.real.exists():
            raise GazeError("there is no such file or folder", path=self.real)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False
