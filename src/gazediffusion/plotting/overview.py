"""One recording drawn in both representations: from sources to the paper's figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import clean
from gazediffusion.data.preparing import PrepareConfig
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, sources_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.segments import clean_segments
from gazediffusion.errors import GazeError
from gazediffusion.files import require_free
from gazediffusion.geometry import Screen
from gazediffusion.plotting.style import house_style, recording_overview, save_figure


def plot_recording(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig,
    path: Path,
    participant: str | None = None,
    *,
    overwrite: bool = False,
) -> str:
    """Draw the first recording (of that participant) with a segment of a window's length.

    path: a .png, .svg or .pdf file. overwrite: replace one that is there. Returns the title.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.plot_recording(gd.read("study"), gd.PrepareConfig(), Path("recording.png"))
    'participant 01, free_viewing, trial 0'
    """
    require_free(path, overwrite)
    for source in sources_of(recordings):
        for recording in source.read():
            if participant is not None and recording.participant != participant:
                continue
            if len(recording) >= 3 and _draw(recording, config, path):
                return _title(recording)
    whose = f" of participant {participant!r}" if participant is not None else ""
    raise GazeError(
        f"no recording{whose} has a valid segment of {config.seconds:g} s to draw",
        remedy="choose smaller `seconds` or another `participant`",
    )


def _draw(recording: Recording, config: PrepareConfig, path: Path) -> bool:
    if recording.screen is None:
        raise GazeError("the picture needs the screen", path=recording.path, remedy="give `screen`")
    if (views := normalized_views(recording, recording.screen, config)) is None:
        return False
    with house_style():
        figure = recording_overview(*views, config.rate_hz, recording.screen, _title(recording))
        save_figure(figure, path)
    return True


def normalized_views(
    recording: Recording, screen: Screen, config: PrepareConfig
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """The trial and its first window, each (2, time) in normalized gaze; None without a window.

    The trial is NaN where it is not valid.
    """
    cleaned = clean(recording, config.cleaning)
    clock = read_clock(cleaned.time_ms, recording.rate_hz)
    found = next(clean_segments(cleaned, clock, config.rate_hz, config.length), None)
    if found is None:
        return None
    trial = np.where(cleaned.is_valid, screen.to_normalized(cleaned.gaze_px), np.nan)
    return trial, screen.to_normalized(found.gaze_px[:, : config.length])


def _title(recording: Recording) -> str:
    return f"participant {recording.participant}, {recording.task}, trial {recording.trial}"
