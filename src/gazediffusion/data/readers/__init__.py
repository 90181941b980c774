"""Recordings in: find the files, tell their format, read them one after another.

One module per format, each with a NAME, `matches(path, head, options)` (is this file mine?) and
`read(path, options)` (its recordings, one at a time, so that memory holds one file and not the
whole study). A reader raises `GazeError` for bad input and nothing else.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from gazediffusion.data.readers import (
    bids,
    columns,
    eyelink_asc,
    pupil_labs,
    pymovements_registry,
    table,
    tobii,
)
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError, suggestion

__all__ = ["FORMATS", "ReadOptions", "Source", "find_sources", "read_recordings"]

_HEAD_BYTES = 1 << 16


class Reader(Protocol):
    """What a reader module offers."""

    NAME: str

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """Whether the file at `path`, which begins with `head`, is of this format."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The recordings in one file, in the file's order."""
        ...


# Asked in this order: the most particular first, any table last.
_READERS = cast("tuple[Reader, ...]", (bids, eyelink_asc, tobii, pupil_labs, columns, table))
FORMATS: dict[str, Reader] = {reader.NAME: reader for reader in _READERS}
_TABLE_ENDINGS = {".csv", ".tsv", ".txt", ".parquet"}


@dataclass(frozen=True)
class Source:
    """One file and the reader that takes it."""

    path: Path
    reader: Reader
    options: ReadOptions

    def read(self) -> Iterator[Recording]:
        """The recordings in this file."""
        return self.reader.read(self.path, self.options)


def find_sources(
    paths: Sequence[str | Path], options: ReadOptions | None = None, format: str = "auto"
) -> list[Source]:
    """Every readable file named by files, folders, globs or `pymovements:NAME`, in sorted order.

    Files in a folder that are no recordings (notes, sidecars) are passed over; a file named
    outright must be one.
    """
    options = options or ReadOptions()
    if format != "auto" and format not in FORMATS:
        raise GazeError(f"no format {format!r}", remedy=suggestion(format, ["auto", *FORMATS]))
    sources: dict[Path, Source] = {}
    for given in paths:
        for source in _expand(str(given), options, format):
            sources.setdefault(source.path.resolve(), source)
    # The first eye's file brings the second eye along.
    for path in list(sources):
        first = bids.first_eye_of(path)
        if first in sources:
            del sources[path]
    if not sources:
        raise GazeError("no recordings were named", remedy="give files, folders or a glob")
    return list(sources.values())


def read_recordings(
    paths: Sequence[str | Path], options: ReadOptions | None = None, format: str = "auto"
) -> Iterator[Recording]:
    """Read every recording found at `paths`, one at a time."""
    for source in find_sources(paths, options, format):
        yield from source.read()


def _expand(given: str, options: ReadOptions, format: str) -> Iterator[Source]:
    if given.startswith("pymovements:"):
        for path, reader in pymovements_registry.find(given.removeprefix("pymovements:"), options):
            yield Source(path, cast("Reader", reader), options)
        return
    path = Path(given)
    if path.is_dir():
        yield from _in_folder(path, options, format)
    elif path.exists():
        yield Source(path, _reader_for(path, options, format), options)
    elif glob.has_magic(given):
        found = sorted(glob.glob(given, recursive=True))
        if not found:
            raise GazeError("nothing matches this pattern", path=given)
        for name in found:
            yield from _expand(name, options, format)
    else:
        raise GazeError("there is no such file or folder", path=given)


def _in_folder(folder: Path, options: ReadOptions, format: str) -> Iterator[Source]:
    found = False
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():
            continue
        reader = _detect(path, options, format)
        if reader is not None:
            found = True
            yield Source(path, reader, options)
    if not found:
        raise GazeError(
            "no recordings in this folder",
            path=folder,
            remedy=f"formats read are {', '.join(FORMATS)}",
        )


def _detect(path: Path, options: ReadOptions, format: str) -> Reader | None:
    try:
        with open(path, "rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        raise GazeError(f"cannot be read ({error.strerror})", path=path) from error
    readers = _READERS if format == "auto" else (FORMATS[format],)
    return next((reader for reader in readers if reader.matches(path, head, options)), None)


def _reader_for(path: Path, options: ReadOptions, format: str) -> Reader:
    """The reader of a file named outright; for a table without known columns the table's own."""
    if format != "auto":
        return FORMATS[format]
    reader = _detect(path, options, format)
    if reader is not None:
        return reader
    if path.suffix.lower() in _TABLE_ENDINGS:
        return FORMATS[table.NAME]
    raise GazeError(
        "this is no eye-tracking format known here",
        path=path,
        remedy=f"name it with `format` ({', '.join(FORMATS)})",
    )
