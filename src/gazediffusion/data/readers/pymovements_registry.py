"""Public datasets by name, through pymovements' registry: `pymovements:GazeBase`.

pymovements knows where a dataset lies, how its files are named, which columns hold the gaze and
what the screen was; it downloads, checks and parses. Each gaze file is loaded alone, so memory
holds one file, and then handled like any table. pymovements is imported only here, inside the
functions, because that takes seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.pymovements_gaze import as_table, screen_of
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tabular import TABLE_ERRORS
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError, suggestion
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


def find(name: str, options: ReadOptions) -> list[tuple[Path, object]]:
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
        (file.path, _GazeFile(f"pymovements:{name}", file, definition)) for file in _files(dataset)
    ]


@dataclass(frozen=True)
class _GazeFile:
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
    try:
        dataset.scan()
    except (RuntimeError, ValueError):  # no such folder, or no file of that pattern in it
        return False
    return bool(_files(dataset))


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
