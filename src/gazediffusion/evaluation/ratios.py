"""Ratios to the floor by family and overall, means over the paper's features, differences.

The one definition of the ratio to the floor: two distances to the same held-out participants, at
the same number of windows; Jensen-Shannon divergences both in the bins of the floor.
"""

from __future__ import annotations

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
    logs: dict[str, dict[str, list[float]]] = {}
    for row in quantities:
        for name, cell in row["distances"]["js"]["synthetic"].items():
            logs.setdefault(row["family"], {}).setdefault(name, []).append(_log(cell["ratio"]))
    for row in scalars:
        for name, cell in row["synthetic"].items():
            logs.setdefault("temporal", {}).setdefault(name, []).append(_log(cell["ratio"]))
    families = {
        family: {name: _geometric_mean(values) for name, values in by_name.items()}
        for family, by_name in logs.items()
    }
    overall = {
        name: float(np.exp(np.mean([np.log(by_name[name]) for by_name in families.values()])))
        for name in names
    }
    return {"definition": RATIO, "families": families, "overall": overall}


def _geometric_mean(logs: Sequence[float]) -> float:
    """Of the ratios that exist; _FARTHEST where none exists."""
    defined = [value for value in logs if np.isfinite(value)]
    return float(np.exp(np.mean(defined))) if defined else _FARTHEST


def ratio(value: float, floor: float) -> float | None:
    """value / floor; None where the floor is zero, as for identical sets, or the value infinite."""
    return value / floor if floor > 0 and np.isfinite(value) else None


def _log(ratio: float | None) -> float:
    # A distance of zero, as of identical sets, counts as a thousandth of the floor.
    return float("nan") if ratio is None else float(np.log(max(ratio, 1e-3)))


def means_of(quantities: list[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Means over eight features (without path length, which is mean speed again) and nine."""
    nine = [row for row in quantities if row["family"] == "features"]
    eight = [row for row in nine if row["name"] != "path_length"]
    means = {}
    for kind in ("js", "ks"):
        for label, rows in (("8", eight), ("9", nine)):
            if rows:
                found = [row["distances"][kind] for row in rows]
                floor = float(np.mean([one["floor"] for one in found]))
                means[f"{kind}_{label}"] = {
                    "floor": floor,
                    "synthetic": {
                        name: float(np.mean([one["synthetic"][name]["value"] for one in found]))
                        for name in names
                    },
                    "ratio": {name: _ratio_of_means(found, name, floor) for name in names},
                }
    return means


def _ratio_of_means(distances: Sequence[dict[str, Any]], name: str, floor: float) -> float | None:
    """The mean distance over the mean floor, JS in the floors' bins as in every ratio."""
    found = [(one["synthetic"][name]["ratio"], one["floor"]) for one in distances]
    defined = [value * own for value, own in found if value is not None]
    return ratio(float(np.mean(defined)), floor) if len(defined) == len(found) else None


def differences_of(
    replicates: dict[str, NDArray[np.float64]], means: dict[str, Any]
) -> list[dict[str, Any]]:
    """Whether two synthetic sets differ in their mean JS, draw by draw of the same participants."""
    names = list(replicates)
    rows = []
    for place, a in enumerate(names):
        for b in names[place + 1 :]:
            found = means["js_9"]["synthetic"]
            value = found[a] - found[b]
            interval = interval_around(value, replicates[a] - replicates[b])
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "quantity": "mean JS of nine features",
                    "value": value,
                    "interval": interval,
                    "is_different": interval is not None and not interval[0] <= 0 <= interval[1],
                }
            )
    return rows
