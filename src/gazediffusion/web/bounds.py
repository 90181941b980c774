"""Bounds of an uploaded file, checked on the stored bytes before anything is parsed.

A small file can describe a table that no memory holds. Rows, columns and the unpacked size are
counted here, in the worker; what passes is still limited in memory and time.
"""

from __future__ import annotations

import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gazediffusion.web.worker import TooLargeError

# A compressed file may expand to so many times the limit of uploads.
MAX_EXPANSION = 4
MAX_ROWS = 10_000_000  # 11 hours at 250 Hz
MAX_COLUMNS = 1000
MAX_HEADER = 2**25  # bytes of a safetensors header
MAX_MEMBERS = 1000  # of an archive
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_HEAD_LINES = 50
# A file that has a line for every quantity, and not for every sample, has about so many lines.
_FEW_LINES = range(3, 20)
_NUMBERS = re.compile(rb"(?:[-+.,;\t| \de]|nan|inf)*", re.IGNORECASE)


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
            _require_text(path, _chunks(cast(BinaryIO, stream)), max_bytes)
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
