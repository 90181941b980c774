"""BIDS: a whole dataset as the standard has it for eye tracking since version 1.11.

One run per trial in `sub-*/beh/`: gaze per eye in `_physio.tsv.gz`, blinks and known eye
events in `_physioevents.tsv.gz`, the screen in `_events.json`. The same recordings give the
same bytes: gzip streams carry neither time nor file name.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gazediffusion.data.events import Event
from gazediffusion.data.recordings import SAMPLE_LABELS, Eye, Recording, eyes_of, name_of, rate_of
from gazediffusion.data.writers.recordings import (
    Labelled,
    by_participant_and_task,
    events_of,
    plain,
    spans_of,
)
from gazediffusion.errors import GazeError
from gazediffusion.storage import write_json

if TYPE_CHECKING:
    import polars as pl

_BIDS_VERSION = "1.11.0"
_README = """# Gaze recordings

Eye-tracking recordings written by gazediffusion, one run per trial. Gaze is in pixels of the
screen, origin top left; `n/a` marks samples where the eye was lost. Times are in milliseconds
on the recording's clock.
"""


def write_bids(labelled: Iterable[Labelled], folder: Path) -> None:
    """Write a BIDS dataset into `folder`."""
    participants: dict[str, str] = {}
    for participant, task, trials in by_participant_and_task(labelled):
        label = plain(participant)
        if participants.setdefault(label, participant) != participant:
            raise GazeError(
                f"participants {participant!r} and {participants[label]!r} share a name"
            )
        beh = folder / f"sub-{label}" / "beh"
        beh.mkdir(parents=True, exist_ok=True)
        taken: set[str] = set()
        for number, (recording, events) in enumerate(trials, start=1):
            is_run = recording.trial.isascii() and recording.trial.isdigit()
            run = recording.trial if is_run else str(number)
            if run in taken:
                raise GazeError(f"run {run} comes twice", place=name_of(recording))
            taken.add(run)
            _write_run(recording, list(events), beh / f"sub-{label}_task-{plain(task)}_run-{run}")
    _write_dataset_files(sorted(participants), folder)


def _write_dataset_files(labels: list[str], folder: Path) -> None:
    write_json(
        folder / "dataset_description.json",
        {
            "Name": "Gaze recordings",
            "BIDSVersion": _BIDS_VERSION,
            "DatasetType": "raw",
            "GeneratedBy": [{"Name": "gazediffusion"}],
        },
    )
    (folder / "README.md").write_text(_README, encoding="utf-8")
    rows = "".join(f"sub-{label}\n" for label in labels)
    (folder / "participants.tsv").write_text(f"participant_id\n{rows}", encoding="utf-8")
    write_json(
        folder / "participants.json", {"participant_id": {"Description": "Who was recorded"}}
    )


def _write_run(recording: Recording, events: list[Event], stem: Path) -> None:
    if recording.screen is None or not recording.screen.has_degrees:
        raise GazeError(
            "BIDS needs the screen's pixels, size and distance",
            place=name_of(recording),
            remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
        )
    for number, eye in enumerate(eyes_of(recording), start=1):
        prefix = Path(f"{stem}_recording-eye{number}")
        _write_gaze(recording, eye, prefix)
        _write_eye_events(recording, eye, events, prefix)
    duration_s = len(recording) / rate_of(recording)
    rows = f"onset\tduration\ttrial_type\n0.0\t{duration_s:.6g}\t{plain(recording.task)}\n"
    Path(f"{stem}_events.tsv").write_text(rows, encoding="utf-8")
    write_json(
        Path(f"{stem}_events.json"),
        {
            "TaskName": recording.task,
            "trial_type": {"Description": "The task of this run"},
            "StimulusPresentation": recording.screen.to_bids(),
        },
    )


def _write_gaze(recording: Recording, eye: Eye, prefix: Path) -> None:
    import polars as pl

    x_px, y_px = recording.gaze_px[eye]
    frame = pl.DataFrame({"t": recording.time_ms, "x": x_px, "y": y_px}).fill_nan(None)
    _write_tsv_gz(frame, Path(f"{prefix}_physio.tsv.gz"))
    write_json(
        Path(f"{prefix}_physio.json"),
        {
            "TaskName": recording.task,
            "SamplingFrequency": rate_of(recording),
            "StartTime": 0,
            "Columns": ["timestamp", "x_coordinate", "y_coordinate"],
            "PhysioType": "eyetrack",
            "RecordedEye": eye,
            "SampleCoordinateSystem": "gaze-on-screen",
            "timestamp": {"Description": "Time on the tracker's clock", "Units": "ms"},
            "x_coordinate": {"Description": "Gaze from the screen's left edge", "Units": "pixel"},
            "y_coordinate": {"Description": "Gaze from the screen's top edge", "Units": "pixel"},
        },
    )


def _write_eye_events(recording: Recording, eye: Eye, events: list[Event], prefix: Path) -> None:
    """Blinks from the labels, fixations, saccades and other events, filled gaps.

    Without any there is no file. Where samples have labels, the sidecar says so (`SAMPLE_LABELS`).
    """
    import polars as pl

    rows: list[tuple[float, float, str, int]] = [
        (event.onset_ms, event.offset_ms - event.onset_ms, event.event, 0)
        for event in events_of(events, eye)
    ]
    # A blink ends half a sample after its last, so tools that count the end in and tools that
    # count it out find the same samples.
    half_step_ms = 500.0 / rate_of(recording)
    spans = [(span, "n/a", 1) for span in spans_of(recording.is_blink, eye)]
    spans += [(span, "filled", 0) for span in spans_of(recording.is_filled, eye)]
    for span, kind, is_blink in spans:
        onset_ms, last_ms = recording.time_ms[[span.start, span.stop - 1]].tolist()
        rows.append((onset_ms, last_ms - onset_ms + half_step_ms, kind, is_blink))
    if not rows:
        return
    frame = pl.DataFrame(
        sorted(rows), schema=["onset", "duration", "trial_type", "blink"], orient="row"
    )
    # The standard has durations in seconds, but onsets on the samples' clock.
    frame = frame.with_columns(pl.col("onset").round(6), (pl.col("duration") / 1e3).round(6))
    _write_tsv_gz(frame, Path(f"{prefix}_physioevents.tsv.gz"))
    write_json(
        Path(f"{prefix}_physioevents.json"),
        {
            "Columns": frame.columns,
            "Description": "Blinks, and fixations, saccades and filled gaps where known",
            "OnsetSource": "timestamp",
            **({} if recording.labels is None else {SAMPLE_LABELS: True}),
            "onset": {"Description": "Start on the tracker's clock", "Units": "ms"},
            "duration": {"Description": "Length of the event", "Units": "s"},
            "trial_type": {
                "Description": "What the eye did",
                "Levels": {
                    "fixation": "The eye rested",
                    "saccade": "The eye jumped",
                    "pursuit": "The eye followed something that moves",
                    "noise": "Blink or noise",
                    "filled": "The eye was lost; a model generated the gaze",
                },
            },
            "blink": {
                "Description": "Whether the event is a blink",
                "Levels": {"0": "no blink", "1": "blink"},
            },
        },
    )


def _write_tsv_gz(frame: pl.DataFrame, path: Path) -> None:
    text = frame.write_csv(include_header=False, separator="\t", null_value="n/a")
    with (
        open(path, "wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as stream,
    ):
        stream.write(text.encode())
