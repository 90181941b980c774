"""Windows as objects of other packages: polars, pymovements, MNE and torch.

Each function imports its package when it is called; a package that is not installed is a
`GazeError` that says how to install it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    import mne
    import polars as pl
    import pymovements
    from torch.utils.data import Dataset

IDENTITY = ("window", "participant", "task", "trial")


def to_frame(windows: Windows) -> pl.DataFrame:
    """One row per sample, windows one after another, times from the start of each window.

    Columns: window (its number), participant, task, trial, t_ms, x_px, y_px and, if the size of a
    screen is known, x_deg, y_deg; both in units of the window's own screen, null where unknown.
    """
    polars = _required("polars")
    n, length = len(windows), windows.length
    time_ms = np.arange(length) * (1000.0 / windows.rate_hz)
    columns: dict[str, Any] = {
        name: np.repeat(values, length) for name, values in _identity(windows).items()
    }
    columns["t_ms"] = np.tile(time_ms, n)
    pixels = windows.to_numpy("px")
    columns["x_px"], columns["y_px"] = pixels.transpose(1, 0, 2).reshape(2, n * length)
    has_degrees = np.array([screen.has_degrees for screen in windows.screens])[windows.screen_index]
    if has_degrees.any():
        degrees = np.full_like(pixels, np.nan)
        degrees[has_degrees] = windows.select(has_degrees).to_numpy("deg")
        columns["x_deg"], columns["y_deg"] = degrees.transpose(1, 0, 2).reshape(2, n * length)
    frame: pl.DataFrame = polars.DataFrame(columns).fill_nan(None)
    return frame


def to_pymovements(windows: Windows) -> pymovements.Gaze:
    """A `Gaze` in pixels with the experiment's screen; trial columns are those of `IDENTITY`.

    One experiment has one screen: windows of several screens are refused.
    """
    pm = _required("pymovements")
    screen = windows.screen
    experiment = pm.Experiment(
        screen_width_px=screen.width_px,
        screen_height_px=screen.height_px,
        screen_width_cm=screen.width_cm,
        screen_height_cm=screen.height_cm,
        distance_cm=screen.distance_cm,
        origin="upper left",
        sampling_rate=windows.rate_hz,
    )
    frame = to_frame(windows)
    return pm.Gaze(
        frame.select(*IDENTITY, "t_ms", "x_px", "y_px"),
        experiment=experiment,
        trial_columns=list(IDENTITY),
        time_column="t_ms",
        time_unit="ms",
        pixel_columns=["x_px", "y_px"],
    )


def to_mne(windows: Windows) -> mne.EpochsArray:
    """Epochs (window, channel, time) in pixels of each window's screen.

    Channels: xpos_right, ypos_right, of MNE's type `eyegaze`. Events: one per window, whose id is
    its task's. metadata: the columns of `IDENTITY`.
    """
    mne, pd = _required("mne"), _required("pandas")
    if len(windows) == 0:
        raise GazeError("there are no windows")
    axes = {"xpos_right": "x", "ypos_right": "y"}
    number = np.arange(len(windows))
    # Epochs do not overlap, whatever stride the windows were cut with.
    events = np.column_stack([number * windows.length, np.zeros_like(number), windows.task + 1])
    epochs = mne.EpochsArray(
        windows.to_numpy("px").astype(np.float64),
        mne.create_info(list(axes), windows.rate_hz, "eyegaze"),
        events,
        event_id={windows.tasks[k]: int(k) + 1 for k in np.unique(windows.task)},
        metadata=pd.DataFrame(_identity(windows)),
        verbose="error",
    )
    mapping = {name: ("eyegaze", "px", "right", axis) for name, axis in axes.items()}
    return mne.preprocessing.eyetracking.set_channel_types_eyetrack(epochs, mapping)


def to_torch(windows: Windows) -> Dataset[dict[str, Any]]:
    """A map-style dataset of one dict per window; see `torch_dataset.WindowsDataset`."""
    _required("torch")
    from gazediffusion.data.torch_dataset import WindowsDataset

    return WindowsDataset(windows)


def _identity(windows: Windows) -> dict[str, Any]:
    """The columns of `IDENTITY`, each (window,)."""
    values = (
        np.arange(len(windows)),
        np.array(windows.participants, dtype=object)[windows.participant],
        np.array(windows.tasks, dtype=object)[windows.task],
        np.array(windows.segment_trial, dtype=object)[windows.segment_of_window],
    )
    return dict(zip(IDENTITY, values, strict=True))


def _required(name: str) -> Any:
    """An installed package, or the error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise GazeError(
            f"the package {name} is not installed", remedy=f"install it: pip install {name}"
        ) from error
