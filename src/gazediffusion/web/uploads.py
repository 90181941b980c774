"""Uploaded recordings: stored in a folder of their own until their work is done, then deleted.

A sender's file name is never used as a path. Its letters and folders are kept, because readers find
the format, the participant and the task in them. It is shown to the sender and never logged.

A small file can describe a table that no memory holds. Rows, columns and the unpacked size are
counted on the stored bytes, in the worker, before anything is parsed; what passes is still limited
in memory and time.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from gazediffusion.errors import GazeError
from gazediffusion.web.worker import PREFIX, TooLargeError

_MAX_NAME, _MAX_DEPTH = 100, 4
_CHUNK = 1 << 20
# A compressed file may expand to so many times the limit of uploads.
MAX_EXPANSION = 4
MAX_ROWS = 10_000_000  # 11 hours at 250 Hz
MAX_COLUMNS = 1000
MAX_HEADER = 2**25  # bytes of a safetensors header
MAX_MEMBERS = 1000  # of an archive
_GZIP = b"\x1f\x8b"
_HEAD_LINES = 50
# A file that has a line for every quantity, and not for every sample, has about so many lines.
_FEW_LINES = range(3, 20)
_NUMBERS = re.compile(rb"(?:[-+.,;\t| \de]|nan|inf)*", re.IGNORECASE)


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


def require_all_bounds(source: Path, max_bytes: int) -> None:
    """`require_bounds` of a file, or of every file of a folder."""
    for path in [source] if source.is_file() else sorted(source.rglob("*")):
        if path.is_file():
            require_bounds(path, max_bytes)


def require_bounds(path: Path, max_bytes: int) -> None:
    """Refuse a file that expands to more than `max_bytes`, or that has too many rows or columns.

    A damaged file passes: its reader says what is wrong with it.
    """
    with open(path, "rb") as stream:
        head = stream.read(8)
    if head.startswith(_GZIP):
        _require_gzip(path, max_bytes)
    elif head.startswith(b"PAR1"):
        _require_parquet(path, max_bytes)
    elif head.startswith(b"PK"):
        _require_zip(path, max_bytes)
    elif path.suffix == ".safetensors":
        if int.from_bytes(head, "little") > MAX_HEADER:
            raise TooLargeError(f"the header may have {MAX_HEADER >> 20} MB", path=path.name)
    else:
        with open(path, "rb") as stream:
            _require_text(path, _chunks(stream), max_bytes)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


def _require_gzip(path: Path, max_bytes: int) -> None:
    try:
        with gzip.open(path) as stream:
            _require_text(path, _chunks(cast("BinaryIO", stream)), max_bytes)
    except (OSError, EOFError, zlib.error):
        return


def _require_text(path: Path, chunks: Iterator[bytes], max_bytes: int) -> None:
    size = n_rows = 0
    is_wide = False
    for chunk in chunks:
        if size == 0:
            if chunk.startswith(_GZIP):
                raise TooLargeError("this is compressed twice", path=path.name)
            is_wide = _is_wide(path, chunk)
        size += len(chunk)
        n_rows += chunk.count(b"\n")
        if size > max_bytes:
            raise TooLargeError(f"expands to more than {max_bytes >> 20} MB", path=path.name)
        if n_rows > MAX_ROWS:
            raise TooLargeError(f"more than {MAX_ROWS:,} rows", path=path.name)
    if is_wide and n_rows not in _FEW_LINES:
        raise _too_wide(path)


def _is_wide(path: Path, chunk: bytes) -> bool:
    """Whether lines have very many cells: numbers, as those of a line for every quantity."""
    lines = re.split(rb"[\r\n]+", chunk.replace(b"\0", b""), maxsplit=_HEAD_LINES)
    wide = [
        line
        for line in lines[:_HEAD_LINES]
        if max(line.count(mark) for mark in b",;\t|") >= MAX_COLUMNS
    ]
    if not all(_NUMBERS.fullmatch(line) for line in wide):
        raise _too_wide(path)
    return bool(wide)


def _too_wide(path: Path) -> TooLargeError:
    return TooLargeError(f"more than {MAX_COLUMNS:,} columns", path=path.name)


def _require_parquet(path: Path, max_bytes: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        described = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return
    if described.num_columns > MAX_COLUMNS:
        raise _too_wide(path)
    if described.num_rows > MAX_ROWS:
        raise TooLargeError(f"more than {MAX_ROWS:,} rows", path=path.name)
    unpacked = sum(described.row_group(k).total_byte_size for k in range(described.num_row_groups))
    cells = described.num_rows * described.num_columns * 8
    if max(unpacked, cells) > max_bytes:
        raise TooLargeError(f"expands to more than {max_bytes >> 20} MB", path=path.name)


def _require_zip(path: Path, max_bytes: int) -> None:
    """By the sizes that the archive states; a member never gives more than it states."""
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = [member.file_size for member in archive.infolist()]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return
    if len(sizes) > MAX_MEMBERS:
        raise TooLargeError(f"more than {MAX_MEMBERS:,} members", path=path.name)
    if sum(sizes) > max_bytes:
        raise TooLargeError(f"expands to more than {max_bytes >> 20} MB", path=path.name)
