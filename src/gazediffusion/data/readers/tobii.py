"""Tobii Pro Lab data exports: tab-separated text, one row per sample or event of any sensor.

`Recording timestamp` is in microseconds unless its header says otherwise. Eyes are read apart
where the export has them apart; a sample whose validity is not good is lost. Rows of other
sensors (mouse, GSR) are left out. The resolution in the file is the screen's; its size in
centimetres is not in the export.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.naming import MS_PER, Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tabular import Table, header_of, open_table
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

NAME = "tobii"

_ENDINGS = {".tsv", ".txt", ".csv"}
_TIME = re.compile(r"Recording timestamp(?: \[(?P<unit>\w+)\])?", re.IGNORECASE)
_EYES: dict[Eye, str] = {"left": "Gaze point left", "right": "Gaze point right"}
_BOTH = "Gaze point"
# Pro Lab writes words; Tobii Studio and the SDK wrote codes, 0 and 1 of which are good.
_VALID = ["valid", "0", "1"]
_EYE_TRACKER = "eye tracker"


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header has Tobii's recording clock and a gaze point in pixels."""
    if path.suffix.lower() not in _ENDINGS:
        return False
    try:
        _find_columns(header_of(head, path), path)
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one export, separated by participant and recording name."""
    table = open_table(path)
    columns = _find_columns(table.names, path)
    sensor = _named(table.names, "Sensor")
    if sensor is not None:
        # Older exports leave the cell empty for the eye tracker's own rows.
        words = pl.col(sensor).str.strip_chars().str.to_lowercase()
        table = table.where(words.fill_null(_EYE_TRACKER).is_in(["", _EYE_TRACKER]))
    return recordings(_without_invalid(table, columns), columns, options, _screen(table), NAME)


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = next((match for match in map(_TIME.fullmatch, names) if match), None)
    gaze = {eye: pair for eye, start in _EYES.items() if (pair := _pair(names, start))}
    if not gaze and (both := _pair(names, _BOTH)):
        gaze = {"cyclopean": both}
    if clock is None or not gaze:
        raise GazeError(
            "this Tobii export lacks 'Recording timestamp' or 'Gaze point X' and 'Y' in pixels",
            path=path,
            remedy="export them, or give the `format` table and `columns` x=...,y=...,t=...",
        )
    unit = (clock["unit"] or "us").lower().replace("µ", "u").replace("μ", "u")
    if unit not in MS_PER:
        raise GazeError(f"the clock's unit {unit!r} is not known", path=path)
    recording = _named(names, "Recording name")
    return Columns(
        time=Column(clock[0], unit),
        gaze=gaze,
        participant=_named(names, "Participant name"),
        task=_named(names, "Timeline name"),
        trial=[recording] if recording else [],
    )


def _pair(names: Sequence[str], start: str) -> tuple[Column, Column] | None:
    x, y = (_named(names, f"{start} {axis}") for axis in "XY")
    return (Column(x, "px"), Column(y, "px")) if x and y else None


def _named(names: Sequence[str], required: str) -> str | None:
    """The column of this name, in any case and with or without a unit in pixels behind it."""
    pattern = re.compile(rf"{required}(?: \[(?:DACS )?px\])?", re.IGNORECASE)
    return next((name for name in names if pattern.fullmatch(name)), None)


def _without_invalid(table: Table, columns: Columns) -> Table:
    """Blank the gaze where the tracker calls it invalid."""
    for eye, pair in columns.gaze.items():
        validity = _named(table.names, f"Validity {eye}")
        if validity is not None:
            is_valid = pl.col(validity).str.strip_chars().str.to_lowercase().is_in(_VALID)
            table = table.seen_where(is_valid, (axis.name for axis in pair))
    return table


def _screen(table: Table) -> Screen | None:
    """The resolution stated in the first row that states one."""
    found = (_named(table.names, f"Recording resolution {side}") for side in ("width", "height"))
    names = [name for name in found if name]
    sizes = table.numbers(names).drop_nulls().head(1).rows() if len(names) == 2 else []
    return Screen(*map(int, sizes[0])) if sizes else None
