"""Rows of samples to recordings, once the columns are known.

Rows that agree in participant, task and trial are one recording. The readers of long tables, Tobii,
Pupil Labs, BIDS and pymovements find their columns in their own way and share what is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.data.readers.naming import MS_PER, Column, Columns
from gazediffusion.data.readers.options import Identity, ReadOptions, identify
from gazediffusion.data.readers.tabular import Table, naming_damage
from gazediffusion.data.recordings import UNKNOWN_TASK, Recording, require_forward_time
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Floats, Screen

Rows = range | NDArray[np.int64]


def recordings(
    table: Table,
    columns: Columns,
    options: ReadOptions,
    screen: Screen | Mapping[str, Screen] | None,
    format: str,
    rate_hz: float | None = None,
) -> Iterator[Recording]:
    """One recording per participant, task and trial, in the order in which they begin.

    screen: that of all recordings, or the screens by task.
    """
    # Bad text in a damaged file shows only when it is looked at.
    with naming_damage(table.path):
        path = table.path
        groups = _groups(table, columns.identity)
        values = table.numbers(columns.numeric)
        flags = {name: table.flags(name) for name in set(columns.blink.values())}
        if values.height == 0:
            raise GazeError("there are no rows of samples", path=path)
        if columns.time.unit is not None:
            ms = MS_PER[columns.time.unit]
        else:
            longest = max((rows for _, rows in groups), key=len)
            ms = _ms_by_step(_floats(values, columns.time, longest), columns.time, path)
        for identity, rows in groups:
            named = _identity(identity, columns, options, path)
            own = screen.get(named.task) if isinstance(screen, Mapping) else screen
            with np.errstate(over="ignore"):
                time_ms = _floats(values, columns.time, rows) * ms
            require_forward_time(
                time_ms,
                path,
                _places(table, rows),
                remedy="name the column that separates trials with `columns` trial=...",
            )
            gaze_px = {}
            for eye, (x, y) in columns.gaze.items():
                gaze = np.stack([_floats(values, x, rows), _floats(values, y, rows)])
                gaze_px[eye] = _to_pixels(gaze, x.unit, own, path)
            yield Recording(
                participant=named.participant,
                task=named.task,
                trial=named.trial,
                time_ms=time_ms,
                gaze_px=gaze_px,
                path=path,
                format=format,
                screen=own,
                rate_hz=rate_hz,
                is_blink={eye: flags[name][_index(rows)] for eye, name in columns.blink.items()},
            )


def _identity(
    cells: Mapping[str | None, str], columns: Columns, options: ReadOptions, path: Path
) -> Identity:
    """Who and what: by the user's pattern, else by the columns, else by the file's name."""
    by_name = identify(path, options)
    trial = "-".join(cells[name] for name in columns.trial if cells[name])
    by_column = Identity(
        participant=cells.get(columns.participant) or by_name.participant,
        task=cells.get(columns.task) or by_name.task,
        trial=trial or by_name.trial,
    )
    if options.participant_pattern is None:
        return by_column
    is_task_named = by_name.task != UNKNOWN_TASK
    task = by_name.task if is_task_named else by_column.task
    return replace(by_column, participant=by_name.participant, task=task)


def _groups(table: Table, names: Sequence[str]) -> list[tuple[dict[str | None, str], Rows]]:
    """Each identity with its rows: a range, or an array where it comes in several pieces."""
    if not names:
        return [({}, range(int(table.collect([pl.len()]).item())))]
    stretches = table.collect([pl.struct(names).rle().alias("stretch")]).unnest("stretch")
    pieces = (
        stretches.with_columns(start=pl.col("len").cum_sum() - pl.col("len"))
        .group_by("value", maintain_order=True)
        .agg("start", "len")
    )
    groups: list[tuple[dict[str | None, str], Rows]] = []
    for value, starts, lengths in pieces.iter_rows():
        identity = {name: "" if cell is None else str(cell).strip() for name, cell in value.items()}
        groups.append((identity, _rows(starts, lengths)))
    return groups


def _rows(starts: list[int], lengths: list[int]) -> Rows:
    """Row numbers of stretches with these starts and lengths, one after another."""
    if len(starts) == 1:
        return range(starts[0], starts[0] + lengths[0])
    counts = np.array(lengths, dtype=np.int64)
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum(), dtype=np.int64) + np.repeat(starts - before, counts)


def _places(table: Table, rows: Rows) -> Callable[[int], str]:
    return lambda sample: table.place(int(rows[sample]))


def _index(rows: Rows) -> slice | NDArray[np.int64]:
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


def _floats(values: pl.DataFrame, column: Column, rows: Rows) -> NDArray[np.float64]:
    """The column's numbers in these rows, NaN where missing."""
    return values[column.name][_index(rows)].cast(pl.Float64).to_numpy()


def _ms_by_step(times: NDArray[np.float64], column: Column, path: Path) -> float:
    """Milliseconds per unit of time, for which the median step is 0.4 to 50 ms (20-2500 Hz)."""
    with np.errstate(over="ignore"):
        steps = np.diff(times[np.isfinite(times)])
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    for ms in MS_PER.values():
        if 0.4 <= step * ms <= 50:
            return ms
    raise GazeError(
        f"column {column.name!r} does not tell its unit (its median step is {step:.6g})",
        path=path,
        remedy="name it t_s, t_ms, t_us or t_ns",
    )


def _to_pixels(
    gaze: Floats, unit: str | None, screen: Screen | None, path: Path
) -> NDArray[np.float32]:
    """Pixels (2, time) for gaze (2, time) in `unit`; a sample that lacks one axis is lost."""
    if unit == "deg" and (screen is None or not screen.has_degrees):
        raise GazeError(
            "the gaze is in degrees, and the screen's size and distance are not known",
            path=path,
            remedy="give `screen` with its size in cm and the viewing distance",
        )
    if unit in ("norm", "norm_up") and screen is None:
        problem = "the gaze is normalized, and the screen's size is not known"
        raise GazeError(problem, path=path, remedy="give `screen`")
    with np.errstate(over="ignore", invalid="ignore"):
        if unit == "norm_up":
            gaze = np.stack([gaze[0], 1.0 - gaze[1]])
        if screen is not None and unit == "deg":
            gaze = screen.from_degrees(gaze)
        elif screen is not None and unit in ("norm", "norm_up"):
            gaze = gaze * screen.size_px
        gaze_px = gaze.astype(np.float32)
    gaze_px[:, ~np.isfinite(gaze_px).all(axis=0)] = np.nan
    return gaze_px
