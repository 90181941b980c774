"""Windows as objects of other packages: polars, pandas, pymovements, MNE and torch.

Each function imports its package when it is called; a package that is not installed is a
`GazeError` that says how to install it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.interop.frames import required
from gazediffusion.data.recordings import EVENT_CLASSES, label_segments
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

if TYPE_CHECKING:
    import mne
    import pandas as pd
    import polars as pl
    import pymovements
    from torch.utils.data import Dataset

    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.windows import Windows


def to_frame(windows: Windows) -> pl.DataFrame:
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
    columns["x_px"], columns["y_px"] = pixels.transpose(1, 0, 2).reshape(2, n * length)
    degrees = windows.on_screens(pixels, Screen.degrees_if_known)
    if not np.isnan(degrees).all():
        columns["x_deg"], columns["y_deg"] = degrees.transpose(1, 0, 2).reshape(2, n * length)
    frame: pl.DataFrame = polars.DataFrame(columns).fill_nan(None)
    if windows.labels is not None:
        from gazediffusion.data.readers.columns import event_names

        frame = frame.with_columns(event_names(windows.cut_labels().ravel()).alias("event"))
    return frame


def to_pandas(windows: Windows) -> pd.DataFrame:
    """The table of `to_frame` as a pandas frame; `attrs` holds the screens by task and the rate.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((2, 2, 500)), 250, Screen(1280, 720))
    >>> windows.to_pandas().attrs["gazediffusion"]["rate_hz"]
    250.0
    """
    required("pandas")
    from gazediffusion.data.interop.frames import with_attributes

    tasks, screens = windows.identity["task"], windows.screen_index
    pairs = [(task, windows.screens[number]) for task, number in zip(tasks, screens, strict=True)]
    return with_attributes(to_frame(windows).to_pandas(), pairs, windows.rate_hz)


def to_recordings(windows: Windows) -> Recordings:
    """Each window as a recording in memory: a trial named by the window's number, from 0 ms.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((2, 2, 500)), 250, Screen(1280, 720))
    >>> windows.to_recordings()
    Recordings(2 in memory: windows)
    """
    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.writers.sets import trials

    return Recordings.of(trials(windows), "windows")


def to_pymovements(windows: Windows) -> pymovements.Gaze:
    """A pymovements `Gaze` in pixels, one trial per window, with the experiment's screen.

    Trial columns: window, participant, task, trial. One experiment has one screen: windows of
    several screens are refused; `to_recordings().to_pymovements()` gives them as a dataset. Labels
    become events.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> screen = Screen(1280, 720, 40, 22.5, 45)
    >>> gaze = Windows.from_array(np.zeros((3, 2, 500)), 250, screen).to_pymovements()
    >>> gaze.experiment.screen.width_px, len(gaze.samples)
    (1280, 1500)
    """
    pm = required("pymovements")
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
    identity = list(windows.identity)
    return pm.Gaze(
        to_frame(windows).select(*identity, "t_ms", "x_px", "y_px"),
        experiment=experiment,
        events=_events(windows),
        trial_columns=identity,
        time_column="t_ms",
        time_unit="ms",
        pixel_columns=["x_px", "y_px"],
    )


def _events(windows: Windows) -> pymovements.Events | None:
    """The labels of windows as events of pymovements, whose trial columns are the windows'."""
    if windows.labels is None:
        return None
    pm, polars = required("pymovements"), required("polars")
    step_ms, identity = 1000.0 / windows.rate_hz, windows.identity
    rows = [
        (*(values[k] for values in identity.values()), EVENT_CLASSES[kind - 1], first, stop - 1)
        for k, labels in enumerate(windows.cut_labels())
        for first, stop, kind in label_segments(labels).tolist()
    ]
    frame = polars.DataFrame(rows, schema=[*identity, "name", "onset", "offset"], orient="row")
    frame = frame.with_columns(polars.col("onset", "offset").cast(polars.Float64) * step_ms)
    return pm.Events(frame, trial_columns=list(identity))


def to_mne(windows: Windows) -> mne.EpochsArray:
    """MNE epochs (window, channel, time) in pixels of each window's screen.

    Channels: xpos_right, ypos_right, of MNE's type `eyegaze`. Events: one per window, whose id is
    its task's. metadata: window, participant, task, trial. Labels become annotations, as in
    `adapters.mne`. `to_recordings().to_mne()` gives one Raw per window.

    >>> import numpy as np
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((3, 2, 500)), 250, Screen(1280, 720))
    >>> epochs = windows.to_mne()
    >>> len(epochs), epochs.ch_names, epochs.get_channel_types()
    (3, ['xpos_right', 'ypos_right'], ['eyegaze', 'eyegaze'])
    """
    mne, pd = required("mne"), required("pandas")
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
        metadata=pd.DataFrame(windows.identity),
        verbose="error",
    )
    mapping = {name: ("eyegaze", "px", "right", axis) for name, axis in axes.items()}
    mne.preprocessing.eyetracking.set_channel_types_eyetrack(epochs, mapping)
    if windows.labels is not None:
        from gazediffusion.data.interop.mne import annotations_of_labels

        epochs.set_annotations(annotations_of_labels(windows.cut_labels(), windows.rate_hz))
    return epochs


def to_torch(windows: Windows) -> Dataset[dict[str, Any]]:
    """A torch dataset of one dict per window; see `adapters.torch.WindowsDataset`.

    >>> import numpy as np
    >>> from torch.utils.data import DataLoader
    >>> from gazediffusion import Screen, Windows
    >>> windows = Windows.from_array(np.zeros((6, 2, 500)), 250, Screen(1280, 720))
    >>> batch = next(iter(DataLoader(windows.to_torch(), batch_size=4)))
    >>> batch["gaze"].shape, batch["task"]
    (torch.Size([4, 2, 500]), tensor([0, 0, 0, 0]))
    """
    required("torch")
    from gazediffusion.data.interop.torch import WindowsDataset

    return WindowsDataset(windows)
