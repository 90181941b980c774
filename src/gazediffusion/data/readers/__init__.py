"""Recordings in: find the files, tell their format, read them one after another.

One module per format, each with a NAME, `matches(path, head, options)` (is this file mine?) and
`read(path, options)` (its recordings, one at a time, so that memory holds one file and not the
whole study). A reader raises `GazeError` for bad input and nothing else.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from gazediffusion.data.readers import (
    bids,
    eyelink,
    gazebase,
    gazepoint,
    paper,
    pupil_labs,
    pymovements,
    samples,
    smi,
    tobii,
)
from gazediffusion.data.readers.options import ReadOptions, identities_by_folder
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.plugins import Plugin, find_plugins
from gazediffusion.storage import (
    decode_text,
    fetched_matches,
    is_remote,
    open_unpacked,
    origin_of,
    sha256_of,
    unpacked,
)

__all__ = ["FORMATS", "ReadOptions", "Source", "find_sources", "formats", "read_recordings"]

_HEAD_BYTES = 1 << 16
_EXPORT = "export the samples as text (.csv or .tsv) and read that"
_TOBII = "a Tobii recording", "export it from Tobii Pro Lab (Data Export, tsv) and read that"
# What only their maker's programs read, and how to get text out of it.
_CONVERTED = {
    ".edf": (
        "an EyeLink file",
        "convert it with SR Research's edf2asc (edf2asc {name}) and read {stem}.asc",
    ),
    ".idf": ("an SMI file", "convert it with SMI's IDF Converter and read '{stem} Samples.txt'"),
    ".tobii": _TOBII,
    ".ttgp": _TOBII,
    ".mat": ("a MATLAB file", _EXPORT),
    **dict.fromkeys((".xls", ".xlsx"), ("an Excel file", _EXPORT)),
    **dict.fromkeys((".h5", ".hdf5"), ("an HDF5 file", _EXPORT)),
}


class Reader(Protocol):
    """What a reader module offers."""

    @property
    def NAME(self) -> str:  # noqa: N802
        """What users call the format."""
        ...

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """Whether a file that begins with `head` is of this format; `path` lacks its `.gz`."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The recordings in one file, in the file's order."""
        ...


# Asked in this order: the most particular first, any table last.
_READERS: tuple[Reader, ...] = (
    bids,
    eyelink,
    tobii,
    smi,
    gazepoint,
    pupil_labs,
    gazebase,
    paper,
    samples,
)
FORMATS: dict[str, Reader] = {reader.NAME: reader for reader in _READERS}


@dataclass(frozen=True)
class _PluginReader:
    """A reader of another package, whose failures name it."""

    NAME: str
    plugin: Plugin

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """Whether the plug-in says so."""
        return bool(self.plugin.call(self.plugin.value.matches, path, head, options))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The plug-in's recordings."""
        found = self.plugin.call(lambda: iter(self.plugin.value.read(path, options)))
        end = object()
        while (one := self.plugin.call(next, found, end)) is not end:
            if not isinstance(one, Recording):
                raise self.plugin.failure(TypeError(f"{type(one).__name__} is no Recording"))
            yield one


def formats() -> dict[str, Reader]:
    """All readers by name, in the order in which they are asked: those of plug-ins first."""
    found = find_plugins("readers", ("auto", *FORMATS))
    return {**{name: _PluginReader(name, one) for name, one in found.items()}, **FORMATS}


@dataclass(frozen=True)
class Source:
    """One file and the reader that takes it."""

    path: Path
    reader: Reader
    options: ReadOptions

    def read(self) -> Iterator[Recording]:
        """The recordings in this file."""
        return self.reader.read(self.path, self.options)

    def described(self) -> dict[str, Any]:
        """Name, URL of a fetched file, format, size and hash, as provenance states them."""
        return {
            "name": self.path.name,
            **origin_of(self.path),
            "format": self.reader.NAME,
            "bytes": self.path.stat().st_size,
            "sha256": sha256_of(self.path),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # A module cannot be pickled; its name can.
        is_named = self.reader in _READERS or isinstance(self.reader, _PluginReader)
        reader = self.reader.NAME if is_named else self.reader
        return _source, (type(self), self.path, reader, self.options)


def _source(kind: type[Source], path: Path, reader: Reader | str, options: ReadOptions) -> Source:
    return kind(path, formats()[reader] if isinstance(reader, str) else reader, options)


def find_sources(
    paths: Sequence[str | Path], options: ReadOptions | None = None, format: str = "auto"
) -> list[Source]:
    """Every readable file named by files, folders, globs, URLs or `pymovements:NAME`, sorted.

    Files in a folder that are no recordings (notes, sidecars) are passed over; a file named
    outright must be one.
    """
    options = options or ReadOptions()
    if format != "auto" and format not in formats():
        raise GazeError(f"no format {format!r}", remedy=suggestion(format, ["auto", *formats()]))
    found: dict[Path, tuple[Path, Reader]] = {}
    for given in paths:
        for path, reader in _expand(str(given), options, format):
            found.setdefault(path.resolve(), (path, reader))
    if not found:
        raise GazeError("no recordings were named", remedy="give files, folders or a glob")
    options = replace(options, by_folder=identities_by_folder([path for path, _ in found.values()]))
    # The first eye's file brings the second eye along.
    return [
        Source(path, reader, options)
        for resolved, (path, reader) in found.items()
        if bids.first_eye_of(resolved) not in found
    ]


def read_recordings(
    paths: Sequence[str | Path], options: ReadOptions | None = None, format: str = "auto"
) -> Iterator[Recording]:
    """Read every recording found at `paths`, one at a time."""
    for source in find_sources(paths, options, format):
        yield from source.read()


def _expand(given: str, options: ReadOptions, format: str) -> Iterator[tuple[Path, Reader]]:
    """The files that one argument names, with their readers."""
    path = Path(given)
    if given.startswith("pymovements:"):
        yield from pymovements.find(given.removeprefix("pymovements:"), options)
    elif is_remote(given):
        for copy in fetched_matches(given, _beside):
            yield from _expand(str(copy), options, format)
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        shown = [one for one in files if not any(p[0] == "." for p in one.relative_to(path).parts)]
        readers = ((file, _detect(file, options, format)) for file in shown)
        recordings = [(file, reader) for file, reader in readers if reader is not None]
        if not recordings:
            raise next(filter(None, map(_to_convert, shown)), _no_recordings(path, shown))
        yield from recordings
    elif path.exists():
        yield path, _reader_for(path, options, format)
    elif glob.has_magic(given):
        names = sorted(glob.glob(given, recursive=True))
        if not names:
            raise GazeError("nothing matches this pattern", path=given)
        for name in names:
            yield from _expand(name, options, format)
    else:
        raise GazeError("there is no such file or folder", path=given)


def _beside(name: str) -> tuple[str, ...]:
    """Patterns of the files beside one that readers look for: sidecars, events, the other eye's."""
    stem = unpacked(Path(name)).stem
    return f"{stem.split('_recording-')[0]}*", f"{stem.split('_physio')[0]}*", "*.json", "*.yaml"


def _head(path: Path) -> bytes:
    with open_unpacked(path) as stream:
        return stream.read(_HEAD_BYTES)


def _detect(path: Path, options: ReadOptions, format: str) -> Reader | None:
    head, name = _head(path), unpacked(path)
    readers = list(formats().values()) if format == "auto" else [formats()[format]]
    if format == "auto" and any(word[0] in "xy" for word in options.columns):
        readers = [FORMATS[samples.NAME], *readers]  # the user knows where the gaze is
    return next((reader for reader in readers if reader.matches(name, head, options)), None)


def _reader_for(path: Path, options: ReadOptions, format: str) -> Reader:
    """The reader of a file named outright; for a table without known columns the table's own."""
    if format != "auto":
        return formats()[format]
    reader = _detect(path, options, format)
    if reader is None and samples.is_table(unpacked(path)):
        return FORMATS[samples.NAME]
    if reader is None:
        raise _to_convert(path) or _unknown_format(path)
    return reader


def _to_convert(path: Path) -> GazeError | None:
    """What is said of a file that must be converted first; None for any other."""
    if path.suffix.lower() not in _CONVERTED:
        return None
    kind, remedy = _CONVERTED[path.suffix.lower()]
    remedy = remedy.format(name=path.name, stem=path.stem)
    return GazeError(f"this is {kind}, which is not read", path=path, remedy=remedy)


def _unknown_format(path: Path) -> GazeError:
    """What a file of no known format looks like, and what to try."""
    problem = "no eye-tracking format known here"
    try:
        first = decode_text(_head(path), path).strip().split("\n")[0].strip()
    except GazeError:
        remedy = f"export the samples as text; formats read are {', '.join(formats())}"
        return GazeError(f"{problem}: a binary file", path=path, remedy=remedy)
    if not first:
        return GazeError("the file is empty", path=path, remedy="check the export or the download")
    remedy = "if it is a table, give `format` table and `columns` t=1,x=2,y=3 (or names)"
    return GazeError(f"{problem}: text that begins {first[:80]!r}", path=path, remedy=remedy)


def _no_recordings(folder: Path, files: Sequence[Path]) -> GazeError:
    """What a folder without recordings has instead, and what to try."""
    endings = Counter(unpacked(file).suffix.lower() or "without ending" for file in files)
    found = ", ".join(f"{n} {ending}" for ending, n in endings.most_common(10)) or "no files"
    remedy = f"formats read are {', '.join(formats())}"
    if table := next((file for file in files if samples.is_table(unpacked(file))), None):
        remedy = f"to see what a table lacks: gazediffusion inspect '{table}'; {remedy}"
    return GazeError(f"no recordings in this folder, but {found}", path=folder, remedy=remedy)
