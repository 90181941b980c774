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

from gazediffusion.data.readers.columns import Column, Columns, gaze_among
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import TEXT_ENDINGS, has_columns, open_table
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError

NAME = "gazepoint"

_TIME = re.compile(r"TIME ?(?:\(.*\))?", re.IGNORECASE)
_POINTS: dict[Eye, str] = {"cyclopean": "BPOG", "left": "LPOG", "right": "RPOG"}
_PASS = "pass"


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the header has a point of gaze; the lists of fixations have the same names."""
    known = {f"{point}X" for point in ("FPOG", *_POINTS.values())}
    is_text = path.suffix.lower() in TEXT_ENDINGS and "fixation" not in path.name.lower()
    return is_text and has_columns(lambda names, _: known & {*names}, head, path)


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one file, one per medium and showing of it."""
    table = open_table(path)
    columns = _find_columns(table.names, path)
    for eye, pair in columns.gaze.items():
        validity = f"{_POINTS[eye]}V"
        if validity in table.names:
            table = table.with_numbers(validity)
            table = table.seen_where(pl.col(validity) == 1, (one.name for one in pair))
    clock = columns.numeric[0]
    restarts = pl.col(clock).diff().fill_null(0) < 0
    table = table.with_numbers(clock).with_columns(restarts.cum_sum().alias(_PASS))
    return recordings(table, columns, options, None, NAME)


def _find_columns(names: Sequence[str], path: Path) -> Columns:
    clock = next((name for name in names if _TIME.fullmatch(name)), None)
    points = ((eye, f"{point}{{}}") for eye, point in _POINTS.items())
    gaze = gaze_among(names, points, "norm")
    if "cyclopean" in gaze:
        gaze = {"cyclopean": gaze["cyclopean"]}
    if clock is None or not gaze:
        raise GazeError(
            "this Gazepoint file lacks TIME or the best point of gaze (BPOGX, BPOGY)",
            path=path,
            remedy="export them (all_gaze.csv); FPOGX is averaged over fixations",
        )
    return Columns(
        time=Column(clock, "s"),
        gaze=gaze,
        trial=["MEDIA_ID", _PASS] if "MEDIA_ID" in names else [_PASS],
        blink=dict.fromkeys(gaze, "BKID") if "BKID" in names else {},
        origin="top-left",
    )
