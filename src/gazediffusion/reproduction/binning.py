"""The features' JS in other bins than ours, and less its bias.

A histogram JS of two equal distributions is not zero: with b occupied bins and n and m windows its
mean is about (b - 1) / 8 (1 / n + 1 / m). The paper does not give its number of bins. Its smallest
JS is possible only with few: `most_bins` of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.comparison import cell
from gazediffusion.evaluation.distances import (
    BINS,
    Distance,
    bins_of,
    distances_with_intervals,
    draw_weights,
)
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.evaluation.gaze_sets import arrange
from gazediffusion.evaluation.headline import ratio
from gazediffusion.evaluation.metrics import histogram_counts
from gazediffusion.evaluation.quantities import FEATURES, Quantity, feature_quantities
from gazediffusion.reproduction import paper
from gazediffusion.settings import EvaluationConfig

FEWER, DEBIASED = "features in fewer bins", "features debiased"


def most_bins(js: float, n: int) -> int:
    """The most bins in which two equal distributions of n windows each have this JS on average."""
    return int(4.0 * n * js + 1.0)


def fewer_bins() -> int:
    """The number of bins that the paper's smallest JS of a feature allows."""
    smallest = min(row["js"].mean for row in paper.NUMBERS["features"].values())
    return most_bins(smallest, paper.PROTOCOL["n_held_out_windows"]["position"])


def bias(a: Quantity, b: Quantity, edges: np.ndarray) -> float:
    """The JS (nats) expected of two samples of this size if both had the same distribution."""
    counts = [histogram_counts(one.values, edges) for one in (a, b)]
    n_occupied = int(np.count_nonzero(counts[0] + counts[1]))
    return (n_occupied - 1) / 8.0 * (1.0 / len(a.values) + 1.0 / len(b.values))


def other_bins(
    real: Windows, synthetic: Mapping[str, Windows], train: Windows, config: EvaluationConfig
) -> list[dict[str, Any]]:
    """The features' JS in fewer bins, and in our bins less the bias, as an evaluation's rows."""
    sets = arrange(real, synthetic, train, config.seed)
    assert sets.train is not None
    shown = [sets.real, sets.train, *sets.synthetic]
    measured = {
        one.name: feature_quantities(kinematic_features(one.gaze, one.rate_hz), one.group)
        for one in shown
    }
    rng = np.random.default_rng(config.seed + 1)
    weights = {
        one.name: draw_weights(one.group.max() + 1, config.n_replicates, rng) for one in shown
    }
    rows = []
    for family, n_bins in {FEWER: fewer_bins(), DEBIASED: BINS["window"]}.items():
        for number, (name, (title, unit)) in enumerate(FEATURES.items()):
            of = {one: quantities[number] for one, quantities in measured.items()}
            of_real = of.pop("real")
            edges = bins_of(of_real, of["train"], n_bins)
            js: dict[str, Distance] = {}
            for one, other in of.items():
                drawn = (weights["real"], weights[one])
                found = distances_with_intervals(of_real, other, edges, drawn)["js"]
                less = bias(of_real, other, edges) if family == DEBIASED else 0.0
                js[one] = Distance(found.value - less, found.replicates - less)
            floor = js.pop("train")
            cells = {
                one: cell(found, ratio(found.value, floor.value), True) for one, found in js.items()
            }
            row = {"floor": floor.value, "floor_draws": floor.replicates, "synthetic": cells}
            about = {"name": name, "title": title, "family": family, "unit": unit}
            rows.append({**about, "distances": {"js": row}})
    return rows
