"""Comparison of synthetic sets with real windows, as plain results.

Every distance between a synthetic set and the held-out participants stands beside two floors: the
same distance for the training participants, and between two halves of the training participants'
recordings. A ratio of 1.0 means that a synthetic set is as close to held-out participants as the
training participants are. Every set but the real one is cut to the
same number of windows, because histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.degree_events import FINE_HZ
from gazediffusion.evaluation.distances import (
    BINS,
    DISTANCES,
    FARTHEST,
    Distance,
    bins_of,
    distances,
    distances_with_intervals,
    draw_weights,
    drawn_counts,
    drawn_means,
    histograms,
)
from gazediffusion.evaluation.features import PAPER_HZ, ivt_threshold
from gazediffusion.evaluation.gaze_sets import SECOND_DRAW, GazeSet, GazeSets, arrange, stream
from gazediffusion.evaluation.headline import (
    FAMILIES,
    Counted,
    differences_of,
    means_of,
    percentages,
    ratio,
    ratio_entries,
    ratios_of,
    summarised_ratios,
    titles_of,
)
from gazediffusion.evaluation.metrics import histogram_counts, js_from_counts
from gazediffusion.evaluation.plugin_metrics import metrics, packages_of, plugin_quantities
from gazediffusion.evaluation.quantities import (
    FEATURES,
    SCALARS,
    Measured,
    Quantity,
    curves_of,
    main_sequence_of,
)
from gazediffusion.evaluation.result import FORMAT, installed_versions
from gazediffusion.evaluation.set_tests import FeatureMap, Progress, compute_tests
from gazediffusion.settings import EvaluationConfig
from gazediffusion.version import __version__

Floats = NDArray[np.float64]
Results = dict[str, Any]

_PACKAGES = ("numpy", "scipy", "torch", "scikit-learn")


def compare(
    real: Windows,
    synthetic: Mapping[str, Windows],
    train: Windows | None,
    config: EvaluationConfig,
    feature_model: FeatureMap | None = None,
    progress: Progress = lambda name: None,
) -> Results:
    """Compare synthetic sets with the held-out participants' windows; all as plain values.

    train: the training participants' windows; without them the floor is between two halves of the
    real participants' recordings. feature_model: maps windows to features for the Frechet Gaze
    Distance. progress: called with the name of each part.
    """
    plugins = metrics()
    sets = arrange(real, synthetic, train, config.seed)
    for one in sets.all:
        progress(f"measuring {one.name}")
        measured = one.measure(config.protocols)
        measured.quantities.update(plugin_quantities(one, plugins))
        sets.measured[one.name] = measured
    progress("distances")
    work = _Comparison(sets, config, _weights(sets, config))
    described = {
        "real": sets.real.described,
        "train": sets.train.described if sets.train else None,
        "synthetic": {one.name: one.described for one in sets.synthetic},
    }
    notes = [*(note for one in sets.shown for note in one.notes), *rate_notes(real.rate_hz)]
    if sets.train is None:
        notes.append(
            "no reference windows were given: the floor is between two halves of the real "
            "participants' recordings, lower than the floor between participants"
        )
    shown = {one.name: sets.measured[one.name] for one in sets.shown}
    results = assemble(
        config, sets.n_common, described, notes, work.quantities(), work.scalars(), shown
    )
    if plugins:
        results["about"]["plugins"] = packages_of(plugins)
    results["differences"] = differences_of(work.mean_js, results["means"])
    results["tests"] = compute_tests(sets, config, feature_model, progress)
    progress("headline")
    results["headline"] = work.headlines(results, real if train is None else train)
    return results


def assemble(
    config: EvaluationConfig,
    n_common: int,
    sets: Results,
    notes: Sequence[str],
    quantities: list[Results],
    scalars: list[Results],
    measured: Mapping[str, Measured],
    summary: str = "",
) -> Results:
    """The results of a comparison, all but its headline, differences and tests.

    n_common: windows per set. sets: what is known of each. measured: the sets of the figures.
    summary: the name of the summary that stands for the real windows.
    """
    names = list(sets["synthetic"])
    return {
        "format": FORMAT,
        "format_version": 1,
        "about": {
            "gazediffusion_version": __version__,
            "protocols": list(config.protocols),
            "quick": config.quick,
            "seed": config.seed,
            "n_bootstrap": config.n_replicates,
            "bins": dict(BINS),
            "n_common": n_common,
            "versions": installed_versions(*_PACKAGES),
            "compared": _compared(sets, n_common, summary),
            "warnings": [],
            "notes": list(notes),
        },
        "sets": sets,
        "headline": {},
        "quantities": quantities,
        "scalars": scalars,
        "curves": curves_of(measured),
        "main_sequence": main_sequence_of(measured),
        "ratios": ratios_of(quantities, scalars, names),
        "means": means_of(quantities, names),
        "differences": [],
        "tests": {},
    }


def _compared(sets: Results, n: int, summary: str) -> str:
    """One sentence: who is compared with whom, how many windows and participants, which floor."""
    real, train = sets["real"], sets["train"]
    brought = [
        f"{name} {' and '.join(one['resampled'])}"
        for name, one in sets["synthetic"].items()
        if one["resampled"]
    ]
    rate = f" at {real['rate_hz']:g} Hz ({', '.join(brought)})," if brought else ""
    text = (
        f"Each synthetic set is compared with {f'the summary {summary}: ' if summary else ''}"
        f"{real['n_windows']:,} windows of {real['n_participants']} held-out participants"
        f"{rate or (',' if summary else '')} with {n:,} windows per set; "
    )
    if train is None:
        return text + "the floor is the distance between two halves of these recordings."
    return text + (
        f"the floor is the same distance for {n:,} of the {train['n_windows']:,} windows of "
        f"{train['n_participants']} training participants."
    )


def rate_notes(rate_hz: float) -> list[str]:
    """What differs from an evaluation at the paper's rate."""
    notes = []
    if rate_hz != PAPER_HZ:
        notes.append(
            f"at {rate_hz:g} Hz the I-VT threshold of 5 normalized units per second is "
            f"{ivt_threshold(rate_hz):.3g} per sample; lag-one autocorrelations are of "
            f"{1000 / rate_hz:.3g} ms, spectra reach {rate_hz / 2:g} Hz, and no number is "
            "comparable with one at another rate"
        )
    if rate_hz < FINE_HZ:
        notes.append(
            f"below {FINE_HZ:g} Hz velocity in degrees is taken over three samples: peak "
            "velocities of short saccades are underestimated in all sets, and microsaccades are "
            "left out"
        )
    return notes


def scalar_row(name: str, cells: Results) -> Results:
    """A row of a temporal distance."""
    return {"name": name, "title": SCALARS[name], "family": "temporal", "unit": "", **cells}


def cell(distance: Distance, ratio: float | None, keep_draws: bool = False) -> Results:
    """A distance with its interval, its ratio to the floor and, if kept, its replicates."""
    value = distance.value if np.isfinite(distance.value) else None
    draws = {"draws": distance.replicates} if keep_draws else {}
    return {"value": value, "interval": distance.interval(), "ratio": ratio, **draws}


def _weights(sets: GazeSets, config: EvaluationConfig) -> dict[str, Floats]:
    """How often each group is drawn (replicate, group), by set; the real ones' are shared."""
    n = config.n_replicates
    if n == 0:
        return {}
    rng = np.random.default_rng(config.seed + 1)
    drawn = {one.name: draw_weights(one.group.max() + 1, n, rng) for one in
             [sets.real, *sets.synthetic]}  # fmt: skip
    for one in filter(None, (sets.train, sets.second_draw)):
        own = stream(config.seed, f"{one.name}, drawn")
        drawn[one.name] = draw_weights(one.group.max() + 1, n, own)
    return drawn


@dataclass
class _Comparison:
    """The distances of measured sets.

    mean_js: replicates of each set's mean JS of nine features. ratio_draws: replicates of each
    ratio to the floor, by set and name of the distance. perfect: ratios of the second draw.
    """

    sets: GazeSets
    config: EvaluationConfig
    weights: dict[str, Floats]
    mean_js: dict[str, Any] = field(default_factory=dict)
    ratio_draws: dict[str, dict[str, Floats]] = field(default_factory=dict)
    perfect: dict[str, float] = field(default_factory=dict)

    @property
    def _evaluated(self) -> list[GazeSet]:
        """The synthetic sets and the second draw."""
        return [*self.sets.synthetic, *filter(None, [self.sets.second_draw])]

    def quantities(self) -> list[Results]:
        """Every quantity's distances, floors and histograms, where the real sets have values."""
        rows = []
        for key in self.sets.measured["real"].quantities:
            found = {one: all_of.quantities.get(key) for one, all_of in self.sets.measured.items()}
            of = {one: quantity for one, quantity in found.items() if quantity is not None}
            known = ("real", "train", "half a", "half b")
            if len(of) == len(found) and all(len(of[k].values) for k in known if k in of):
                rows.append(self._quantity(of))
        return rows

    def _quantity(self, of: Mapping[str, Quantity]) -> Results:
        sets, real, halves = self.sets, of["real"], (of["half a"], of["half b"])
        below = (real, of["train"]) if sets.train else halves
        between_halves = distances(*halves)
        floor = distances(*below) if sets.train else between_halves
        # All JS are in the same bins, the floor's: where most values lie in one bin, as velocities
        # do, JS depends on where exactly that bin ends.
        bins = bins_of(*below)
        counts = {
            name: histogram_counts(one.values, bins) for name, one in of.items() if len(one.values)
        }
        ratios = {}
        for name in (one.name for one in self._evaluated):
            js = js_from_counts(counts["real"], counts[name]) if name in counts else FARTHEST["js"]
            ratios[name] = ratio(float(js), floor["js"])
        if real.family in FAMILIES:
            self._keep(real.name, ratios, *self._drawn_js(of, bins), floor["js"])
        found: Results = {
            kind: {"floor": floor[kind], "halves": between_halves[kind], "synthetic": {}}
            for kind in DISTANCES
        }
        for name in sets.names:
            weights = (self.weights["real"], self.weights[name]) if self.weights else None
            by_kind = distances_with_intervals(real, of[name], bins, weights)
            if real.family == "features" and weights:
                drawn = by_kind["js"].replicates / len(FEATURES)
                self.mean_js[name] = self.mean_js.get(name, 0.0) + drawn
            for kind, one in by_kind.items():
                over = ratio(one.value, floor[kind])
                found[kind]["synthetic"][name] = cell(one, over, self._keeps_draws)
        shown = [one.name for one in sets.shown]
        kept: Results = {}
        if self._keeps_draws:
            kept["mean_draws"] = {
                name: drawn_means(of[name], self.weights[name]) for name in shown if name in counts
            }
            if sets.train:
                weights = (self.weights["real"], self.weights["train"])
                for kind, one in distances_with_intervals(*below, bins, weights).items():
                    found[kind]["floor_draws"] = one.replicates
        return {
            **real.described,
            "mean": {name: of[name].mean for name in shown},
            "distances": found,
            **histograms({name: of[name] for name in shown if name in counts}, bins, below),
            **kept,
        }

    @property
    def _keeps_draws(self) -> bool:
        return self.config.keep_draws and bool(self.weights)

    def _drawn_js(
        self, of: Mapping[str, Quantity], bins: Floats
    ) -> tuple[dict[str, Floats], Floats | None]:
        """JS of drawn groups (replicate,) to the held-out participants by set, and the floor's.

        Nothing where some draw of the real sets has no value.
        """
        counts = {
            name: found
            for name, weights in self.weights.items()
            if (found := drawn_counts(of[name], bins, weights)).any(axis=1).all()
        }
        if "real" not in counts or (self.sets.train and "train" not in counts):
            return {}, None
        real = counts.pop("real")
        drawn = {name: js_from_counts(real, one) for name, one in counts.items()}
        return drawn, drawn.pop("train", None)

    def _keep(
        self,
        name: str,
        ratios: Mapping[str, float | None],
        drawn: Mapping[str, Floats],
        drawn_floor: Floats | None,
        floor: float,
    ) -> None:
        """Keep what the headline needs of one distance; without a reference the floor is fixed."""
        if (of_draw := ratios.get(SECOND_DRAW)) is not None:
            self.perfect[name] = of_draw
        for one, replicates in drawn.items():
            with np.errstate(divide="ignore", invalid="ignore"):
                over = replicates / (floor if drawn_floor is None else drawn_floor)
            self.ratio_draws.setdefault(one, {})[name] = over

    def scalars(self) -> list[Results]:
        """Temporal distances: mean absolute difference of two sets' mean curves."""
        return [self._scalar(name) for name in SCALARS]

    def _scalar(self, name: str) -> Results:
        curves = {one: measured.curves[name] for one, measured in self.sets.measured.items()}

        def gap(a: str, b: str) -> float:
            return float(np.abs(curves[a].mean() - curves[b].mean()).mean())

        halves = gap("half a", "half b")
        floor = gap("real", "train") if self.sets.train else halves
        values = {one.name: gap("real", one.name) for one in self._evaluated}
        ratios = {one: ratio(value, floor) for one, value in values.items()}
        drawn = {one: curves[one].mean(weights) for one, weights in self.weights.items()}
        real = drawn.pop("real", np.empty(0))
        replicates = {one: np.abs(real - mean).mean(axis=1) for one, mean in drawn.items()}
        of_floor = replicates.pop("train", None)
        self._keep(name, ratios, replicates, of_floor, floor)
        keeps = self._keeps_draws
        cells = {
            one: cell(Distance(values[one], replicates.get(one, np.empty(0))), ratios[one], keeps)
            for one in self.sets.names
        }
        kept: Results = {"floor_draws": of_floor} if keeps else {}
        if keeps and name == "autocorrelation":
            kept["curve_draws"] = {"real": real, **drawn}
        return scalar_row(name, {"floor": floor, "halves": halves, "synthetic": cells, **kept})

    def headlines(self, results: Results, base: Windows) -> Results:
        """The headline of each synthetic set and of the second draw, by name.

        base: the training participants' windows, or the real ones where there are none.
        """
        seed, n = self.config.seed, self.config.n_replicates
        reference = Counted.of(GazeSet.of("reference", base.dequantized(seed=0)))
        of_reference = reference.drawn(n, stream(seed, "reference, counts"))
        accuracy = results["tests"]["c2st"].get("synthetic", {})
        found = {}
        for one in self._evaluated:
            name = one.name
            counted = Counted.of(self.sets.uncut.get(name, one))
            drawn = counted.drawn(n, stream(seed, f"{name}, counts"))
            ratios = self.perfect if name == SECOND_DRAW else ratio_entries(results, name)
            found[name] = {
                **summarised_ratios(ratios, self.ratio_draws.get(name, {}), titles_of(results)),
                **percentages(counted.values, reference.values, drawn, of_reference),
                "n_windows": len(one.gaze),
            }
            if name in accuracy:
                words = {"value": "features_accuracy", "interval": "features_interval"}
                found[name]["c2st"] = {key: accuracy[name][word] for key, word in words.items()}
        return found
