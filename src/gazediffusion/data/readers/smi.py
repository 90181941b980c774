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

from gazediffusion.data.readers.columns import Column, Columns, gaze_among
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import (
    TEXT_ENDINGS,
    blanked,
    has_columns,
    numbers_in,
    parse_text,
    read_text,
    stated,
)
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

NAME = "smi"

_NO_SAMPLES = re.compile(r"^(?:#.*|[^\t\n]*\tMSG\t.*)$", re.MULTILINE)
_CLOCKS = {"Time": "us", "RecordingTime [ms]": "ms"}
_POINTS: tuple[tuple[Eye, str], ...] = (
    ("left", "L POR {} [px]"),
    ("left", "Point of Regard Left {} [px]"),
    ("right", "R POR {} [px]"),
    ("right", "Point of Regard Right {} [px]"),
    ("cyclopean", "B POR {} [px]"),
    ("cyclopean", "Point of Regard Binocular {} [px]"),
)
_SUBJECT = "## Subject"


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header below the comment lines has SMI's clock and a point of regard."""
    is_text = path.suffix.lower() in TEXT_ENDINGS
    return is_text and has_columns(_find_columns, head, path, _NO_SAMPLES)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The trials of one export."""
    text = read_text(path)
    table = parse_text(blanked(_NO_SAMPLES, text), path)
    columns = _find_columns(table.names, path)
    for name in {"Category Right", "Category Left"}.intersection(table.names):
        # BeGaze puts such a row between two stimuli.
        table = table.where(pl.col(name).fill_null("") != "Separator")
    if columns.participant == _SUBJECT:
        table = table.with_columns(pl.lit(stated(text, "Subject")).alias(_SUBJECT))
    for x, y in columns.gaze.values():
        is_zero = [pl.col(one.name).cast(pl.Float64, strict=False) == 0 for one in (x, y)]
        is_seen = ~(is_zero[0].fill_null(False) & is_zero[1].fill_null(False))
        table = table.seen_where(is_seen, (x.name, y.name))
    rate = numbers_in(stated(text, "Sample Rate"), 1)
    return recordings(table, columns, options, _screen(text), NAME, rate[0] if rate else None)


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = next((name for name in _CLOCKS if name in names), None)
    gaze = gaze_among(names, _POINTS, "px")
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


def _screen(text: str) -> Screen | None:
    """The calibrated area with its size and distance, as far as the comment lines state them."""
    size_px = numbers_in(stated(text, "Calibration Area"), 2)
    if size_px is None:
        return None
    size_mm = numbers_in(stated(text, "Stimulus Dimension [mm]"), 2) or []
    distance_mm = numbers_in(stated(text, "Head Distance [mm]"), 1) or []
    width_cm, height_cm = [one / 10 for one in size_mm] or (None, None)
    distance_cm = next((one / 10 for one in distance_mm), None)
    return Screen(round(size_px[0]), round(size_px[1]), width_cm, height_cm, distance_cm)
