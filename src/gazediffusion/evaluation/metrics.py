"""Metrics: distances between real and synthetic gaze, with bootstrap intervals.

The paper's KS, JS and W1 of feature distributions and its Frechet distance (section "Evaluation
protocols"), and coverage and diversity, which it does not report. JS is in nats. Each distance is
also computed from histogram counts for the bootstrap: counts of participants add up. Windows of one
participant are not independent, so participants are drawn with replacement, not windows. All
replicates share one set of draws, so that two synthetic sets can be compared draw by draw. Empty
input and NaN are refused with a GazeError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.quantities import HEAVY_TAILED, Quantity

Floats = NDArray[np.float64]
Counts = NDArray[np.integer[Any]] | Floats
_PERCENTILES = (0.5, 99.5)
_CHUNK = 1024
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


@dataclass(frozen=True)
class Estimate:
    """A number with what it is worth: interval, ratio to the floor and SD, where known."""

    value: float | None
    interval: Sequence[float | None] | None = None
    ratio: float | None = None
    sd: float | None = None

    @classmethod
    def read(cls, values: Any) -> Any:
        """Plain values, at any depth, with their estimates."""
        if not isinstance(values, Mapping):
            return values
        if "value" in values and values.keys() <= cls.__dataclass_fields__.keys():
            return cls(**values)
        return {key: cls.read(one) for key, one in values.items()}


def ks_and_wasserstein1(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Kolmogorov-Smirnov statistic and Wasserstein-1 distance; lower is better.

    The largest gap between two CDFs, 0 to 1, and the area between them, in the values' unit. Both
    at once: they share the sorting, which is all the work.
    """
    a, b = _values(a), _values(b)
    joint = np.concatenate([np.sort(a), np.sort(b)])
    order = np.argsort(joint, kind="stable")  # merges the two sorted halves in linear time
    below_a = np.cumsum(order < a.size)
    below_b = np.arange(1, joint.size + 1) - below_a
    values, gap = joint[order], below_a / a.size - below_b / b.size
    # Within equal values the gap is half counted; it holds after the last of them.
    is_last = np.append(values[1:] != values[:-1], True)
    return float(np.abs(gap[is_last]).max()), float(np.abs(gap[:-1]) @ np.diff(values))


def histogram_edges(a: ArrayLike, b: ArrayLike, bins: int = 50) -> Floats:
    """Edges (bins + 1,) of equal width between the pooled 0.5th and 99.5th percentiles.

    Where these coincide, between the extremes; where all values are equal, around the value.
    """
    pooled = np.concatenate([_values(a), _values(b)])
    low, high = np.percentile(pooled, _PERCENTILES)
    for first, last in ((low, high), (pooled.min(), pooled.max())):
        edges = np.linspace(first, last, bins + 1)
        if (np.diff(edges) > 0).all():
            return np.asarray(edges)
    half = max(0.5, 1e-3 * abs(low))
    return np.asarray(np.linspace(low - half, low + half, bins + 1))


def histogram_counts(values: ArrayLike, edges: Floats) -> NDArray[np.int64]:
    """How many values lie in each bin of equal width, (bins,); those outside in the end bins."""
    return np.bincount(bin_numbers(values, edges), minlength=len(edges) - 1)


def bin_numbers(values: ArrayLike, edges: Floats) -> NDArray[np.int64]:
    """The bin of each value, by arithmetic: faster than a search for millions of values."""
    n_bins = len(edges) - 1
    width = (edges[-1] - edges[0]) / n_bins
    if width < np.finfo(np.float64).tiny:  # its inverse would overflow
        return np.zeros(np.size(values), dtype=np.int64)
    scaled = (np.asarray(values) - edges[0]) * (1 / width)
    return np.asarray(np.clip(scaled, 0, n_bins - 1, out=scaled), dtype=np.int64)


def js_from_counts(p: Counts, q: Counts) -> Floats:
    """Jensen-Shannon divergence in nats over the last axis of counts (..., bins)."""
    p, q = _shares(p), _shares(q)
    middle = (p + q) / 2.0
    return np.asarray(np.maximum((_relative(p, middle) + _relative(q, middle)) / 2.0, 0.0))


def _relative(p: Floats, q: Floats) -> Floats:
    """Kullback-Leibler divergence in nats over the last axis; empty bins of p count nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = p * np.log(p / q)
    return np.asarray(np.where(p > 0, terms, 0.0).sum(axis=-1))


def ks_from_counts(p: Counts, q: Counts) -> Floats:
    """KS over the last axis of counts (..., bins) that share their edges.

    The gap is seen at the edges only: never above the exact KS, and below it by at most the
    largest share of either in one bin.
    """
    return np.asarray(np.abs(np.cumsum(_shares(p) - _shares(q), axis=-1)).max(axis=-1))


def w1_from_counts(p: Counts, q: Counts, edges: Floats) -> Floats:
    """W1 over the last axis of counts (..., bins), each value moved to its bin's centre.

    Off by at most the widest bin where all values lie between the edges; values beyond the edges
    count at the centres of the end bins.
    """
    gap = np.cumsum(_shares(p) - _shares(q), axis=-1)[..., :-1]
    centres = (edges[1:] + edges[:-1]) / 2.0
    return np.asarray(np.abs(gap) @ np.diff(centres))


def frechet_of(features1: NDArray[np.floating[Any]], features2: NDArray[np.floating[Any]]) -> float:
    """Frechet distance of two sets of features (n, d), each modelled as a Gaussian.

    |mean1 - mean2|^2 + tr(cov1 + cov2 - 2 (cov1 cov2)^(1/2)), in the features' unit squared, 0 or
    more, lower is better. With cov = R^T R, by a QR decomposition of the centred features, the
    trace of the root is the sum of the singular values of R1 R2^T.
    """
    means: list[Floats] = []
    roots: list[Floats] = []
    for features in (features1, features2):
        table = _table(features, at_least=2)
        means.append(table.mean(axis=0))
        scaled = (table - means[-1]) / np.sqrt(len(table) - 1)
        roots.append(np.asarray(np.linalg.qr(scaled, mode="r")))
    away = means[0] - means[1]
    overlap = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    traces = sum(float(np.square(root).sum()) for root in roots)
    return max(0.0, float(away @ away) + traces - 2.0 * float(overlap))


@dataclass(frozen=True)
class Coverage:
    """Fidelity and diversity of a synthetic set by nearest neighbours.

    A ball around a point reaches to its k-th neighbour in its own set.
    precision: share of synthetic points in some real ball; recall: share of real points in some
        synthetic ball (Kynkaanniemi et al. 2019). 0 to 1, higher is better.
    density: real balls around a synthetic point, over k; 1 is expected of real data, and more
        means synthetic points crowd where real ones are dense.
    coverage: share of real balls with a synthetic point in them (Naeem et al. 2020), 0 to 1,
        higher is better; 1 - 2^-k is expected of as much real data.
    """

    precision: float
    recall: float
    density: float
    coverage: float


def density_coverage(
    real: NDArray[np.floating[Any]], synthetic: NDArray[np.floating[Any]], k: int = 5
) -> Coverage:
    """Precision, recall, density and coverage of features (n, d) with balls of k neighbours.

    Features are standardized by the real ones' mean and standard deviation. Time grows with the
    product of the two sizes; memory with the larger.
    """
    from scipy.spatial.distance import cdist

    table = _table(real, at_least=k + 1)
    spread = np.where(np.ptp(table, axis=0) > 0, table.std(axis=0), 1.0)
    real_points = (table - table.mean(axis=0)) / spread
    points = (_table(synthetic, at_least=k + 1) - table.mean(axis=0)) / spread
    real_radius, radius = _ball_radius(real_points, k), _ball_radius(points, k)
    n_balls = 0
    n_inside_real = 0
    is_reached = np.zeros(len(real), dtype=bool)
    is_covered = np.zeros(len(real), dtype=bool)
    for first in range(0, len(points), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        distance = cdist(real_points, points[chunk])
        in_real_ball = distance <= real_radius[:, None]
        n_balls += int(in_real_ball.sum())
        n_inside_real += int(in_real_ball.any(axis=0).sum())
        is_covered |= in_real_ball.any(axis=1)
        is_reached |= (distance <= radius[chunk]).any(axis=1)
    return Coverage(
        precision=n_inside_real / len(synthetic),
        recall=float(is_reached.mean()),
        density=n_balls / (k * len(synthetic)),
        coverage=float(is_covered.mean()),
    )


def _ball_radius(points: Floats, k: int) -> Floats:
    """Distance (n,) of each point to its k-th neighbour, itself not counted."""
    from scipy.spatial import cKDTree

    distance = np.asarray(cKDTree(points).query(points, k=[k + 1])[0])
    # Tree and table of distances round differently; on copies the ball must hold its border.
    return np.asarray(distance[:, 0] * (1.0 + 1e-9))


def _values(values: ArrayLike) -> Floats:
    """A flat float64 array, refused where empty or not finite."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    if flat.size == 0:
        raise GazeError("no values")
    if not np.isfinite(flat).all():
        raise GazeError("no values can be compared with NaN or infinity")
    return flat


def _table(features: NDArray[np.floating[Any]], at_least: int) -> Floats:
    """Features (n, d) in float64, refused where too few or not finite."""
    if features.ndim != 2:
        raise GazeError(f"features must have the shape (n, d), not {features.shape}")
    if len(features) < at_least:
        raise GazeError(f"too few values: {len(features)} where {at_least} are needed")
    if not np.isfinite(features).all():
        raise GazeError("the features hold NaN or infinity")
    return features.astype(np.float64)


def _shares(counts: Counts) -> Floats:
    """Counts (..., bins) over their sum; refused where the sum is zero."""
    total = counts.sum(axis=-1, keepdims=True)
    if not (total > 0).all():
        raise GazeError("no values: a histogram is empty")
    return np.asarray(counts / total)


@dataclass(frozen=True, eq=False)
class Distance:
    """One distance with its bootstrap replicates (replicate,), empty without a bootstrap."""

    value: float
    replicates: Floats = field(default_factory=lambda: np.empty(0))

    def interval(self) -> list[float] | None:
        """The 95 % interval; a distance is never below zero."""
        interval = interval_around(self.value, self.replicates)
        return None if interval is None else [max(0.0, interval[0]), interval[1]]


def central(draws: Sequence[float] | NDArray[Any]) -> list[float]:
    """Where the central 95 % of draws lie."""
    low, high = np.percentile(draws, [2.5, 97.5])
    return [float(low), float(high)]


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
