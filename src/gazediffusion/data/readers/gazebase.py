"""GazeBase (Griffith, Lohr, Abdulin and Komogortsev 2021, Scientific Data 8:184).

One file per recording, `S_1001_S1_TEX.csv`: round 1, participant 001, session 1, reading. The left
eye is in degrees from the centre of the screen, `n` counts milliseconds, and `val` is not 0 where
the tracker lost the eye. y points up: blinks, which drag an EyeLink's gaze down, dive to about -20
degrees, and the same laboratory's BioEye 2015 reads from the top of the page only so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import has_columns, open_table
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

NAME = "gazebase"

# The order of the others differs between tasks.
_NAMES = {"n", "x", "y", "val", "dP"}
_SCREEN = Screen(1680, 1050, 47.4, 29.7, 55.0)


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header is that of GazeBase."""
    is_csv = path.suffix.lower() == ".csv"
    return is_csv and has_columns(lambda names, _: _NAMES.issubset(names), head, path)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The one recording of a file."""
    table = open_table(path)
    if lacking := sorted(_NAMES.difference(table.names)):
        raise GazeError(f"the columns lack {', '.join(lacking)}", path=path)
    table = table.with_numbers("val").seen_where(pl.col("val") == 0, ("x", "y"))
    columns = Columns(
        time=Column("n", "ms"),
        gaze={"left": (Column("x", "deg"), Column("y", "deg"))},
        origin="center-up",
    )
    return recordings(table, columns, options, None, NAME, assumed=_SCREEN)
