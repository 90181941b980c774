"""Commands in processes of their own, forked from one that has already loaded torch.

A new Python loads torch and its optimizers for three to five seconds before a command begins.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gazediffusion.cli import main

START = multiprocessing.get_context("forkserver")
START.set_forkserver_preload(
    ["torch._dynamo", "gazediffusion.training.training", "gazediffusion.generation.sets"]
)


class Command:
    """One command of gazediffusion; its output and errors go to files in `folder`.

    file_bytes: no file can become larger than this, as on a full disk.
    """

    def __init__(self, arguments: list[str], folder: Path, file_bytes: int | None = None) -> None:
        self._said = folder / "said.txt", folder / "errors.txt"
        self._process = START.Process(target=_run, args=(arguments, self._said, file_bytes))
        self._process.start()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait_for(self, condition: Callable[[], bool], seconds: float = 600) -> None:
        """Return when the condition holds or the command has ended."""
        end = time.monotonic() + seconds
        while self.is_alive and not condition():
            assert time.monotonic() < end
            time.sleep(0.005)

    def send(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def end(self, seconds: float = 600) -> tuple[int, str, str]:
        """Exit code, output and errors once the command has ended."""
        self._process.join(seconds)
        assert self._process.exitcode is not None, "the command has not ended"
        said, errors = (path.read_text() for path in self._said)
        return self._process.exitcode, said, errors


def _run(arguments: list[str], said: tuple[Path, Path], file_bytes: int | None) -> None:
    for number, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if file_bytes is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    sys.argv = ["gazediffusion", *arguments]
    main()
