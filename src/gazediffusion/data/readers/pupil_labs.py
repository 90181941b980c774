"""Pupil Labs exports: `gaze.csv` of Neon and Pupil Cloud, `gaze_positions.csv` of Pupil Core.

Gaze is in pixels of the scene camera, which moves with the head: the "screen" is the camera's
image, 1600 x 1200 for Neon and 1280 x 720 for Core unless the user says otherwise. Both give
one point for the two eyes, on an irregular clock. Core's coordinates are normalized with the
origin at the bottom left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.naming import Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tabular import header_of, open_table
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

NAME = "pupil-labs"

_NEON = ("timestamp [ns]", "gaze x [px]", "gaze y [px]")
_CORE = ("gaze_timestamp", "norm_pos_x", "norm_pos_y")
_NEON_CAMERA = Screen(1600, 1200)
_CORE_CAMERA = Screen(1280, 720)

# Pupil Labs' own default for "useful" gaze in Pupil Player and its exports' documentation.
_MIN_CONFIDENCE = 0.6


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header is that of a gaze export; its fixations, blinks and IMU have others."""
    if path.suffix.lower() != ".csv":
        return False
    try:
        names = set(header_of(head, path))
    except GazeError:
        return False
    return names.issuperset(_NEON) or names.issuperset(_CORE)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one export: one per recording and section."""
    table = open_table(path)
    names = table.names
    is_neon = set(names).issuperset(_NEON)
    if not is_neon and not set(names).issuperset(_CORE):
        raise GazeError(
            f"the columns are neither {', '.join(_NEON)} nor {', '.join(_CORE)}",
            path=path,
            remedy="export the gaze again, or read it with the `format` table",
        )
    time, x, y = _NEON if is_neon else _CORE
    is_lost = pl.lit(False)
    if "worn" in names:
        worn = pl.col("worn").str.strip_chars().str.to_lowercase()
        is_lost = is_lost | worn.is_in(["0", "0.0", "false"])
    if "confidence" in names and not is_neon:
        table = table.with_columns(table.numbers(["confidence"]).to_series())
        is_lost = is_lost | (pl.col("confidence") < _MIN_CONFIDENCE)
    table = table.seen_where(is_lost.not_(), (x, y))
    unit = "px" if is_neon else "norm"
    columns = Columns(
        time=Column(time, "ns" if is_neon else "s"),
        gaze={"cyclopean": (Column(x, unit), Column(y, unit))},
        trial=[name for name in ("recording id", "section id") if name in names],
        blink={"cyclopean": "blink id"} if "blink id" in names else {},
        origin=None if is_neon else "bottom-left",
    )
    camera = _NEON_CAMERA if is_neon else _CORE_CAMERA
    return recordings(table, columns, options, None, NAME, assumed=camera)
