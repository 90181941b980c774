"""Comparison of synthetic sets with real windows, as plain results.

Every distance between a synthetic set and the held-out participants stands beside two floors: the
same distance for the training participants, and between two halves of the training participants'
recordings. A ratio of 1.0 means that a synthetic set is as close to held-out participants as the
training participants are. Every set but the real one is cut to the
same number of windows, because histogram distances shrink with n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.curves import Curve, curves_of, main_sequence_of, scalar_curves
from gazediffusion.evaluation.distances import (
    DISTANCES,
    FARTHEST,
    Distance,
    Draws,
    bins_of,
    distances,
    distances_with_intervals,
    draw_weights,
    drawn_counts,
    even_counts,
)
from gazediffusion.evaluation.gaze_sets import (
    SECOND_DRAW,
    GazeSet,
    GazeSets,
    arrange,
    stream,
)
from gazediffusion.evaluation.headline import (
    FAMILIES,
    Counted,
    percentages,
    ratio_entries,
    summarised_ratios,
)
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.evaluation.quantities import FEATURES, GroupMeans, Quantity, measure
from gazediffusion.evaluation.ratios import differences_of, means_of, ratio, ratios_of
from gazediffusion.evaluation.result import FORMAT, EvaluationConfig, about_of
from gazediffusion.evaluation.set_tests import FeatureMap, Progress, compute_tests

Floats = NDArray[np.float64]
Results = dict[str, Any]


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
    sets = arrange(real, synthetic, train, config.seed)
    for one in sets.all:
        progress(f"measuring {one.name}")
        sets.measured[one.name] = measure(
            one.gaze, real.rate_hz, one.screens, config.protocols, one.group
        )
    progress("distances")
    work = _Comparison(sets, config, _weights(sets, config))
    quantities, scalars = work.quantities(), work.scalars()
    means = means_of(quantities, sets.names)
    shown = {one.name: sets.measured[one.name] for one in sets.shown}
    results: Results = {
        "format": FORMAT,
        "format_version": 1,
        "about": about_of(config, sets.n_common, _compared(sets), _notes(sets)),
        "sets": {
            "real": sets.real.described,
            "train": sets.train.described if sets.train else None,
            "synthetic": {one.name: one.described for one in sets.synthetic},
        },
        "headline": {},
        "quantities": quantities,
        "scalars": scalars,
        "curves": curves_of(shown),
        "main_sequence": main_sequence_of(shown),
        "ratios": ratios_of(quantities, scalars, sets.names),
        "means": means,
        "differences": differences_of(work.mean_js, means),
        "tests": compute_tests(sets, real.rate_hz, config, feature_model, progress),
    }
    progress("headline")
    results["headline"] = work.headlines(results, real, train)
    return results


def _compared(sets: GazeSets) -> str:
    """One sentence: who is compared with whom, how many windows and participants, which floor."""
    real, n = sets.real.described, sets.n_common
    text = (
        f"Each synthetic set is compared with {real['n_windows']:,} windows of "
        f"{real['n_participants']} held-out participants at {n:,} windows a set; "
    )
    if sets.training is None:
        return text + "the floor is the distance between two halves of these recordings."
    train = sets.training.described
    return text + (
        f"the floor is the same distance for {n:,} of the {train['n_windows']:,} windows of "
        f"{train['n_participants']} training participants."
    )


def _notes(sets: GazeSets) -> list[str]:
    notes = [note for one in sets.shown for note in one.notes]
    if sets.train is None:
        notes.append(
            "no reference windows were given: the floor is between two halves of the real "
            "participants' recordings, lower than the floor between participants"
        )
    return notes


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
    mean_js: dict[str, Floats] = field(default_factory=dict)
    ratio_draws: dict[str, dict[str, Floats]] = field(default_factory=dict)
    perfect: dict[str, float] = field(default_factory=dict)

    @property
    def _evaluated(self) -> list[GazeSet]:
        """The synthetic sets and the second draw."""
        extra = self.sets.second_draw
        return [*self.sets.synthetic, *([extra] if extra else [])]

    def quantities(self) -> list[Results]:
        """Every quantity's distances, floors and histograms."""
        n = self.config.n_replicates
        if n and "position" in self.config.protocols:
            self.mean_js = {name: np.zeros(n) for name in self.sets.names}
        rows = []
        for key in self.sets.measured["real"].quantities:
            of = {
                one.name: found
                for one in self.sets.all
                if (found := self.sets.measured[one.name].quantities.get(key)) is not None
            }
            if all(one.name in of for one in self.sets.all) and self._has_floor(of):
                rows.append(self._quantity(of))
        return rows

    def _has_floor(self, of: Mapping[str, Quantity]) -> bool:
        known = ("real", "train", "half a", "half b")
        return all(len(of[name].values) > 0 for name in known if name in of)

    def _quantity(self, of: Mapping[str, Quantity]) -> Results:
        sets, real = self.sets, of["real"]
        halves = distances(of["half a"], of["half b"])
        floor = distances(real, of["train"]) if sets.train else halves
        # A ratio is of two JS in the same bins, the floor's: where most values lie in one bin, as
        # velocities do, JS depends on where exactly that bin ends.
        bins = bins_of(real, of["train"]) if sets.train else bins_of(of["half a"], of["half b"])
        counts = {
            one.name: even_counts(of[one.name].values, bins)
            for one in [*sets.shown, *self._evaluated]
            if len(of[one.name].values)
        }
        ratios = {}
        for one in self._evaluated:
            js = FARTHEST["js"]
            if one.name in counts:
                js = float(js_from_counts(counts["real"], counts[one.name]))
            ratios[one.name] = ratio(js, floor["js"])
        if real.family in FAMILIES:
            self._keep(real.name, ratios, self._drawn_ratios(of, bins, floor["js"]))
        row: Results = {
            "name": real.name,
            "title": real.title,
            "family": real.family,
            "unit": real.unit,
            "level": real.level,
            "mean": {
                one.name: float(np.mean(of[one.name].values)) if len(of[one.name].values) else None
                for one in sets.shown
            },
            "distances": {
                kind: {"floor": floor[kind], "halves": halves[kind], "synthetic": {}}
                for kind in DISTANCES
            },
            "histogram": _histogram({one.name: counts.get(one.name) for one in sets.shown}, bins),
        }
        for one in sets.synthetic:
            drawn = self._draws(one.name)
            found = distances_with_intervals(real, of[one.name], sets.real.group, one.group, drawn)
            if real.family == "features" and one.name in self.mean_js:
                self.mean_js[one.name] += found["js"].replicates / len(FEATURES)
            for kind, distance in found.items():
                by_kind = ratios[one.name] if kind == "js" else ratio(distance.value, floor[kind])
                row["distances"][kind]["synthetic"][one.name] = _cell(distance, by_kind)
        return row

    def _draws(self, name: str) -> Draws | None:
        return Draws(self.weights["real"], self.weights[name]) if self.weights else None

    def _keep(
        self, name: str, ratios: Mapping[str, float | None], drawn: Mapping[str, Floats]
    ) -> None:
        """Keep what the headline needs of one distance."""
        if (of_draw := ratios.get(SECOND_DRAW)) is not None:
            self.perfect[name] = of_draw
        for one, replicates in drawn.items():
            self.ratio_draws.setdefault(one, {})[name] = replicates

    def _drawn_ratios(
        self, of: Mapping[str, Quantity], bins: Floats, floor: float
    ) -> dict[str, Floats]:
        """Ratios to the floor of drawn groups, by set; without a reference the floor is fixed."""
        if not self.weights:
            return {}
        counts = {}
        for one in filter(None, (self.sets.real, self.sets.train, *self._evaluated)):
            found = drawn_counts(of[one.name], bins, one.group, self.weights[one.name])
            if found.any(axis=1).all():
                counts[one.name] = found
        if "real" not in counts or (self.sets.train and "train" not in counts):
            return {}
        below = js_from_counts(counts["real"], counts["train"]) if self.sets.train else floor
        return _over(
            {
                one.name: js_from_counts(counts["real"], counts[one.name])
                for one in self._evaluated
                if one.name in counts
            },
            below,
        )

    def scalars(self) -> list[Results]:
        """Temporal distances: one number per pair of sets."""
        return [self._scalar(name, title, curve) for name, title, curve in scalar_curves()]

    def _scalar(self, name: str, title: str, curve: Curve) -> Results:
        """Mean absolute difference of two sets' mean curves, with the floor and intervals."""

        def of(one: str) -> GroupMeans:
            return curve(self.sets.measured[one].temporal)

        def gap(a: str, b: str) -> float:
            return float(np.abs(of(a).mean() - of(b).mean()).mean())

        def drawn(one: str) -> Floats:
            apart = of("real").mean(self.weights["real"]) - of(one).mean(self.weights[one])
            return np.asarray(np.abs(apart).mean(axis=1))

        halves = gap("half a", "half b")
        floor = gap("real", "train") if self.sets.train else halves
        evaluated = [one.name for one in self._evaluated]
        values = {one: gap("real", one) for one in evaluated}
        ratios = {one: ratio(value, floor) for one, value in values.items()}
        replicates = {one: drawn(one) for one in evaluated} if self.weights else {}
        below = drawn("train") if self.weights and self.sets.train else floor
        self._keep(name, ratios, _over(replicates, below))
        return {
            "name": name,
            "title": title,
            "family": "temporal",
            "unit": "",
            "floor": floor,
            "halves": halves,
            "synthetic": {
                one: _cell(Distance(values[one], replicates.get(one, np.empty(0))), ratios[one])
                for one in self.sets.names
            },
        }

    def headlines(self, results: Results, real: Windows, train: Windows | None) -> Results:
        """The headline of each synthetic set and of the second draw, by name."""
        seed, n = self.config.seed, self.config.n_replicates
        base = GazeSet.of("reference", (real if train is None else train).dequantized(seed=0))
        reference = _counted(base, real.rate_hz)
        of_reference = reference.drawn(n, stream(seed, "reference, counts")) if n else {}
        titles = {row["name"]: row["title"] for row in [*results["quantities"], *results["scalars"]]
                  if row["family"] != "degrees"}  # fmt: skip
        accuracy = results["tests"]["c2st"].get("synthetic", {})
        found = {}
        for one in self._evaluated:
            counted = _counted(self.sets.uncut.get(one.name, one), real.rate_hz)
            drawn = counted.drawn(n, stream(seed, f"{one.name}, counts")) if n else {}
            is_perfect = one.name == SECOND_DRAW
            ratios = self.perfect if is_perfect else ratio_entries(results, one.name)
            found[one.name] = {
                **summarised_ratios(ratios, self.ratio_draws.get(one.name, {}), titles),
                **percentages(counted.values, reference.values, drawn, of_reference),
                "n_windows": len(one.gaze),
            }
            if one.name in accuracy:
                cells = accuracy[one.name]
                found[one.name]["c2st"] = {
                    "value": cells["features_accuracy"],
                    "interval": cells["features_interval"],
                }
        return found


def _counted(one: GazeSet, rate_hz: float) -> Counted:
    return Counted.of(one.gaze, one.screens, rate_hz, one.group)


def _cell(distance: Distance, ratio: float | None) -> Results:
    value = distance.value if np.isfinite(distance.value) else None
    return {"value": value, "interval": distance.interval(), "ratio": ratio}


def _over(found: Mapping[str, Floats], floor: Floats | float) -> dict[str, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return {name: np.asarray(values / floor) for name, values in found.items()}


def _histogram(
    counts: Mapping[str, NDArray[np.int64] | None], edges: Floats
) -> dict[str, list[float]]:
    """Densities for the figures, from counts in the floor's bins."""
    width = float(edges[1] - edges[0]) or 1.0
    densities = {
        name: (one / (one.sum() * width)).tolist()
        for name, one in counts.items()
        if one is not None
    }
    return {"edges": edges.tolist(), **densities}
