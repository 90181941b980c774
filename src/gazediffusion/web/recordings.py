"""Recordings that a model fills or labels, in a worker of its own: read, computed and written.

Reading and computing alternate, so both are done there, on the CPU. A model is loaded at its first
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

MODULES = ("gazediffusion.web.recordings", "gazediffusion.model", "polars", "scipy.interpolate")
OWN_MB = 1024  # of torch and models


def fill(
    source: Path,
    reading: dict[str, Any],
    output: Path,
    model: str,
    settings: dict[str, Any],
    max_windows: int,
    max_bytes: int,
    report: Report,
) -> bytes:
    """Fill recordings; counts of gaps and warnings as JSON.

    output: of `gazediffusion.fill`; its folder is created.
    """
    remedy = "send fewer recordings or ask for fewer `draws`"
    begin = _beginning("the gaps are filled", max_windows, remedy, report)
    recordings = _read(source, reading, output, max_bytes)
    written = gd.fill(recordings, output, _loaded(model), begin=begin, **settings)
    return _json(counts=asdict(written.counts), warnings=written.warnings)


def label(
    source: Path,
    reading: dict[str, Any],
    output: Path,
    model: str,
    settings: dict[str, Any],
    max_windows: int,
    max_bytes: int,
    report: Report,
) -> bytes:
    """Label recordings; samples of each class and warnings as JSON.

    output: of `gazediffusion.label`; its folder is created.
    """
    remedy = "send fewer or shorter recordings"
    begin = _beginning("the recordings are labelled", max_windows, remedy, report)
    recordings = _read(source, reading, output, max_bytes)
    written = gd.label(recordings, output, _loaded(model), begin=begin, **settings)
    return _json(n_samples=written.n_samples, warnings=written.warnings)


def _read(source: Path, reading: dict[str, Any], output: Path, max_bytes: int) -> Any:
    """The recordings, and a new folder for the output."""
    require_all_bounds(source, max_bytes)
    output.parent.mkdir()
    return gd.read(source, **reading)


def _beginning(
    done_so: str, max_windows: int, remedy: str, report: Report
) -> Callable[[int], Callable[[float], None]]:
    """What is called with the number of windows; refuses too many, reports those done."""

    def begin(n_windows: int) -> Callable[[float], None]:
        if n_windows > max_windows:
            raise GazeError(
                f"{done_so} in {n_windows} windows, and {max_windows} are the most here",
                remedy=f"{remedy}; the limit is `max_windows` of the server",
            )
        return lambda done: report({"stage": "generating", "done": done, "n": n_windows})

    return begin


def _json(**about: Any) -> bytes:
    return json.dumps(about).encode()


@lru_cache(maxsize=2)
def _loaded(model: str) -> gd.Model:
    return gd.load(model, device="cpu")
