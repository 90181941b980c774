"""Recordings as tables of polars and pandas, one row per sample, and back.

Columns: participant, task, trial, t_ms, then x_px, y_px, is_blink of one eye or the same with _left
and _right, and event, the class of each labelled sample. A polars frame has no place for a screen:
give it again as `screen`. A pandas frame carries screens and rate in `attrs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.options import grouped
from gazediffusion.screen import Screen
from gazediffusion.settings import Reading

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from gazediffusion.data.readers.columns import Columns
    from gazediffusion.data.reading import Recordings


def alike(recordings: Iterable[Recording]) -> list[Recording]:
    """Recordings all with masks of blinks, and all with labels, where any has them."""
    held = list(recordings)
    if any(one.is_blink for one in held):
        held = [
            replace(
                one,
                is_blink={
                    eye: one.is_blink.get(eye, np.zeros(len(one), dtype=np.bool_))
                    for eye in one.gaze_px
                },
            )
            for one in held
        ]
    if any(one.labels is not None for one in held):
        held = [
            replace(one, labels=np.zeros(len(one), dtype=np.uint8)) if one.labels is None else one
            for one in held
        ]
    return held


# Packages that an extra of ours brings along.
_EXTRA = {"huggingface_hub": "hub"}


def required(name: str) -> Any:
    """An installed package, or the error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        source = f"'gazediffusion[{_EXTRA[name]}]'" if name in _EXTRA else name
        raise GazeError(
            f"the package {name} is not installed", remedy=f"install it: pip install {source}"
        ) from error


_ATTRS = "gazediffusion"


def to_frame(recordings: Iterable[Recording]) -> pl.DataFrame:
    """All samples as one polars frame, recordings one after another.

    Recordings of one eye and of two cannot be in one frame.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> frame = windows.to_recordings().to_frame()
    >>> frame.columns, len(frame)
    (['participant', 'task', 'trial', 't_ms', 'x_px', 'y_px'], 1000)
    """
    polars = required("polars")
    from gazediffusion.data.writers.recordings import checked
    from gazediffusion.data.writers.tables import sample_frame

    frames = [sample_frame(one) for one, _ in checked((one, ()) for one in recordings)]
    if len({tuple(frame.columns) for frame in frames}) > 1 and not _differ_in_marks(frames):
        raise GazeError(
            "recordings of one eye and of two cannot be in one frame",
            remedy="convert them one after another",
        )
    joined: pl.DataFrame = polars.concat(frames, how="diagonal").fill_nan(None)
    return joined


def to_pandas(recordings: Iterable[Recording]) -> pd.DataFrame:
    """All samples as one pandas frame; `attrs` holds the screens by task and the rate.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> frame = windows.to_recordings().to_pandas()
    >>> frame.attrs["gazediffusion"]["rate_hz"], len(frame)
    (250.0, 1000)
    """
    required("pandas")
    from gazediffusion.data.writers.recordings import rate_of

    held = list(recordings)
    rates = {rate_of(one) for one in held}
    pairs = [(one.task, one.screen) for one in held]
    rate_hz = rates.pop() if len(rates) == 1 else None
    return with_attributes(to_frame(held).to_pandas(), pairs, rate_hz)


def with_attributes(
    frame: pd.DataFrame, screens: Iterable[tuple[str, Screen | None]], rate_hz: float | None
) -> pd.DataFrame:
    """The frame with `attrs` that state the screen of each task and the rate."""
    by_task: dict[str, Screen | None] = {}
    for task, screen in screens:
        if by_task.setdefault(task, screen) != screen:
            raise GazeError(
                f"task {task!r} was recorded on several screens, and a frame has one for each task",
                remedy="convert the recordings of one screen",
            )
    known = {task: asdict(one) for task, one in by_task.items() if one is not None}
    frame.attrs[_ATTRS] = {"screens": known, "rate_hz": rate_hz}
    return frame


def from_frame(frame: pl.DataFrame | pl.LazyFrame | pd.DataFrame, **given: Any) -> Recordings:
    """Recordings of a polars or pandas frame with one row per sample.

    Columns are recognised by their names, or named by `columns`, as those of a file; what is given
    is as to `read`: `screen`, `unit` and `origin`. Frames of `to_frame` and `to_pandas`, of
    recordings or of windows, are recognised. Rows of equal participant, task and trial, or of one
    window, are a recording.

    >>> import polars as pl
    >>> import gazediffusion as gd
    >>> frame = pl.DataFrame({"t_ms": [0, 4, 8], "x_px": [50.0, 640, 900], "y_px": [4.0, 300, 600]})
    >>> (recording,) = gd.from_frame(frame, screen=gd.Screen(1280, 720))
    >>> recording.gaze_px["cyclopean"].tolist()
    [[50.0, 640.0, 900.0], [4.0, 300.0, 600.0]]
    """
    from gazediffusion.data.plausibility import Plausibility
    from gazediffusion.data.readers.columns import find_columns
    from gazediffusion.data.readers.samples import recordings
    from gazediffusion.data.readers.tables import Table
    from gazediffusion.data.reading import Recordings, read_options

    options, path = read_options(*grouped([], given, Reading)), Path("frame")
    stated: dict[str, Any] = {}
    if not hasattr(frame, "lazy"):
        stated = getattr(frame, "attrs", {}).get(_ATTRS, {})
        frame = required("polars").from_pandas(frame)
    table = Table(frame.lazy(), path, lambda row: f"row {row + 1}")
    columns = find_columns(table.names, options, path)
    columns = of_windows(columns, table.names)
    screens = {task: Screen(**one) for task, one in stated.get("screens", {}).items()}
    rate_hz = stated.get("rate_hz")
    found = list(recordings(table, columns, options, screens or None, "frame", rate_hz))
    plausibility = Plausibility()
    for one in found:
        plausibility.add(one)
    plausibility.finish()
    return Recordings.of(found, "frame")


def of_windows(columns: Columns, names: Iterable[str]) -> Columns:
    """The columns of a frame; one with a column `window` has a trial for each window."""
    return replace(columns, trial=["window"]) if "window" in names else columns


def _differ_in_marks(frames: list[pl.DataFrame]) -> bool:
    """Whether some frames have masks or events that others lack, and all the same gaze."""
    return (
        len({tuple(one for one in frame.columns if one[:2] in ("x_", "y_")) for frame in frames})
        == 1
    )
