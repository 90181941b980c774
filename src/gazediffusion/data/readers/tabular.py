"""Tables of samples: from text or Parquet to recordings, once the columns are known.

A table is scanned lazily: only the columns that are needed come into memory, and identity columns
only as stretches of equal values. Rows that agree in participant, task and trial are one
recording. The readers of long tables, Tobii, Pupil Labs, BIDS and pymovements find their columns
in their own way and share everything after that.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import dataset, parquet

from gazediffusion.data.readers.naming import MS_PER, Column, Columns, words_in
from gazediffusion.data.readers.options import Identity, ReadOptions, identify
from gazediffusion.data.recordings import UNKNOWN_TASK, Recording, require_forward_time
from gazediffusion.errors import GazeError
from gazediffusion.files import decode_text, read_bytes
from gazediffusion.geometry import Floats, Screen

# Damaged content can make polars panic, which is no `Exception`.
TABLE_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    UnicodeDecodeError,
    OSError,
)

_MISSING = ["", ".", "-", "nan", "na", "n/a", "null", "none"]
_TRUE = ["b", "blink", "true", "t", "yes", "y"]

Rows = range | NDArray[np.int64]


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
        try:
            return self.frame.collect_schema().names()
        except TABLE_ERRORS as error:
            raise damaged(error, self.path) from error

    def collect(self, expressions: Iterable[str | pl.Expr]) -> pl.DataFrame:
        """Bring columns into memory; a file that cannot be read is a `GazeError`."""
        try:
            return self.frame.select(expressions).collect(engine="streaming").rechunk()
        except TABLE_ERRORS as error:
            raise damaged(error, self.path) from error

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
        return Table(
            self.frame.filter(keep),
            self.path,
            lambda row: self.place(int(rows[row])),
            self.decimal_comma,
        )

    def with_columns(self, *expressions: pl.Expr | pl.Series) -> Table:
        """The table with columns replaced or added."""
        frame = self.frame.with_columns(expressions)
        return Table(frame, self.path, self.place, self.decimal_comma)

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
    try:
        schema = parquet.read_schema(path)
        text = [
            column.name
            for column in schema
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        ]
        layout = dataset.ParquetFileFormat(dictionary_columns=text)
        return pl.scan_pyarrow_dataset(dataset.dataset(path, format=layout))
    except TABLE_ERRORS as error:
        raise damaged(error, path) from error


def damaged(error: BaseException, path: Path) -> GazeError:
    """What a library says of a file it cannot read, in one line."""
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    return GazeError(f"the table is damaged ({reason[:200]})", path=path)


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


def recordings(
    table: Table,
    columns: Columns,
    options: ReadOptions,
    screen: Screen | None,
    format: str,
    rate_hz: float | None = None,
) -> Iterator[Recording]:
    """One recording per participant, task and trial, in the order in which they begin."""
    try:
        yield from _recordings(table, columns, options, screen, format, rate_hz)
    except TABLE_ERRORS as error:
        # Bad text in a damaged file shows only when it is looked at.
        raise damaged(error, table.path) from error


def _recordings(
    table: Table,
    columns: Columns,
    options: ReadOptions,
    screen: Screen | None,
    format: str,
    rate_hz: float | None,
) -> Iterator[Recording]:
    path = table.path
    groups = _groups(table, columns.identity)
    values = table.numbers(columns.numeric)
    flags = {name: table.flags(name) for name in set(columns.blink.values())}
    if values.height == 0:
        raise GazeError("there are no rows of samples", path=path)
    if columns.time.unit is not None:
        ms = MS_PER[columns.time.unit]
    else:
        longest = max((rows for _, rows in groups), key=len)
        ms = _ms_by_step(_floats(values, columns.time, longest), columns.time, path)
    for identity, rows in groups:
        with np.errstate(over="ignore"):
            time_ms = _floats(values, columns.time, rows) * ms
        require_forward_time(
            time_ms,
            path,
            _places(table, rows),
            remedy="name the column that separates trials with `columns` trial=...",
        )
        gaze_px = {
            eye: _to_pixels(
                np.stack([_floats(values, x, rows), _floats(values, y, rows)]), x.unit, screen, path
            )
            for eye, (x, y) in columns.gaze.items()
        }
        named = _identity(identity, columns, options, path)
        yield Recording(
            participant=named.participant,
            task=named.task,
            trial=named.trial,
            time_ms=time_ms,
            gaze_px=gaze_px,
            path=path,
            format=format,
            screen=screen,
            rate_hz=rate_hz,
            is_blink={eye: flags[name][_index(rows)] for eye, name in columns.blink.items()},
        )


def _identity(
    cells: Mapping[str | None, str], columns: Columns, options: ReadOptions, path: Path
) -> Identity:
    """Who and what: by the user's pattern, else by the columns, else by the file's name."""
    by_name = identify(path, options)
    trial = "-".join(cells[name] for name in columns.trial if cells[name])
    by_column = Identity(
        participant=cells.get(columns.participant) or by_name.participant,
        task=cells.get(columns.task) or by_name.task,
        trial=trial or by_name.trial,
    )
    if options.participant_pattern is None:
        return by_column
    is_task_named = by_name.task != UNKNOWN_TASK
    task = by_name.task if is_task_named else by_column.task
    return replace(by_column, participant=by_name.participant, task=task)


def read_sidecar(path: Path) -> dict[str, Any]:
    """A JSON file that must hold an object."""
    try:
        fields = json.loads(decode_text(read_bytes(path), path))
    except (ValueError, RecursionError) as error:
        raise GazeError(f"this is no JSON ({error})", path=path) from error
    if not isinstance(fields, dict):
        raise GazeError("the JSON holds no object of fields", path=path)
    return fields


def presented_on(fields: Mapping[str, Any]) -> Screen | None:
    """The screen in a sidecar's `StimulusPresentation`, or at its top level."""
    presentation = fields.get("StimulusPresentation")
    return Screen.from_bids(presentation if isinstance(presentation, dict) else fields)


def sidecar_screen(path: Path) -> Screen | None:
    """The screen in the JSON file of the same name beside a table, if there is one."""
    sidecar = path.with_suffix(".json")
    return presented_on(read_sidecar(sidecar)) if sidecar.is_file() else None


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


def _groups(table: Table, names: Sequence[str]) -> list[tuple[dict[str | None, str], Rows]]:
    """Each identity with its rows: a range, or an array where it comes in several pieces."""
    if not names:
        return [({}, range(int(table.collect([pl.len()]).item())))]
    stretches = table.collect([pl.struct(names).rle().alias("stretch")]).unnest("stretch")
    pieces = (
        stretches.with_columns(start=pl.col("len").cum_sum() - pl.col("len"))
        .group_by("value", maintain_order=True)
        .agg("start", "len")
    )
    groups: list[tuple[dict[str | None, str], Rows]] = []
    for value, starts, lengths in pieces.iter_rows():
        identity = {name: "" if cell is None else str(cell).strip() for name, cell in value.items()}
        groups.append((identity, _rows(starts, lengths)))
    return groups


def _rows(starts: list[int], lengths: list[int]) -> Rows:
    """Row numbers of stretches with these starts and lengths, one after another."""
    if len(starts) == 1:
        return range(starts[0], starts[0] + lengths[0])
    counts = np.array(lengths, dtype=np.int64)
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum(), dtype=np.int64) + np.repeat(starts - before, counts)


def _places(table: Table, rows: Rows) -> Callable[[int], str]:
    return lambda sample: table.place(int(rows[sample]))


def _index(rows: Rows) -> slice | NDArray[np.int64]:
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


def _floats(values: pl.DataFrame, column: Column, rows: Rows) -> NDArray[np.float64]:
    """The column's numbers in these rows, NaN where missing."""
    return values[column.name][_index(rows)].cast(pl.Float64).to_numpy()


def _filled(series: pl.Series) -> NDArray[np.bool_]:
    return series.fill_null(False).to_numpy()


def _ms_by_step(times: NDArray[np.float64], column: Column, path: Path) -> float:
    """Milliseconds per unit of time, for which the median step is 0.4 to 50 ms (20-2500 Hz)."""
    with np.errstate(over="ignore"):
        steps = np.diff(times[np.isfinite(times)])
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    for ms in MS_PER.values():
        if 0.4 <= step * ms <= 50:
            return ms
    raise GazeError(
        f"column {column.name!r} does not tell its unit (its median step is {step:.6g})",
        path=path,
        remedy="name it t_s, t_ms, t_us or t_ns",
    )


def _to_pixels(
    gaze: Floats, unit: str | None, screen: Screen | None, path: Path
) -> NDArray[np.float32]:
    """Pixels (2, time) for gaze (2, time) in `unit`; a sample that lacks one axis is lost."""
    with np.errstate(over="ignore", invalid="ignore"):
        if unit == "deg":
            if screen is None or not screen.has_degrees:
                raise GazeError(
                    "the gaze is in degrees, and the screen's size and distance are not known",
                    path=path,
                    remedy="give `screen` with its size in cm and the viewing distance",
                )
            gaze = screen.from_degrees(gaze)
        elif unit in ("norm", "norm_up"):
            if screen is None:
                raise GazeError(
                    "the gaze is normalized, and the screen's size is not known",
                    path=path,
                    remedy="give `screen`",
                )
            if unit == "norm_up":
                gaze = np.stack([gaze[0], 1.0 - gaze[1]])
            gaze = gaze * screen.size_px
        gaze_px = gaze.astype(np.float32)
    gaze_px[:, ~np.isfinite(gaze_px).all(axis=0)] = np.nan
    return gaze_px
