"""Recordings as pymovements' `Dataset` of `Gaze` objects, windows as one `Gaze`, and back.

A `Gaze` has pixels from the upper left, an `Experiment` with screen and rate, the trial columns
participant, task and trial, and `Events`: the blinks of each eye and the runs of samples of one
label. As in pymovements, an event's offset is the time of its last sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gazediffusion.data.interop import alike, required
from gazediffusion.data.recordings import (
    EVENT_CLASSES,
    Eye,
    Recording,
    label_segments,
    true_segments,
)
from gazediffusion.errors import GazeError
from gazediffusion.options import grouped
from gazediffusion.screen import Screen
from gazediffusion.settings import Reading

if TYPE_CHECKING:
    import polars as pl
    import pymovements

    from gazediffusion.data.readers.options import ReadOptions
    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.windows import Windows

_IDENTITY = ["participant", "task", "trial"]
_EYES: tuple[Eye, ...] = ("left", "right", "cyclopean")
# Columns of samples, while a `Gaze` becomes a table.
_LABEL, _BLINK = "gazediffusion label", "gazediffusion blink "


def to_pymovements(recordings: Iterable[Recording]) -> pymovements.Dataset:
    """A pymovements `Dataset` in memory; its `gaze` has one `Gaze` per recording.

    Each has its own experiment, so screens and rates may differ. Blinks and labels are its events.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> screen = gd.Screen(1280, 720, 40, 22.5, 45)
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, screen)
    >>> dataset = windows.to_recordings().to_pymovements()
    >>> len(dataset.gaze), dataset.gaze[0].experiment.screen.distance_cm
    (2, 45)
    """
    pm, polars = required("pymovements"), required("polars")
    held = list(recordings)
    dataset = pm.Dataset(pm.DatasetDefinition(name="gazediffusion"), path="gazediffusion")
    dataset.gaze = [_to_gaze(one) for one in held]
    identity = [[getattr(one, word) for word in _IDENTITY] for one in held]
    dataset.fileinfo = {"gaze": polars.DataFrame(identity, schema=_IDENTITY, orient="row")}
    return dataset


def _to_gaze(recording: Recording) -> pymovements.Gaze:
    polars = required("polars")
    from gazediffusion.data.recordings import eyes_of, rate_of

    has_three = set(recording.gaze_px) == set(_EYES)
    eyes = _EYES if has_three else eyes_of(recording)
    axes = {
        f"{axis}_{eye}": recording.gaze_px[eye][row]
        for eye in eyes
        for row, axis in enumerate("xy")
    }
    identity = {word: getattr(recording, word) for word in _IDENTITY}
    frame = polars.DataFrame({"t_ms": recording.time_ms, **axes}).with_columns(
        polars.lit(value, dtype=polars.String).alias(word) for word, value in identity.items()
    )
    time_ms, events = recording.time_ms, None
    if recording.labels is not None or recording.is_blink:
        found: list[tuple[str, int, int, str | None]] = [
            ("blink", first, stop, eye)
            for eye in eyes
            for first, stop in true_segments(recording.is_blink.get(eye, np.zeros(1, bool)))
        ]
        labels = np.empty(0, np.uint8) if recording.labels is None else recording.labels
        found += [
            (EVENT_CLASSES[k - 1], first, stop, None) for first, stop, k in label_segments(labels)
        ]
        events = [
            (*identity.values(), name, time_ms[first], time_ms[stop - 1], eye)
            for name, first, stop, eye in sorted(found, key=lambda event: event[1:3])
        ]
    return _gaze(
        frame,
        list(axes),
        recording.screen,
        rate_of(recording),
        events,
        eyes=recording.gaze_px,
        trials=_IDENTITY,
        metadata={**identity, "eyes": list(eyes)},
    )


def windows_to_pymovements(windows: Windows) -> pymovements.Gaze:
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
    required("pymovements")
    screen, step_ms = windows.screen, 1000.0 / windows.rate_hz
    identity, axes = windows.identity, ["x_px", "y_px"]
    events = None
    if windows.labels is not None:
        events = [
            (
                *(values[k] for values in identity.values()),
                EVENT_CLASSES[kind - 1],
                first * step_ms,
                (stop - 1) * step_ms,
                None,
            )
            for k, labels in enumerate(windows.cut_labels())
            for first, stop, kind in label_segments(labels).tolist()
        ]
    frame = windows.to_frame().select(*identity, "t_ms", *axes)
    return _gaze(frame, axes, screen, windows.rate_hz, events, trials=list(identity))


def _gaze(
    frame: pl.DataFrame,
    axes: list[str],
    screen: Screen | None,
    rate_hz: float,
    events: list[tuple[Any, ...]] | None,
    *,
    trials: list[str],
    eyes: Iterable[Eye] = (),
    metadata: dict[str, Any] | None = None,
) -> pymovements.Gaze:
    """Samples with their experiment and events (trial, name, onset, offset, eye)."""
    pm, polars = required("pymovements"), required("polars")
    sides = {side: side in eyes for side in ("left", "right")}
    known = {} if screen is None else {**vars(screen), "origin": "upper left"}
    found = None
    if events is not None:
        types = {name: polars.String if name != "window" else polars.Int64 for name in trials}
        types |= {"name": polars.String, "onset": polars.Float64, "offset": polars.Float64}
        rows = polars.DataFrame(events, schema={**types, "eye": polars.String}, orient="row")
        found = pm.Events(rows, trial_columns=trials)
    return pm.Gaze(
        frame,
        experiment=pm.Experiment(
            screen=pm.gaze.Screen(**known),
            eyetracker=pm.gaze.EyeTracker(
                sampling_rate=rate_hz, **(sides if any(sides.values()) else {})
            ),
        ),
        events=found,
        trial_columns=trials,
        time_column="t_ms",
        time_unit="ms",
        pixel_columns=axes,
        metadata=metadata,
    )


def from_pymovements(
    gaze: pymovements.Gaze | pymovements.Dataset | Iterable[pymovements.Gaze],
    *,
    labels: bool = True,
    **given: Any,
) -> Recordings:
    """Recordings of a pymovements `Gaze`, of several, or of a loaded `Dataset`.

    Rows of equal trial columns are a recording. Pixels are taken, or degrees where there are none.
    Screen, origin, rate and tracked eyes are the experiment's; participant, task and trial are
    found in trial columns and metadata by their names. Events named blink become blinks; fixation,
    saccade, pursuit and noise become labels, unless `labels` is False. Events of a tracker's parser
    (`fixation_eyelink`) become no labels. given: as to `read`.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> recordings = gd.from_pymovements(windows.to_pymovements())
    >>> recordings, [(one.trial, one.rate_hz, one.screen.width_px) for one in recordings]
    (Recordings(2 in memory: pymovements), [('0', 250.0, 1280), ('1', 250.0, 1280)])
    """
    from gazediffusion.data.reading import Recordings, read_options

    options = read_options(*grouped([], given, Reading))
    gazes = getattr(gaze, "gaze", None) or ([gaze] if hasattr(gaze, "samples") else gaze)
    found = _read(cast("Iterable[Any]", gazes), options, labels)
    return Recordings.of(alike(found), "pymovements")


def _read(gazes: Iterable[Any], options: ReadOptions, labels: bool) -> Iterator[Recording]:
    from gazediffusion.data.interop.frames import of_windows
    from gazediffusion.data.readers.columns import meaning
    from gazediffusion.data.readers.pymovements import as_table, screen_of
    from gazediffusion.data.readers.samples import recordings

    for number, gaze in enumerate(gazes):
        path, experiment = Path(f"gaze{number}"), gaze.experiment
        metadata = gaze.metadata or {}
        known = {
            key: value
            for key, value in metadata.items()
            if isinstance(value, str | int | float) and meaning(str(key))[0] in _IDENTITY
        }
        marks = _marks(gaze, labels)
        marked = gaze.clone() if marks else gaze
        marked.samples = gaze.samples.with_columns(marks.values())
        table, columns = as_table(marked, path, known, experiment, list(marks))
        if columns.participant is not None:  # the path names whom nothing else names
            table = replace(table, path=Path("pymovements"))
        eyes = cast("list[Eye]", metadata.get("eyes") or list(columns.gaze))
        columns = replace(
            of_windows(columns, gaze.trial_columns or ()),
            gaze=dict(zip(eyes, columns.gaze.values(), strict=True)),
            blink={eye: f"{_BLINK}{eye}" for eye in eyes if f"{_BLINK}{eye}" in marks},
            label=[_LABEL] if _LABEL in marks else [],
        )
        rate_hz, screen = getattr(experiment, "sampling_rate", None), screen_of(experiment)
        yield from recordings(table, columns, options, screen, "pymovements", rate_hz)


def _marks(gaze: Any, labels: bool) -> dict[str, pl.Series]:
    """Columns of samples that hold the events: the label, and the blinks of each eye."""
    import polars as pl

    from gazediffusion.data.readers.columns import event_classes, event_names

    frame = getattr(gaze.events, "frame", None)
    if frame is None or len(frame) == 0:
        return {}
    names = frame["name"].str.to_lowercase()
    is_blink = names.str.contains(r"^blinks?(_|$)").to_numpy()
    kinds = event_classes(names)
    kinds = np.where(is_blink | (kinds > len(EVENT_CLASSES)) | (not labels), 0, kinds)
    sides = frame["eye"].fill_null("").str.to_lowercase() if "eye" in frame.columns else None
    n = len(gaze.samples)
    classes = np.zeros(n, dtype=np.uint8)
    blinks = {eye: np.zeros(n, dtype=np.bool_) for eye in _EYES}
    for rows, of_trial in _by_trial(gaze, frame):
        time_ms = gaze.samples["time"].to_numpy()[rows]
        first = np.searchsorted(time_ms, frame["onset"].to_numpy()[of_trial], side="left")
        stop = np.searchsorted(time_ms, frame["offset"].to_numpy()[of_trial], side="right")
        for number, start, end in zip(of_trial.tolist(), first, stop, strict=True):
            covered = rows[start:end]
            if kinds[number]:
                classes[covered] = kinds[number]
            for eye in blinks if is_blink[number] else ():
                if sides is None or sides[number] in ("", eye) or sides[number] not in blinks:
                    blinks[eye][covered] = True
    marks = {}
    if is_blink.any():
        marks = {f"{_BLINK}{eye}": pl.Series(f"{_BLINK}{eye}", one) for eye, one in blinks.items()}
    if kinds.any():
        marks[_LABEL] = event_names(classes).alias(_LABEL)
    return marks


def _by_trial(gaze: Any, frame: pl.DataFrame) -> Iterator[tuple[Any, Any]]:
    """The numbers of the samples and of the events of each trial."""
    given = gaze.trial_columns or []
    trials = [
        name for name in ([given] if isinstance(given, str) else given) if name in frame.columns
    ]
    if not trials:
        yield np.arange(len(gaze.samples)), np.arange(len(frame))
        return
    samples, events = (
        one.select(trials).with_row_index("row").partition_by(trials, as_dict=True)
        for one in (gaze.samples, frame)
    )
    for key, of_trial in events.items():
        if key not in samples:
            raise GazeError(f"events are of a trial without samples: {', '.join(map(str, key))}")
        yield samples[key]["row"].to_numpy(), of_trial["row"].to_numpy()
