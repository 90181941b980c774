"""A worker process: it reads and computes with recordings apart from the server, within limits.

The process is kept ready. It is ended when a call passes a limit of memory or time or is cancelled,
and a new one is started. The server receives JSON and bytes from it, never objects. Its own output
is discarded, because libraries print file names; defects come back as places in the source.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gazediffusion
from gazediffusion.errors import GazeError
from gazediffusion.web.queue import INTERNAL, InternalError, Job, JobCancelledError, log
from gazediffusion.web.settings import Limits

PREFIX = "gazediffusion-"  # of temporary folders
# A function of the worker takes this after its arguments, and calls it with its progress.
Report = Callable[[dict[str, Any]], None]
_POLL_S = 0.05


class TooLargeError(GazeError):
    """More than one request may carry or need."""


class Worker:
    """One process that calls functions for the server, one at a time.

    modules: loaded when it starts, so that calls need not wait for them. own_mb: the memory that
    these need beside an upload.
    """

    def __init__(self, limits: Limits, modules: Sequence[str], own_mb: int = 0) -> None:
        self.limits = limits
        self._modules = tuple(modules)
        self._own_mb = own_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._changing = threading.Lock()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> Connection:
        """Start the process if there is none; it loads its libraries meanwhile."""
        with self._changing:
            if self._is_closed:
                raise JobCancelledError
            if self._connection is None:
                self._start()
            assert self._connection is not None
            return self._connection

    def call(
        self, job: Job, is_limited: bool, function: Callable[..., bytes], *arguments: Any
    ) -> bytes:
        """What a function of a module returns for these arguments; its progress is the job's.

        is_limited: whether it may take no more than the limits of memory and time.
        """
        connection = self.start()
        try:
            connection.send((function, arguments))
            kind, value = self._answer(connection, job, is_limited)
        except (EOFError, OSError):
            self._restart()
            raise GazeError(
                "the process that read this ended",
                remedy="the file is damaged, or needs more memory than there is",
            ) from None
        except BaseException:
            self._restart()
            raise
        if _memory_mb(self.pid) > self.limits.max_memory_mb / 2 + self._own_mb:
            self._restart()  # What it has freed is not given back.
        if kind == "result":
            return value
        raise self._failure(kind, value.decode(), is_limited)

    def close(self) -> None:
        """End the process for good."""
        with self._changing:
            self._is_closed = True
            self._end()

    def _answer(self, connection: Connection, job: Job, is_limited: bool) -> tuple[str, bytes]:
        """The last message of a call; raises where the call is to be ended.

        The limit of time begins anew while windows are generated, whose number is limited.
        """
        max_s = self.limits.max_work_s if is_limited else math.inf
        max_mb = self.limits.max_memory_mb + self._own_mb if is_limited else math.inf
        until = time.monotonic() + max_s
        while True:
            if connection.poll(_POLL_S):
                kind, value = connection.recv_bytes().decode(), connection.recv_bytes()
                if kind != "progress":
                    return kind, value
                progress = json.loads(value)
                if progress.get("stage") == "generating":
                    until = time.monotonic() + max_s
                job.report("progress", progress)
            job.require_active()
            if time.monotonic() > until:
                raise TooLargeError(f"reading and comparing took longer than {max_s:g} s")
            if _memory_mb(self.pid) > max_mb:
                raise self._failure("memory")

    def _failure(self, kind: str, line: str = "", is_upload: bool = True) -> Exception:
        if kind == "invalid":
            return GazeError(line)
        if kind == "large":
            return TooLargeError(line)
        if kind == "memory":
            return TooLargeError(
                f"the upload needs more than {self.limits.max_memory_mb} MB of memory"
            )
        log.error("the worker failed: %s", line)
        if not is_upload:
            return InternalError(INTERNAL)
        return GazeError(f"this cannot be read ({line.split()[0]}); the file may be damaged")

    def _restart(self) -> None:
        with self._changing:
            self._end()
            if not self._is_closed:
                self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        root = str(Path(gazediffusion.__file__).parents[1])
        script = (
            f"import sys; sys.path.append({root!r}); from gazediffusion.web.worker import work; "
            f"work({theirs.fileno()}, {self.limits.max_memory_mb}, {self._modules!r})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "TMPDIR": self._folder.name},
                start_new_session=True,  # Ctrl-C is for the server.
            )
        self._connection = Connection(ours.detach())

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()
        self._process = self._connection = self._folder = None


def _memory_mb(pid: int | None, what: str = "VmRSS") -> float:
    """Resident (VmRSS) or writable (VmData) memory of a process; 0 where it is not known."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{what}:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def work(descriptor: int, max_memory_mb: int, modules: Sequence[str]) -> None:
    """The worker process: calls what it receives, until the server's end of the line is closed."""
    connection = Connection(descriptor)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def receive() -> None:
        # A thread of its own, so that the process also ends during a call when the server is gone.
        with contextlib.suppress(EOFError, OSError):
            while True:
                calls.put(connection.recv())
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    for name in modules:
        import_module(name)
    _limit_memory(max_memory_mb)
    while True:
        function, arguments = calls.get()
        kind, value = _outcome(connection, function, arguments)
        connection.send_bytes(kind.encode())
        connection.send_bytes(value)


def _outcome(connection: Connection, function: Any, arguments: Any) -> tuple[str, bytes]:
    def report(progress: dict[str, Any]) -> None:
        connection.send_bytes(b"progress")
        connection.send_bytes(json.dumps(progress).encode())

    try:
        return "result", function(*arguments, report)
    except TooLargeError as error:
        return "large", str(error).encode()
    except GazeError as error:
        return "invalid", str(error).encode()
    except MemoryError:
        return "memory", b""
    except BaseException as error:  # also the panics of libraries in Rust
        places = traceback.extract_tb(error.__traceback__)[-4:]
        words = [f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in places]
        return "defect", f"{type(error).__name__} at {', '.join(words)}".encode()


def _limit_memory(max_mb: int) -> None:
    """A limit of the system beside that of the server, which looks a few times a second."""
    import resource

    for kind, most in (
        (resource.RLIMIT_DATA, int(_memory_mb(os.getpid(), "VmData") + max_mb) * 2**20),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
