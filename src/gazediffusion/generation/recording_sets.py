"""Sets of whole recordings, filled or synthetic: their format, their work folder, their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.data.export import Labelled, write_into
from gazediffusion.data.export.labelled import checked
from gazediffusion.data.export.table import write_parquet
from gazediffusion.errors import GazeError
from gazediffusion.files import ending_of, sha256_of, unpacked
from gazediffusion.generation.generator import Progress
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

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


def require_size(screen: Screen, format: str, path: Path) -> None:
    """Refuse BIDS without the size of the screen."""
    if format == "bids" and not screen.has_degrees:
        raise GazeError(
            "BIDS needs the screen's pixels, size and distance",
            path=path,
            remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
        )


def describe_sources(recordings: Recordings) -> list[dict[str, str]]:
    """Name, format and hash of the files of recordings, as a card states them."""
    return [
        {"name": one.path.name, "format": one.reader.NAME, "sha256": sha256_of(one.path)}
        for one in recordings.sources
    ]


def work_folder(output: Path, card: Mapping[str, Any]) -> Path:
    """A folder beside the output, named by everything that decides what is sampled."""
    digest = hashlib.sha256(json.dumps(card, sort_keys=True).encode()).hexdigest()[:12]
    return output.parent / f".{output.name}.{digest}.work"


def after(done: float, progress: Progress) -> Progress:
    """Progress of a part, before which so much was done."""
    return lambda n: progress(done + n)


def write_recordings(
    folder: Path, labelled: Iterator[Labelled], format: str, card: Mapping[str, Any]
) -> None:
    """Write recordings into a folder; Parquet contains the card."""
    folder.mkdir(exist_ok=True)
    if format == "parquet":
        write_parquet(checked(labelled), folder, card=card)
    else:
        write_into(folder, labelled, format)
