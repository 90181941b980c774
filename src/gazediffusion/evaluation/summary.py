"""Summaries of real gaze: histograms, mean curves and floors, never rows.

Recordings of people stay where they are, but what they come to in numbers may travel: with a
summary inside the package, synthetic gaze is judged against people by a user who has none of
their recordings. All sets are counted in the same bins, those of the real people, so every
distance between a synthetic set and the held-out people is one of two histograms. The floor is
kept for several numbers of windows, because histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.evaluation.comparison import FARTHEST, even_counts
from gazediffusion.evaluation.evaluation import (
    FORMAT,
    EvaluationConfig,
    about_of,
    curves_of,
    main_sequence_of,
    plain_values,
    scalar_curves,
)
from gazediffusion.evaluation.gaze_sets import (
    GazeSet,
    require_comparable,
    stream,
    synthetic_sets,
)
from gazediffusion.evaluation.metrics import js_from_counts, ks_from_counts, w1_from_counts
from gazediffusion.evaluation.quantities import Measured, measure
from gazediffusion.evaluation.ratios import means_of, ratio, ratios_of
from gazediffusion.evaluation.set_tests import Progress
from gazediffusion.files import read_json
from gazediffusion.geometry import Screen

Floats = NDArray[np.float64]
Numbers = dict[str, dict[str, float]]

SUMMARY_FORMAT = "gazediffusion-real-summary"
ALL = "all tasks"
DEFAULT = "gazecom"
NEEDS_RECORDINGS = "needs recordings, not a summary of them; give --real"
TESTS = ("coverage", "c2st", "memorisation", "tstr", "fgd")
AMPLITUDE = "degrees.saccade_amplitude_deg"
# The curves of a report that are kept as curves of temporal distances.
SHOWN_CURVES = {"speed_autocorrelation": "autocorrelation", "speed_spectrum": "psd_speed"}


@dataclass(frozen=True, eq=False)
class Sketch:
    """All that distances need of a set: shares (bin,) by quantity, mean curves by distance."""

    shares: dict[str, Floats]
    curves: dict[str, Floats]

    @classmethod
    def of(cls, measured: Measured, edges: Mapping[str, Floats]) -> Sketch:
        """Counted between these edges; a quantity of which the set has no value is left out."""
        found = {key: measured.quantities[key].values for key in edges}
        shares = {
            key: even_counts(values, edges[key]) / len(values)
            for key, values in found.items()
            if len(values)
        }
        curves = {name: curve(measured.temporal).mean() for name, _, curve in scalar_curves()}
        return cls(shares, curves)

    def distances(self, other: Sketch, edges: Mapping[str, Floats]) -> Numbers:
        """JS, KS and W1 by quantity, and the mean absolute difference (l1) by curve."""
        found = {key: self._of_shares(other, key, borders) for key, borders in edges.items()}
        for name, curve in self.curves.items():
            found[name] = {"l1": float(np.abs(curve - other.curves[name]).mean())}
        return found

    def _of_shares(self, other: Sketch, key: str, borders: Floats) -> dict[str, float]:
        if key not in self.shares or key not in other.shares:
            return FARTHEST
        p, q = self.shares[key], other.shares[key]
        return {
            "js": float(js_from_counts(p, q)),
            "ks": float(ks_from_counts(p, q)),
            "w1": float(w1_from_counts(p, q, borders)),
        }


@dataclass(frozen=True)
class Summarised:
    """The people of a summary who did one task, or any (task None), and what they come to."""

    summary: Mapping[str, Any]
    task: str | None = None

    def __post_init__(self) -> None:
        if self.task is None or self.task in self.summary["parts"]:
            return
        if [self.task] == self.summary["tasks"]:
            return
        known = [key for key in self.summary["parts"] if key != ALL]
        reason = self.summary["left_out"].get(self.task)
        raise GazeError(
            f"the summary {self.summary['name']} holds no task {self.task!r}",
            remedy=f"too few people did it ({reason})" if reason else suggestion(self.task, known),
        )

    @property
    def part(self) -> dict[str, Any]:
        """Their numbers."""
        parts: dict[str, dict[str, Any]] = self.summary["parts"]
        return parts.get(self.task or ALL, parts[ALL])

    @property
    def name(self) -> str:
        """As `gazecom` or `gazecom/movies`."""
        return "/".join(filter(None, (self.summary["name"], self.task)))

    @property
    def length(self) -> int:
        """Samples of a window."""
        return int(self.summary["length"])

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return float(self.summary["rate_hz"])

    @property
    def screen(self) -> Screen:
        """What they looked at."""
        return Screen(**self.summary["screen"])

    def __len__(self) -> int:
        """Windows of the held-out people."""
        return int(self.part["sets"]["real"]["n_windows"])

    def edges(self, key: str) -> Floats:
        """Edges (bin + 1,) of a quantity's histogram."""
        row = self.part["quantities"][key]
        return np.linspace(row["low"], row["high"], len(row["real"]) + 1)

    @property
    def sketch(self) -> Sketch:
        """Of the held-out people."""
        return Sketch(
            {key: np.asarray(row["real"]) for key, row in self.part["quantities"].items()},
            {name: np.asarray(row["real"]) for name, row in self.part["temporal"].items()},
        )

    def floors(self, key: str, n: int) -> dict[str, dict[str, float]]:
        """Floor and halves at n windows a set, by kind of distance.

        Between the numbers that are kept, straight in 1/n: the excess of a histogram distance
        over that of endless sets is (bins - 1) / 8n.
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


def evaluate_against(
    summary: Mapping[str, Any],
    synthetic: dict[str, Windows],
    config: EvaluationConfig | None = None,
    task: str | None = None,
    progress: Progress = lambda name: None,
) -> dict[str, Any]:
    """Compare synthetic sets with a summary of real people; returns what `evaluate` does.

    task: the people's task; None is all tasks. Intervals and the tests of whole sets need
    recordings and are left out.
    """
    config = replace(config or EvaluationConfig(), n_bootstrap=0)
    people = Summarised(summary, task)
    require_comparable(people, synthetic, None)
    made = _cut_to_size(people, synthetic, config.seed)
    n_common = len(made[0].gaze)
    measured = {}
    for one in made:
        progress(f"measuring {one.name}")
        given = (people.rate_hz, people.screen, config.protocols, one.group)
        measured[one.name] = measure(one.gaze, *given)
    progress("distances")
    keys = [key for key in measured[made[0].name].quantities if key in people.part["quantities"]]
    edges = {key: people.edges(key) for key in keys}
    real = people.sketch
    sketches = {name: Sketch.of(one, edges) for name, one in measured.items()}
    apart = {name: real.distances(one, edges) for name, one in sketches.items()}
    quantities = [
        {
            **_described(people, measured, key),
            "distances": _cells(people, apart, key, n_common),
            "histogram": _histogram(people, sketches, key),
        }
        for key in keys
    ]
    scalars = [
        {"name": name, "title": title, "family": "temporal", "unit": ""}
        | _cells(people, apart, name, n_common)["l1"]
        for name, title, _ in scalar_curves()
    ]
    names = list(measured)
    described = {
        who: {"name": f"summary {people.name}", **found, "sha256": summary["data_sha256"]}
        for who, found in people.part["sets"].items()
    }
    results: dict[str, Any] = {
        "format": FORMAT,
        "format_version": 1,
        "about": about_of(config, n_common, _notes(people, made)),
        "sets": {**described, "synthetic": {one.name: one.described for one in made}},
        "quantities": quantities,
        "scalars": scalars,
        "curves": _curves(people, measured),
        "main_sequence": _main_sequence(people, measured),
        "ratios": ratios_of(quantities, scalars, names),
        "means": means_of(quantities, names),
        "differences": [],
        "tests": {name: {"not_computable": NEEDS_RECORDINGS} for name in TESTS},
    }
    plain: dict[str, Any] = plain_values(results)
    return plain


def _cut_to_size(people: Summarised, synthetic: dict[str, Windows], seed: int) -> list[GazeSet]:
    """The synthetic sets, cut to the smallest, and to the most windows that have a floor."""
    made = synthetic_sets(synthetic, seed)
    fewest, most = people.part["sizes"][0], people.part["sizes"][-1]
    for one in made:
        if len(one.gaze) < fewest:
            raise GazeError(
                f"{one.name} holds {len(one.gaze)} windows, and a comparison with the summary "
                f"{people.name} needs {fewest}",
                remedy="generate more",
            )
    n_common = min(most, *(len(one.gaze) for one in made))
    return [one.cut(n_common, stream(seed, one.name)) for one in made]


def _notes(people: Summarised, made: list[GazeSet]) -> list[str]:
    counts = {who: found["n_participants"] for who, found in people.part["sets"].items()}
    return [
        *(note for one in made for note in one.notes),
        f"the real people are those of the summary {people.name}: {counts['real']} held out, "
        f"{counts['train']} training; please cite: {people.summary['citation']}",
        "all sets are counted in the bins of the real people: KS and W1 see no finer, and values "
        "beyond the bins count in the end bins",
        "intervals need recordings, and are left out",
    ]


def _described(people: Summarised, measured: Mapping[str, Measured], key: str) -> dict[str, Any]:
    """What the quantity is, and its mean in each set."""
    of = {name: one.quantities[key] for name, one in measured.items()}
    first = next(iter(of.values()))
    means = {name: float(np.mean(q.values)) if len(q.values) else None for name, q in of.items()}
    words = {word: getattr(first, word) for word in ("name", "title", "family", "unit", "level")}
    return {**words, "mean": {**people.part["quantities"][key]["mean"], **means}}


def _cells(
    people: Summarised, apart: Mapping[str, Numbers], key: str, n: int
) -> dict[str, dict[str, Any]]:
    """By kind of distance: floor, halves, and each set's value and ratio."""
    floors = people.floors(key, n)
    return {
        kind: {
            "floor": floor,
            "halves": floors["halves"][kind],
            "synthetic": {
                name: {
                    "value": found[key][kind],
                    "interval": None,
                    "ratio": ratio(found[key][kind], floor),
                }
                for name, found in apart.items()
            },
        }
        for kind, floor in floors["floor"].items()
    }


def _histogram(
    people: Summarised, sketches: Mapping[str, Sketch], key: str
) -> dict[str, list[float]]:
    """Densities for the figures."""
    edges, row = people.edges(key), people.part["quantities"][key]
    shares = {who: np.asarray(row[who]) for who in ("real", "train")}
    shares |= {name: one.shares[key] for name, one in sketches.items() if key in one.shares}
    width = edges[1] - edges[0]
    return {"edges": edges.tolist()} | {name: (p / width).tolist() for name, p in shares.items()}


def _curves(people: Summarised, measured: Mapping[str, Measured]) -> dict[str, Any]:
    curves = curves_of(measured)
    kept = {name: people.part["temporal"][key] for name, key in SHOWN_CURVES.items()}
    kept["mean_speed_profile"] = people.part["speed_profile"]
    for name, row in kept.items():
        curves[name]["sets"] = {who: row[who] for who in ("real", "train")} | curves[name]["sets"]
    return curves


def _main_sequence(people: Summarised, measured: Mapping[str, Measured]) -> dict[str, Any]:
    """The fits; of the real people only the ends of the line are known, no saccades."""
    found = main_sequence_of(measured, people.screen)
    rows = {}
    for who, fit in people.part["main_sequence"].items():
        ends = people.edges(AMPLITUDE)[[1, -1]]
        peaks = 10.0 ** (fit["intercept"] + fit["slope"] * np.log10(ends))
        rows[who] = {**fit, "amplitude_deg": ends.tolist(), "peak_deg_s": peaks.tolist()}
    return {"sets": {**rows, **found["sets"]}} if rows else found


def summaries_folder() -> Path:
    """Where the package keeps its summaries."""
    return Path(str(files("gazediffusion.evaluation"))) / "summaries"


def shipped_summaries() -> list[str]:
    """Names of the summaries inside the package."""
    return sorted(path.stem for path in summaries_folder().glob("*.json"))


def find_summary(name: str) -> Summarised:
    """A summary inside the package, as NAME or NAME/task."""
    stem, _, task = name.partition("/")
    known = shipped_summaries()
    if stem not in known:
        raise GazeError(
            f"the package holds no summary {stem!r}",
            remedy=suggestion(stem, known) if known else "give --real",
        )
    return Summarised(read_json(summaries_folder() / f"{stem}.json"), task or None)


def summary_for(tasks: set[str]) -> str:
    """The summary of people who did what synthetic windows do, as NAME or NAME/task."""
    matching: Iterator[str] = (
        f"{name}/{task}"
        for name in shipped_summaries()
        for task in find_summary(name).summary["parts"]
        if tasks == {task}
    )
    return next(matching, DEFAULT)
