"""Tallies: counts and sums of windows that add up, so that a set can be measured in pieces.

A histogram, a sum and a number of values are those of two pieces added. From them come JS in the
bins of the floor and means of curves, as of all windows at once, and KS and W1 between the cells of
a grid through the real values: exact where a grid has them all, and otherwise with the largest
error that the counts allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.distances import share
from gazediffusion.evaluation.metrics import histogram_counts
from gazediffusion.evaluation.quantities import Measured

Floats = NDArray[np.float64]

MAX_GRID = 2000  # points of a grid


@dataclass(frozen=True, eq=False)
class Cells:
    """Values in the 2 n + 1 cells of n grid points: below, at, between, ..., at, above them.

    counts, sums: (cell,) how many, and their sum.
    """

    counts: Floats
    sums: Floats

    @classmethod
    def of(cls, values: Floats, grid: Floats) -> Cells:
        """Values counted between and at the points of a grid, which increases."""
        left = np.searchsorted(grid, values, side="left")
        cell = left + np.searchsorted(grid, values, side="right")
        n_cells = 2 * len(grid) + 1
        counts = np.bincount(cell, minlength=n_cells).astype(float)
        sums = np.bincount(cell, values, minlength=n_cells).astype(float)
        return cls(counts, sums)

    def __add__(self, other: Cells) -> Cells:
        return Cells(self.counts + other.counts, self.sums + other.sums)


def grid_of(values: Floats) -> Floats:
    """All different values, or MAX_GRID of them: the extremes, the others evenly chosen."""
    different = np.unique(share(values))
    if len(different) <= MAX_GRID:
        return different
    return different[np.linspace(0, len(different) - 1, MAX_GRID).round().astype(np.int64)]


def ks_of(real: Cells, other: Cells) -> tuple[float, float]:
    """KS of two sets, and how much larger it may be."""
    p, q = real.counts / real.counts.sum(), other.counts / other.counts.sum()
    after = np.cumsum(p - q)
    least = float(np.abs(after).max())
    before = np.append(0.0, after[:-1])[::2]
    within_p, within_q = p[::2], q[::2]
    # Where one set has nothing in a cell, the gap is largest at its ends.
    is_open = (within_p > 0) & (within_q > 0)
    most = np.maximum(np.abs(before + within_p), np.abs(before - within_q))[is_open]
    return least, max(0.0, float(most.max(initial=0.0)) - least)


def w1_of(real: Cells, other: Cells, grid: Floats) -> tuple[float, float]:
    """W1 of two sets, and how much smaller or larger it may be.

    In a cell, the area between the two distribution functions is known from the sums, unless they
    cross there. The outermost points of the grid are the extremes of the real values.
    """
    n, m = real.counts.sum(), other.counts.sum()
    p, q = real.counts / n, other.counts / m
    after = np.cumsum(p - q)
    before, p, q = after[1:-2:2], p[2:-1:2], q[2:-1:2]
    below, above = grid[:-1], grid[1:]
    moved = real.sums[2:-1:2] / n - other.sums[2:-1:2] / m
    area = (above - below) * before + above * (p - q) - moved
    # Of the two signs that the gap may have in a cell, the rarer has at most this area.
    crossed = (above - below) * np.minimum(np.maximum(before + p, 0), np.maximum(q - before, 0))
    tails = grid[0] * other.counts[0] - other.sums[0] + other.sums[-1] - grid[-1] * other.counts[-1]
    error = float(crossed.sum())
    return float(np.abs(area).sum()) + error + float(tails) / m, error


@dataclass(frozen=True, eq=False)
class Bins:
    """In which bins a quantity is counted: edges of JS, and the grid of KS and W1 if there is one.

    centre: near the values, so that their variance does not vanish in rounding.
    """

    edges: Floats
    grid: Floats | None = None

    @property
    def centre(self) -> float:
        """The middle of the bins."""
        return float(self.edges[0] + self.edges[-1]) / 2


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts and sums of some windows.

    By quantity: counts (bin,); moments (3,) of number, sum and sum of squares about the bins'
    centre; cells where there is a grid. By temporal distance: sums and number of its curves.
    counted (3,): saccades, fixations and path length of all windows. line (5,): n, x, y, x^2, x y
    of the main sequence, in logarithms.
    """

    n_windows: int = 0
    counts: dict[str, Any] = field(default_factory=dict)
    moments: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)
    curve_sums: dict[str, Any] = field(default_factory=dict)
    curve_counts: dict[str, Any] = field(default_factory=dict)
    counted: Any = 0.0
    line: Any = 0.0

    @classmethod
    def of(cls, measured: Measured, bins: Mapping[str, Bins]) -> Tally:
        """Of measured windows, all of one group."""
        counts, moments, cells = {}, {}, {}
        for key, one in bins.items():
            quantity = measured.quantities.get(key)  # of degrees none without a screen's size
            values = np.empty(0) if quantity is None else quantity.values
            away = values - one.centre
            counts[key] = histogram_counts(values, one.edges)
            moments[key] = np.array([len(values), away.sum(), (away * away).sum()])
            if one.grid is not None:
                cells[key] = Cells.of(values, one.grid)
        events = [measured.quantities.get(f"events.{one}_count") for one in ("saccade", "fixation")]
        counted = [np.nan if one is None else one.values.sum() for one in events]
        return cls(
            n_windows=len(measured.features),
            counts=counts,
            moments=moments,
            cells=cells,
            curve_sums={name: one.sums[0] for name, one in measured.curves.items()},
            curve_counts={name: one.counts[0] for name, one in measured.curves.items()},
            counted=np.array([*counted, measured.features[:, PATH_LENGTH].sum()]),
            line=_line_of(measured),
        )

    def __add__(self, other: Tally) -> Tally:
        def added(word: str) -> dict[str, Any]:
            a, b = getattr(self, word), getattr(other, word)
            return {key: a[key] + b[key] if key in a else b[key] for key in b} if b else a

        words = ("counts", "moments", "cells", "curve_sums", "curve_counts")
        return Tally(
            self.n_windows + other.n_windows,
            **{word: added(word) for word in words},
            counted=self.counted + other.counted,
            line=self.line + other.line,
        )

    def curve(self, name: str) -> Floats:
        """The mean curve of a temporal distance; NaN where no window has one."""
        n = self.curve_counts[name]
        return np.asarray(self.curve_sums[name] / (n if n > 0 else np.nan))

    def mean_and_deviation(self, key: str, centre: float) -> tuple[float | None, float | None]:
        """Mean and standard deviation of a quantity; None where there is no value."""
        n, total, squares = self.moments[key]
        if n == 0:
            return None, None
        away = total / n
        return float(centre + away), float(np.sqrt(max(squares / n - away * away, 0.0)))

    @property
    def values(self) -> dict[str, float]:
        """Mean counts and path length of a window, and the slope of the main sequence."""
        means = np.asarray(self.counted) / self.n_windows
        names = ("saccade_count", "fixation_count", "path_length")
        found = {k: float(one) for k, one in zip(names, means, strict=True) if np.isfinite(one)}
        n, x, y, xx, xy = np.broadcast_to(self.line, 5)
        if n * xx - x * x > 0:
            found["main_sequence"] = float((n * xy - x * y) / (n * xx - x * x))
        return found


PATH_LENGTH = 2  # its column in the nine features


def _line_of(measured: Measured) -> Floats:
    """Sums of the regression of log peak velocity on log amplitude, (5,)."""
    if measured.degrees is None:
        return np.zeros(5)
    amplitude, peak = measured.degrees.saccade_amplitude_deg, measured.degrees.saccade_peak_deg_s
    has_logarithm = (amplitude > 0) & (peak > 0)
    x, y = np.log10(amplitude[has_logarithm]), np.log10(peak[has_logarithm])
    return np.array([len(x), x.sum(), y.sum(), (x * x).sum(), (x * y).sum()])
