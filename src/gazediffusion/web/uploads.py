"""Uploaded recordings: kept in a temporary folder while they are read, then deleted.

A sender's file name is never used as a path. Its letters are kept, because readers find the
format, the participant and the task in them.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from gazediffusion.errors import GazeError

# A compressed file may expand to so many times the limit of uploads.
MAX_EXPANSION = 10
PREFIX = "gazediffusion-"
_CHUNK = 1 << 20


class TooLargeError(GazeError):
    """More than one request may carry."""


@contextlib.contextmanager
def stored(files: Sequence[tuple[str, BinaryIO]], max_bytes: int) -> Iterator[list[Path]]:
    """The files (name, content) in a folder that is deleted at the end; errors do not name it."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        paths = [
            _store(content, folder, safe_name(given, number))
            for number, (given, content) in enumerate(files)
        ]
        for path in paths:
            _require_size(path, max_bytes * MAX_EXPANSION)
        try:
            yield paths
        except GazeError as error:
            line = str(error).replace(f"{folder}{os.sep}", "").replace(name, "the upload")
            raise GazeError(line) from error


def safe_name(given: str, number: int = 0) -> str:
    """The last part of a name in plain letters; `recording0` where nothing is left of it."""
    last = re.split(r"[/\\]", given)[-1]
    return re.sub(r"[^A-Za-z0-9._-]", "_", last)[-100:].lstrip(".") or f"recording{number}"


def _store(content: BinaryIO, folder: Path, name: str) -> Path:
    path = folder / name
    while path.exists():
        path = path.parent / "again" / name
        path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as stream:
        shutil.copyfileobj(content, stream, _CHUNK)
    return path


def _require_size(path: Path, most: int) -> None:
    """Refuse a small file that would expand to more than memory holds."""
    with open(path, "rb") as stream:
        head = stream.read(4)
    if head.startswith(b"\x1f\x8b"):
        expanded = _gzip_size(path, most)
    elif head == b"PAR1":
        expanded = _parquet_size(path)
    else:
        return
    if expanded > most:
        raise TooLargeError(f"{path.name} expands to more than {most // 2**20} MB")


def _gzip_size(path: Path, most: int) -> int:
    """Bytes in a gzip file, counted no further than `most`; a damaged one is for its reader."""
    size = 0
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path) as stream:
        while size <= most and (chunk := stream.read(_CHUNK)):
            size += len(chunk)
    return size


def _parquet_size(path: Path) -> int:
    """Bytes of a Parquet table in memory, at eight a cell."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        described = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return 0
    return int(described.num_rows) * int(described.num_columns) * 8
