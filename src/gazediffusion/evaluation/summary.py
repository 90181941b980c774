"""Summaries of real gaze: histograms, mean curves and floors, never rows.

Recordings stay with their owners; a summary inside the package lets a user who has none of them
evaluate synthetic gaze. All sets are counted in the same bins, those of the real gaze, so every
distance between a synthetic set and the held-out participants is one of two histograms. The floor
is kept for several numbers of windows, because histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import UNKNOWN_TASK
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.evaluation.comparison import Results, assemble, cell, scalar_row
from gazediffusion.evaluation.distances import FARTHEST, Distance
from gazediffusion.evaluation.gaze_sets import GazeSet, require_comparable, stream, synthetic_sets
from gazediffusion.evaluation.headline import (
    Counted,
    percentages,
    ratio,
    ratio_entries,
    summarised_ratios,
    titles_of,
)
from gazediffusion.evaluation.metrics import (
    histogram_counts,
    js_from_counts,
    ks_from_counts,
    w1_from_counts,
)
from gazediffusion.evaluation.plugin_metrics import metrics
from gazediffusion.evaluation.quantities import SCALARS, Measured
from gazediffusion.evaluation.result import ALL
from gazediffusion.evaluation.set_tests import TESTS, Progress
from gazediffusion.geometry import Screen
from gazediffusion.settings import EvaluationConfig
from gazediffusion.storage import read_json

Floats = NDArray[np.float64]
Numbers = dict[str, dict[str, float]]

SUMMARY_FORMAT = "gazediffusion-real-summary"
DEFAULT = "gazecom"
SUFFIX = ".json.gz"
NEEDS_RECORDINGS = "needs recordings, not a summary of them; give `real`"
AMPLITUDE = "degrees.saccade_amplitude_deg"
# The curves of a report that are kept as curves of temporal distances.
SHOWN_CURVES = {"speed_autocorrelation": "autocorrelation", "speed_spectrum": "psd_speed"}
# What windows are labelled with where nobody said their task.
UNLABELLED = ("synthetic", UNKNOWN_TASK)


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
class Summary:
    """A summary of real gaze in one task, or in all (task None); `content` is its file."""

    content: Mapping[str, Any]
    task: str | None = None

    def __post_init__(self) -> None:
        if self.task is None or self.task in self.content["parts"]:
            return
        if [self.task] == self.content["tasks"]:
            return
        known = [key for key in self.content["parts"] if key != ALL]
        reason = self.content["left_out"].get(self.task)
        raise GazeError(
            f"the summary {self.content['name']} holds no task {self.task!r}",
            remedy=f"too few participants did it ({reason.replace('people', 'participants')})"
            if reason
            else suggestion(self.task, known),
        )

    @property
    def part(self) -> dict[str, Any]:
        """The numbers of the task."""
        parts: dict[str, dict[str, Any]] = self.content["parts"]
        return parts.get(self.task or ALL, parts[ALL])

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

    def edges(self, key: str) -> Floats:
        """Edges (bin + 1,) of a quantity's histogram."""
        row = self.part["quantities"][key]
        return np.linspace(row["low"], row["high"], len(row["real"]) + 1)

    @property
    def sketch(self) -> Sketch:
        """Of the held-out participants."""
        return Sketch(
            {key: np.asarray(row["real"]) for key, row in self.part["quantities"].items()},
            {name: np.asarray(row["real"]) for name, row in self.part["temporal"].items()},
        )

    @property
    def counts(self) -> dict[str, float]:
        """Mean counts, path length and slope of the training participants."""
        part = self.part
        keys = {"saccade_count": "events.saccade_count", "fixation_count": "events.fixation_count",
                "path_length": "features.path_length"}  # fmt: skip
        found = {
            name: part["quantities"][key]["mean"]["train"]
            for name, key in keys.items()
            if key in part["quantities"]
        }
        if fit := part["main_sequence"].get("train"):
            found["main_sequence"] = fit["slope"]
        return found

    def floors(self, key: str, n: int) -> dict[str, dict[str, float]]:
        """Floor and halves for n windows per set, by kind of distance.

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


Like = Windows | Summary  # the real side of a comparison


def compare_with(
    summary: Summary,
    synthetic: Mapping[str, Windows],
    config: EvaluationConfig,
    progress: Progress = lambda name: None,
) -> Results:
    """Compare synthetic sets with a summary of real gaze; the results have the same form.

    Intervals and the tests of whole sets need recordings and are left out.
    """
    require_comparable(summary, synthetic)
    uncut = synthetic_sets(synthetic, config.seed, summary.screen)
    sets = _cut_to_size(summary, uncut, config.seed)
    n_common, part = len(sets[0].gaze), summary.part
    measured = {}
    for one in sets:
        progress(f"measuring {one.name}")
        measured[one.name] = one.measure(config.protocols)
    progress("distances")
    keys = [key for key in measured[sets[0].name].quantities if key in part["quantities"]]
    edges = {key: summary.edges(key) for key in keys}
    sketches = {name: Sketch.of(one, edges) for name, one in measured.items()}
    apart = {name: summary.sketch.distances(one, edges) for name, one in sketches.items()}
    quantities = []
    for key in keys:
        of = {name: one.quantities[key] for name, one in measured.items()}
        row, width = part["quantities"][key], edges[key][1] - edges[key][0]
        shares = {who: np.asarray(row[who]) for who in ("real", "train")}
        shares |= {name: one.shares[key] for name, one in sketches.items() if key in one.shares}
        densities = {name: (share / width).tolist() for name, share in shares.items()}
        quantities.append(
            {
                **of[sets[0].name].described,
                "mean": {**row["mean"], **{name: one.mean for name, one in of.items()}},
                "distances": _cells(summary, apart, key, n_common),
                "histogram": {"edges": edges[key].tolist(), **densities},
            }
        )
    scalars = [scalar_row(name, _cells(summary, apart, name, n_common)["l1"]) for name in SCALARS]
    described = {
        who: {
            "name": f"summary {summary.name}",
            **found,
            "sha256": summary.content["data_sha256"],
            "rate_hz": summary.rate_hz,
        }
        for who, found in part["sets"].items()
    }
    described["synthetic"] = {one.name: one.described for one in sets}
    notes = [
        *(note for one in sets for note in one.notes),
        f"real gaze is that of the summary {summary.name}; please cite: "
        f"{summary.content['citation']}",
        "all sets are counted in the bins of the real gaze: KS and W1 resolve no finer, and values "
        "beyond the bins count in the end bins",
        "intervals need recordings, and are left out",
        *(
            f"the metric {name} of a plug-in needs recordings, and is left out"
            for name in metrics()
        ),
    ]
    results = assemble(
        replace(config, n_bootstrap=0), n_common, described, notes, quantities, scalars, measured,
        summary.name,
    )  # fmt: skip
    _add_real_curves(results, summary)
    results["tests"] = {name: {"not_computable": NEEDS_RECORDINGS} for name in TESTS}
    for one in uncut:
        ratios = ratio_entries(results, one.name)
        results["headline"][one.name] = {
            **summarised_ratios(ratios, {}, titles_of(results)),
            **percentages(Counted.of(one).values, summary.counts),
            "n_windows": n_common,
        }
    return results


def _cut_to_size(summary: Summary, uncut: list[GazeSet], seed: int) -> list[GazeSet]:
    """The synthetic sets, cut to the smallest, and to the most windows that have a floor."""
    n_common = min(summary.part["sizes"][-1], *(len(one.gaze) for one in uncut))
    return [one.cut(n_common, stream(seed, one.name)) for one in uncut]


def _cells(summary: Summary, apart: Mapping[str, Numbers], key: str, n: int) -> Results:
    """By kind of distance: floor, halves, and each set's value and ratio."""
    floors = summary.floors(key, n)
    return {
        kind: {
            "floor": floor,
            "halves": floors["halves"][kind],
            "synthetic": {
                name: cell(Distance(found[key][kind]), ratio(found[key][kind], floor))
                for name, found in apart.items()
            },
        }
        for kind, floor in floors["floor"].items()
    }


def _add_real_curves(results: Results, summary: Summary) -> None:
    """Add the real curves and fits; of the main sequence only the ends of the line are known."""
    kept = {name: summary.part["temporal"][key] for name, key in SHOWN_CURVES.items()}
    kept["mean_speed_profile"] = summary.part["speed_profile"]
    for name, row in kept.items():
        real = {who: row[who] for who in ("real", "train")}
        results["curves"][name]["sets"] = real | results["curves"][name]["sets"]
    rows = {}
    for who, fit in summary.part["main_sequence"].items():
        ends = summary.edges(AMPLITUDE)[[1, -1]]
        peaks = 10.0 ** (fit["intercept"] + fit["slope"] * np.log10(ends))
        rows[who] = {**fit, "amplitude_deg": ends.tolist(), "peak_deg_s": peaks.tolist()}
    if rows:
        results["main_sequence"] = {"sets": rows | results["main_sequence"].get("sets", {})}


def summaries_folder() -> Path:
    """Where the package keeps its summaries."""
    return Path(str(files("gazediffusion.evaluation"))) / "summaries"


def packaged_summaries() -> list[str]:
    """Names of the summaries inside the package."""
    return sorted(path.name.removesuffix(SUFFIX) for path in summaries_folder().glob(f"*{SUFFIX}"))


def summary_tasks() -> list[str]:
    """The tasks of the summaries inside the package."""
    return [task for name in packaged_summaries() for task in find_summary(name).content["tasks"]]


def find_summary(name: str) -> Summary:
    """A summary inside the package, as NAME or NAME/task."""
    stem, _, task = name.partition("/")
    known = packaged_summaries()
    if stem not in known:
        raise GazeError(
            f"the package holds no summary {stem!r}",
            remedy=suggestion(stem, known) if known else "give `real`",
        )
    return Summary(read_json(summaries_folder() / (stem + SUFFIX)), task or None)


def summary_of_task(task: str) -> Summary | None:
    """The packaged summary that holds a task, if any does."""
    for summary in map(find_summary, packaged_summaries()):
        if task in summary.content["parts"]:
            return Summary(summary.content, task)
    return None
