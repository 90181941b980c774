"""Ratios to the floor by family and overall, means over the paper's features, differences.

The one definition of the ratio to the floor: two distances to the same held-out participants, at
the same number of windows; Jensen-Shannon divergences both in the bins of the floor.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.distances import interval_around

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
    overall = {
        name: float(np.exp(np.mean([np.log(by_name[name]) for by_name in families.values()])))
        for name in names
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


def means_of(quantities: list[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Means over eight features (without path length, which is mean speed again) and nine.

    A ratio is of the mean distance to the mean floor, JS in the floors' bins as in every ratio.
    """
    nine = [row for row in quantities if row["family"] == "features"]
    eight = [row for row in nine if row["name"] != "path_length"]
    means = {}
    for kind, n in itertools.product(("js", "ks"), (8, 9) if nine else ()):
        found = [row["distances"][kind] for row in (eight if n == 8 else nine)]
        floors = [one["floor"] for one in found]
        values, ratios = (
            {name: [one["synthetic"][name][word] for one in found] for name in names}
            for word in ("value", "ratio")
        )
        floor = float(np.mean(floors))
        means[f"{kind}_{n}"] = {
            "floor": floor,
            "synthetic": {name: float(np.mean(one)) for name, one in values.items()},
            "ratio": {
                name: None
                if None in one
                else ratio(float(np.mean(np.multiply(one, floors))), floor)
                for name, one in ratios.items()
            },
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
