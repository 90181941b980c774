"""Public datasets by name, through pymovements' registry: `pymovements:GazeBase`.

pymovements knows where a dataset lies, how its files are named, which columns hold the gaze and
what the screen was; it downloads, checks and parses. Each gaze file is loaded alone, so memory
holds one file, and then handled like any table. pymovements is imported inside the functions,
because that takes seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from gazediffusion.data.readers.columns import Column, Columns, meaning
from gazediffusion.data.readers.options import ORIGINS, ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import TABLE_ERRORS, Table
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Screen
from gazediffusion.storage import cache_dir

# What pymovements documents for files it cannot find or parse.
_LOAD_ERRORS = (*TABLE_ERRORS, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_ARCHIVE_ERRORS = (
    EOFError,
    http.client.HTTPException,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
# Datasets in degrees that point up, which pymovements does not state; see `gazebase`.
_Y_UP = {"pymovements:GazeBase"}
_UNFINISHED = ".download-unfinished"


def find(name: str, options: ReadOptions) -> list[tuple[Path, GazeFile]]:
    """Every gaze file of a dataset with its reader; what is not there yet is downloaded."""
    import pymovements as pm

    known = pm.DatasetLibrary.names()
    if name not in known:
        raise GazeError(f"pymovements has no dataset {name!r}", remedy=suggestion(name, known))
    definition = pm.DatasetLibrary.get(name)
    definition.resources = definition.resources.filter("gaze")
    if not definition.resources:
        raise GazeError(f"pymovements:{name} has no gaze samples, only events computed from them")
    folder = (options.data_dir or cache_dir()) / name
    dataset = pm.Dataset(definition, path=folder)
    if (folder / _UNFINISHED).exists() or not _has_files(dataset):
        _download(dataset, folder)
    try:
        dataset.scan()
    except _LOAD_ERRORS as error:
        raise _failure("cannot be scanned", error, folder) from error
    return [
        (file.path, GazeFile(f"pymovements:{name}", file, definition)) for file in _files(dataset)
    ]


@dataclass(frozen=True)
class GazeFile:
    """The reader of one file of a dataset."""

    NAME: str
    file: Any
    definition: Any

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """Whether `path` is the file this reader was made for."""
        return path == Path(self.file.path)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The file's trials, in pixels from the top left."""
        from pymovements.dataset.dataset_files import load_gaze_file

        try:
            gaze = load_gaze_file(self.file, deepcopy(self.definition))
        except _LOAD_ERRORS as error:
            raise _failure("cannot be read by pymovements", error, path) from error
        experiment = gaze.experiment or self.definition.experiment
        screen = screen_of(experiment)
        table, columns = as_table(gaze, path, self.file.metadata, experiment)
        if self.NAME in _Y_UP:
            columns = replace(columns, origin="center-up")
        rate_hz = getattr(experiment, "sampling_rate", None)
        return recordings(table, columns, options, screen, self.NAME, rate_hz)


def _has_files(dataset: Any) -> bool:
    # There may be no such folder, or no file of that pattern in it.
    with contextlib.suppress(RuntimeError, ValueError):
        dataset.scan()
        return bool(_files(dataset))
    return False


def _files(dataset: Any) -> list[Any]:
    return [file for file in dataset._files if file.definition.content == "gaze"]


def _download(dataset: Any, folder: Path) -> None:
    """Download and unpack; a mark stays behind until that is complete."""
    from pymovements.exceptions import ChecksumError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _UNFINISHED).touch()
        # pymovements prints its progress; standard output belongs to the caller's result.
        with contextlib.redirect_stdout(sys.stderr):
            dataset.download()
        (folder / _UNFINISHED).unlink()
    except (*_LOAD_ERRORS, *_ARCHIVE_ERRORS, ChecksumError) as error:
        raise _failure("the download failed", error, folder) from error


def _failure(problem: str, error: BaseException, path: Path) -> GazeError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return GazeError(f"{problem} ({reason[:200]})", path=path)


def as_table(
    gaze: Any, path: Path, metadata: Mapping[str, Any], experiment: Any, extra: Sequence[str] = ()
) -> tuple[Table, Columns]:
    """A pymovements Gaze as a table with one column per eye and axis, and one per identity.

    metadata: what is known of all its samples. extra: further columns to keep.
    """
    names = gaze.samples.columns
    source = next((name for name in ("pixel", "position") if name in names), None)
    if source is None or "time" not in names:
        raise GazeError(f"pymovements found no gaze in {', '.join(names)}", path=path)
    unit = "px" if source == "pixel" else "deg"
    eyes = _eyes(gaze.n_components, experiment)
    axes = {
        f"{axis}_{eye}": pl.col(source).list.get(2 * number + offset, null_on_oob=True)
        for number, eye in enumerate(eyes)
        for offset, axis in enumerate("xy")
    }
    trials = gaze.trial_columns or []
    trials = [trials] if isinstance(trials, str) else trials
    frame = gaze.samples.lazy()
    if trials:
        # Samples between trials carry no trial at all.
        frame = frame.filter(pl.any_horizontal(pl.col(trials).is_not_null()))
    said = {key: pl.lit(str(value)) for key, value in metadata.items() if key not in trials}
    frame = frame.select("time", *trials, *extra, **axes, **said)
    identity = [*said, *trials]
    known = {meaning(name)[0]: name for name in reversed(identity)}
    participant, task = known.get("participant"), known.get("task")
    # The origin that is stated is that of the pixels.
    stated = getattr(getattr(experiment, "screen", None), "origin", None)
    columns = Columns(
        time=Column("time", "ms"),
        gaze={eye: (Column(f"x_{eye}", unit), Column(f"y_{eye}", unit)) for eye in eyes},
        participant=participant,
        task=task,
        trial=[name for name in identity if name not in (participant, task)],
        origin="center" if unit == "deg" else ORIGINS.get(stated),
    )
    return Table(frame, path, lambda row: f"row {row + 1}"), columns


def _eyes(n_components: int | None, experiment: Any) -> list[Eye]:
    """Whose eyes pymovements' components are: one eye's x and y, or left, right, cyclopean."""
    if n_components in (4, 6):
        both: list[Eye] = ["left", "right", "cyclopean"]
        return both[: n_components // 2]
    tracker = getattr(experiment, "eyetracker", None)
    has_left, has_right = (getattr(tracker, side, None) for side in ("left", "right"))
    return ["left"] if has_left and not has_right else ["right"]


def screen_of(experiment: Any) -> Screen | None:
    """The screen of a pymovements experiment; None where its pixels are not known."""
    screen = getattr(experiment, "screen", None)
    if screen is None or screen.width_px is None or screen.height_px is None:
        return None
    return Screen(*(getattr(screen, one.name) for one in fields(Screen)))
