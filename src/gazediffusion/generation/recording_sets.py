"""Sets of whole recordings, filled, labelled or synthetic, written in the recordings' own format.

What a model computed is stored in a hidden work folder beside the output, named by all that decides
it, so that a stopped call resumes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.events import labelled_events
from gazediffusion.data.export import Labelled, write_into
from gazediffusion.data.export.labelled import checked
from gazediffusion.data.export.table import write_parquet
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.generation.scheduling import Progress
from gazediffusion.geometry import Screen
from gazediffusion.storage import ending_of, unpacked, work_place

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

Total = Callable[[int], Progress]
_SAME = {"bids": "bids", "eyelink-asc": "asc"}  # formats of recordings that we write as well
_ARROW = ("parquet", "feather", "arrow", "ipc")


def format_of_recordings(output: Path, recordings: Recordings) -> str:
    """That of the ending; for a folder that of the recordings where it is written, else parquet."""
    ending = ending_of(output)
    if ending not in ("", "csv", "parquet"):
        raise GazeError(
            f"recordings are not written as .{ending}",
            path=output,
            remedy="end the name in .parquet or .csv, or leave the ending out for a folder in the "
            "recordings' own format",
        )
    found = set()
    for source in recordings.sources:
        is_arrow = ending_of(unpacked(source.path)) in _ARROW
        table = "csv" if source.reader.NAME == "table" and not is_arrow else "parquet"
        found.add(_SAME.get(source.reader.NAME, table))
    return ending or (found.pop() if len(found) == 1 else "parquet")


def describe_sources(recordings: Recordings) -> list[dict[str, str]]:
    """Name, format and hash of the files of recordings, as a card states them."""
    described = [one.described() for one in recordings.sources]
    return [{word: one[word] for word in one if word != "bytes"} for one in described]


def work_folder(output: Path, card: Mapping[str, Any]) -> Path:
    """A folder beside the output, named by everything that decides what is computed."""
    digest = hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()[:12]
    return work_place(output) / f".{output.name}.{digest}.work"


def require_size(screen: Screen, format: str, path: Path) -> None:
    """Refuse BIDS without the size of the screen."""
    if format == "bids" and not screen.has_degrees:
        raise GazeError(
            "BIDS needs the screen's pixels, size and distance",
            path=path,
            remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
        )


def with_events(recording: Recording, has_labels: bool) -> Labelled:
    """A recording with the events of its labels.

    has_labels: any recording of the set has labels, so that all are written with them.
    """
    if not has_labels:
        return recording, ()
    if recording.labels is None:
        recording = replace(recording, labels=np.zeros(len(recording), dtype=np.uint8))
    assert recording.labels is not None
    gaze_px = recording.gaze_px.get("right", next(iter(recording.gaze_px.values())))
    where = (gaze_px, recording.time_ms, recording.screen)
    return recording, labelled_events(recording.labels, *where)


def write_recordings(
    folder: Path, labelled: Iterator[Labelled], format: str, card: Mapping[str, Any]
) -> None:
    """Write recordings into a folder; Parquet contains the card."""
    folder.mkdir(exist_ok=True)
    if format == "parquet":
        write_parquet(checked(labelled), folder, card=card)
    else:
        write_into(folder, labelled, format)
