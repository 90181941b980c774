"""Filling in a worker of its own: it reads recordings, generates with a model and writes files.

Reading and generating alternate, so both are done there, on the CPU. A model is loaded at its first
use.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.bounds import require_all_bounds
from gazediffusion.web.worker import Report

MODULES = ("gazediffusion.web.filling", "gazediffusion.model", "polars", "scipy.interpolate")
OWN_MB = 1024  # of torch and models


def fill(
    source: Path,
    reading: dict[str, Any],
    folder: Path,
    model: str,
    format: str | None,
    settings: dict[str, Any],
    max_windows: int,
    max_bytes: int,
    report: Report,
) -> bytes:
    """Fill recordings into a new folder; counts of gaps and warnings as JSON.

    format: csv or parquet; None is the recordings' own.
    """
    require_all_bounds(source, max_bytes)
    folder.mkdir()

    def begin(n_windows: int) -> Callable[[float], None]:
        if n_windows > max_windows:
            raise GazeError(
                f"the gaps are filled in {n_windows} windows, and {max_windows} are the most here",
                remedy="send fewer recordings or ask for fewer `draws`; the limit is `max_windows` "
                "of the server",
            )
        return lambda done: report({"stage": "generating", "done": done, "n": n_windows})

    output = folder / ("filled" if format is None else f"filled.{format}")
    recordings = gd.read(source, **reading)
    written = gd.fill(recordings, output, _loaded(model), begin=begin, **settings)
    counts, warnings = asdict(written.counts), list(written.warnings)
    return json.dumps({"counts": counts, "warnings": warnings}).encode()


@lru_cache(maxsize=2)
def _loaded(model: str) -> gd.Model:
    return gd.load(model, device="cpu")
