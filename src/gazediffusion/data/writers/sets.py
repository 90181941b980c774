"""Windows out: tables, NPZ, BIDS or EyeLink ASC, with a card that says what they are.

One writer for windows in memory (`Windows.save`) and for generated sets larger than memory
(`generation.sets`): it takes pieces, and passes over them as often as a format needs. Each window
is one trial on its own screen; in tables a task decides the screen, and a recording of BIDS or ASC
has one task and thus one screen.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.cleaning import likely_blinks
from gazediffusion.data.events import detect_events, labelled_events
from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers import Labelled, exporters, write_into
from gazediffusion.data.writers.card import CARD_KEY, complete_card, readme_of
from gazediffusion.data.writers.npz import Pieces, write_npz
from gazediffusion.data.writers.tables import (
    OtherUnit,
    write_csv,
    write_parquet,
    write_parquet_file,
)
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.jobs import Job, Show, never, nothing
from gazediffusion.screen import Screen
from gazediffusion.storage import (
    ending_of,
    is_file,
    naming_failure,
    put_in_place,
    read_json,
    require_free,
    require_writable,
    work_place,
    write_json,
    written_whole,
)

FORMATS = ("parquet", "csv", "npz", "bids", "asc")
_SINGLE = {"parquet": "recordings.parquet", "csv": "recordings.csv", "npz": "windows.npz"}


def export_windows(
    windows: Windows, output: Path, format: str | None = None, overwrite: bool = False
) -> list[Path]:
    """Write windows in memory to a file or a folder; see `paths_of_set` for what is returned.

    The card is the one in their provenance, if they have one.
    """
    format = format_of(output, format)
    require_free_set(output, format, overwrite)
    work = work_place(output) / f".{output.name}.{os.getpid()}.work"
    try:
        with written_whole(work / "set") as folder:
            folder.mkdir()
            write_windows(folder, lambda: [windows], format, windows.provenance.get("card"))
        _put_in_place(work / "set", output, format, overwrite)
        return paths_of_set(output, format)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def format_of(output: Path, format: str | None) -> str:
    """The format that is given, or else that of the ending; parquet for a folder.

    A name with an ending is a file of that format: any other is refused.

    >>> format_of(Path("gaze.csv"), None), format_of(Path("gaze"), "bids")
    ('csv', 'bids')
    """
    ending = ending_of(output)
    known: Sequence[str] = FORMATS
    if ending not in ("", *FORMATS) or format not in (None, *FORMATS):
        known = (*FORMATS, *exporters())
    if format is not None and format not in known:
        raise GazeError(f"no format {format!r}", remedy=suggestion(format, list(known)))
    if not ending or (ending in known and _file_of(ending) and format in (None, ending)):
        return format or ending or "parquet"
    folder = format or (ending if ending in known else None)
    if folder is not None and folder in known and not _file_of(folder):
        raise GazeError(
            f"{folder} is written as a folder, not as .{ending}",
            path=output,
            remedy=f"give `format` {folder} and a name without an ending, as {output.stem}",
        )
    if format is not None:
        problem, endings = f"`format` is {format}, but the name ends in .{ending}", f".{format}"
    else:
        problem, endings = f"no format ends in .{ending}", ".parquet, .csv or .npz"
    raise GazeError(
        problem,
        path=output,
        remedy=f"end the name in {endings}, or leave the ending out for a folder",
    )


def _file_of(format: str) -> str | None:
    """The name of the one file of a known format; None of a format that is a folder."""
    if format in FORMATS:
        return _SINGLE.get(format)
    return f"recordings.{format}" if exporters()[format].value.is_file else None


def require_free_set(output: Path, format: str, overwrite: bool = False) -> None:
    """Refuse to replace files, unless `overwrite` says so, and any folder that is no set."""
    if not _is_file(output, format):
        require_free(output, overwrite, "card.json")
        return
    for path in paths_of_set(output, format):
        require_free(path, overwrite)


def projected(windows: Windows, screen: Screen | None, n_samples: int) -> Windows:
    """Windows cut to their first samples, all on one screen where it is given."""
    windows = replace(windows, length=n_samples)
    if screen is None:
        return windows
    of_segment = np.zeros_like(windows.segment_screen)
    return replace(windows, screens=(screen,), segment_screen=of_segment, grid_px=None)


def write_windows(
    folder: Path,
    pieces: Pieces,
    format: str,
    card: Mapping[str, Any] | None = None,
    grid_px: float | None = None,
) -> None:
    """Write pieces of windows into `folder` with card.json and README.md.

    pieces: gives the windows again each time it is called. card: where they come from. grid_px:
    pixels are rounded to it. The caller sees to the folder being whole.
    """
    complete, screens = complete_card(card, pieces())
    complete["format_written"] = format
    has_losses = "share_lost" in complete
    if format == "npz":
        write_npz(folder / _SINGLE[format], pieces, complete, grid_px)
    elif format in _SINGLE:
        units = _units(screens.values())
        if format == "csv":
            write_csv(_trials(pieces, grid_px, has_losses), folder, units)
        else:
            write_parquet(_trials(pieces, grid_px, has_losses), folder, units, complete)
    else:
        source = "synthetic" if complete["synthetic"] else "windows"
        write_into(folder, _recordings(pieces, grid_px, has_losses, source), format)
    (folder / "README.md").write_text(readme_of(complete, format), encoding="utf-8")
    write_json(folder / "card.json", complete)
    if format == "bids":
        describe_bids(folder, complete)


def write_part(
    path: Path,
    pieces: Pieces,
    card: Mapping[str, Any],
    screens: Iterable[Screen],
    first: int,
    grid_px: float | None = None,
) -> None:
    """Write one Parquet file of a set in parts; all parts have the same columns.

    pieces, card, grid_px: as for `write_windows`. screens: of the whole set. first: the number of
    the first window, which names its trial.
    """
    complete, _ = complete_card(card, pieces())
    trials = _trials(pieces, grid_px, "share_lost" in complete, first=first)
    write_parquet_file(trials, path, _units(screens), complete)


def _units(screens: Iterable[Screen]) -> tuple[OtherUnit, ...]:
    """The columns of gaze beside pixels; degrees where the size of some screen is known."""
    has_degrees = any(screen.has_degrees for screen in screens)
    return ("deg", "screen") if has_degrees else ("screen",)


def written_set(
    output: Path,
    format: str,
    card: Mapping[str, Any],
    write: Callable[[Job, Path], None],
    overwrite: bool = False,
    show: Show = nothing,
    free: Sequence[str] = (),
) -> list[Path]:
    """Write a set by a job, unless it is there: the set, its card (JSON) and its README.

    card: everything that decides the set; free: of it what does not decide what the job keeps.
    write(job, folder): fills a folder, card included.
    """

    def there() -> Mapping[str, Any] | None:
        sidecar = paths_of_set(output, format)[1]
        if not (is_file(sidecar) and (sidecar.parent == output or is_file(output))):
            return None
        try:
            fields: dict[str, Any] = read_json(sidecar)
            return fields if sidecar.parent == output else fields.get(CARD_KEY)
        except (GazeError, AttributeError):  # another's file
            return None

    decisive = {**card, "format_written": format}
    free = (*free, "format_written")
    with Job(output, decisive, show, never, there, overwrite, free) as job:
        if not job.is_complete:
            require_free_set(output, format, overwrite)
            require_writable(output)
            shutil.rmtree(job.kept / "set", ignore_errors=True)
            with written_whole(job.kept / "set") as folder:
                folder.mkdir(parents=True)
                write(job, folder)
            _put_in_place(job.kept / "set", output, format, overwrite)
    return paths_of_set(output, format)


def paths_of_set(output: Path, format: str) -> list[Path]:
    """The set, its card (JSON, the sidecar that readers look for) and its README."""
    if _is_file(output, format):
        return [output, output.with_suffix(".json"), output.with_suffix(".md")]
    return [output, output / "card.json", output / "README.md"]


def _put_in_place(folder: Path, output: Path, format: str, overwrite: bool) -> None:
    """Move a written folder to `output`, or its one file where `output` has the format's ending."""
    require_free_set(output, format, overwrite)
    with naming_failure(output):
        if not _is_file(output, format):
            put_in_place(folder, output)
            return
        _, sidecar, readme = paths_of_set(output, format)
        beside = folder / "recordings.json"
        fields = read_json(beside) if beside.is_file() else {}
        write_json(sidecar, {**fields, CARD_KEY: read_json(folder / "card.json")})
        put_in_place(folder / "README.md", readme)
        put_in_place(folder / (_file_of(format) or ""), output)


def _is_file(output: Path, format: str) -> bool:
    return ending_of(output) == format and _file_of(format) is not None


def _recordings(
    pieces: Pieces, grid_px: float | None, has_losses: bool, source: str
) -> Iterator[Labelled]:
    """Trials with their events, those of one participant and task one after another.

    source: the recordings' format: windows, or synthetic where nobody was recorded.
    """
    for group in dict.fromkeys(whose for piece in pieces() for whose in _names(piece)):
        for recording, _ in _trials(pieces, grid_px, has_losses, group):
            (gaze_px,) = recording.gaze_px.values()
            assert recording.screen is not None
            where = (gaze_px, recording.time_ms, recording.screen)
            labels = recording.labels
            events = detect_events(*where) if labels is None else labelled_events(labels, *where)
            yield replace(recording, format=source), events


def _names(windows: Windows) -> list[tuple[str, str]]:
    """The participant and the task of each window."""
    return list(zip(windows.identity["participant"], windows.identity["task"], strict=True))


def _trials(
    pieces: Pieces,
    grid_px: float | None,
    has_losses: bool,
    group: tuple[str, str] | None = None,
    first: int = 0,
) -> Iterator[Labelled]:
    """Each window, or each of one participant and task, as a trial named by its number.

    has_losses: label the blinks among the losses of the windows. first: the number of the first.
    """
    for piece in pieces():
        names = _names(piece)
        chosen = np.array([k for k, name in enumerate(names) if group in (None, name)], dtype=int)
        time_ms = np.arange(piece.length, dtype=np.float64) * (1000.0 / piece.rate_hz)
        pixels, labels = piece.select(chosen).to_pixels(grid_px), piece.cut_labels(chosen)
        for k, gaze_px, own in zip(chosen.tolist(), pixels, labels, strict=True):
            is_lost = np.isnan(gaze_px).any(axis=0)
            recording = Recording(
                participant=names[k][0],
                task=names[k][1],
                trial=str(first + k),
                time_ms=time_ms,
                gaze_px={"cyclopean": gaze_px},
                path=Path("windows"),
                format="windows",
                screen=piece.screens[piece.screen_index[k]],
                rate_hz=piece.rate_hz,
                is_blink={"cyclopean": likely_blinks(time_ms, is_lost)} if has_losses else {},
                labels=None if piece.labels is None else own,
            )
            yield recording, ()
        first += len(piece)


def trials(windows: Windows) -> Iterator[Recording]:
    """Each window as a recording: a trial named by its number, from 0 ms."""
    has_losses = bool(windows.is_lost.any())
    return (recording for recording, _ in _trials(lambda: [windows], None, has_losses))


def describe_bids(folder: Path, card: Mapping[str, Any]) -> None:
    """Say in BIDS' own file whether the dataset is synthetic, and what generated it."""
    path = folder / "dataset_description.json"
    title, words = "Gaze windows", "Windows cut from recordings"
    if card["synthetic"]:
        title, model = "Synthetic gaze (no participant was recorded)", card["model"]
        is_baseline = "baseline" in model
        kind = "Baseline" if is_baseline else "Diffusion model, recipe"
        words = f"{kind} {model['baseline' if is_baseline else 'recipe']}, seed {card['seed']}"
    generated_by = {
        "Name": "gazediffusion",
        "Version": card["gazediffusion_version"],
        "Description": f"{words}; see README.md and card.json",
    }
    write_json(path, {**read_json(path), "Name": title, "GeneratedBy": [generated_by]})
    (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")
