"""Measures: an evaluation's numbers of every set, found by the names of quantities.

What an evaluation lacks (a test that could not be computed, a quantity without values) is None,
so that a table has an empty cell there and not a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.rows import (
    Draws,
    centred,
    interval_of,
    mean_and_sd,
    over,
    percent_above,
)

Values = Mapping[str, float | None]


@dataclass(frozen=True, eq=False)
class Measure:
    """One number of every set, with its floor and the ratios to it. n: windows of each set.

    draws: bootstrap replicates by set, (replicate,), paired over sets; floor_draws: of the floor.
    """

    values: Values
    floor: float | None = None
    ratios: Values = field(default_factory=dict)
    intervals: Mapping[str, Sequence[float | None] | None] = field(default_factory=dict)
    n: int | None = None
    draws: Mapping[str, Draws] = field(default_factory=dict)
    floor_draws: Draws | None = None

    def of(
        self, sets: Sequence[str], with_floor: bool = True, joint: str | None = None
    ) -> dict[str, Any]:
        """The fields of a row for some sets: one, or one for each seed. joint: the set beside."""
        ours, sd = mean_and_sd(self.values.get(one) for one in sets)
        ratio, ratio_sd = mean_and_sd(self.ratios.get(one) for one in sets)
        drawn = self.drawn(sets)
        fields: dict[str, Any] = {
            "ours": ours,
            "sd": sd,
            "interval": self.intervals.get(sets[0]) if len(sets) == 1 else None,
            "floor": self.floor if with_floor else None,
            "ratio": ratio,
            "ratio_sd": ratio_sd,
            "n": self.n,
            "seeds": seeds_of(sets),
        }
        if joint is not None:
            fields |= {"joint": self.values.get(joint), "joint_ratio": self.ratios.get(joint)}
        if drawn is not None and ours is not None:
            lowest = 0.0 if drawn.min() >= 0.0 else None
            fields["draws"] = centred(drawn, ours)
            fields["interval"] = fields["interval"] or interval_of(fields["draws"], lowest)
            if self.floor_draws is not None and ratio is not None and self.floor_draws.min() > 0:
                fields["ratio_draws"] = centred(drawn / self.floor_draws, ratio)
                fields["ratio_interval"] = interval_of(fields["ratio_draws"], lowest)
        return fields

    def above(self, other: str) -> Measure:
        """By how many percent each set's number is above that of another set."""
        base, drawn = self.values.get(other), self.draws.get(other)
        values = {one: percent_above(value, base) for one, value in self.values.items()}
        draws = {
            one: 100.0 * (found / drawn - 1.0) for one, found in self.draws.items()
        } if drawn is not None and drawn.min() > 0 else {}  # fmt: skip
        return Measure(values, n=self.n, draws=draws)

    def share_of(self, other: Measure) -> Measure:
        """Percentages of another measure of the same sets; none where that is not above zero."""
        values: dict[str, float | None] = {}
        draws: dict[str, Draws] = {}
        for one, value in self.values.items():
            base = other.values.get(one)
            values[one] = 100.0 * value / base if value is not None and base and base > 0 else None
            if one in self.draws and one in other.draws and other.draws[one].min() > 0:
                draws[one] = 100.0 * self.draws[one] / other.draws[one]
        return Measure(values, n=self.n, draws=draws)

    def drawn(self, sets: Sequence[str]) -> Draws | None:
        """Replicates of the mean over sets, which are drawn with replacement as well."""
        if not sets or any(one not in self.draws for one in sets):
            return None
        found = np.stack([self.draws[one] for one in sets], axis=1)
        if not np.isfinite(found).all():
            return None
        chosen = np.random.default_rng(0).integers(0, len(sets), found.shape)
        return np.asarray(np.take_along_axis(found, chosen, axis=1).mean(axis=1))


def seeds_of(sets: Sequence[str]) -> list[int]:
    """The seeds of the networks that generated sets; baselines have none."""
    found = [re.match(r"(?:position|velocity|x0)-(\d+)", one) for one in sets]
    return [int(one[1]) for one in found if one]


@dataclass(frozen=True)
class Comparison:
    """The results of an evaluation, as `evaluation.evaluate` gives them in plain values."""

    evaluation: Mapping[str, Any]

    @property
    def n(self) -> int:
        """Windows of each set."""
        n: int = self.evaluation["about"]["n_common"]
        return n

    def quantity(self, family: str, name: str) -> Mapping[str, Any] | None:
        """A quantity's entry."""
        rows = self.evaluation["quantities"]
        return next((row for row in rows if (row["family"], row["name"]) == (family, name)), None)

    def distance(self, family: str, name: str, kind: str) -> Measure:
        """The distance `kind` (ks, js, w1) of a quantity to the held-out participants."""
        row = self.quantity(family, name)
        return self._measure(None if row is None else row["distances"][kind])

    def scalar(self, name: str) -> Measure:
        """A temporal distance."""
        rows = self.evaluation["scalars"]
        return self._measure(next((row for row in rows if row["name"] == name), None))

    def mean(self, family: str, names: Sequence[str], kind: str) -> Measure:
        """The mean distance over quantities.

        The ratio is that of the means of distances in the floor's bins, which an evaluation keeps
        as ratio times floor.
        """
        parts = [self.distance(family, name, kind) for name in names]
        if any(part.floor is None for part in parts):
            return Measure({})
        with_draws = set.intersection(*(set(part.draws) for part in parts))
        of_floor = [part.floor_draws for part in parts if part.floor_draws is not None]
        floors = np.array([part.floor for part in parts])

        def mean_of(values: Sequence[float | None], weights: Any = None) -> float | None:
            is_whole = all(one is not None for one in values) and (weights is None or any(weights))
            return float(np.average(np.array(values), weights=weights)) if is_whole else None

        sets = parts[0].values
        return Measure(
            {one: mean_of([part.values[one] for part in parts]) for one in sets},
            float(floors.mean()),
            {one: mean_of([part.ratios[one] for part in parts], floors) for one in sets},
            n=self.n,
            draws={one: np.mean([part.draws[one] for part in parts], axis=0) for one in with_draws},
            floor_draws=np.mean(of_floor, axis=0) if len(of_floor) == len(parts) else None,
        )

    @property
    def n_draws(self) -> int:
        """Bootstrap replicates."""
        n: int = self.evaluation["about"]["n_bootstrap"]
        return n

    def decay_ms(self) -> Measure:
        """The lag at which the mean autocorrelation of speed falls below 1/e, in each set."""
        curve = self.evaluation["curves"]["speed_autocorrelation"]
        row = next(row for row in self.evaluation["scalars"] if row["name"] == "autocorrelation")
        lag_ms = np.array(curve["x"], dtype=np.float64)

        def below(values: Any) -> float:
            is_below = np.array(values, dtype=np.float64) < np.exp(-1.0)
            return float(lag_ms[np.argmax(is_below)]) if is_below.any() else float(lag_ms[-1])

        draws = {
            one: np.array([below(one_curve) for one_curve in found])
            for one, found in row.get("curve_draws", {}).items()
        }
        values = {one: below(found) for one, found in curve["sets"].items()}
        return Measure(values, n=self.n, draws=draws)

    def set_means(self, family: str, name: str) -> Measure:
        """The mean of a quantity in each set, "real" and "train" among them."""
        row = self.quantity(family, name)
        if row is None:
            return Measure({})
        return Measure(row["mean"], n=self.n, draws=_arrays(row.get("mean_draws", {})))

    def test(self, name: str, key: str) -> Measure:
        """A number that a test of whole sets found."""
        test = self.evaluation["tests"].get(name, {})
        of = test.get("synthetic") or {}
        floor = (test.get("floor") or {}).get(key)
        draws = {one: cells[f"{key}_draws"] for one, cells in of.items() if f"{key}_draws" in cells}
        values = {one: cells.get(key) for one, cells in of.items()}
        return Measure(values, floor, n=self.n, draws=_arrays(draws))

    def ratio(self, family: str | None) -> Measure:
        """Ratios to the floor in a family, or overall."""
        ratios = self.evaluation["ratios"]
        of_family = ratios["overall"] if family is None else ratios["families"].get(family, {})
        return Measure(of_family, n=self.n)

    def _measure(self, distance: Mapping[str, Any] | None) -> Measure:
        if distance is None:
            return Measure({})
        values, ratios, intervals = (
            {one: cell[key] for one, cell in distance["synthetic"].items()}
            for key in ("value", "ratio", "interval")
        )
        draws = {
            one: cell["draws"] for one, cell in distance["synthetic"].items() if "draws" in cell
        }
        of_floor = distance.get("floor_draws")
        return Measure(
            values,
            distance["floor"],
            ratios,
            intervals,
            self.n,
            _arrays(draws),
            None if of_floor is None else np.array(of_floor, dtype=np.float64),
        )


def _arrays(draws: Mapping[str, Sequence[float | None]]) -> dict[str, Draws]:
    """Replicates as arrays; sets that have none are left out."""
    return {one: np.array(values, dtype=np.float64) for one, values in draws.items() if len(values)}


def loss_of(history: Mapping[str, Any], n_draws: int) -> dict[str, Any]:
    """The fields of a row for a run's best validation loss.

    Its replicates add the deviation of a drawn epoch, of the last tenth, from their line: the loss
    goes up and down by so much from one epoch to the next.
    """
    best = history["best_validation_loss"]
    fields: dict[str, Any] = {"ours": best, "seeds": [history["seed"]]}
    last = np.array(history["validation_loss"], dtype=np.float64)
    last = last[-max(10, len(last) // 10) :]
    if best is not None and n_draws and len(last) >= 10 and np.isfinite(last).all():
        epoch = np.arange(len(last))
        deviations = last - np.polyval(np.polyfit(epoch, last, 1), epoch)
        drawn = np.random.default_rng(history["seed"]).choice(deviations, n_draws)
        fields["draws"] = best + drawn
        fields["interval"] = interval_of(fields["draws"])
    return fields


def frechet_measure(made: Artefacts, sets: Sequence[str]) -> Measure:
    """The Frechet Gaze Distance of sets to the held-out participants."""
    found = {one: made.frechet[one] for one in ("train", *sets) if one in made.frechet}
    floor = found["train"]["fgd"]
    draws = _arrays({one: cells["draws"] for one, cells in found.items()})
    values = {one: cells["fgd"] for one, cells in found.items()}
    ratios = {one: over(value, floor) for one, value in values.items()}
    n = found["train"]["n"]
    return Measure(values, floor, ratios, n=n, draws=draws, floor_draws=draws.get("train"))
