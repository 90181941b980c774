"""Tables: text or Parquet, scanned lazily, so that only the columns needed come into memory.

Text may be separated by tabs, semicolons, commas or blanks, with decimal points or commas; an
error names the line of the file. Lines of bare numbers (EyeLink's ASC, plain columns) are parsed
in bulk.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import dataset, parquet

from gazediffusion.data.readers.naming import words_in
from gazediffusion.errors import GazeError
from gazediffusion.files import decode_text, read_bytes

# Damaged content can make polars panic, which is no `Exception`.
TABLE_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    UnicodeDecodeError,
    OSError,
)

_LARGEST = float(np.finfo(np.float32).max)
_MISSING = ["", ".", "-", "nan", "na", "n/a", "null", "none"]
_TRUE = ["b", "blink", "true", "t", "yes", "y"]


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
        return raw.with_columns(
            self._parsed(raw[name]) for name in names if not raw[name].dtype.is_numeric()
        )

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column as yes or no: a number that is not 0, a word for yes, or any id."""
        series = self.collect([name]).to_series()
        text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
        if "id" in words_in(name):
            return _filled(~text.is_in(_MISSING))
        is_number = text.cast(pl.Float64, strict=False).fill_nan(0.0) != 0.0
        return _filled(text.is_in(_TRUE)) | _filled(is_number)

    def where(self, keep: pl.Expr) -> Table:
        """Only the rows for which `keep` is true, which keep their places."""
        rows = np.flatnonzero(self.collect([keep.fill_null(False).alias("keep")]).to_series())
        frame = self.frame.filter(keep)
        return replace(self, frame=frame, place=lambda row: self.place(int(rows[row])))

    def with_columns(self, *expressions: pl.Expr | pl.Series) -> Table:
        """The table with columns replaced or added."""
        return replace(self, frame=self.frame.with_columns(expressions))

    def seen_where(self, is_seen: pl.Expr, names: Iterable[str]) -> Table:
        """The table with these columns blank where `is_seen` is not true."""
        return self.with_columns(*(pl.when(is_seen).then(pl.col(one)).alias(one) for one in names))

    def _parsed(self, series: pl.Series) -> pl.Series:
        if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
            raise GazeError(f"column {series.name!r} holds no numbers", path=self.path)
        text = series.cast(pl.String).str.strip_chars()
        if self.decimal_comma:
            text = text.str.replace(",", ".", literal=True)
        numbers = text.cast(pl.Float64, strict=False)
        unread = np.flatnonzero(_filled(numbers.is_null() & text.is_not_null()))
        is_missing = _filled(text.gather(unread).str.to_lowercase().is_in(_MISSING))
        if not is_missing.all():
            row = int(unread[np.argmin(is_missing)])
            raise GazeError(
                f"{series[row][:40]!r} is no number",
                path=self.path,
                place=f"{self.place(row)}, column {series.name!r}",
            )
        return numbers


def open_table(path: Path) -> Table:
    """A Parquet or text file as a table, chosen by the ending."""
    if path.suffix.lower() == ".parquet":
        return Table(_scan_parquet(path), path, lambda row: f"row {row + 1}")
    return parse_text(decode_text(read_bytes(path), path), path)


def parquet_names(path: Path) -> list[str]:
    """The column names of a Parquet file."""
    names: list[str] = parquet.read_schema(path).names
    return names


def _scan_parquet(path: Path) -> pl.LazyFrame:
    """Scan through Arrow: polars' own reader can abort the process on a damaged file.

    Text columns come as categories, since identities repeat for thousands of rows.
    """
    with naming_damage(path):
        schema = parquet.read_schema(path)
        text = [one.name for one in schema if one.type in (pa.string(), pa.large_string())]
        layout = dataset.ParquetFileFormat(dictionary_columns=text)
        return pl.scan_pyarrow_dataset(dataset.dataset(path, format=layout))


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """What a library says of a file it cannot read, in one line that names the file."""
    try:
        yield
    except TABLE_ERRORS as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise GazeError(f"the table is damaged ({reason[:200]})", path=path) from error


def parse_text(
    text: str, path: Path, names: Sequence[str] | None = None, separator: str | None = None
) -> Table:
    """Text as a table of text cells; without `names` the first line is the header."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip("\n")
    line_numbers: list[int] = []
    if text.startswith("\n") or "\n\n" in text:
        lines = text.split("\n")
        line_numbers = [number for number, line in enumerate(lines, 1) if line]
        text = "\n".join(filter(None, lines))
    n_header = 0
    if names is None:
        header, _, text = text.partition("\n")
        n_header = 1
        separator = separator or _separator(header)
        names = _header_cells(header, separator, path)
    separator = separator or _separator(text.partition("\n")[0])

    def place(row: int) -> str:
        line = row + n_header
        return f"line {line_numbers[line] if line_numbers else line + 1}"

    if not text:
        raise GazeError("there are no rows of samples", path=path)
    _require_even_rows(text, len(names), separator, path, place)
    frame = pl.scan_csv(
        text.encode(), separator=separator, has_header=False, schema=dict.fromkeys(names, pl.String)
    )
    return Table(frame, path, place, decimal_comma=separator != ",")


def header_of(head: bytes, path: Path) -> list[str]:
    """Column names in the first line of a text file that begins with `head`."""
    if not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        # A head cut inside a character is no UTF-8; whole lines are.
        head = head[: head.rfind(b"\n") + 1] or head
    text = decode_text(head, path).replace("\r", "\n").lstrip("\n")
    header = text.partition("\n")[0]
    return _header_cells(header, _separator(header), path)


def _separator(header: str) -> str:
    # A rarer character first: names may hold commas and spaces, but hardly a tab.
    return next((mark for mark in "\t;," if mark in header), " ")


def _header_cells(header: str, separator: str, path: Path) -> list[str]:
    """The names in a header line, repeated ones made different by their position."""
    try:
        cells = next(csv.reader([header], delimiter=separator), [])
    except csv.Error as error:
        raise GazeError(f"the header cannot be read ({error})", path=path) from error
    names: list[str] = []
    for position, cell in enumerate(cells):
        name = cell.strip()
        names.append(f"{name}#{position}" if name in names else name)
    return names


def _require_even_rows(
    text: str, n_cells: int, separator: str, path: Path, place: Callable[[int], str]
) -> None:
    """Refuse rows with too few or too many cells; text with quotes is left to the parser."""
    n_rows = text.count("\n") + 1
    if '"' in text or text.count(separator) == n_rows * (n_cells - 1):
        return
    for row, line in enumerate(text.split("\n")):
        count = line.count(separator) + 1
        if count != n_cells:
            raise GazeError(
                f"{count} cells where there are {n_cells} columns", path=path, place=place(row)
            )


def to_lines(text: str) -> pl.DataFrame:
    """Every line that is not blank: `number` (from 1) and `line`, its cells one space apart."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
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


def _filled(series: pl.Series) -> NDArray[np.bool_]:
    return series.fill_null(False).to_numpy()
