"""Ratios to the floor, and the headline: a set in a few numbers, with intervals.

The one definition of the ratio to the floor: two distances to the same held-out participants, at
the same number of windows; Jensen-Shannon divergences both in the bins of the floor. The ratios of
31 distances (features, events, directions, velocity and temporal structure) give the median, how
many exceed 1.5, and the worst. Event counts, path length and the slope of the main sequence are in
percent of those of all windows of the training participants. Intervals are 95 % bootstrap
percentiles: training participants and blocks of synthetic windows are drawn with replacement, for
ratios held-out participants too, the same in numerator and denominator. Drawing makes distances
larger; replicates are therefore moved, in logarithms for ratios, to have the value as their median.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.features import (
    degree_events,
    ivt_statistics,
    kinematic_features,
    main_sequence_fit,
)
from gazediffusion.evaluation.metrics import (
    Distance,
    Estimate,
    central,
    draw_weights,
    interval_around,
)
from gazediffusion.evaluation.quantities import PLUGINS, GroupMeans
from gazediffusion.evaluation.sets import GazeSet

Floats = NDArray[np.float64]
Results = Mapping[str, Any]
FAMILIES = ("features", "events", "directions", "velocity")
LIMIT = 1.5
SLOPE_WINDOWS = 2000
NOT_COMPUTED = Estimate(None)
RATIO = (
    "Ratio to the floor: distance(synthetic, held-out participants) / distance(training "
    "participants, held-out participants), at the same number of windows, Jensen-Shannon "
    "divergences both in the bins of the second. A family's ratio is the geometric mean over its "
    "Jensen-Shannon divergences (for the temporal family, its scalar distances); the overall ratio "
    "is the geometric mean over families. At 1.0 a set is as close to held-out participants as the "
    "training participants are; lower is better."
)
# Of a family in which a set has nothing that can be compared.
_FARTHEST = 1000.0
COUNTS = ("saccade_count", "fixation_count", "path_length", "main_sequence")


@dataclass(frozen=True)
class Headline:
    """A set in a few numbers. Percentages are against the training participants.

    ratio: median over `n_distances` ratios to the floor; n_above: how many of these exceed 1.5.
    worst, worst_ratio: the largest of them. c2st: accuracy of a classifier on features, 0.5 is
    chance. An estimate without a value was not computed.
    """

    n_windows: int
    n_distances: int
    worst: str
    ratio: Estimate = NOT_COMPUTED
    n_above: Estimate = NOT_COMPUTED
    worst_ratio: Estimate = NOT_COMPUTED
    saccade_count_percent: Estimate = NOT_COMPUTED
    fixation_count_percent: Estimate = NOT_COMPUTED
    path_length_percent: Estimate = NOT_COMPUTED
    main_sequence_percent: Estimate = NOT_COMPUTED
    c2st: Estimate = NOT_COMPUTED

    @classmethod
    def of(cls, row: Results) -> Headline:
        """As it stands in results."""
        return cls(**Estimate.read(row))


def ratios_of(
    quantities: list[dict[str, Any]], scalars: list[dict[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """Ratios to the floor by family and overall, for each synthetic set."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in [*quantities, *scalars]:
        found = row["distances"]["js"] if "distances" in row else row
        cells.setdefault(row["family"], []).append(found["synthetic"])
    families = {
        family: {name: _geometric_mean([one[name]["ratio"] for one in found]) for name in names}
        for family, found in cells.items()
    }
    ours = [by_name for family, by_name in families.items() if family != PLUGINS]
    overall = {
        name: float(np.exp(np.mean([np.log(by_name[name]) for by_name in ours]))) for name in names
    }
    return {"definition": RATIO, "families": families, "overall": overall}


def _geometric_mean(ratios: Sequence[float | None]) -> float:
    """Of the ratios that exist; _FARTHEST where none exists."""
    # A distance of zero, as of identical sets, counts as a thousandth of the floor.
    logs = [float(np.log(max(one, 1e-3))) for one in ratios if one is not None]
    return float(np.exp(np.mean(logs))) if logs else _FARTHEST


def ratio(value: float, floor: float) -> float | None:
    """value / floor; None where the floor is zero, as for identical sets, or the value infinite."""
    return value / floor if floor > 0 and np.isfinite(value) else None


def distance_rows(
    found: Mapping[str, Mapping[str, Distance]],
    floor: Mapping[str, Distance],
    halves: Mapping[str, float] = MappingProxyType({}),
    keep_draws: bool = False,
) -> dict[str, Any]:
    """By kind of distance: the floor, that of halves, and each set's with its ratio to the floor.

    found: distances to the held-out participants by set and kind. keep_draws: also replicates.
    """
    rows: dict[str, Any] = {}
    for kind, below in floor.items():
        cells: dict[str, dict[str, Any]] = {}
        for name, of in found.items():
            one = of[kind]
            value = one.value if np.isfinite(one.value) else None
            over = ratio(one.value, below.value)
            cells[name] = {"value": value, "interval": one.interval(), "ratio": over}
            if keep_draws:
                cells[name]["draws"] = one.replicates
        rows[kind] = {"floor": below.value, "halves": halves.get(kind), "synthetic": cells}
        if keep_draws and len(below.replicates):
            rows[kind]["floor_draws"] = below.replicates
    return rows


def means_of(quantities: list[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Means over eight features (without path length, which is mean speed again) and nine.

    A ratio is of the mean distance to the mean floor.
    """
    nine = [row for row in quantities if row["family"] == "features"]
    eight = [row for row in nine if row["name"] != "path_length"]
    means = {}
    for kind, n in itertools.product(("js", "ks"), (8, 9) if nine else ()):
        found = [row["distances"][kind] for row in (eight if n == 8 else nine)]
        floors = [one["floor"] for one in found]
        floor = float(np.mean(floors))
        values = {
            name: float(np.mean([one["synthetic"][name]["value"] for one in found]))
            for name in names
        }
        means[f"{kind}_{n}"] = {
            "floor": floor,
            "synthetic": values,
            "ratio": {name: ratio(value, floor) for name, value in values.items()},
        }
    return means


def differences_of(
    replicates: dict[str, NDArray[np.float64]], means: dict[str, Any]
) -> list[dict[str, Any]]:
    """Whether two synthetic sets differ in their mean JS, draw by draw of the same participants."""
    rows = []
    for a, b in itertools.combinations(replicates, 2):
        found = means["js_9"]["synthetic"]
        value = found[a] - found[b]
        interval = interval_around(value, replicates[a] - replicates[b])
        is_different = interval is not None and not interval[0] <= 0 <= interval[1]
        row = {"a": a, "b": b, "quantity": "mean JS of nine features", "value": value}
        rows.append(row | {"interval": interval, "is_different": is_different})
    return rows


def ratio_entries(results: Results, name: str) -> dict[str, float]:
    """The ratios to the floor that a set's median is taken over, by name of the distance.

    Speed, turning angle and path length are in two protocols and count once.
    """
    entries = {
        row["name"]: row["distances"]["js"]["synthetic"][name]["ratio"]
        for row in results["quantities"]
        if row["family"] in FAMILIES
    }
    entries |= {row["name"]: row["synthetic"][name]["ratio"] for row in results["scalars"]}
    return {key: value for key, value in entries.items() if value is not None}


def titles_of(results: Results) -> dict[str, str]:
    """Titles of the distances in `ratio_entries`, by name."""
    rows = [*results["quantities"], *results["scalars"]]
    others = ("degrees", PLUGINS)
    return {row["name"]: row["title"] for row in rows if row["family"] not in others}


def summarised_ratios(
    ratios: Mapping[str, float], replicates: Mapping[str, Floats], titles: Mapping[str, str]
) -> dict[str, Any]:
    """Median, number above 1.5 and worst of the ratios; replicates (replicate,) by distance."""
    if not ratios:
        return {"n_distances": 0, "worst": ""}
    values = np.array(list(ratios.values()))
    worst = max(ratios, key=lambda key: ratios[key])
    median = float(np.median(values))
    intervals: dict[str, Any] = dict.fromkeys(("ratio", "n_above", "worst_ratio"))
    drawn = {
        key: np.log(replicates[key])
        for key, value in ratios.items()
        if value > 0 and key in replicates and _is_positive(replicates[key])
    }
    if drawn and median > 0:
        logs = np.stack(list(drawn.values()), axis=1)
        medians = np.log(np.median(np.exp(logs), axis=1))
        around = interval_around(float(np.log(median)), medians)
        intervals["ratio"] = None if around is None else np.exp(around).tolist()
        moved = logs - np.median(logs, axis=0) + np.log([ratios[key] for key in drawn])
        n_above = central((moved > np.log(LIMIT)).sum(axis=1))
        intervals["n_above"] = [round(one) for one in n_above]
        if worst in drawn:
            of_worst = central(moved[:, list(drawn).index(worst)])
            intervals["worst_ratio"] = np.exp(of_worst).tolist()
    found = {"ratio": median, "n_above": int((values > LIMIT).sum()), "worst_ratio": ratios[worst]}
    cells = {key: {"value": one, "interval": intervals[key]} for key, one in found.items()}
    return {"n_distances": len(ratios), "worst": titles[worst], **cells}


def _is_positive(replicates: Floats) -> bool:
    return len(replicates) > 0 and bool((np.isfinite(replicates) & (replicates > 0)).all())


@dataclass(frozen=True, eq=False)
class Counted:
    """Mean counts, path length and slope of a set, and what is needed to draw its groups.

    line: sums of a regression by group (group, 5): n, x, y, x^2, x y of the main sequence.
    """

    values: dict[str, float]
    means: dict[str, GroupMeans]
    line: Floats | None
    n_groups: int

    @classmethod
    def of(cls, one: GazeSet) -> Counted:
        """Of all the windows of a set."""
        events = ivt_statistics(one.gaze, one.rate_hz)
        found: dict[str, NDArray[Any]] = {
            "saccade_count": events.saccade_count,
            "fixation_count": events.fixation_count,
            "path_length": kinematic_features(one.gaze, one.rate_hz)["path_length"],
        }
        values = {name: float(rows.mean()) for name, rows in found.items()}
        means = {name: GroupMeans.of(rows.astype(float), one.group) for name, rows in found.items()}
        n_groups, line = int(one.group.max()) + 1, None
        if any(screen.has_degrees for screen in one.screens):
            moved = degree_events(one.gaze, one.screens, one.rate_hz, SLOPE_WINDOWS)
            amplitude, peak = moved.saccade_amplitude_deg, moved.saccade_peak_deg_s
            with contextlib.suppress(GazeError):  # too few saccades for a line
                values["main_sequence"] = main_sequence_fit(amplitude, peak).slope
                has_logarithm = (amplitude > 0) & (peak > 0)
                x, y = np.log10(amplitude[has_logarithm]), np.log10(peak[has_logarithm])
                group = one.group[moved.saccade_window][has_logarithm]
                columns = (np.ones_like(x), x, y, x * x, x * y)
                sums = [np.bincount(group, column, minlength=n_groups) for column in columns]
                line = np.stack(sums, axis=1).astype(float)
        return cls(values, means, line, n_groups)

    def drawn(self, n_replicates: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Means and slope of drawn groups, (replicate,) each; nothing without replicates."""
        if n_replicates == 0:
            return {}
        weights = draw_weights(self.n_groups, n_replicates, rng)
        found = {name: one.mean(weights)[:, 0] for name, one in self.means.items()}
        return found if self.line is None else {**found, "main_sequence": self.slope(weights)}

    def slope(self, weights: Floats) -> Floats:
        """The main sequence's slope over drawn groups, (replicate,)."""
        assert self.line is not None
        n, x, y, xx, xy = (weights @ self.line).T
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((n * xy - x * y) / (n * xx - x * x))


def percentages(
    values: Mapping[str, float],
    reference: Mapping[str, float],
    drawn: Mapping[str, Floats] = MappingProxyType({}),
    reference_drawn: Mapping[str, Floats] = MappingProxyType({}),
) -> dict[str, Any]:
    """Counts, path length and slope in percent of the reference's, with intervals where drawn."""
    found = {}
    for name in COUNTS:
        if name not in values or not reference.get(name):
            continue
        percent, interval = 100 * (values[name] / reference[name] - 1), None
        if name in drawn and name in reference_drawn:
            with np.errstate(divide="ignore", invalid="ignore"):
                replicates = 100 * (drawn[name] / reference_drawn[name] - 1)
            interval = interval_around(percent, replicates)
        found[f"{name}_percent"] = {"value": percent, "interval": interval}
    return found
