"""Lines of numbers apart by blanks: the text of EyeLink's ASC and of plain columns, in bulk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.errors import GazeError

_LARGEST = float(np.finfo(np.float32).max)


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
