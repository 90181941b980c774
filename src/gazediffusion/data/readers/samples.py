"""Rows of samples to recordings, once the columns are known; and the reader of long tables.

Rows that agree in participant, task and trial are one recording. The readers of Tobii, Pupil Labs,
BIDS and others find their columns in their own way and share what is here. Tables of any other
origin, text with or without a header, Parquet or Arrow, have columns that their names tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.data.readers import tables
from gazediffusion.data.readers.columns import (
    MS_PER,
    Column,
    Columns,
    find_columns,
    require_known_words,
)
from gazediffusion.data.readers.options import (
    ASSUMED,
    GIVEN,
    STATED,
    Identity,
    ReadOptions,
    identify,
    recording_facts,
    saved_experiment,
    sidecar_screens,
)
from gazediffusion.data.readers.tables import TABLE_ERRORS, Table, naming_damage
from gazediffusion.data.recordings import UNKNOWN_TASK, Fact, Recording, require_forward_time
from gazediffusion.errors import GazeError
from gazediffusion.screen import Floats, Origin, Screen, Unit, top_left_pixels

NAME = "table"

Rows = range | NDArray[np.int64]
Values = dict[str, NDArray[np.floating[Any]]]
_PART = 1 << 20  # rows converted at a time, for memory


def is_table(path: Path) -> bool:
    """Whether the ending is a table's."""
    return path.suffix.lower() in {*tables.TEXT_ENDINGS, ".dat", *tables.ARROW_ENDINGS}


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the table's columns are known; a Parquet or Arrow file that cannot be opened is
    claimed, so that its damage is reported and not passed over.
    """
    require_known_words(options)
    if not is_table(path):
        return False
    try:
        if path.suffix.lower() in tables.ARROW_ENDINGS:
            names = tables.scan(path).collect_schema().names()
        else:
            names = tables.header_of(head, path, _is_by_position(options))
        find_columns(names, options, path)
    except TABLE_ERRORS:
        return True
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one table."""
    table = tables.open_table(path, by_position=_is_by_position(options))
    columns = find_columns(table.names, options, path)
    saved = saved_experiment(path)
    if columns.unit != "deg":
        columns = replace(columns, origin=columns.origin or saved.origin)
    screens = sidecar_screens(path) or saved.screen
    return recordings(table, columns, options, screens, NAME, saved.rate_hz)


def _is_by_position(options: ReadOptions) -> bool:
    """Whether a column is given by its position, as of a table without a header."""
    return any(given.isdecimal() for given in options.columns.values())


def recordings(
    table: Table,
    columns: Columns,
    options: ReadOptions,
    stated: Screen | Mapping[str, Screen] | None,
    format: str,
    rate_hz: float | None = None,
    assumed: Screen | None = None,
) -> Iterator[Recording]:
    """One recording per participant, task and trial, in the order in which they begin.

    stated: the screen that the file states, or its screens by task; assumed: that of the format.
    """
    # Bad text in a damaged file shows only when it is looked at.
    with naming_damage(table.path):
        path = table.path
        blinks = list(set(columns.blink.values()))
        values, flags, labels, stretches = table.samples(
            columns.numeric, blinks, columns.identity, columns.label
        )
        if "label" in options.columns and not labels:
            words = f"column {options.columns['label']!r} holds no event labels"
            raise GazeError(words, path=path, remedy="labels are F, S, P, B, N or words for these")
        groups = grouped(stretches)
        times_ms = _clock(values, columns.time, max((r for _, r in groups), key=len), options, path)
        unit, origin, facts = _gaze_facts(columns, options)
        for identity, rows in groups:
            named = _identity(identity, columns, options, path)
            own = stated.get(named.task) if isinstance(stated, Mapping) else stated
            screen, source = options.screen_of(path, own, assumed)
            time_ms = times_ms(rows)
            require_forward_time(
                time_ms,
                path,
                places_of(table, rows),
                remedy="name the column that separates trials with `columns` trial=...",
            )
            gaze_px = {}
            for eye, pair in columns.gaze.items():
                gaze_px[eye] = np.empty((2, len(rows)), dtype=np.float32)
                for part in (slice(one, one + _PART) for one in range(0, len(rows), _PART)):
                    gaze = np.stack([_floats(values, axis, rows[part]) for axis in pair])
                    gaze_px[eye][:, part] = _to_pixels(gaze, unit, origin, screen, path)
            if rows is groups[-1][1]:
                values.clear()  # a file may be one long recording
            at = index_of(rows)
            # The first column that labels any of the rows.
            label = next((name for name, classes in labels.items() if classes[at].any()), None)
            own_facts = {"labels": Fact(f"column {label}", "column names")} if label else {}
            yield Recording(
                participant=named.participant,
                task=named.task,
                trial=named.trial,
                time_ms=time_ms,
                gaze_px=gaze_px,
                path=path,
                format=format,
                screen=screen,
                rate_hz=rate_hz,
                is_blink={eye: flags[name][at] for eye, name in columns.blink.items()},
                facts=recording_facts(named, screen, source, **facts, **own_facts),
                labels=labels[label][at] if label else None,
            )


def _gaze_facts(columns: Columns, options: ReadOptions) -> tuple[Unit, Origin, dict[str, Fact]]:
    """Unit and origin of the gaze, and where these and the columns come from."""
    stated = cast("Unit | None", columns.unit)
    unit: Unit = options.unit or stated or "px"
    # An origin that the names state goes with the unit that they state.
    implied = columns.origin if unit == (stated or "px") else None
    origin: Origin = options.origin or implied or ("center" if unit == "deg" else "top-left")
    time = columns.time.name if columns.time else "none"

    def source(given: object, found: object) -> str:
        return GIVEN if given else STATED if found else ASSUMED

    used = f"{', '.join(columns.axes)}; time {time}"
    facts = {
        "columns": Fact(used, GIVEN if options.columns else "column names"),
        "unit": Fact(unit, source(options.unit, stated)),
        "origin": Fact(origin, source(options.origin, implied)),
    }
    return unit, origin, facts


def _clock(
    values: Values, time: Column | None, longest: Rows, options: ReadOptions, path: Path
) -> Callable[[Rows], NDArray[np.float64]]:
    """The times in ms of rows: by the time column, else evenly spaced at `source_rate_hz`."""
    if time is None:
        step_ms = 1000.0 / cast("float", options.source_rate_hz)
        return lambda rows: np.arange(len(rows), dtype=np.float64) * np.float64(step_ms)
    if time.unit is not None:
        ms = MS_PER[time.unit]
    else:  # the unit in which the median step is 0.4 to 50 ms (20-2500 Hz)
        with np.errstate(over="ignore"):
            times = _floats(values, time, longest)
            steps = np.diff(times[np.isfinite(times)])
        step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
        ms = next((ms for ms in MS_PER.values() if 0.4 <= step * ms <= 50), math.nan)
        if math.isnan(ms):
            raise GazeError(
                f"column {time.name!r} does not tell its unit (its median step is {step:.6g})",
                path=path,
                remedy="name it t_s, t_ms, t_us or t_ns",
            )

    def times_ms(rows: Rows) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return _floats(values, time, rows) * ms

    return times_ms


def _identity(
    cells: Mapping[str | None, str], columns: Columns, options: ReadOptions, path: Path
) -> Identity:
    """Who and what: by the user's pattern, else by the columns, else by the file's name."""
    by_name = identify(path, options)
    who, task = cells.get(columns.participant), cells.get(columns.task) or by_name.task
    trial = "-".join(cells[name] for name in columns.trial if cells[name]) or by_name.trial
    if options.participant_pattern is not None:
        task = by_name.task if by_name.task != UNKNOWN_TASK else task
        return Identity(by_name.participant, task, trial, by_name.source)
    source = f"column {columns.participant!r}" if who else by_name.source
    return Identity(who or by_name.participant, task, trial, source)


def grouped(stretches: pl.DataFrame) -> list[tuple[dict[str | None, str], Rows]]:
    """Each identity with its rows: a range, or an array where it comes in several pieces."""
    pieces = (
        stretches.with_columns(start=pl.col("len").cum_sum() - pl.col("len"))
        .group_by("identity", maintain_order=True)
        .agg(pl.col("start", "len").cast(pl.Int64))
    )
    groups: list[tuple[dict[str | None, str], Rows]] = []
    for cells, starts, lengths in pieces.iter_rows():
        identity = {name: "" if cell is None else str(cell).strip() for name, cell in cells.items()}
        groups.append((identity, _rows(np.array(starts), np.array(lengths))))
    return groups


def _rows(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Rows:
    """Row numbers of stretches with these starts and lengths, one after another."""
    if (starts[1:] == starts[:-1] + lengths[:-1]).all():
        return range(int(starts[0]), int(starts[-1] + lengths[-1]))
    before = np.cumsum(lengths) - lengths
    rows: NDArray[np.int64] = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return rows


def places_of(table: Table, rows: Rows) -> Callable[[int], str]:
    """What names the place of the k-th of these rows."""
    return lambda sample: table.place(int(rows[sample]))


def index_of(rows: Rows) -> slice | NDArray[np.int64]:
    """What selects these rows of an array."""
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


def _floats(values: Values, column: Column, rows: Rows) -> NDArray[np.float64]:
    """The column's numbers in these rows, NaN where missing."""
    return values[column.name][index_of(rows)].astype(np.float64, copy=False)


def _to_pixels(
    gaze: Floats, unit: Unit, origin: Origin, screen: Screen | None, path: Path
) -> NDArray[np.float32]:
    """Pixels (2, time) from the top left; a sample that lacks one axis is lost."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            gaze_px = top_left_pixels(gaze, unit, origin, screen).astype(np.float32)
    except GazeError as error:
        raise GazeError(str(error), path=path) from error
    gaze_px[:, ~np.isfinite(gaze_px).all(axis=0)] = np.nan
    return gaze_px
