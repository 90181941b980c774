"""CSV and Parquet: one long table of all samples; and the columns of the paper's dataset.

Columns are participant, task, trial, t_ms, then x_px, y_px, is_blink for one eye, or the same
with _left and _right for two; filled recordings also have is_filled, labelled ones event, the name
of the event class (null where a sample has no label). Missing gaze is an empty cell in CSV and NaN
in Parquet. A JSON sidecar has the rate and BIDS' screen fields where there is one screen, otherwise
`Screens`, the fields by task.

The paper's layout is `extracted_<task>/participant_<id>.txt`, without a header, separated by
blanks: `timestamp x_left y_left pupil_left x_right y_right pupil_right unused category_left
category_right`, or `timestamp x y pupil unused category category` for one eye. Category 0 is blink,
1 fixation, 2 saccade. Trials follow one another, separated by a jump of the clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gazediffusion.data.events import Event
from gazediffusion.data.recordings import Eye, Recording, eyes_of, name_of, rate_of
from gazediffusion.data.writers.recordings import (
    Labelled,
    by_participant_and_task,
    events_of,
    on_one_clock,
    plain,
)
from gazediffusion.errors import GazeError
from gazediffusion.screen import Floats, Screen

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

OtherUnit = Literal["deg", "screen"]
# Recordings are gathered into row groups of about this many samples.
_PIECE_SAMPLES = 1_000_000
# Pupil size is not part of a recording; the paper's layout wants the column. Camera units.
_PUPIL_AREA = 1000.0
_BLINK, _FIXATION, _SACCADE = 0, 1, 2


def write_csv(labelled: Iterable[Labelled], folder: Path, units: Sequence[OtherUnit] = ()) -> None:
    """Write recordings.csv and recordings.json into `folder`.

    units: columns beside pixels: degrees (`deg`) and normalized to the screen (`screen`).
    """
    import polars as pl

    with open(folder / "recordings.csv", "wb") as stream:
        for number, frame in enumerate(_frames(labelled, units, folder / "recordings.json")):
            cells = frame.with_columns(
                pl.col(pl.Float32).fill_nan(None), pl.col(pl.Boolean).cast(pl.Int8)
            )
            cells.write_csv(stream, include_header=number == 0)


def write_parquet(
    labelled: Iterable[Labelled],
    folder: Path,
    units: Sequence[OtherUnit] = (),
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write recordings.parquet and recordings.json into `folder`; see `write_parquet_file`."""
    sidecar = folder / "recordings.json"
    write_parquet_file(labelled, folder / "recordings.parquet", units, card, sidecar)


def write_parquet_file(
    labelled: Iterable[Labelled],
    path: Path,
    units: Sequence[OtherUnit] = (),
    card: Mapping[str, Any] | None = None,
    sidecar: Path | None = None,
) -> None:
    """Write one Parquet file; `units` as for CSV.

    card: stored in the file's metadata as JSON, under `gazediffusion`. sidecar: a JSON file to
    write beside it, with screens and rate. Written row group by row group: memory holds one of
    them, never the whole set.
    """
    from pyarrow import parquet

    groups = _row_groups(_frames(labelled, units, sidecar))
    first = next(groups)
    metadata = {} if card is None else {"gazediffusion": json.dumps(card)}
    schema = first.schema.with_metadata(metadata) if metadata else first.schema
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in chain([first], groups):
            writer.write_table(table)


def _row_groups(frames: Iterable[pl.DataFrame]) -> Iterator[pa.Table]:
    import polars as pl

    gathered: list[pl.DataFrame] = []
    for frame in chain(frames, [None]):
        gathered += [] if frame is None else [frame]
        if gathered and (frame is None or sum(map(len, gathered)) >= _PIECE_SAMPLES):
            yield pl.concat(gathered).to_arrow(compat_level=pl.CompatLevel.oldest())
            gathered = []


def _frames(
    labelled: Iterable[Labelled], units: Sequence[OtherUnit], sidecar: Path | None
) -> Iterator[pl.DataFrame]:
    """One table per recording, and at the end the sidecar, where one is given.

    All must have the eyes, labels and rate of the first, and those of one task the same screen.
    """
    expected: dict[str, Any] = {}
    screens: dict[str, Screen | None] = {}
    for recording, _ in labelled:
        found = {
            "number of eyes": len(eyes_of(recording)),
            "having blink labels": bool(recording.is_blink),
            "having event labels": recording.labels is not None,
            "screen": recording.screen,
            "rate": rate_of(recording),
        }
        expected = expected or found
        expected["screen"] = screens.setdefault(recording.task, recording.screen)
        for what, value in found.items():
            if value != expected[what]:
                raise GazeError(
                    f"{what} is {value}, that of an earlier recording {expected[what]}; "
                    "one table cannot hold both",
                    place=name_of(recording),
                    remedy="write them into two tables",
                )
        yield sample_frame(recording, units)
    if sidecar is None:
        return
    known = {task: screen.to_bids() for task, screen in screens.items() if screen is not None}
    is_one = len(set(screens.values())) == 1
    fields = next(iter(known.values()), {}) if is_one else {"Screens": known}
    fields = {**fields, "SamplingFrequency": expected["rate"]}
    sidecar.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def sample_frame(recording: Recording, units: Sequence[OtherUnit] = ()) -> pl.DataFrame:
    """One row per sample; columns as this module says, gaze also in `units`."""
    import polars as pl

    from gazediffusion.data.readers.columns import event_names

    words = ("participant", "task", "trial")
    frame = pl.DataFrame({"t_ms": recording.time_ms}).select(
        *(pl.lit(getattr(recording, word), dtype=pl.String).alias(word) for word in words), "t_ms"
    )
    eyes = eyes_of(recording)
    gaze, masks = [], []
    for eye in eyes:
        side = f"_{eye}" if len(eyes) == 2 else ""
        for unit in ("px", *units):
            x, y = _in_unit(recording, eye, unit)
            gaze += [pl.Series(f"x{side}_{unit}", x), pl.Series(f"y{side}_{unit}", y)]
        for mask in ("is_blink", "is_filled"):
            if eye in getattr(recording, mask):
                masks.append(pl.Series(f"{mask}{side}", getattr(recording, mask)[eye]))
    events = [] if recording.labels is None else [event_names(recording.labels).alias("event")]
    return frame.hstack(gaze + masks + events)


def _in_unit(recording: Recording, eye: Eye, unit: str) -> Floats:
    """Gaze (2, time) in px, deg or screen; NaN where the screen does not state it."""
    gaze_px, screen = recording.gaze_px[eye], recording.screen
    if unit == "px":
        return gaze_px
    if screen is None:
        return np.full_like(gaze_px, np.nan)
    return screen.degrees_if_known(gaze_px) if unit == "deg" else screen.to_normalized(gaze_px)


def write_columns(labelled: Iterable[Labelled], folder: Path) -> None:
    """Write one text file per participant and task into `folder`."""
    for participant, task, trials in by_participant_and_task(labelled):
        task_folder = folder / f"extracted_{re.sub('[^A-Za-z0-9_]', '', task)}"
        task_folder.mkdir(exist_ok=True)
        label = plain(participant)
        file_name = f"participant_{label}.txt" if label[0].isdigit() else f"{label}.txt"
        with open(task_folder / file_name, "wb") as stream:
            for recording, events in on_one_clock(trials):
                _paper_columns(recording, list(events)).write_csv(
                    stream,
                    include_header=False,
                    separator=" ",
                    null_value=".",
                    float_precision=1,
                )


def _paper_columns(recording: Recording, events: list[Event]) -> pl.DataFrame:
    import polars as pl

    eyes, time_ms = eyes_of(recording), recording.time_ms
    # Whole milliseconds where the clock has them; otherwise text, to keep every decimal.
    is_whole = np.array_equal(time_ms, np.round(time_ms))
    clock = time_ms.astype(np.int64) if is_whole else [f"{one:.15g}" for one in time_ms.tolist()]
    columns = [pl.Series("timestamp", clock)]
    for eye in eyes:
        x_px, y_px = recording.gaze_px[eye]
        pupil = np.where(np.isnan(x_px), 0.0, _PUPIL_AREA)
        columns += [
            pl.Series(f"{word}_{eye}", values).fill_nan(None)
            for word, values in (("x", x_px), ("y", y_px), ("pupil", pupil))
        ]
    columns.append(pl.Series("unused", np.zeros(len(recording))))
    for number, eye in enumerate((eyes[0], eyes[-1])):
        # Fixation where nothing else is known.
        categories = np.full(len(recording), _FIXATION, dtype=np.int8)
        for event in events_of(events, eye):
            if event.event == "saccade":
                categories[event.samples(time_ms)] = _SACCADE
        if eye in recording.is_blink:
            categories[recording.is_blink[eye]] = _BLINK
        columns.append(pl.Series(f"category_{number}", categories))
    return pl.DataFrame(columns)
