"""Settings of the server: its address, models and recordings, and the limits of a request."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]*[a-z0-9])?)(:\d{1,5})?", re.ASCII)


def host_name(header: str) -> str | None:
    """The name in a Host header, in small letters; None where it is no name with a port."""
    found = _HOST.fullmatch(header.lower())
    if found is None or int((found[3] or ":0")[1:]) > 65535:
        return None
    return found[1]


@dataclass(frozen=True)
class Limits:
    """Limits of one request. max_jobs counts running and waiting jobs.

    max_memory_mb, max_work_s: of the process that reads and compares an upload.
    """

    max_windows: int = 500
    max_jobs: int = 16
    max_upload_mb: int = 100
    max_memory_mb: int = 2048
    max_work_s: int = 120

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 1:
                raise GazeError(f"`{name}` must be 1 or more, not {value}")

    @property
    def max_upload_bytes(self) -> int:
        """The total size of the files of one request."""
        return self.max_upload_mb * 2**20


@dataclass(frozen=True)
class Settings:
    """Everything that a server is started with.

    model: a run folder to serve beside the packaged models, or the packaged model to list first.
    real: recordings to compare with; reading: options of `gd.read`.
    token: that every request to /api must carry. allowed_hosts: names under which a reverse proxy
    passes requests on.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    model: str | None = None
    real: Path | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise GazeError(f"`port` must lie between 0 and 65535, not {self.port}")
        if self.token is not None and not self.token.strip():
            raise GazeError("`token` must not be empty")
        for name in self.allowed_hosts:
            if host_name(name) != name.lower():
                raise GazeError(f"`allowed_host` must be a name without port, not {name!r}")
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
