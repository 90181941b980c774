"""Real gaze inside the package, as numbers: summaries, and definitions of the benchmark.

Recordings stay with their owners; their histograms, mean curves and floors let a user who has none
of them evaluate synthetic gaze. All sets are counted in the same bins, those of the real gaze, so
every distance between a synthetic set and the held-out participants is one of two histograms. The
floor is kept for several numbers of windows, because histogram distances shrink with n.

A definition of the benchmark never changes. It is real gaze at one number of windows, with the
distances that its version lists and balls of features. Further distances are a further version, so
rows of earlier versions stay as they are. Both are written by packaging.py.
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

from gazediffusion.data.recordings import UNKNOWN_TASK
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.evaluation.metrics import (
    FARTHEST,
    drawn_counts,
    histogram_counts,
    js_from_counts,
    ks_from_counts,
    w1_from_counts,
)
from gazediffusion.evaluation.quantities import FEATURES, Measured
from gazediffusion.evaluation.result import ALL
from gazediffusion.screen import Screen
from gazediffusion.storage import decode_text, read_bytes, read_json

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = dict[str, dict[str, float]]
SUMMARY_FORMAT = "gazediffusion-real-summary"
DEFINITION_FORMAT = "gazediffusion-benchmark-definition"
DEFAULT, VERSION = "gazecom", 1
SUFFIX = ".json.gz"
AMPLITUDE = "degrees.saccade_amplitude_deg"
# The curves of a report that are kept as curves of temporal distances.
SHOWN_CURVES = {"speed_autocorrelation": "autocorrelation", "speed_spectrum": "psd_speed"}
# What windows are labelled with where nobody said their task.
UNLABELLED = ("synthetic", UNKNOWN_TASK)
# The mean counts that stand in quantities of a summary.
_COUNTS = {
    "saccade_count": "events.saccade_count",
    "fixation_count": "events.fixation_count",
    "path_length": "features.path_length",
}


@dataclass(frozen=True, eq=False)
class Sketch:
    """All that distances need of a set: shares (bin,) by quantity, mean curves by distance."""

    shares: dict[str, Floats]
    curves: dict[str, Floats]

    @classmethod
    def of(cls, measured: Measured, edges: Mapping[str, Floats]) -> Sketch:
        """Counted between these edges; a quantity of which the set has no value is left out."""
        found = {key: measured.quantities[key].values for key in edges}
        return cls(
            {k: histogram_counts(v, edges[k]) / len(v) for k, v in found.items() if len(v)},
            {name: curve.mean() for name, curve in measured.curves.items()},
        )

    def distances(self, other: Sketch, edges: Mapping[str, Floats]) -> Numbers:
        """JS, KS and W1 by quantity, and the mean absolute difference (l1) by curve."""
        found = dict.fromkeys(edges, FARTHEST)
        for key in self.shares.keys() & other.shares.keys() & edges.keys():
            p, q = self.shares[key], other.shares[key]
            found[key] = {
                "js": float(js_from_counts(p, q)),
                "ks": float(ks_from_counts(p, q)),
                "w1": float(w1_from_counts(p, q, edges[key])),
            }
        for name, curve in self.curves.items():
            found[name] = {"l1": float(np.abs(curve - other.curves[name]).mean())}
        return found


@dataclass(frozen=True)
class RealGaze:
    """Real gaze in one task, or in all (task None); `content` is a summary's file."""

    content: Mapping[str, Any]
    task: str | None = None

    def __post_init__(self) -> None:
        parts = self.content["parts"]
        if self.task is None or self.task in parts or [self.task] == self.content["tasks"]:
            return
        reason = self.content["left_out"].get(self.task)
        raise GazeError(
            f"the summary {self.content['name']} holds no task {self.task!r}",
            remedy=f"too few participants did it ({reason.replace('people', 'participants')})"
            if reason
            else suggestion(self.task, [key for key in parts if key != ALL]),
        )

    @property
    def part(self) -> dict[str, Any]:
        """The numbers of the task."""
        parts: dict[str, dict[str, Any]] = self.content["parts"]
        return parts[self.task] if self.task in parts else parts[ALL]

    @property
    def name(self) -> str:
        """As `gazecom` or `gazecom/movies`."""
        return "/".join(filter(None, (self.content["name"], self.task)))

    @property
    def length(self) -> int:
        """Samples of a window."""
        return int(self.content["length"])

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return float(self.content["rate_hz"])

    @property
    def screen(self) -> Screen:
        """The screen of the recordings."""
        return Screen(**self.content["screen"])

    def __len__(self) -> int:
        """Windows of the held-out participants."""
        return int(self.part["sets"]["real"]["n_windows"])

    @cached_property
    def edges(self) -> dict[str, Floats]:
        """Edges (bin + 1,) of each quantity's histogram."""
        return {
            key: np.linspace(row["low"], row["high"], len(row["real"]) + 1)
            for key, row in self.part["quantities"].items()
        }

    @cached_property
    def sketch(self) -> Sketch:
        """Of the held-out participants."""
        shares, curves = (
            {key: np.asarray(row["real"]) for key, row in self.part[word].items()}
            for word in ("quantities", "temporal")
        )
        return Sketch(shares, curves)

    @property
    def counts(self) -> dict[str, float]:
        """Mean counts, path length and slope of the training participants."""
        rows = self.part["quantities"]
        found = {k: rows[key]["mean"]["train"] for k, key in _COUNTS.items() if key in rows}
        if fit := self.part["main_sequence"].get("train"):
            found["main_sequence"] = fit["slope"]
        return found

    def floors(self, key: str, n: int) -> dict[str, dict[str, float]]:
        """Floor and halves with n windows per set, by kind of distance.

        Between the numbers that are kept, straight in 1/n: the excess of a histogram distance
        over that of infinite sets is (bins - 1) / 8n.
        """
        row = (self.part["quantities"] | self.part["temporal"])[key]
        one_over_n = 1 / np.array(self.part["sizes"][::-1])
        return {
            word: {
                kind: float(np.interp(1 / n, one_over_n, values[::-1]))
                for kind, values in row[word].items()
            }
            for word in ("floor", "halves")
        }


Like = Windows | RealGaze  # the real side of a comparison


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

    @cached_property
    def real(self) -> RealGaze:
        """The held-out participants' gaze."""
        about, by_kind = self.content["real"], dict[str, dict[str, Any]](js={}, l1={})
        for key, row in self.distances.items():
            by_kind[row["kind"]][key] = row
        part = {"sets": about["sets"], "quantities": by_kind["js"], "temporal": by_kind["l1"]}
        return RealGaze({**about, "parts": {self.task: part}}, self.task)

    @cached_property
    def balls(self) -> Balls:
        """The balls of precision and coverage."""
        row = dict(self.content["balls"])
        return Balls(tuple(row.pop("names")), **{key: np.asarray(one) for key, one in row.items()})

    def values(self, measured: Measured) -> dict[str, float]:
        """The distance of a set to the held-out participants, by distance."""
        edges = self.real.edges
        found = self.real.sketch.distances(Sketch.of(measured, edges), edges)
        return {key: found[key][row["kind"]] for key, row in self.distances.items()}

    def replicates(self, measured: Measured, weights: Floats) -> dict[str, Floats]:
        """Distances (replicate,) of drawn groups of a set's windows; weights (replicate, group).

        A quantity without a value in some draw is left out.
        """
        found, real = {}, self.real.sketch
        for key, edges in self.real.edges.items():
            counts = drawn_counts(measured.quantities[key], edges, weights)
            if counts.any(axis=1).all():
                found[key] = js_from_counts(real.shares[key][None], counts)
        for key, curve in real.curves.items():
            found[key] = np.abs(measured.curves[key].mean(weights) - curve).mean(axis=1)
        return {key: found[key] for key in self.distances if key in found}


@dataclass(frozen=True, eq=False)
class Balls:
    """Balls of standardized features, and how much of the held-out windows each holds.

    Coverage after Naeem et al. 2020, "Reliable fidelity and diversity metrics for generative
    models", with balls around centres (k-means) in the place of balls around each real window, so
    that they can be published where windows cannot.

    mean, scale: of the features (feature,). centre (ball, feature), radius (ball,): of standardized
    features. share: of held-out windows that lie in each ball and nearest its centre, (ball,).
    """

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    centre: Floats
    radius: Floats
    share: Floats

    def ball_of(self, measured: Measured) -> Ints:
        """The ball of each window (window,), -1 for none."""
        columns = [list(FEATURES).index(name) for name in self.names]
        points = (measured.features[:, columns] - self.mean) / self.scale
        nearest, distance = nearest_centre(points, self.centre)
        return np.where(distance <= self.radius[nearest], nearest, -1)

    def precision(self, ball: Ints) -> float:
        """The share of windows that lie in a ball; `ball` (window,) as of `ball_of`."""
        return float((ball >= 0).mean())

    def coverage(self, ball: Ints) -> float:
        """The share of held-out windows whose ball has a window of the set."""
        is_reached = np.bincount(ball[ball >= 0], minlength=len(self.share)) > 0
        return float(self.share[is_reached].sum() / self.share.sum())


def nearest_centre(points: Floats, centre: Floats) -> tuple[Ints, Floats]:
    """The nearest centre of each point, and its distance."""
    from scipy.spatial.distance import cdist

    distance = cdist(points, centre)
    nearest = distance.argmin(axis=1)
    return nearest, distance[np.arange(len(points)), nearest]


def summaries_folder() -> Path:
    """Where the package keeps its summaries."""
    return Path(str(files("gazediffusion.evaluation"))) / "summaries"


def packaged_summaries() -> list[str]:
    """Names of the summaries inside the package."""
    return sorted(path.name.removesuffix(SUFFIX) for path in summaries_folder().glob(f"*{SUFFIX}"))


def summary_tasks() -> list[str]:
    """The tasks of the summaries inside the package."""
    return [task for name in packaged_summaries() for task in find_summary(name).content["tasks"]]


def find_summary(name: str) -> RealGaze:
    """A summary inside the package, as NAME or NAME/task."""
    stem, _, task = name.partition("/")
    known = packaged_summaries()
    if stem not in known:
        raise GazeError(
            f"the package holds no summary {stem!r}",
            remedy=suggestion(stem, known) if known else "give `real`",
        )
    return RealGaze(read_json(summaries_folder() / (stem + SUFFIX)), task or None)


def summary_of_task(task: str) -> RealGaze | None:
    """The packaged summary that holds a task, if any does."""
    for summary in map(find_summary, packaged_summaries()):
        if task in summary.content["parts"]:
            return RealGaze(summary.content, task)
    return None


def definitions_folder(version: int = VERSION) -> Path:
    """Where the package keeps the definitions of a version of the benchmark."""
    return Path(str(files("gazediffusion.evaluation"))) / "benchmarks" / f"v{version}"


def benchmark_tasks(version: int = VERSION) -> list[str]:
    """The tasks of a version."""
    return sorted(path.stem for path in definitions_folder(version).glob("*.json"))


def find_definition(task: str, version: int = VERSION) -> Definition:
    """The definition inside the package of a task."""
    versions = sorted(int(path.name[1:]) for path in definitions_folder().parent.glob("v*"))
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
