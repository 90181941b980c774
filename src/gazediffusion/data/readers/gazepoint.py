"""Gazepoint: `..._all_gaze.csv` of Gazepoint Analysis, and tables with the names of its API.

Gaze is the best point of gaze (BPOGX, BPOGY), or that of each eye (LPOGX, RPOGX), as a fraction of
the screen from the top left; it is valid where BPOGV is 1. The fixation point (FPOGX) is averaged
by the tracker and not read as gaze, nor are the eyes' positions (LEYEX, LPCX). TIME is in seconds
and starts again with every medium. The screen is not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from gazediffusion.data.readers.columns import Column, Columns
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import Table, header_of, open_table
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError

NAME = "gazepoint"

_ENDINGS = {".csv", ".tsv", ".txt"}
_TIME = re.compile(r"TIME ?(?:\(.*\))?", re.IGNORECASE)
_POINTS: dict[Eye, str] = {"cyclopean": "BPOG", "left": "LPOG", "right": "RPOG"}
_PASS = "pass"


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header has a point of gaze; the lists of fixations have the same names."""
    if path.suffix.lower() not in _ENDINGS or "fixation" in path.name.lower():
        return False
    try:
        names = header_of(head, path)
    except GazeError:
        return False
    return any(f"{point}X" in names for point in ("FPOG", *_POINTS.values()))


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one file, one per medium and showing of it."""
    table = open_table(path)
    columns = _find_columns(table.names, path)
    for eye, pair in columns.gaze.items():
        validity = f"{_POINTS[eye]}V"
        if validity in table.names:
            table = _with_numbers(table, validity)
            table = table.seen_where(pl.col(validity) == 1, (one.name for one in pair))
    clock = columns.numeric[0]
    table = _with_numbers(table, clock)
    restarts = pl.col(clock).diff().fill_null(0) < 0
    table = table.with_columns(restarts.cum_sum().alias(_PASS))
    return recordings(table, columns, options, None, NAME)


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = next((name for name in names if _TIME.fullmatch(name)), None)
    gaze: dict[Eye, tuple[Column, Column]] = {
        eye: (Column(f"{point}X", "norm"), Column(f"{point}Y", "norm"))
        for eye, point in _POINTS.items()
        if {f"{point}X", f"{point}Y"}.issubset(names)
    }
    if "cyclopean" in gaze:
        gaze = {"cyclopean": gaze["cyclopean"]}
    if clock is None or not gaze:
        raise GazeError(
            "this Gazepoint file lacks TIME or the best point of gaze (BPOGX, BPOGY)",
            path=path,
            remedy="export them (all_gaze.csv); FPOGX is averaged over fixations",
        )
    medium = [name for name in ("MEDIA_ID",) if name in names]
    return Columns(
        time=Column(clock, "s"),
        gaze=gaze,
        trial=[*medium, _PASS],
        blink=dict.fromkeys(gaze, "BKID") if "BKID" in names else {},
        origin="top-left",
    )


def _with_numbers(table: Table, name: str) -> Table:
    return table.with_columns(table.numbers([name]).to_series())
