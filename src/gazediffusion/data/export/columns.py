"""The paper's dataset layout: `extracted_<task>/participant_<id>.txt`, ten numbers a line.

`timestamp x_left y_left pupil_left x_right y_right pupil_right unused category_left
category_right`, separated by blanks, without a header; seven numbers for one eye:
`timestamp x y pupil unused category category`. Category 0 is blink, 1 fixation, 2 saccade. Trials
follow one another, separated by a jump of the clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export.labelled import (
    Event,
    Labelled,
    by_participant_and_task,
    events_of,
    eyes_of,
    on_one_clock,
    plain,
)
from gazediffusion.data.recordings import Eye, Recording

if TYPE_CHECKING:
    import polars as pl

# Pupil size is not part of a recording; the layout wants the column. Arbitrary camera units.
_PUPIL_AREA = 1000.0
_BLINK, _FIXATION, _SACCADE = 0, 1, 2


def write_columns(labelled: Iterable[Labelled], folder: Path) -> None:
    """Write one text file per participant and task into `folder`."""
    for participant, task, trials in by_participant_and_task(labelled):
        task_folder = folder / f"extracted_{re.sub('[^A-Za-z0-9_]', '', task)}"
        task_folder.mkdir(exist_ok=True)
        label = plain(participant)
        file_name = f"participant_{label}.txt" if label[0].isdigit() else f"{label}.txt"
        with open(task_folder / file_name, "wb") as stream:
            for recording, events in on_one_clock(trials):
                _frame(recording, list(events)).write_csv(
                    stream,
                    include_header=False,
                    separator=" ",
                    null_value=".",
                    float_precision=1,
                )


def _frame(recording: Recording, events: list[Event]) -> pl.DataFrame:
    import polars as pl

    eyes = eyes_of(recording)
    columns: list[pl.Series] = [_clock(recording)]
    for eye in eyes:
        x_px, y_px = recording.gaze_px[eye]
        pupil = np.where(np.isnan(x_px), 0.0, _PUPIL_AREA)
        columns += [
            pl.Series(f"{word}_{eye}", values).fill_nan(None)
            for word, values in (("x", x_px), ("y", y_px), ("pupil", pupil))
        ]
    columns.append(pl.Series("unused", np.zeros(len(recording))))
    for number, eye in enumerate((eyes[0], eyes[-1])):
        columns.append(pl.Series(f"category_{number}", _categories(recording, eye, events)))
    return pl.DataFrame(columns)


def _clock(recording: Recording) -> pl.Series:
    """Whole milliseconds where the clock has them; otherwise text, to keep every decimal."""
    import polars as pl

    time_ms = recording.time_ms
    if np.array_equal(time_ms, np.round(time_ms)):
        return pl.Series("timestamp", time_ms.astype(np.int64))
    return pl.Series("timestamp", [f"{time:.15g}" for time in time_ms.tolist()])


def _categories(recording: Recording, eye: Eye, events: list[Event]) -> NDArray[np.int8]:
    """(time,) category of each sample; fixation where nothing else is known."""
    categories = np.full(len(recording), _FIXATION, dtype=np.int8)
    for event in events_of(events, eye):
        if event.event == "saccade":
            categories[event.samples(recording.time_ms)] = _SACCADE
    if eye in recording.is_blink:
        categories[recording.is_blink[eye]] = _BLINK
    return categories
