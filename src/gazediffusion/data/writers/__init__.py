"""Recordings out: files that other eye-tracking tools read.

One module per format, each with one `write_*` that takes recordings one at a time, so a set
larger than memory can be written. Real, simulated and synthetic recordings are written alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gazediffusion.data.writers.asc import write_asc
from gazediffusion.data.writers.bids import write_bids
from gazediffusion.data.writers.recordings import Labelled, checked
from gazediffusion.data.writers.tables import write_columns, write_csv, write_parquet
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.plugins import Plugin, find_plugins

__all__ = ["FORMATS", "Labelled", "exporters", "require_format", "write_into"]

FORMATS: dict[str, Callable[[Iterable[Labelled], Path], None]] = {
    "asc": write_asc,
    "bids": write_bids,
    "columns": write_columns,
    "csv": write_csv,
    "parquet": write_parquet,
}


# Formats of windows alone, and the endings of run and windows files.
_OTHERS = ("npz", "safetensors")


def write_into(folder: Path, labelled: Iterable[Labelled], format: str) -> None:
    """Write recordings with their events into `folder`; the caller sees to it being whole."""
    require_format(format)
    folder.mkdir(exist_ok=True)
    if format in FORMATS:
        FORMATS[format](checked(labelled), folder)
        return
    plugin = exporters()[format]
    path = folder / f"recordings.{format}" if plugin.value.is_file else folder
    plugin.call(plugin.value.write, checked(labelled), path)
    if not path.exists() or not any(folder.iterdir()):
        raise plugin.failure(FileNotFoundError(f"nothing was written to {path.name}"))


def exporters() -> dict[str, Plugin]:
    """The exporters of plug-ins, by format."""
    return find_plugins("exporters", (*FORMATS, *_OTHERS))


def require_format(format: str) -> None:
    """Refuse a format that is neither one of `FORMATS` nor a plug-in's."""
    if format not in FORMATS and format not in exporters():
        known = sorted([*FORMATS, *exporters()])
        raise GazeError(f"no format {format!r}", remedy=suggestion(format, known))
