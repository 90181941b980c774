"""Tables of polars and pandas, one row per sample, and back.

Columns of recordings: participant, task, trial, t_ms, then x_px, y_px, is_blink of one eye or the
same with _left and _right, and event, the class of each labelled sample. A polars frame has no
place for a screen: give it again as `screen`. A pandas frame carries screens and rate in `attrs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.interop import required
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
    from gazediffusion.data.windows import Windows

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
    # Blinks and labels may be missing in some, gaze may not.
    if len({tuple(name for name in one.columns if name[:2] in ("x_", "y_")) for one in frames}) > 1:
        raise GazeError(
            "recordings of one eye and of two cannot be in one frame",
            remedy="convert them one after another",
        )
    joined: pl.DataFrame = polars.concat(frames, how="diagonal").fill_nan(None)
    return joined


def windows_to_frame(windows: Windows) -> pl.DataFrame:
    """One row per sample, windows one after another, times from the start of each window.

    Columns: window (its number), participant, task, trial, t_ms, x_px, y_px and, if the size of a
    screen is known, x_deg, y_deg; both in units of the window's own screen, null where unknown.
    Windows with labels: event, the name of each sample's class.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> screen = Screen(1280, 720, 40, 22.5, 45)
    >>> windows = Windows.from_array(np.zeros((1, 2, 500)), 250, screen, "01", "reading")
    >>> windows.to_frame().row(1)
    (0, '01', 'reading', '0', 4.0, 640.0, 360.0, 0.0198..., 0.0198...)
    """
    polars = required("polars")
    n, length = len(windows), windows.length
    columns = {name: np.repeat(values, length) for name, values in windows.identity.items()}
    columns["t_ms"] = np.tile(np.arange(length) * (1000.0 / windows.rate_hz), n)
    pixels = windows.to_numpy("px")
    degrees = windows.on_screens(pixels, Screen.degrees_if_known)
    for unit, gaze in (("px", pixels), ("deg", degrees)):
        if unit == "px" or not np.isnan(gaze).all():
            axes = gaze.transpose(1, 0, 2).reshape(2, n * length)
            columns[f"x_{unit}"], columns[f"y_{unit}"] = axes
    frame: pl.DataFrame = polars.DataFrame(columns).fill_nan(None)
    if windows.labels is not None:
        from gazediffusion.data.readers.columns import event_names

        frame = frame.with_columns(event_names(windows.cut_labels().ravel()).alias("event"))
    return frame


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
    from gazediffusion.data.recordings import rate_of

    held = list(recordings)
    rates = {rate_of(one) for one in held}
    screens = [(one.task, one.screen) for one in held]
    return _with_attributes(to_frame(held), screens, rates.pop() if len(rates) == 1 else None)


def windows_to_pandas(windows: Windows) -> pd.DataFrame:
    """The table of `to_frame` as a pandas frame; `attrs` holds the screens by task and the rate.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((2, 2, 500)), 250, Screen(1280, 720))
    >>> windows.to_pandas().attrs["gazediffusion"]["rate_hz"]
    250.0
    """
    required("pandas")
    numbered = zip(windows.identity["task"], windows.screen_index, strict=True)
    screens = [(task, windows.screens[number]) for task, number in numbered]
    return _with_attributes(windows_to_frame(windows), screens, windows.rate_hz)


def _with_attributes(
    frame: pl.DataFrame, screens: Iterable[tuple[str, Screen | None]], rate_hz: float | None
) -> pd.DataFrame:
    """A pandas frame with `attrs` that state the screen of each task and the rate."""
    by_task: dict[str, Screen | None] = {}
    for task, screen in screens:
        if by_task.setdefault(task, screen) != screen:
            raise GazeError(
                f"task {task!r} was recorded on several screens, and a frame has one for each task",
                remedy="convert the recordings of one screen",
            )
    known = {task: asdict(one) for task, one in by_task.items() if one is not None}
    found = frame.to_pandas()
    found.attrs[_ATTRS] = {"screens": known, "rate_hz": rate_hz}
    return found


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
    columns = of_windows(find_columns(table.names, options, path), table.names)
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
