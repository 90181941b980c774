"""Uploaded recordings: stored in a folder of their own until their work is done, then deleted.

A sender's file name is never used as a path. Its letters and folders are kept, because readers find
the format, the participant and the task in them. It is shown to the sender and never logged.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gazediffusion.errors import GazeError
from gazediffusion.web.worker import PREFIX, TooLargeError

_MAX_NAME, _MAX_DEPTH = 100, 4
_CHUNK = 1 << 20


class Upload:
    """The files (name, content) of a request in a folder, and what the sender says of them."""

    def __init__(self, files: Sequence[tuple[str, BinaryIO]], settings: dict[str, Any]) -> None:
        self.settings = settings
        self._folder = tempfile.TemporaryDirectory(prefix=PREFIX)
        self.folder = Path(self._folder.name) / "upload"
        # Where the worker keeps the windows, the evaluation and what it writes.
        self.windows = Path(self._folder.name) / "windows"
        self.evaluation = Path(self._folder.name) / "evaluation"
        self.output = Path(self._folder.name) / "output"
        self.paths: list[Path] = []
        taken: Counter[Path] = Counter()
        try:
            for number, (given, content) in enumerate(files):
                name = safe_name(given, number)
                self.paths.append(self._store(content, name, taken[name]))
                taken[name] += 1
        except OSError as error:
            self.close()
            raise GazeError(f"the upload cannot be stored ({error.strerror})") from None

    @property
    def source(self) -> Path:
        """The only file; or the folder, as several files may belong together, as those of BIDS."""
        return self.paths[0] if len(self.paths) == 1 else self.folder

    def close(self) -> None:
        """Delete everything."""
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def _store(self, content: BinaryIO, name: Path, n_before: int) -> Path:
        path = self.folder / name if n_before == 0 else self.folder / f"again{n_before}" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stream = open(path, "xb")  # noqa: SIM115
        except (FileExistsError, NotADirectoryError):  # one file is named as another's folder
            path = Path(tempfile.mkdtemp(prefix="again", dir=self.folder)) / name.name
            stream = open(path, "xb")  # noqa: SIM115
        with stream:
            shutil.copyfileobj(content, stream, _CHUNK)
        return path

    @contextlib.contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Errors in the names of the form."""
        try:
            yield
        except GazeError as error:
            kind = TooLargeError if isinstance(error, TooLargeError) else GazeError
            raise kind(self.in_words(str(error))) from None

    def in_words(self, line: str) -> str:
        """An error's line without the folder, in the names of the form."""
        line = line.replace(f"{self.folder}{os.sep}", "").replace(str(self.folder), "the upload")
        return line.replace("`source_rate_hz`", "`source_rate`")


def safe_name(given: str, number: int = 0) -> Path:
    """A name and its folders in plain letters; `recording0` where nothing is left of it."""
    parts = [re.sub(r"[^A-Za-z0-9._-]", "_", part) for part in re.split(r"[/\\]", given)]
    plain = [part[-_MAX_NAME:].lstrip(".") for part in parts]
    last = plain.pop() or f"recording{number}"
    return Path(*[part for part in plain if part][-_MAX_DEPTH:], last)
