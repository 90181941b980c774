"""Tobii exports of samples: Pro Lab, Studio 3 and Studio 2, tab-separated text.

One row per sample or event of any sensor. Eyes are read apart where the export has them apart; a
sample whose validity is not good is lost. Rows of other sensors (mouse, GSR) and rows of events are
no samples and left out. Pro Lab counts microseconds unless its header says otherwise, Studio
milliseconds. The resolution in the file is the screen's, in Studio 2 in the lines above the header;
its size in centimetres is not in the export. Gaze in the coordinates of a medium (MCS) is not read,
since where the medium stood on the screen and how large is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import MS_PER, Column, Columns, Pair
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import (
    TEXT_ENDINGS,
    Table,
    blanked,
    has_columns,
    numbers_in,
    open_table,
    parse_text,
    read_text,
    stated,
)
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

NAME = "tobii"

_ABOVE_HEADER = re.compile(r"\A(?s:.*?)(?=^(?=.*time ?stamp).*gaze ?point)", re.I | re.M)
# A name and the unit behind it: `Gaze point left X [DACS px]`, `GazePointLeftX (ADCSpx)`.
_NAME_AND_UNIT = re.compile(r"(.+?)\s*(?:[\[(](.*)[\])])?")
_SCREEN_UNITS = {"", "px", "dacspx", "adcspx"}
_CLOCKS = {"recording timestamp": "us", "recordingtimestamp": "ms"}
# Pro Lab writes words, Studio codes from 0 to 4.
_VALID = ["valid", "0", "1"]
_EYES: tuple[Eye, ...] = ("left", "right")


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header has Tobii's recording clock and a gaze point in pixels."""
    is_text = path.suffix.lower() in TEXT_ENDINGS
    return is_text and has_columns(_find_columns, head, path, _ABOVE_HEADER)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one export, separated by participant and recording name."""
    text = ""
    try:
        table = open_table(path)
        columns = _find_columns(table.names, path)
    except GazeError:
        text = read_text(path)
        table = parse_text(blanked(_ABOVE_HEADER, text), path)
        columns = _find_columns(table.names, path)
    screen = _screen(table, stated(text, "Recording resolution"))
    table = table.where(_is_sample(table.names, columns))
    for eye, pair in columns.gaze.items():
        validities = _validities(table.names, _EYES if eye == "cyclopean" else (eye,))
        if validities:
            is_valid = pl.any_horizontal(_cell(name).is_in(_VALID) for name in validities)
            table = table.seen_where(is_valid, (axis.name for axis in pair))
    return recordings(table, columns, options, screen, NAME)


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = _clock(names, path)
    pairs = {eye: _pair(names, eye) for eye in _EYES}
    if not any(pairs.values()):
        pairs = {"cyclopean": _pair(names, "")}
    gaze = {eye: pair for eye, pair in pairs.items() if pair}
    if clock is None or not gaze:
        raise GazeError(
            "this Tobii export lacks 'Recording timestamp' or 'Gaze point X' and 'Y' in pixels of "
            "the screen (DACS, ADCS)",
            path=path,
            remedy="export them, or give the `format` table and `columns` x=...,y=...,t=...",
        )
    recording = _named(names, "recordingname")
    return Columns(
        time=clock,
        gaze=gaze,
        participant=_named(names, "participantname"),
        task=_named(names, "timelinename"),
        trial=[recording] if recording else [],
    )


def _clock(names: Sequence[str], path: Path) -> Column | None:
    # Other programs' tables have a column of this name too, but not Studio 2's of the eyes.
    is_studio_2 = _named(names, "gazepointxleft", "gazepointxright")
    clocks = _CLOCKS | ({"timestamp": "ms"} if is_studio_2 else {})
    for name in names:
        stem, unit = _parts(name)
        if known := clocks.get(stem.lower()):
            unit = (unit or known).replace("µ", "u").replace("μ", "u")
            if unit not in MS_PER:
                raise GazeError(f"the clock's unit {unit!r} is not known", path=path)
            return Column(name, unit)
    return None


def _pair(names: Sequence[str], eye: str) -> Pair | None:
    """The gaze point of an eye (of both where `eye` is empty), in the order of either Studio."""
    x, y = (_named(names, f"gazepoint{eye}{axis}", f"gazepoint{axis}{eye}") for axis in "xy")
    return (Column(x, "px"), Column(y, "px")) if x and y else None


def _named(names: Sequence[str], *keys: str) -> str | None:
    """The first column of one of these names, in any case, spaced or not, in pixels if any unit."""
    for name in names:
        stem, unit = _parts(name)
        if stem.replace(" ", "").lower() in keys and unit in _SCREEN_UNITS:
            return name
    return None


def _parts(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit in small letters without spaces."""
    found = _NAME_AND_UNIT.fullmatch(name)
    return (found[1], (found[2] or "").replace(" ", "").lower()) if found else (name, "")


def _validities(names: Sequence[str], eyes: Sequence[Eye]) -> list[str]:
    return [name for eye in eyes if (name := _named(names, f"validity{eye}"))]


def _is_sample(names: Sequence[str], columns: Columns) -> pl.Expr:
    """Rows of the eye tracker: named so, or with a gaze point or a validity.

    Without a column of validity a lost sample is as empty as an event, which then tells itself.
    """
    validities = _validities(names, _EYES)
    is_sample = pl.any_horizontal(_cell(name) != "" for name in [*columns.axes, *validities])
    if not validities:
        event = _named(names, "event", "studioevent")
        is_sample = is_sample | (_cell(event) == "" if event else pl.lit(True))
    if (sensor := _named(names, "sensor")) is None:
        return is_sample
    words = _cell(sensor)
    return pl.when(words == "").then(is_sample).otherwise(words == "eye tracker")


def _screen(table: Table, value: str) -> Screen | None:
    """The resolution in the first cell that states one, else that of `value`."""
    keys = ("recordingresolution", "recordingresolutionwidth", "recordingresolutionheight")
    names = [name for key in keys if (name := _named(table.names, key))]
    if names:
        cells = table.collect(_cell(name).filter(_cell(name) != "").first() for name in names)
        value = " x ".join(cell or "" for cell in cells.row(0))
    size = numbers_in(value, 2)
    return Screen(round(size[0]), round(size[1])) if size else None


def _cell(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars().str.to_lowercase().fill_null("")
