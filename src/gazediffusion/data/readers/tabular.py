"""Tables: text, Parquet or Arrow, scanned lazily, so that only needed columns come into memory.

Text may be separated by tabs, semicolons, commas or blanks, with decimal points or commas; an
error names the line of the file. Lines of bare numbers (EyeLink's ASC, plain columns) are parsed
in bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from gazediffusion.data.readers import arrow
from gazediffusion.data.readers.labels import event_classes, labels_among
from gazediffusion.data.readers.naming import words_in
from gazediffusion.data.readers.text import (
    MISSING,
    TextTable,
    blocks_of,
    find_table,
    header_of,
    require_few_columns,
)
from gazediffusion.errors import GazeError

__all__ = ["TABLE_ERRORS", "Samples", "Table", "header_of", "naming_damage", "open_table"]
__all__ += ["parse_text", "to_lines", "to_numbers"]

# Damaged content can make polars panic, which is no `Exception`.
TABLE_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    UnicodeDecodeError,
    OSError,
)

_LARGEST = float(np.finfo(np.float32).max)
_TRUE = ["b", "blink", "true", "t", "yes", "y"]
_GROWTH = 1 << 20  # rows


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

    def samples(
        self,
        numeric: Sequence[str],
        flags: Sequence[str] = (),
        identity: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> Samples:
        """Columns of numbers, of yes or no, of identities and of events, read in one pass."""
        names = dict.fromkeys([*numeric, *flags, *identity, *labels])
        values = {name: _GrowingArray() for name in numeric}
        is_set = {name: _GrowingArray() for name in flags}
        classes = {name: _GrowingArray() for name in labels}
        stretches = []
        n_rows = 0
        with naming_damage(self.path):
            for batch in self.frame.select(*names).collect_batches(maintain_order=True):
                for name, array in values.items():
                    array.extend(_floats(self._parsed(batch[name], n_rows)))
                for name, array in is_set.items():
                    array.extend(_flags(batch[name]))
                for name, array in classes.items():
                    array.extend(event_classes(batch[name]))
                stretches.append(_stretches(batch, identity))
                n_rows += batch.height
        if n_rows == 0:
            raise GazeError("there are no rows of samples", path=self.path)
        return Samples(
            {name: array.filled for name, array in values.items()},
            {name: array.filled for name, array in is_set.items()},
            labels_among({name: array.filled for name, array in classes.items()}),
            pl.concat(stretches),
        )

    def flags(self, name: str) -> NDArray[np.bool_]:
        """A column as yes or no: a number that is not 0, a word for yes, or any id."""
        return _flags(self.collect([name]).to_series())

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
        unread = np.flatnonzero(_filled(numbers.is_null() & text.is_not_null()))
        if len(unread) == 0:
            return numbers
        words = text.gather(unread).str.strip_chars()
        parsed = words.cast(pl.Float64, strict=False)
        is_missing = _filled(words.str.to_lowercase().is_in(MISSING)) | _filled(
            parsed.is_not_null()
        )
        if not is_missing.all():
            row = int(unread[np.argmin(is_missing)])
            raise GazeError(
                f"{series[row][:40]!r} is no number",
                path=self.path,
                place=f"{self.place(first_row + row)}, column {series.name!r}",
            )
        return numbers.scatter(unread, parsed)


class _GrowingArray:
    """An array (row,) to which parts are appended; it grows in place, so that there is no copy."""

    def __init__(self) -> None:
        self._n = 0

    def extend(self, part: NDArray[Any]) -> None:
        if self._n == 0:
            self._array = np.empty(len(part), part.dtype)
        n, self._n = self._n, self._n + len(part)
        if self._n > len(self._array):
            self._array.resize(n + max(len(part), _GROWTH), refcheck=False)
        self._array[n : self._n] = part

    @property
    def filled(self) -> NDArray[Any]:
        """What was appended."""
        return self._array[: self._n]


def _flags(series: pl.Series) -> NDArray[np.bool_]:
    """Which cells hold a number that is not 0, a word for yes, or any id."""
    text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
    if "id" in words_in(series.name):
        return _filled(~text.is_in(MISSING))
    is_number = text.cast(pl.Float64, strict=False).fill_nan(0.0) != 0.0
    return _filled(text.is_in(_TRUE)) | _filled(is_number)


def _stretches(batch: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Rows that follow one another with the same cells in these columns, and their number."""
    cells = pl.struct(names) if names else pl.struct(pl.repeat("", pl.len()).alias(""))
    found = batch.select(cells.rle().struct.unnest())
    return found.select("len", pl.col("value").alias("identity"))


def _floats(series: pl.Series) -> NDArray[np.floating[Any]]:
    return (series if series.dtype == pl.Float32 else series.cast(pl.Float64)).to_numpy()


def open_table(
    path: Path,
    names: list[str] | None = None,
    separator: str | None = None,
    by_position: bool = False,
) -> Table:
    """A text, Parquet or Arrow file as a table, chosen by the ending.

    names, separator: of text without a header. by_position: the columns of text without a header
    are called by their positions, "1", "2", ...
    """
    if path.suffix.lower() not in arrow.ENDINGS:
        return _table(find_table(lambda: blocks_of(path), path, names, separator, by_position))
    with naming_damage(path):
        table = Table(arrow.scan(path), path, lambda row: f"row {row + 1}")
    require_few_columns(len(table.names), path)
    return table


def parse_text(
    text: str, path: Path, names: list[str] | None = None, separator: str | None = None
) -> Table:
    """Text as a table of text cells; without `names` the first line is the header."""
    content = (text.rstrip("\r\n") + "\n").replace("\r\n", "\n").replace("\r", "\n").encode()
    return _table(find_table(lambda: iter([content]), path, names, separator))


def _table(text: TextTable) -> Table:
    return Table(text.scan(), text.path, text.place, decimal_comma=text.separator != ",")


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """What a library says of a file it cannot read, in one line that names the file."""
    try:
        yield
    except TABLE_ERRORS as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise GazeError(f"the table is damaged ({reason[:200]})", path=path) from error


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
