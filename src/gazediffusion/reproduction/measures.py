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

from gazediffusion.evaluation.metrics import frechet_of
from gazediffusion.reproduction.artefacts import Artefacts
from gazediffusion.reproduction.rows import mean_and_sd, over

Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Measure:
    """One number of every set, with its floor and the ratios to it. n: windows of each set."""

    values: Values
    floor: float | None = None
    ratios: Values = field(default_factory=dict)
    intervals: Mapping[str, Sequence[float | None] | None] = field(default_factory=dict)
    n: int | None = None

    def of(self, sets: Sequence[str], with_floor: bool = True) -> dict[str, Any]:
        """The fields of a row for some sets: one, or one for each seed."""
        ours, sd = mean_and_sd(self.values.get(one) for one in sets)
        ratio, ratio_sd = mean_and_sd(self.ratios.get(one) for one in sets)
        return {
            "ours": ours,
            "sd": sd,
            "interval": self.intervals.get(sets[0]) if len(sets) == 1 else None,
            "floor": self.floor if with_floor else None,
            "ratio": ratio,
            "ratio_sd": ratio_sd,
            "n": self.n,
            "seeds": seeds_of(sets),
        }


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
        )

    def set_means(self, family: str, name: str) -> Values:
        """The mean of a quantity in each set, "real" and "train" among them."""
        row = self.quantity(family, name)
        return {} if row is None else row["mean"]

    def test(self, name: str, key: str) -> Measure:
        """A number that a test of whole sets found."""
        test = self.evaluation["tests"].get(name, {})
        of = test.get("synthetic") or {}
        floor = (test.get("floor") or {}).get(key)
        return Measure({one: cells.get(key) for one, cells in of.items()}, floor, n=self.n)

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
        return Measure(values, distance["floor"], ratios, intervals, self.n)


def frechet_measure(made: Artefacts, sets: Sequence[str]) -> Measure:
    """The Frechet Gaze Distance of sets to the held-out participants."""
    real, train = made.features["real"], made.features["train"]
    floor = frechet_of(real, train)
    values = {one: frechet_of(real, made.features[one]) for one in sets}
    ratios = {one: over(value, floor) for one, value in values.items()}
    return Measure(values, floor, ratios, n=len(train))
