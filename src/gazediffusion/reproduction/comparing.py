"""Comparing: an evaluation's numbers, asked by the names of quantities and sets.

What an evaluation lacks (a test that could not be computed, a quantity nobody showed) is None, so
that a table has an empty cell there and not a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

FLOOR = "floor"  # stands for the training people where the name of a set is asked for


@dataclass(frozen=True)
class Comparison:
    """An evaluation, asked by names of quantities and sets; what it lacks is None.

    The set FLOOR is the training people.
    """

    evaluation: Mapping[str, Any]

    def quantity(self, family: str, name: str) -> Mapping[str, Any] | None:
        """A quantity's row."""
        for row in self.evaluation["quantities"]:
            if (row["family"], row["name"]) == (family, name):
                found: Mapping[str, Any] = row
                return found
        return None

    def distance(self, family: str, name: str, kind: str, of: str) -> float | None:
        """A set's distance to the held-out people."""
        row = self.quantity(family, name)
        return None if row is None else _value(row["distances"][kind], of)

    def distances(self, family: str, name: str, kind: str) -> Callable[[str], float | None]:
        """The distance of any set."""
        return lambda of: self.distance(family, name, kind, of)

    def means(self, kind: str, n_features: int) -> Callable[[str], float | None]:
        """The mean distance of any set over eight or nine features."""
        found = self.evaluation["means"].get(f"{kind}_{n_features}")
        return lambda of: None if found is None else _value(found, of)

    def scalars(self, name: str) -> Callable[[str], float | None]:
        """A temporal distance of any set."""
        rows = [row for row in self.evaluation["scalars"] if row["name"] == name]
        return lambda of: _value(rows[0], of) if rows else None

    def set_mean(self, family: str, name: str, of: str) -> float | None:
        """The mean of a quantity over a set, "real" and "train" among them."""
        row = self.quantity(family, name)
        return None if row is None else row["mean"].get(of)

    def test(self, name: str, key: str, of: str) -> float | None:
        """What a test of whole sets found."""
        test = self.evaluation["tests"].get(name, {})
        found = test.get(FLOOR) if of == FLOOR else test.get("synthetic", {}).get(of)
        return None if found is None else found.get(key)

    def ratio(self, family: str | None, of: str) -> float | None:
        """A set's ratio to the floor in a family, or overall."""
        ratios = self.evaluation["ratios"]
        by_set = ratios["overall"] if family is None else ratios["families"].get(family, {})
        value: float | None = by_set.get(of)
        return value

    def said(self, n_seeds: int | None = None) -> str:
        """The numbers of windows, people and, if given, seeds, in words."""
        real, n = self.evaluation["sets"]["real"], self.evaluation["about"]["n_common"]
        return (
            f"n = {n:,} windows of each set against {real['n_windows']:,} windows of "
            f"{real['n_participants']} held-out people"
            + ("." if n_seeds is None else f"; {in_seeds(n_seeds)}.")
        )


def _value(distance: Mapping[str, Any], of: str) -> float | None:
    """A set's value among distances; those of means are plain numbers."""
    found = distance[FLOOR] if of == FLOOR else distance["synthetic"].get(of)
    value: float | None = found["value"] if isinstance(found, Mapping) else found
    return value


def in_seeds(n: int) -> str:
    """How many seeds a number is over, in words."""
    return f"mean ± SD over {n} seeds" if n > 1 else "1 seed, no SD"
