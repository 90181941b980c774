"""Tables: text, Parquet or Arrow, scanned lazily, so that only needed columns come into memory.

Text is read in blocks of whole rows. Cells are separated by tabs, semicolons, commas or blanks,
with decimal points or commas. Blank lines and comments (`#`, `%`, `//`, `;`) are no rows, before
the header or between rows; an error names the line of the file. A table may lack a header: its
columns are then called by their positions, "1", "2", ...

Parquet and Arrow go through pyarrow, since polars' own readers can abort the process on a damaged
file. pymovements keeps the coordinates of a sample in one list, `pixel` or `position` (in degrees);
each is read as a column of its own.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from polars.io.plugins import register_io_source
from pyarrow import dataset, ipc, parquet

from gazediffusion.data.readers.columns import MISSING, event_classes, labels_among, words_in
from gazediffusion.errors import GazeError
from gazediffusion.storage import decode_text, is_utf_16, open_unpacked, read_bytes

TEXT_ENDINGS = {".csv", ".tsv", ".txt"}
ARROW_ENDINGS = {".parquet", ".feather", ".arrow", ".ipc"}
# Damaged content can make polars panic, which is no `Exception`.
TABLE_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    UnicodeDecodeError,
    OSError,
)

_BLOCK_BYTES = 2 << 20
_MAX_ROW_BYTES = 64 << 20
_MAX_COLUMNS = 10_000
_LARGEST = float(np.finfo(np.float32).max)
_TRUE = ["b", "blink", "true", "t", "yes", "y"]
_COMMENT_MARKS = ("#", "%", "//", ";")
_NO_ROW = (b"\n\n", b"\n#", b"\n%", b"\n/", b"\n;")  # how a line begins that may be none
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*|,\d+)?|[.,]\d+)(e[-+]?\d+)?", re.IGNORECASE)
_BOTH_EYES = ["x_left", "y_left", "x_right", "y_right"]
_AXES = {2: ["x", "y"], 4: _BOTH_EYES, 6: [*_BOTH_EYES, "x_mean", "y_mean"]}


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """What a library says of a file it cannot read, in one line that names the file."""
    try:
        yield
    except TABLE_ERRORS as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise GazeError(f"the table is damaged ({reason[:200]})", path=path) from error


class Samples(NamedTuple):
    """Columns in memory: numbers (NaN where missing), flags, labels, and whose the rows are.

    labels: the event class of each row, by column; columns of anything else are left out.
    stretches: rows that follow one another and share their `identity` (a struct of cells), with
        their number `len`.
    """

    values: dict[str, NDArray[np.floating[Any]]]
    flags: dict[str, NDArray[np.bool_]]
    labels: dict[str, NDArray[np.uint8]]
    stretches: pl.DataFrame


@dataclass(frozen=True)
class Table:
    """Rows not yet in memory; `place(row)` names one for an error, counting from row 0."""

    frame: pl.LazyFrame
    path: Path
    place: Callable[[int], str]
    decimal_comma: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        with naming_damage(self.path):
            return self.frame.collect_schema().names()

    def collect(self, expressions: Iterable[str | pl.Expr]) -> pl.DataFrame:
        """Bring columns into memory; a file that cannot be read is a `GazeError`."""
        with naming_damage(self.path):
            return self.frame.select(expressions).collect(engine="streaming").rechunk()

    def numbers(self, names: Sequence[str]) -> pl.DataFrame:
        """Columns as numbers: text is parsed, missing is null, any other cell is an error."""
        raw = self.collect(names)
        return raw.with_columns(self._parsed(raw[name], 0) for name in names)

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column as yes or no: a number that is not 0, a word for yes, or any id."""
        return _flags(self.collect([name]).to_series())

    def samples(
        self,
        numeric: Sequence[str],
        flags: Sequence[str] = (),
        identity: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Samples:
        """Columns of numbers, of yes or no, of identities and of events, read in one pass."""
        parsers: dict[str, tuple[Callable[[pl.Series, int], NDArray[Any]], Sequence[str]]] = {
            "values": (lambda cells, row: _floats(self._parsed(cells, row)), numeric),
            "flags": (lambda cells, _: _flags(cells), flags),
            "labels": (lambda cells, _: event_classes(cells), labels),
        }
        parts: dict[tuple[str, str], list[NDArray[Any]]] = {
            (kind, name): [] for kind, (_, names) in parsers.items() for name in names
        }
        needed = dict.fromkeys([*numeric, *flags, *identity, *labels])
        stretches, n_rows = [], 0
        with naming_damage(self.path):
            for batch in self.frame.select(*needed).collect_batches(maintain_order=True):
                for (kind, name), own in parts.items():
                    own.append(parsers[kind][0](batch[name], n_rows).copy())
                stretches.append(_stretches(batch, identity))
                n_rows += batch.height
        if n_rows == 0:
            raise GazeError("there are no rows of samples", path=self.path)
        found: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in parsers}
        for kind, name in list(parts):  # one after another: memory holds a column twice, not all
            found[kind][name] = np.concatenate(parts.pop((kind, name)))
        classes = labels_among(found["labels"])
        return Samples(found["values"], found["flags"], classes, pl.concat(stretches))

    def where(self, keep: pl.Expr) -> Table:
        """Only the rows for which `keep` is true, which keep their places."""
        rows = np.flatnonzero(self.collect([keep.fill_null(False).alias("keep")]).to_series())
        frame = self.frame.filter(keep)
        return replace(self, frame=frame, place=lambda row: self.place(int(rows[row])))

    def with_columns(self, *expressions: pl.Expr | pl.Series) -> Table:
        """The table with columns replaced or added."""
        return replace(self, frame=self.frame.with_columns(expressions))

    def with_numbers(self, name: str) -> Table:
        """The table with a column as numbers."""
        return self.with_columns(self.numbers([name]).to_series())

    def seen_where(self, is_seen: pl.Expr, names: Iterable[str]) -> Table:
        """The table with these columns blank where `is_seen` is not true."""
        return self.with_columns(*(pl.when(is_seen).then(pl.col(one)).alias(one) for one in names))

    def _parsed(self, series: pl.Series, first_row: int) -> pl.Series:
        """The numbers in a series whose first cell is that of `first_row`."""
        if series.dtype.is_numeric():
            return series
        if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
            raise GazeError(f"column {series.name!r} holds no numbers", path=self.path)
        text = series.cast(pl.String)
        if self.decimal_comma:
            text = text.str.replace(",", ".", literal=True)
        numbers = text.cast(pl.Float64, strict=False)
        unread = np.flatnonzero(numbers.is_null() & text.is_not_null())
        if len(unread) == 0:
            return numbers
        words = text.gather(unread).str.strip_chars()
        parsed = words.cast(pl.Float64, strict=False)
        is_known = (words.str.to_lowercase().is_in(MISSING) | parsed.is_not_null()).to_numpy()
        if not is_known.all():
            row = int(unread[np.argmin(is_known)])
            place = f"{self.place(first_row + row)}, column {series.name!r}"
            raise GazeError(f"{series[row][:40]!r} is no number", path=self.path, place=place)
        return numbers.scatter(unread, parsed)


def _floats(series: pl.Series) -> NDArray[np.floating[Any]]:
    return (series if series.dtype == pl.Float32 else series.cast(pl.Float64)).to_numpy()


def _flags(series: pl.Series) -> NDArray[np.bool_]:
    """Which cells hold a number that is not 0, a word for yes, or any id."""
    text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
    if "id" in words_in(series.name):
        return (~text.is_in(MISSING)).fill_null(False).to_numpy()
    is_number = text.cast(pl.Float64, strict=False).fill_nan(0.0) != 0.0
    return (text.is_in(_TRUE).fill_null(False) | is_number.fill_null(False)).to_numpy()


def _stretches(batch: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Rows that follow one another with the same cells in these columns, and their number."""
    cells = pl.struct(names) if names else pl.struct(pl.repeat("", pl.len()).alias(""))
    found = batch.select(cells.rle().struct.unnest())
    return found.select("len", pl.col("value").alias("identity"))


def open_table(
    path: Path,
    names: list[str] | None = None,
    separator: str | None = None,
    by_position: bool = False,
) -> Table:
    """A text, Parquet or Arrow file as a table, chosen by the ending.

    names, separator: of text without a header. by_position: the columns of text without a header
    are called by their positions.
    """
    if path.suffix.lower() not in ARROW_ENDINGS:
        return _find(lambda: blocks_of(path), path, names, separator, by_position).table()
    with naming_damage(path):
        table = Table(scan(path), path, lambda row: f"row {row + 1}")
    _require_few_columns(len(table.names), path)
    return table


def parse_text(text: str, path: Path) -> Table:
    """Text with a header as a table of text cells."""
    content = (_unix(text).rstrip("\n") + "\n").encode()
    return _find(lambda: iter([content]), path).table()


def header_of(
    head: bytes, path: Path, by_position: bool = False, above: re.Pattern[str] | None = None
) -> list[str]:
    """Column names in a text file that begins with `head`, without the lines that match `above`."""
    if not is_utf_16(head):
        # A head cut inside a character is no UTF-8; whole lines are.
        head = head[: head.rfind(b"\n") + 1] or head
    text = _unix(decode_text(head, path))
    content = (blanked(above, text) if above else text).encode()
    return _find(lambda: iter([content]), path, by_position=by_position).names


def has_columns(
    find: Callable[[list[str], Path], object],
    head: bytes,
    path: Path,
    above: re.Pattern[str] | None = None,
) -> bool:
    """Whether `find` finds the columns of its format in the header of a text file."""
    try:
        return bool(find(header_of(head, path, above=above), path))
    except GazeError:
        return False


def read_text(path: Path) -> str:
    """The text of a file with plain line ends."""
    return _unix(decode_text(read_bytes(path), path))


def blanked(lines: re.Pattern[str], text: str) -> str:
    """The text with these lines left blank and not taken out, so that errors count them."""
    return lines.sub(lambda found: "\n" * found[0].count("\n"), text)


def stated(text: str, name: str) -> str:
    """What a line `name: value` above a header states; empty where there is none."""
    found = re.search(rf"^\W*{re.escape(name)} ?:[ \t]*(.*)$", text, re.MULTILINE | re.IGNORECASE)
    return found[1].strip() if found else ""


def numbers_in(text: str, n: int) -> list[float] | None:
    """The `n` positive numbers in a text, as in `1280 x 1024`, below a million; else None."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    return numbers if len(numbers) == n and all(0 < one < 1e6 for one in numbers) else None


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(frozen=True)
class _Text:
    """Where the rows of a text are; blocks are read anew whenever they are asked for.

    n_lines_before: lines above the first row.
    """

    blocks: Callable[[], Iterator[bytes]]
    path: Path
    names: list[str]
    separator: str
    n_lines_before: int

    def table(self) -> Table:
        """The rows as text cells, parsed block by block."""
        schema = pl.Schema(dict.fromkeys(self.names, pl.String))

        def batches() -> Iterator[pl.LazyFrame]:
            for rows, _ in self._rows():
                yield pl.scan_csv(rows, separator=self.separator, has_header=False, schema=schema)

        return Table(_scanned(batches, schema), self.path, self._place, self.separator != ",")

    def _place(self, row: int) -> str:
        for _, lines in self._rows():
            if row < len(lines):
                return f"line {lines[row]}"
            row -= len(lines)
        raise AssertionError("the table has no such row")

    def _rows(self) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Rows in UTF-8, each with its end, and the line (from 1) of each, block by block."""
        line, n_before, is_empty = 1, self.n_lines_before, True
        for block in self.blocks():
            block = block.split(b"\n", n_before)[n_before]
            line, n_before = line + n_before, 0
            lines: Sequence[int] = range(line, line + block.count(b"\n"))
            line += len(lines)
            rows = _single_spaced(block) if self.separator == " " else block
            beginning = b"\n" + rows[:-1]
            if any(mark in beginning for mark in _NO_ROW):
                numbered = zip(lines, rows.split(b"\n"), strict=False)
                kept = [(number, row) for number, row in numbered if self._is_row(row)]
                rows, lines = b"".join(row + b"\n" for _, row in kept), [n for n, _ in kept]
            if rows:
                is_empty = False
                yield rows, self._lines_of_even(rows, lines)
        if is_empty:
            raise GazeError("there are no rows of samples", path=self.path)

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
        n_cells, n_rows = len(self.names), len(lines)
        unquoted = b"".join(rows.split(b'"')[::2])
        n_separators = unquoted.count(self.separator.encode())
        if unquoted.count(b"\n") == n_rows and n_separators == n_rows * (n_cells - 1):
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


def _find(
    blocks: Callable[[], Iterator[bytes]],
    path: Path,
    names: list[str] | None = None,
    separator: str | None = None,
    by_position: bool = False,
) -> _Text:
    """The table in blocks of text, whose header names the columns unless `names` do."""
    comment, n_before = "", 0
    for line in io.StringIO(next(blocks(), b"").decode()):
        # A comment, unless it is a header such as `;x;y`.
        is_comment = line.startswith(_COMMENT_MARKS) and not (line[0] == ";" and ";" in line[1:])
        if line.strip() and not is_comment:
            break
        comment = line.lstrip("#%/; ").rstrip() or comment
        n_before += 1
    else:
        problem = "there are no rows of samples" if comment else "the file is empty"
        raise GazeError(problem, path=path, remedy="check the export or the download")
    line = line.rstrip("\n")
    separator = separator or _separator(line)
    if names is None:
        cells, commented = (_cells(one, separator, path) for one in (line, comment))
        _require_few_columns(len(cells), path)
        is_number = [_NUMBER.fullmatch(cell) is not None for cell in cells]
        if any(is_number) and len(commented) == len(cells):
            names = commented
        elif any(is_number) and by_position:
            names = [str(position) for position in range(1, len(cells) + 1)]
        elif any(is_number) and all(
            number or cell.lower() in MISSING for number, cell in zip(is_number, cells, strict=True)
        ):
            raise GazeError(
                f"no header, {len(cells)} columns of numbers: the first row is {line.strip()[:80]}",
                path=path,
                remedy="name them by position with `columns` t=1,x=2,y=3",
            )
        else:
            names, n_before = cells, n_before + 1
    return _Text(blocks, path, _different(names), separator, n_before)


def _require_few_columns(n_columns: int, path: Path) -> None:
    """Refuse a table that is so wide that its rows cannot be samples."""
    if n_columns > _MAX_COLUMNS:
        problem = f"{n_columns:,} columns; a table may have {_MAX_COLUMNS:,}"
        raise GazeError(problem, path=path, remedy="one row is one sample: transpose it")


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


def _different(names: Sequence[str]) -> list[str]:
    """The names, repeated ones made different by their position."""
    seen: dict[str, None] = {}
    for position, name in enumerate(names):
        seen[f"{name}#{position}" if name in seen else name] = None
    return list(seen)


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
    is_plain = block.isascii() and b"\0" not in block
    return block if is_plain else decode_text(block, path).encode()


def _single_spaced(block: bytes) -> bytes:
    """Lines with single blanks between cells and none around them."""
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b"\n ", b"\n").replace(b" \n", b"\n").removeprefix(b" ")


def scan(path: Path) -> pl.LazyFrame:
    """The rows of a Parquet or Arrow file, with a column for each coordinate."""
    if path.suffix.lower() == ".parquet":
        # Text columns come as categories, since identities repeat for thousands of rows.
        schema = parquet.read_schema(path)
        text = [one.name for one in schema if one.type in (pa.string(), pa.large_string())]
        layout = dataset.ParquetFileFormat(dictionary_columns=text)
        frame = pl.scan_pyarrow_dataset(dataset.dataset(path, format=layout))
    else:
        with _opened(path) as (arrow_schema, _):
            empty = cast("pl.DataFrame", pl.from_arrow(arrow_schema.empty_table()))
        frame = _scanned(lambda: _batches(path), empty.schema)
    found = frame.collect_schema()
    for name, unit in (("pixel", "px"), ("position", "deg")):
        if not isinstance(found.get(name), pl.List | pl.Array):
            continue
        as_list = pl.col(name).cast(pl.List(pl.Float64))
        n_axes = frame.select(as_list.list.len().max()).collect().item()
        axes = {
            f"{name} {axis} [{unit}]": as_list.list.get(place, null_on_oob=True)
            for place, axis in enumerate(_AXES.get(n_axes, []))
        }
        frame = frame.with_columns(**axes)
    return frame


def _batches(path: Path) -> Iterator[pl.DataFrame]:
    """The record batches of an Arrow file or stream, checked, since polars trusts its offsets."""
    with _opened(path) as (_, batches):
        for batch in batches:
            batch.validate(full=True)
            yield cast("pl.DataFrame", pl.from_arrow(batch))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    with pa.OSFile(str(path)) as stream:
        if stream.read(6) != b"ARROW1":
            stream.seek(0)
            reader = ipc.open_stream(stream)
            yield reader.schema, reader
        else:
            reader = ipc.open_file(stream)
            yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def _scanned(
    batches: Callable[[], Iterator[pl.DataFrame | pl.LazyFrame]], schema: pl.Schema
) -> pl.LazyFrame:
    """The rows of all batches; they are made anew each time that rows are collected."""

    def frames(
        names: list[str] | None, keep: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        for batch in batches():
            frame = batch.lazy() if names is None else batch.lazy().select(names)
            found = (frame if keep is None else frame.filter(keep)).collect()
            yield found if n_rows is None else found.head(n_rows)
            n_rows = None if n_rows is None else max(0, n_rows - found.height)

    return register_io_source(frames, schema=schema)


def to_lines(text: str) -> pl.DataFrame:
    """Every line that is not blank: `number` (from 1) and `line`, its cells one space apart."""
    text = _unix(text).replace("\t", " ")
    while "  " in text:
        text = text.replace("  ", " ")
    lines = pl.Series("line", [text]).str.split("\n").explode().str.strip_chars(" ")
    return lines.to_frame().with_row_index("number", offset=1).filter(pl.col("line") != "")


def to_numbers(
    cells: pl.DataFrame, path: Path, place: Callable[[int, int], str]
) -> NDArray[np.float64]:
    """The numbers in text cells (sample, column) as an array (column, sample); `.` becomes NaN.

    Any other text, a lacking cell and a number too large for a float32 are a `GazeError`, whose
    place is named by `place(sample, column)`.
    """
    frame = cells.select(pl.all().replace(".", "nan").cast(pl.Float64, strict=False))
    # Polars holds NaN to be larger than any number.
    is_bad = frame.select(pl.all().is_null() | (pl.all().fill_nan(0).abs() > _LARGEST))
    bad = [(flags.arg_true()[0], i) for i, flags in enumerate(is_bad) if flags.any()]
    if bad:
        sample, column = min(bad)
        cell = cells[sample, column]
        problem = "the line ends early" if cell is None else f"{cell[:40]!r} is not a number"
        raise GazeError(problem, path=path, place=place(sample, column))
    return frame.to_numpy().T
