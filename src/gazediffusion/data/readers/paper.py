"""Plain columns of numbers: the dataset the paper trains on (Mathema et al. 2026).

One text file per participant, delimited by spaces or tabs, without a header:
`timestamp x_left y_left pupil_left x_right y_right pupil_right unused category_left
category_right`, written upright (one line per sample) or transposed (one line per column).
Seven columns are a monocular file; that layout (timestamp x y pupil unused category category) is
inferred by dropping one eye's three columns, and its eye is called "right", the one the paper
uses. Trials stand one after another and show only as jumps of the clock.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.readers.options import ReadOptions, identify, recording_facts
from gazediffusion.data.readers.tables import (
    TEXT_ENDINGS,
    blocks_of,
    read_text,
    to_lines,
    to_numbers,
)
from gazediffusion.data.recordings import Eye, Recording, require_forward_time, split_at_jumps
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

NAME = "columns"

# Number of columns -> eye -> the places of its x, y and category.
_LAYOUTS: dict[int, dict[Eye, tuple[int, int, int]]] = {
    10: {"left": (1, 2, 8), "right": (4, 5, 9)},
    7: {"right": (1, 2, 6)},
}
_EXPECTED = (
    "expected 10 (timestamp, x y pupil left, x y pupil right, unused, category left right) "
    "or 7 (timestamp, x y pupil, unused, category category)"
)
# The files do not state their screen; this one is inferred from the gaze they hold.
_SCREEN = Screen(1920, 1080)

_CELL = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|\.|nan", re.IGNORECASE)
_N_LINES_TO_LOOK_AT = 5


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the file holds 7 or 10 columns of bare numbers, upright or transposed."""
    if path.suffix.lower() not in {*TEXT_ENDINGS, ".dat"} or b"\x00" in head:
        return False
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    rows = [line.split() for line in lines if _is_data(line)]
    # The head may end within a line: the last one counts only where there is no other.
    rows = rows[: min(max(1, len(rows) - 1), _N_LINES_TO_LOOK_AT)]
    if not all(_CELL.fullmatch(cell) for row in rows for cell in row[:-1]):
        return False
    widths = {len(row) for row in rows}
    if len(widths) == 1 and widths <= _LAYOUTS.keys():
        return all(_CELL.fullmatch(row[-1]) for row in rows)
    return len(rows) > 0 and min(widths) > max(_LAYOUTS) and _n_data_lines(path) in _LAYOUTS


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The trials in one file, in the file's order."""
    values, place = _parse(path)
    require_forward_time(values[0], path, lambda sample: place(sample, 0))
    identity = identify(path, options)
    screen, source = options.screen_of(path, None, _SCREEN)
    layout = _LAYOUTS[len(values)]
    whole = Recording(
        participant=identity.participant,
        task=identity.task,
        trial=identity.trial,
        time_ms=values[0],
        gaze_px={eye: values[[x, y]].astype(np.float32) for eye, (x, y, _) in layout.items()},
        is_blink={eye: _is_blink(values[category]) for eye, (_, _, category) in layout.items()},
        path=path,
        format=NAME,
        screen=screen,
        facts=recording_facts(identity, screen, source),
    )
    yield from split_at_jumps(whole)


def _parse(path: Path) -> tuple[NDArray[np.float64], Callable[[int, int], str]]:
    """All values (column, sample), and where in the file a (sample, column) stands."""
    import polars as pl

    lines = to_lines(read_text(path))
    lines = lines.filter(~pl.col("line").str.starts_with("MSG"))
    if lines.is_empty():
        raise GazeError("there are no samples in this file", path=path)
    numbers = lines["number"].to_numpy()
    widths = lines["line"].str.count_matches(" ", literal=True).to_numpy() + 1
    width = int(widths[0])
    # A few lines of 7 or 10 cells could be read both ways; only upright ones are ever real.
    is_transposed = width not in _LAYOUTS and len(lines) in _LAYOUTS
    if width not in _LAYOUTS and not is_transposed:
        raise GazeError(f"{width} columns; {_EXPECTED}", path=path, place=f"line {numbers[0]}")
    if (widths != width).any():
        odd = int(np.argmax(widths != width))
        raise GazeError(
            f"{widths[odd]} columns, but {width} in line {numbers[0]}; {_EXPECTED}",
            path=path,
            place=f"line {numbers[odd]}",
        )
    if is_transposed:
        rows = lines["line"].str.split(" ")
        cells = pl.DataFrame({f"field_{i}": row for i, row in enumerate(rows)})
    else:
        cells = lines["line"].str.split_exact(" ", width - 1).struct.unnest()

    def place(sample: int, column: int) -> str:
        line, cell = (column, sample) if is_transposed else (sample, column)
        return f"line {numbers[line]}, column {cell + 1}"

    return to_numbers(cells, path, place), place


def _is_blink(category: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where the label is 0 (blink; 1 is fixation, 2 saccade), shape (time,).

    A label is held forward from the last event and starts at 0, so zeros before the first event
    of the file are no blinks.
    """
    has_begun = np.logical_or.accumulate(category > 0)
    is_blink: NDArray[np.bool_] = (category == 0) & has_begun
    return is_blink


def _is_data(line: bytes) -> bool:
    line = line.strip()
    return line != b"" and not line.startswith(b"MSG")


def _n_data_lines(path: Path) -> int:
    """How many lines hold data, counted no further than needed to rule the layouts out."""
    n = 0
    packed = path.with_name(f"{path.name}.gz")  # `matches` is given the name without it
    with contextlib.suppress(GazeError):
        for block in blocks_of(path if path.exists() else packed):
            n += sum(map(_is_data, block.splitlines()))
            if n > max(_LAYOUTS):
                break
    return n
