"""Distances between two samples of a quantity, with bootstrap intervals.

Distances are those of metrics.py. Intervals are bootstrap percentiles over participants: windows
of one participant are not independent, so participants are drawn with replacement, not windows.
All replicates share one set of draws, so that two synthetic sets can be compared draw by draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.metrics import (
    bin_numbers,
    histogram_counts,
    histogram_edges,
    js_from_counts,
    ks_and_wasserstein1,
    ks_from_counts,
    w1_from_counts,
)
from gazediffusion.evaluation.quantities import HEAVY_TAILED, Quantity

Floats = NDArray[np.float64]
DISTANCES = ("js", "ks", "w1")
BINS = {"window": 50, "pooled": 100}
# Of a set that has no value of a quantity, for example no fixation.
FARTHEST = {"js": math.log(2), "ks": 1.0, "w1": math.inf}
# Percentiles, KS and W1 of millions of numbers are computed from so many of them, evenly chosen;
# the error of KS is then below 0.005.
MAX_SORTED = 100_000
_FINE_BINS = 256
_TAIL_BINS = 50
# Synthetic windows have no participants; blocks of them stand in.
_SYNTHETIC_BLOCKS = 64


@dataclass(frozen=True, eq=False)
class Distance:
    """One distance with its bootstrap replicates (replicate,), empty without a bootstrap."""

    value: float
    replicates: Floats = field(default_factory=lambda: np.empty(0))

    def interval(self) -> list[float] | None:
        """The 95 % interval; a distance is never below zero."""
        interval = interval_around(self.value, self.replicates)
        return None if interval is None else [max(0.0, interval[0]), interval[1]]


def interval_around(value: float, replicates: Floats) -> list[float] | None:
    """The central 95 % of bootstrap replicates, moved to have the value as their median.

    Drawing with replacement makes histograms rougher and distances larger; the shift removes that
    bias and keeps the spread. None without replicates.
    """
    if len(replicates) == 0 or not np.isfinite(replicates).all():
        return None
    low, middle, high = np.percentile(replicates, [2.5, 50, 97.5])
    return [float(low - middle + value), float(high - middle + value)]


def draw_weights(n_groups: int, n_replicates: int, rng: np.random.Generator) -> Floats:
    """Multinomial weights (replicate, group) of drawing groups with replacement."""
    return rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), n_replicates).astype(float)


def drawn_windows(group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The windows of as many groups as there are, drawn with replacement; `group` is (window,)."""
    n_groups = group.max() + 1
    drawn = rng.integers(0, n_groups, n_groups)
    return np.concatenate([np.flatnonzero(group == number) for number in drawn])


def synthetic_groups(n_windows: int) -> NDArray[np.int64]:
    """A block number for each of n windows, (window,)."""
    return np.arange(n_windows) * min(_SYNTHETIC_BLOCKS, n_windows) // max(n_windows, 1)


def distances(a: Quantity, b: Quantity, edges: Floats | None = None) -> dict[str, float]:
    """JS, KS and W1 of two quantities, without intervals; JS between these edges, or their own."""
    edges = bins_of(a, b) if edges is None else edges
    js = js_from_counts(histogram_counts(a.values, edges), histogram_counts(b.values, edges))
    ks, w1 = ks_and_wasserstein1(share(a.values), share(b.values))
    return {"js": float(js), "ks": ks, "w1": w1}


def bins_of(a: Quantity, b: Quantity, n_bins: int | None = None) -> Floats:
    """Edges of the histograms in which the two are compared; those of angles are the full circle.

    n_bins: those of the quantity's level if None.
    """
    n_bins = n_bins or BINS[a.level]
    if a.unit == "rad":
        return np.linspace(-math.pi, math.pi, n_bins + 1)
    return histogram_edges(share(a.values), share(b.values), n_bins)


def histograms(
    of: Mapping[str, Quantity], bins: Floats, floor: tuple[Quantity, Quantity]
) -> dict[str, Any]:
    """Edges and densities of sets: `histogram` in the bins of JS, whose end bins hold the tails.

    Of velocities also `whole_histogram`: the same bins and further ones to the extremes of the
    floor's two sides, with nothing added to the end bins.
    """

    def densities(edges: Floats, count: Callable[..., Any]) -> dict[str, list[float]]:
        found = {
            name: (count(one.values, edges) / (len(one.values) * np.diff(edges))).tolist()
            for name, one in of.items()
        }
        return {"edges": edges.tolist(), **found}

    drawn = {"histogram": densities(bins, histogram_counts)}
    if floor[0].level == "pooled" and floor[0].name in HEAVY_TAILED:
        edges = _with_tails(bins, *floor)
        drawn["whole_histogram"] = densities(edges, lambda *given: np.histogram(*given)[0])
    return drawn


def _with_tails(bins: Floats, a: Quantity, b: Quantity) -> Floats:
    """These edges, and on either side those of at most _TAIL_BINS bins to the extremes."""

    def edges(first: float, last: float) -> Floats:
        n_bins = math.ceil(min(_TAIL_BINS, abs(last - first) / float(bins[1] - bins[0])))
        return np.linspace(first, last, n_bins + 1)[1:]

    low = min(a.values.min(), b.values.min(), bins[0])
    high = max(a.values.max(), b.values.max(), bins[-1])
    return np.concatenate([edges(bins[0], low)[::-1], bins, edges(bins[-1], high)])


def distances_with_intervals(
    real: Quantity, other: Quantity, edges: Floats, weights: tuple[Floats, Floats] | None
) -> dict[str, Distance]:
    """JS, KS and W1 of a real and another quantity; JS between these edges, those of the floor.

    weights: how often each group of the two is drawn, (replicate, group) each; None leaves out the
    bootstrap. A set without a value of the quantity has the largest distance.
    """
    n = 0 if weights is None else len(weights[0])
    if len(other.values) == 0:
        return {name: Distance(value, np.full(n, value)) for name, value in FARTHEST.items()}
    values = distances(real, other, edges)
    # Where some draw has no value at all, there is no interval.
    replicates = dict.fromkeys(DISTANCES, np.full(n, np.nan))
    if weights is not None:
        fine = bins_of(real, other, _FINE_BINS)
        p, fine_p = (drawn_counts(real, one, weights[0]) for one in (edges, fine))
        q, fine_q = (drawn_counts(other, one, weights[1]) for one in (edges, fine))
        if (p.any(axis=1) & q.any(axis=1)).all():
            replicates = {
                "js": js_from_counts(p, q),
                "ks": ks_from_counts(fine_p, fine_q),
                "w1": w1_from_counts(fine_p, fine_q, fine),
            }
    return {name: Distance(values[name], replicates[name]) for name in DISTANCES}


def drawn_counts(quantity: Quantity, edges: Floats, weights: Floats) -> Floats:
    """Histogram counts (replicate, bin) of drawn groups; values outside count in the end bins.

    weights: how often each group is drawn, (replicate, group).
    """
    n_groups, n_bins = weights.shape[1], len(edges) - 1
    flat = quantity.group * n_bins + bin_numbers(quantity.values, edges)
    counts = np.bincount(flat, minlength=n_groups * n_bins).reshape(n_groups, n_bins)
    return np.asarray(weights @ counts.astype(float))


def drawn_means(quantity: Quantity, weights: Floats) -> Floats:
    """Means (replicate,) of drawn groups; NaN where no drawn group has a value.

    weights: how often each group is drawn, (replicate, group).
    """
    n_groups = weights.shape[1]
    sums = np.bincount(quantity.group, quantity.values, minlength=n_groups)
    counts = weights @ np.bincount(quantity.group, minlength=n_groups).astype(float)
    return np.asarray(weights @ sums / np.where(counts > 0, counts, np.nan))


def share(values: Floats) -> Floats:
    """At most MAX_SORTED of the values, evenly chosen."""
    step = max(1, -(-len(values) // MAX_SORTED))
    return values[::step]
