"""Windows out: tables, NPZ, BIDS or EyeLink ASC, with a card that says what they are.

One writer for windows in memory (`Windows.save`) and for generated sets larger than memory
(`generation.sets`): it takes pieces, and passes over them as often as a format needs. Each window
is one trial on its own screen; in tables a task decides the screen, and a recording of BIDS or ASC
has one task and thus one screen.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.events import detect_events
from gazediffusion.data.export import Labelled, write_into
from gazediffusion.data.export.card import CARD_KEY, complete_card, read_fields, readme_of
from gazediffusion.data.export.npz import Pieces, write_npz
from gazediffusion.data.export.projection import Projection
from gazediffusion.data.export.table import OtherUnit, write_csv, write_parquet
from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import write_json, written_whole

FORMATS = ("parquet", "csv", "npz", "bids", "asc")
_SINGLE = {"parquet": "recordings.parquet", "csv": "recordings.csv", "npz": "windows.npz"}


def export_windows(windows: Windows, output: Path, format: str | None = None) -> list[Path]:
    """Write windows in memory to a file or a new folder; see `put_in_place` for what is returned.

    The card is the one in their provenance, if they have one.
    """
    format = format_of(output, format)
    require_free(output, format)
    work = output.with_name(f".{output.name}.{os.getpid()}.work")
    try:
        with written_whole(work / "set") as folder:
            folder.mkdir()
            write_windows(folder, lambda: [windows], format, windows.provenance.get("card"))
        return put_in_place(work / "set", output, format)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def format_of(output: Path, format: str | None) -> str:
    """The format that is given, or else that of the ending; parquet for any other."""
    if format is None:
        ending = output.suffix[1:]
        return ending if ending in _SINGLE else "parquet"
    if format not in FORMATS:
        raise GazeError(f"no format {format!r}", remedy=suggestion(format, list(FORMATS)))
    return format


def require_free(output: Path, format: str) -> None:
    """Refuse to replace a folder that holds anything."""
    if output.is_dir() and (_is_file(output, format) or any(output.iterdir())):
        raise GazeError("this folder is not empty", path=output, remedy="name a new one")


def write_windows(
    folder: Path,
    pieces: Pieces,
    format: str,
    card: Mapping[str, Any] | None = None,
    projection: Projection | None = None,
) -> None:
    """Write pieces of windows into `folder` with card.json and README.md.

    pieces: gives the windows again each time it is called. card: where they come from. The caller
    sees to the folder being whole.
    """
    projection = projection or Projection()
    complete, screens = complete_card(card, pieces(), projection)
    if format == "npz":
        write_npz(folder / _SINGLE[format], pieces, projection, complete)
    elif format in _SINGLE:
        write_table = write_csv if format == "csv" else write_parquet
        has_degrees = any(screen.has_degrees for screen in screens.values())
        units: tuple[OtherUnit, ...] = ("deg", "screen") if has_degrees else ("screen",)
        write_table(_trials(pieces, projection), folder, units)
    else:
        write_into(folder, _recordings(pieces, projection), format)
    (folder / "README.md").write_text(readme_of(complete, format), encoding="utf-8")
    write_json(folder / "card.json", complete)
    if format == "bids":
        _describe_bids(folder, complete)


def put_in_place(folder: Path, output: Path, format: str) -> list[Path]:
    """Move a written folder to `output`, or its one file where `output` has the format's ending.

    Returns the set, its card (JSON, the sidecar that readers look for) and its README.
    """
    try:
        if _is_file(output, format):
            return _put_file(folder, output, format)
        if output.is_dir():
            output.rmdir()
        os.replace(folder, output)
    except OSError as error:
        raise GazeError(f"cannot be written ({error.strerror})", path=output) from error
    return [output, output / "card.json", output / "README.md"]


def _is_file(output: Path, format: str) -> bool:
    return format in _SINGLE and output.suffix[1:] == format


def _put_file(folder: Path, output: Path, format: str) -> list[Path]:
    sidecar, readme = output.with_suffix(".json"), output.with_suffix(".md")
    fields = read_fields(folder / "recordings.json") if format != "npz" else {}
    write_json(sidecar, {**fields, CARD_KEY: read_fields(folder / "card.json")})
    os.replace(folder / "README.md", readme)
    os.replace(folder / _SINGLE[format], output)
    return [output, sidecar, readme]


def _recordings(pieces: Pieces, projection: Projection) -> Iterator[Labelled]:
    """Trials with their events, those of one participant and task one after another."""
    groups = dict.fromkeys(
        (piece.participants[who], piece.tasks[task])
        for piece in pieces()
        for who, task in zip(piece.participant, piece.task, strict=True)
    )
    for group in groups:
        for recording, _ in _trials(pieces, projection, group):
            (gaze_px,) = recording.gaze_px.values()
            assert recording.screen is not None
            yield recording, detect_events(gaze_px, recording.time_ms, recording.screen)


def _trials(
    pieces: Pieces, projection: Projection, group: tuple[str, str] | None = None
) -> Iterator[Labelled]:
    """Each window, or each of one participant and task, as a trial named by its number."""
    first = 0
    for piece in pieces():
        numbers = np.arange(len(piece))
        if group is not None:
            who, task = (names.index(name) if name in names else -1 for names, name in
                         zip((piece.participants, piece.tasks), group, strict=True))  # fmt: skip
            numbers = numbers[(piece.participant == who) & (piece.task == task)]
        chosen = piece.select(numbers)
        screens, of_window = projection.screens(chosen)
        pixels = projection.pixels(chosen)
        time_ms = np.arange(pixels.shape[2], dtype=np.float64) * (1000.0 / piece.rate_hz)
        identity = zip(chosen.participant, chosen.task, of_window, strict=True)
        for number, gaze_px, (who, task, screen) in zip(numbers, pixels, identity, strict=True):
            recording = Recording(
                participant=piece.participants[who],
                task=piece.tasks[task],
                trial=str(first + number),
                time_ms=time_ms,
                gaze_px={"cyclopean": gaze_px},
                path=Path("windows"),
                format="windows",
                screen=screens[screen],
                rate_hz=piece.rate_hz,
            )
            yield recording, ()
        first += len(piece)


def _describe_bids(folder: Path, card: Mapping[str, Any]) -> None:
    """Say in BIDS' own file whether the dataset is synthetic, and what generated it."""
    path = folder / "dataset_description.json"
    description = read_fields(path)
    description["Name"] = "Gaze windows"
    words = "Windows cut from recordings"
    if card["synthetic"]:
        description["Name"] = "Synthetic gaze (no participant was recorded)"
        model = card["model"]
        kind, name = (
            ("Baseline", model["baseline"])
            if "baseline" in model
            else ("Diffusion model, recipe", model["recipe"])
        )
        words = f"{kind} {name}, seed {card['seed']}"
    description["GeneratedBy"] = [
        {
            "Name": "gazediffusion",
            "Version": card["gazediffusion_version"],
            "Description": f"{words}; see README.md and card.json",
        }
    ]
    write_json(path, description)
    (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")
