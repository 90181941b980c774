"""What a model gives of recordings, in a worker of its own: filled, labelled, augmented, scored.

Reading and computing alternate, so both are done there, on the CPU. A model is loaded at its first
use.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.bounds import require_all_bounds
from gazediffusion.web.worker import Report

MODULES = ("gazediffusion.web.recordings", "gazediffusion.model", "polars", "scipy.interpolate")
OWN_MB = 1024  # of torch and models
Kind = Literal["fill", "label", "augment", "score"]


class _Work(NamedTuple):
    """What windows are counted of, how to ask for fewer, and what is said of the result."""

    counted: str
    remedy: str
    about: Callable[[Any], dict[str, Any]]


def _augmented(written: Any) -> dict[str, Any]:
    rows = written.card["participants"]
    return {
        "n_recordings": written.card["times"] * sum(row["recordings"] for row in rows),
        "n_participants": len({row["participant"] for row in rows}),
        "n_held_out": len(written.card["split"]["held_out"]),
        "warnings": written.warnings,
    }


_WORKS: dict[Kind, _Work] = {
    "fill": _Work(
        "the gaps are filled",
        "send fewer recordings or ask for fewer `draws`",
        lambda written: {"counts": asdict(written.counts), "warnings": written.warnings},
    ),
    "label": _Work(
        "the recordings are labelled",
        "send fewer or shorter recordings",
        lambda written: {"n_samples": written.n_samples, "warnings": written.warnings},
    ),
    "augment": _Work(
        "the recordings are generated",
        "send fewer or shorter recordings or ask for fewer `times`",
        _augmented,
    ),
    "score": _Work(
        "the recordings are scored",
        "send fewer or shorter recordings or ask for a longer `stride_s`",
        lambda scores: {
            "n_windows": len(scores),
            "coverage": asdict(scores.coverage),
            "warnings": list(scores.notes),
        },
    ),
}


def write(
    source: Path,
    reading: dict[str, Any],
    kind: Kind,
    output: Path,
    model: str,
    settings: dict[str, Any],
    max_windows: int,
    max_bytes: int,
    report: Report,
) -> bytes:
    """Write what a model gives of recordings; what is said of it as JSON.

    output: of the function of this name in `gazediffusion`; its folder is created.
    """
    work = _WORKS[kind]

    def begin(n_windows: int) -> Callable[[float], None]:
        if n_windows > max_windows:
            raise GazeError(
                f"{work.counted} in {n_windows} windows, and {max_windows} are the most here",
                remedy=f"{work.remedy}; the limit is `max_windows` of the server",
            )
        return lambda done: report({"stage": "generating", "done": done, "n": n_windows})

    require_all_bounds(source, max_bytes)
    output.parent.mkdir()
    recordings = gd.read(source, **reading)
    written = getattr(gd, kind)(recordings, output, _loaded(model), begin=begin, **settings)
    return json.dumps(work.about(written)).encode()


@lru_cache(maxsize=2)
def _loaded(model: str) -> gd.Model:
    return gd.load(model, device="cpu")
