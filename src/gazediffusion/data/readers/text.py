"""Text tables in blocks of whole rows, so that memory holds a block and not the file.

Blank lines and comments (`#`, `%`, `//`, `;`) are no rows. They may stand before the header and
between rows; lines are counted with them. Cells may be separated by several blanks. A table may
lack a header: its columns are then called by their positions, "1", "2", ...
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from gazediffusion.data.readers.scanning import scan_batches
from gazediffusion.errors import GazeError
from gazediffusion.storage import decode_text, is_utf_16, open_unpacked

MISSING = ["", ".", "-", "nan", "na", "n/a", "null", "none"]

_BLOCK_BYTES = 2 << 20
_MAX_ROW_BYTES = 64 << 20
_MAX_COLUMNS = 10_000
_COMMENT_MARKS = ("#", "%", "//", ";")
_BEGINS_NO_ROW = np.zeros(256, dtype=np.bool_)  # by the first byte of a line
_BEGINS_NO_ROW[list(b"\n#%/;")] = True
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*|,\d+)?|[.,]\d+)(e[-+]?\d+)?", re.IGNORECASE)

# Rows in UTF-8, each with its end, and the line (from 1) of each.
Rows = tuple[bytes, Sequence[int]]


@dataclass(frozen=True)
class TextTable:
    """Where the rows of a text are; blocks are read anew whenever they are asked for.

    n_lines_before: lines above the first row.
    """

    blocks: Callable[[], Iterator[bytes]]
    path: Path
    names: list[str]
    separator: str
    n_lines_before: int

    def scan(self) -> pl.LazyFrame:
        """The rows as text cells, parsed block by block."""
        schema = pl.Schema(dict.fromkeys(self.names, pl.String))

        def batches() -> Iterator[pl.LazyFrame]:
            for rows, _ in self._blocks_of_rows():
                yield pl.scan_csv(rows, separator=self.separator, has_header=False, schema=schema)

        return scan_batches(batches, schema)

    def place(self, row: int) -> str:
        """The line of a row, counted from 0."""
        for _, lines in self._blocks_of_rows():
            if row < len(lines):
                return f"line {lines[row]}"
            row -= len(lines)
        raise AssertionError("the table has no such row")

    def _blocks_of_rows(self) -> Iterator[Rows]:
        line, n_before, is_empty = 1, self.n_lines_before, True
        for block in self.blocks():
            block = block.split(b"\n", n_before)[n_before]
            line, n_before = line + n_before, 0
            rows, lines = self._without_comments(block, line)
            line += block.count(b"\n")
            if rows:
                is_empty = False
                yield rows, self._lines_of_even(rows, lines)
        if is_empty:
            raise GazeError("there are no rows of samples", path=self.path)

    def _without_comments(self, block: bytes, line: int) -> Rows:
        """The rows in a block of lines, the first of which is number `line`."""
        if self.separator == " ":
            block = _single_spaced(block)
        content = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(content == ord("\n"))
        if not _BEGINS_NO_ROW[content[np.append(0, ends[:-1] + 1)[: len(ends)]]].any():
            return block, range(line, line + len(ends))
        rows = [(n, row) for n, row in enumerate(block.split(b"\n"), line) if self._is_row(row)]
        return b"".join(row + b"\n" for _, row in rows), [n for n, _ in rows]

    def _is_row(self, line: bytes) -> bool:
        """Whether a line is neither blank nor a comment.

        One with as many cells as there are columns is a row, whatever its first cell begins with.
        """
        separator = self.separator.encode()
        marks = tuple(mark.encode() for mark in _COMMENT_MARKS if mark != self.separator)
        has_cells = self.separator != " " and line.count(separator) == len(self.names) - 1
        return line != b"" and (has_cells or not line.startswith(marks))

    def _lines_of_even(self, rows: bytes, lines: Sequence[int]) -> Sequence[int]:
        """The line of each row; a row with too few or too many cells is an error."""
        n_cells = len(self.names)
        unquoted = b"".join(rows.split(b'"')[::2]) if b'"' in rows else rows
        content = np.frombuffer(unquoted, dtype=np.uint8)
        n_ends, n_separators = (
            np.count_nonzero(content == ord(mark)) for mark in ("\n", self.separator)
        )
        if n_ends == len(lines) and n_separators == n_ends * (n_cells - 1):
            return lines
        # Slowly: a row is uneven, or a cell within quotes holds an end of line.
        reader = csv.reader(rows.decode().split("\n")[:-1], delimiter=self.separator, strict=True)
        found, first = [], 0
        try:
            for cells in reader:
                if len(cells) != n_cells:
                    problem = f"{len(cells)} cells where there are {n_cells} columns"
                    raise GazeError(problem, path=self.path, place=f"line {lines[first]}")
                found.append(lines[first])
                first = reader.line_num
        except csv.Error as error:
            problem = f"the table is damaged ({error})"
            raise GazeError(problem, path=self.path, place=f"line {lines[first]}") from error
        return found


def header_of(head: bytes, path: Path, by_position: bool = False) -> list[str]:
    """Column names in a text file that begins with `head`."""
    if not is_utf_16(head):
        # A head cut inside a character is no UTF-8; whole lines are.
        head = head[: head.rfind(b"\n") + 1] or head
    text = decode_text(head, path).replace("\r\n", "\n").replace("\r", "\n")
    return find_table(lambda: iter([text.encode()]), path, by_position=by_position).names


def find_table(
    blocks: Callable[[], Iterator[bytes]],
    path: Path,
    names: list[str] | None = None,
    separator: str | None = None,
    by_position: bool = False,
) -> TextTable:
    """The table in blocks of text, whose header names the columns unless `names` do.

    by_position: where there is no header, the columns are called by their positions.
    """
    comment, n_before = "", 0
    for line in io.StringIO(next(blocks(), b"").decode()):
        if line.strip() and not _is_comment(line):
            break
        comment = line.lstrip("#%/; ").rstrip() or comment
        n_before += 1
    else:
        problem = "there are no rows of samples" if comment else "the file is empty"
        raise GazeError(problem, path=path, remedy="check the export or the download")
    line = line.rstrip("\n")
    separator = separator or _separator(line)
    if names is None:
        cells = _cells(line, separator, path)
        require_few_columns(len(cells), path)
        has_numbers = any(map(_NUMBER.fullmatch, cells))
        commented = _cells(comment, separator, path)
        if has_numbers and len(commented) == len(cells):
            names = commented
        elif has_numbers and by_position:
            names = [str(position) for position in range(1, len(cells) + 1)]
        elif _are_numbers(cells):
            raise GazeError(
                f"no header, {len(cells)} columns of numbers: the first row is {line.strip()[:80]}",
                path=path,
                remedy="name them by position with `columns` t=1,x=2,y=3",
            )
        else:
            names, n_before = cells, n_before + 1
    return TextTable(blocks, path, _different(names), separator, n_before)


def require_few_columns(n_columns: int, path: Path) -> None:
    """Refuse a table that is so wide that its rows cannot be samples."""
    if n_columns > _MAX_COLUMNS:
        problem = f"{n_columns:,} columns; a table may have {_MAX_COLUMNS:,}"
        raise GazeError(problem, path=path, remedy="one row is one sample: transpose it")


def _is_comment(line: str) -> bool:
    """Whether a line before the first row is a comment; `;x;y` is a header."""
    return line.startswith(_COMMENT_MARKS) and not (line[0] == ";" and ";" in line[1:])


def _separator(line: str) -> str:
    # A rarer character first: names may hold commas and spaces, but hardly a tab.
    mark = next((mark for mark in "\t;," if mark in line), " ")
    words = line.split()
    has_decimal_commas = mark == "," and len(words) > 1 and all(map(_NUMBER.fullmatch, words))
    return " " if has_decimal_commas else mark


def _cells(line: str, separator: str, path: Path) -> list[str]:
    if separator == " ":
        line = " ".join(line.split())
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error as error:
        raise GazeError(f"the header cannot be read ({error})", path=path) from error


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether all cells hold numbers, some of them perhaps missing."""
    present = [cell for cell in cells if cell.lower() not in MISSING]
    return len(present) > 0 and all(map(_NUMBER.fullmatch, present))


def _different(names: Sequence[str]) -> list[str]:
    """The names, repeated ones made different by their position."""
    seen: set[str] = set()
    different = []
    for position, name in enumerate(names):
        different.append(f"{name}#{position}" if name in seen else name)
        seen.add(different[-1])
    return different


def blocks_of(path: Path) -> Iterator[bytes]:
    """A text file, unpacked, in UTF-8, in blocks of whole rows that end in a newline.

    UTF-8 (with or without mark), UTF-16 with a mark, or Latin-1.
    """
    rest = b""
    with open_unpacked(path) as stream:
        for chunk in _with_newlines(_chunks(stream, path)):
            text = rest + chunk
            end = text.rfind(b"\n") + 1
            # An odd number of quotes: the last line ends within a cell.
            while text.count(b'"', 0, end) % 2:
                end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
            block, rest = text[:end], text[end:]
            if len(rest) > _MAX_ROW_BYTES:
                problem = f"a row is longer than {_MAX_ROW_BYTES >> 20} MB"
                raise GazeError(problem, path=path, remedy="a quote may not be closed")
            if block:
                yield _in_utf_8(block, path)
    if rest:
        yield _in_utf_8(rest if rest.endswith(b"\n") else rest + b"\n", path)


def _chunks(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """The bytes of a stream; those of UTF-16 in UTF-8."""
    chunk = stream.read(_BLOCK_BYTES)
    decoder = codecs.getincrementaldecoder("utf-16")() if is_utf_16(chunk) else None
    while chunk:
        try:
            yield decoder.decode(chunk).encode() if decoder else chunk
            chunk = stream.read(_BLOCK_BYTES)
            if decoder and not chunk:
                decoder.decode(b"", final=True)
        except UnicodeError as error:
            raise GazeError("the UTF-16 text is damaged", path=path) from error


def _with_newlines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Chunks whose lines end in a newline alone, as on Unix."""
    held = b""
    for chunk in chunks:
        text = held + chunk
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[: len(text) - len(held)]
        yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
    if held:
        yield b"\n"


def _in_utf_8(block: bytes, path: Path) -> bytes:
    if block.isascii() and b"\0" not in block:
        return block
    return decode_text(block, path).encode()


def _single_spaced(block: bytes) -> bytes:
    """Lines with single blanks between cells and none around them."""
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b"\n ", b"\n").replace(b" \n", b"\n").removeprefix(b" ")
