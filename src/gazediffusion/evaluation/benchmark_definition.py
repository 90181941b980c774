"""Definitions of the benchmark: what a version measures, against which numbers of real gaze.

A definition is a file inside the package and never changes. It lists its distances, and holds all
that they need: histograms and mean curves of the held-out participants, the floor at the number of
windows that is compared, and balls of features. Further distances are a further version, so rows of
earlier versions stay as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError, suggestion
from gazediffusion.evaluation.distances import FARTHEST, drawn_counts
from gazediffusion.evaluation.feature_balls import Balls
from gazediffusion.evaluation.metrics import histogram_counts, js_from_counts
from gazediffusion.evaluation.quantities import Measured
from gazediffusion.evaluation.summary import Summary
from gazediffusion.storage import decode_text, read_bytes

Floats = NDArray[np.float64]

DEFINITION_FORMAT = "gazediffusion-benchmark-definition"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Definition:
    """One version of the benchmark of one task; `content` is its file, `sha256` of its bytes."""

    content: Mapping[str, Any]
    sha256: str

    @property
    def version(self) -> int:
        """Rows of one version are compared with each other."""
        return int(self.content["benchmark_version"])

    @property
    def task(self) -> str:
        """What the participants did."""
        return str(self.content["task"])

    @property
    def n_windows(self) -> int:
        """Windows of every set that is compared."""
        return int(self.content["n_windows"])

    @property
    def distances(self) -> dict[str, dict[str, Any]]:
        """Title, kind (js or l1), floor and real numbers of each distance."""
        found: dict[str, dict[str, Any]] = self.content["distances"]
        return found

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the distances."""
        return {key: row["title"] for key, row in self.distances.items()}

    @property
    def floors(self) -> dict[str, float]:
        """Distance of the training to the held-out participants, by distance."""
        return {key: float(row["floor"]) for key, row in self.distances.items()}

    @property
    def training_row(self) -> dict[str, Any]:
        """The figures of a row for real windows of training participants: value and interval."""
        found: dict[str, Any] = self.content["training_row"]
        return found

    @property
    def like(self) -> Summary:
        """The shape of the real gaze (rate, length, screen) as reading a set asks for it."""
        about = dict(self.content["real"])
        return Summary({**about, "parts": {self.task: {"sets": about["sets"]}}}, self.task)

    @cached_property
    def balls(self) -> Balls:
        """The balls of precision and coverage."""
        return Balls.of(self.content["balls"])

    def values(self, measured: Measured) -> dict[str, float]:
        """The distance of a set to the held-out participants, by distance."""
        found = {}
        for key, row in self.distances.items():
            real = np.asarray(row["real"])
            if row["kind"] == "l1":
                found[key] = float(np.abs(measured.curves[key].mean() - real).mean())
            elif len(values := measured.quantities[key].values):
                found[key] = float(js_from_counts(real, histogram_counts(values, edges_of(row))))
            else:
                found[key] = FARTHEST["js"]
        return found

    def replicates(self, measured: Measured, weights: Floats) -> dict[str, Floats]:
        """Distances (replicate,) of drawn groups of a set's windows; weights (replicate, group).

        A quantity without a value in some draw is left out.
        """
        found = {}
        for key, row in self.distances.items():
            real = np.asarray(row["real"])
            if row["kind"] == "l1":
                found[key] = np.abs(measured.curves[key].mean(weights) - real).mean(axis=1)
            else:
                counts = drawn_counts(measured.quantities[key], edges_of(row), weights)
                if counts.any(axis=1).all():
                    found[key] = js_from_counts(real[None], counts)
        return found


def edges_of(row: Mapping[str, Any]) -> Floats:
    """Edges (bin + 1,) of a distance's histogram."""
    return np.linspace(row["low"], row["high"], len(row["real"]) + 1)


def definitions_folder(version: int = VERSION) -> Path:
    """Where the package keeps the definitions of a version."""
    return Path(str(files("gazediffusion.evaluation"))) / "benchmarks" / f"v{version}"


def benchmark_versions() -> list[int]:
    """The versions inside the package."""
    names = [path.name for path in definitions_folder().parent.glob("v*")]
    return sorted(int(name[1:]) for name in names)


def benchmark_tasks(version: int = VERSION) -> list[str]:
    """The tasks of a version."""
    return sorted(path.stem for path in definitions_folder(version).glob("*.json"))


def find_definition(task: str, version: int = VERSION) -> Definition:
    """The definition inside the package of a task."""
    versions = benchmark_versions()
    if version not in versions:
        known = ", ".join(map(str, versions))
        raise GazeError(f"the benchmark has no `version` {version}", remedy=f"known are: {known}")
    known_tasks = benchmark_tasks(version)
    if task not in known_tasks:
        raise GazeError(
            f"the benchmark has no `task` {task!r}", remedy=suggestion(task, known_tasks)
        )
    return read_definition(definitions_folder(version) / f"{task}.json")


def read_definition(path: Path) -> Definition:
    """The definition in a file."""
    content = read_bytes(path)
    values = json.loads(decode_text(content, path))
    return Definition(values, hashlib.sha256(content).hexdigest())
