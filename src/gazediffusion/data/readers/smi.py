"""SMI text: `... Samples.txt` of the IDF Converter and raw data exported by BeGaze.

Comment lines above the header state rate, participant, screen and distance. Rows of type SMP are
samples, rows of type MSG are messages. Times are in microseconds, gaze is the point of regard (POR)
in pixels of the screen, and 0, 0 is a lost eye. Newer exports of BeGaze have no comment lines, name
their columns in full and count milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import Table, parse_text
from gazediffusion.data.readers.tobii import names_in, numbers_stated, read_head, read_text, stated
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

NAME = "smi"

_ENDINGS = {".txt", ".tsv", ".csv"}
_NO_SAMPLES = re.compile(r"^(?:#.*|[^\t\n]*\tMSG\t.*)$", re.MULTILINE)
_CLOCKS = {"Time": "us", "RecordingTime [ms]": "ms"}
_EYES: dict[Eye, tuple[str, ...]] = {
    "left": ("L POR", "Point of Regard Left"),
    "right": ("R POR", "Point of Regard Right"),
    "cyclopean": ("B POR", "Point of Regard Binocular"),
}
_SUBJECT = "## Subject"


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header below the comment lines has SMI's clock and a point of regard."""
    if path.suffix.lower() not in _ENDINGS:
        return False
    try:
        _find_columns(names_in(_NO_SAMPLES.sub("", read_head(head, path)), path), path)
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The trials of one export."""
    text = read_text(path)
    table = parse_text(_NO_SAMPLES.sub("", text), path)
    columns = _find_columns(table.names, path)
    for name in {"Category Right", "Category Left"}.intersection(table.names):
        # BeGaze puts such a row between two stimuli.
        table = table.where(pl.col(name).fill_null("") != "Separator")
    if columns.participant == _SUBJECT:
        subject = stated(text, "Subject")
        table = table.with_columns(pl.lit(subject).alias(_SUBJECT))
    rate = numbers_stated(text, "Sample Rate", 1)
    return recordings(
        _without_zeros(table, columns),
        columns,
        options,
        _screen(text),
        NAME,
        rate[0] if rate else None,
    )


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = next((name for name in _CLOCKS if name in names), None)
    gaze = {
        eye: (Column(f"{start} X [px]", "px"), Column(f"{start} Y [px]", "px"))
        for eye, starts in _EYES.items()
        for start in starts
        if {f"{start} X [px]", f"{start} Y [px]"}.issubset(names)
    }
    if len(gaze) > 1:
        gaze.pop("cyclopean", None)
    if clock is None or not gaze:
        raise GazeError(
            "this SMI export lacks the time or the point of regard (L POR X [px], R POR X [px])",
            path=path,
            remedy="export the samples again with POR and time",
        )
    return Columns(
        time=Column(clock, _CLOCKS[clock]),
        gaze=gaze,
        participant="Participant" if "Participant" in names else _SUBJECT,
        trial=["Trial"] if "Trial" in names else [],
        origin="top-left",
    )


def _without_zeros(table: Table, columns: Columns) -> Table:
    """Blank the gaze of an eye at 0, 0, by which SMI writes that it was lost."""
    for pair in columns.gaze.values():
        zeros = [pl.col(one.name).cast(pl.Float64, strict=False).fill_null(1) == 0 for one in pair]
        table = table.seen_where(~(zeros[0] & zeros[1]), (one.name for one in pair))
    return table


def _screen(text: str) -> Screen | None:
    """The calibrated area with its size and distance, as far as the comment lines state them."""
    size_px = numbers_stated(text, "Calibration Area", 2)
    if size_px is None:
        return None
    size_mm = numbers_stated(text, "Stimulus Dimension [mm]", 2)
    distance_mm = numbers_stated(text, "Head Distance [mm]", 1)
    width_cm, height_cm = (one / 10 for one in size_mm) if size_mm else (None, None)
    return Screen(
        round(size_px[0]),
        round(size_px[1]),
        width_cm,
        height_cm,
        distance_mm[0] / 10 if distance_mm else None,
    )
