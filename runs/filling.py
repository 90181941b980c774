"""Gaps cut out of held-out participants' gaze: a model's draws against interpolation.

    python runs/filling.py WINDOWS.safetensors ... [--model RUN] [-n 300] [--draws 20]

Prints a table in Markdown for each file. Gaps of each length are cut out of the windows of held-out
participants at random places, and filled by hold, linear, PCHIP and cubic interpolation (scipy;
the last two through a second of samples on each side) and, with --model, by draws of a steerable
model. For the course of a method, of a model the median of its draws:

    median, 90 %   over gaps of the mean distance to the true gaze, in degrees
    speed JS       of the speeds within gaps, of a model of its first draw, against the true ones
    linear's       speed JS of linear interpolation in multiples of this one
    saccades       saccades that begin in gaps, in multiples of the true number; of all draws
    coverage       share of true coordinates within the 90 % interval of the draws

Speeds are counted in 40 logarithmic bins between the 1st and the 99.5th percentile of all true
speeds of the file, the same for every method and length; those beyond count in the end bins.
The row "real, other gaps" is the floor: the true gaze in as many other gaps of the same windows,
which no method fills. A finite number of gaps alone gives that distance. Gaze is spread over the
cells of the tracker's grid (`Windows.dequantized`), as for `evaluate`; draws are first rounded to
the step in which the tracker reported positions, as `fill` does. In brackets: 95 % intervals
over participants; drawing participants adds noise, so that those of a speed JS near the floor lie
above it, and those of linear's below. A saccade is faster than 30 deg/s for 12 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator

import gazediffusion as gd
from gazediffusion.conditioning.quantization import quantize
from gazediffusion.data.events import smoothed_saccades
from gazediffusion.data.quantization import recorded_steps
from gazediffusion.data.units import conversions_of
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.gaps import CONTEXT_S

LENGTHS_MS = (50, 100, 200, 500, 1000)
BINS, PERCENTILES, N_BOOTSTRAP, COVERAGE = 40, (1.0, 99.5), 500, 0.9
COLUMNS = ("median (deg)", "90 % (deg)", "speed JS", "linear's", "saccades", "coverage")
HEAD = f"| gap (ms) | method | n | participants | {' | '.join(COLUMNS)} |\n"
HEAD += f"|---:|---|---:|---:|{'---|' * len(COLUMNS)}"
Floats = NDArray[np.floating]
Counts = NDArray[np.int64]


class Gaps:
    """Gaps [first, stop) of one length in windows of gaze, normalized (gap, 2, time)."""

    def __init__(self, windows: gd.Windows, n: int, length_ms: int, seed: int) -> None:
        chosen = np.round(np.linspace(0, len(windows) - 1, n)).astype(np.int64)
        recorded = windows.select(chosen)
        self.steps, self.grids = recorded_steps(recorded), recorded.grid_of_window[:, :, 0]
        self.windows = recorded.dequantized(seed=0)
        self.gaze = self.windows.cut()
        self.rate_hz = windows.rate_hz
        self.size = max(1, round(length_ms * self.rate_hz / 1000))
        edge = min(round(CONTEXT_S * self.rate_hz), (windows.length - self.size) // 2)
        rng = np.random.default_rng([seed, length_ms])
        n_places = windows.length - 2 * edge - self.size + 1
        place = rng.integers(0, n_places, n)
        self.first = edge + place
        # As far as a window allows: no overlap where it has room for two gaps.
        self.other_first = edge + (place + n_places // 2) % n_places
        self.inside = self.first[:, None] + np.arange(self.size)
        self.true = self.cut(self.gaze)

    @cached_property
    def true_degrees(self) -> Floats:
        """All true gaze in degrees, (gap, 2, time)."""
        return self.whole(self.true)

    @cached_property
    def edges(self) -> Floats:
        """Edges of bins of speed in deg/s, (bins + 1,), from all true gaze of the windows."""
        steps = np.linalg.norm(np.diff(self.true_degrees, axis=2), axis=1) * self.rate_hz
        low, high = np.percentile(steps[steps > 0], PERCENTILES)
        return np.geomspace(low, high, BINS + 1)

    def cut(self, gaze: Floats) -> Floats:
        """The gaps of gaze (gap, 2, time): (gap, 2, size)."""
        return np.take_along_axis(gaze, self.inside[:, None], axis=2)

    def whole(self, filled: Floats) -> Floats:
        """All gaze in degrees, (gap, 2, time), with filled (gap, 2, size) in the gaps."""
        gaze = self.gaze.copy()
        np.put_along_axis(gaze, np.repeat(self.inside[:, None], 2, axis=1), filled, axis=2)
        to_degrees, _ = conversions_of("deg")
        return self.windows.on_screens(gaze, to_degrees).astype(np.float64)

    def interpolated(self, method: str) -> Floats:
        """The gaps by interpolation, (gap, 2, size)."""
        fits: dict[str, Callable[[Floats, Floats], Callable[[Floats], Floats]]] = {
            "PCHIP": lambda at, y: PchipInterpolator(at, y, axis=1),
            "cubic": lambda at, y: CubicSpline(at, y, axis=1),
        }
        result = np.empty_like(self.true)
        context = round(CONTEXT_S * self.rate_hz)
        for k, (gaze, first) in enumerate(zip(self.gaze, self.first.tolist(), strict=True)):
            stop = first + self.size
            before = np.arange(max(0, first - context), first)
            at = np.concatenate([before, np.arange(stop, min(stop + context, gaze.shape[1]))])
            if method == "hold":
                result[k] = gaze[:, first - 1 : first]
            elif method == "linear":
                result[k] = [np.interp(self.inside[k], at, axis[at]) for axis in gaze]
            else:
                result[k] = fits[method](at, gaze[:, at])(self.inside[k])
        return result

    def drawn(self, model: gd.Model, draws: int, seed: int, quality: str) -> Floats:
        """The gaps by a model, (draw, gap, 2, size), each with its window's task."""
        known = self.gaze.copy()
        np.put_along_axis(known, np.repeat(self.inside[:, None], 2, axis=1), np.nan, axis=2)
        result = np.empty((draws, *self.true.shape), dtype=np.float32)
        tasks = self.windows.identity["task"]
        for task in dict.fromkeys(tasks.tolist()):
            rows = np.flatnonzero(tasks == task)
            has_task = task in model.tasks
            generator = replace(
                model.generator(quality=quality, task=task if has_task else None),
                constraints=Constraints(known=known[rows]),
                is_taskless=not has_task,
            )
            gaze = np.concatenate(list(generator.pieces(0, draws * len(rows), seed)))
            by_draw = gaze.reshape(draws, len(rows), *gaze.shape[1:])
            inside = self.inside[rows][None, :, None]
            result[:, rows] = np.take_along_axis(by_draw, inside, axis=3)
        rng = np.random.default_rng(seed)
        return np.stack([self.rounded(one, rng) for one in result])

    def rounded(self, filled: Floats, rng: np.random.Generator) -> Floats:
        """Courses (gap, 2, size) in the resolution of the recording, as `fill` writes them."""
        uniforms = rng.random(filled.shape, dtype=np.float32)
        return quantize(filled, self.steps, self.grids.astype(np.float64), uniforms)


def speed_counts(gaps: Gaps, degrees: Floats, first: Counts) -> Counts:
    """How many steps into, within and out of the gaps from `first` on have which speed, (gap, bin).

    degrees: (gap, 2, time).
    """
    steps = np.linalg.norm(np.diff(degrees, axis=2), axis=1) * gaps.rate_hz
    speed = np.take_along_axis(steps, first[:, None] - 1 + np.arange(gaps.size + 1), axis=1)
    bins = np.clip(np.searchsorted(gaps.edges, speed, side="right") - 1, 0, BINS - 1)
    return np.array([np.bincount(one, minlength=BINS) for one in bins])


def saccade_counts(gaps: Gaps, degrees: Floats, first: Counts) -> Counts:
    """How many saccades of gaze (gap, 2, time) begin in the gaps from `first` on, (gap,)."""
    onsets = [smoothed_saccades(gaze, gaps.rate_hz)[:, 0] for gaze in degrees]
    inside = [(one >= a) & (one < a + gaps.size) for one, a in zip(onsets, first, strict=True)]
    return np.array([one.sum() for one in inside])


def covered(true: Floats, drawn: Floats) -> Floats:
    """Share of coordinates of each gap within the central interval of the draws, (gap,).

    Of n draws, the truth lies between the r-th lowest and the r-th highest with a probability of
    (n + 1 - 2 r) / (n + 1): for 20 draws between the lowest and the highest with 0.905.
    """
    rank = max(1, round((1 - COVERAGE) / 2 * (len(drawn) + 1)))
    ordered = np.sort(drawn, axis=0)
    is_inside = (true >= ordered[rank - 1]) & (true <= ordered[-rank])
    return np.asarray(is_inside.mean(axis=(1, 2)))


def speed_distances(counts: Counts, linear: Counts, true: Counts) -> list[float]:
    """Speed JS of counts (gap, bin) to the true ones, and that of linear ones over it."""
    of_linear, own = (float(js_from_counts(x.sum(0), true.sum(0))) for x in (linear, counts))
    return [own, of_linear / own if own else np.nan]


def row(gaps: Gaps, name: str, drawn: Floats, linear: Counts) -> str:
    """A row of the table for courses (draw, gap, 2, size).

    linear: `speed_counts` of linear interpolation.
    """
    true, first = gaps.true_degrees, gaps.first
    middle = gaps.whole(np.median(drawn, axis=0))
    error = gaps.cut(np.linalg.norm(middle - true, axis=1, keepdims=True)).mean(axis=(1, 2))
    counts = speed_counts(gaps, gaps.whole(drawn[0]), first)
    true_counts, n_true = speed_counts(gaps, true, first), saccade_counts(gaps, true, first)
    n_filled = np.mean([saccade_counts(gaps, gaps.whole(one), first) for one in drawn], axis=0)
    inside = covered(gaps.true, drawn) if len(drawn) > 1 else None

    def measured(rows: NDArray[np.integer]) -> list[float]:
        return [
            float(np.median(error[rows])),
            float(np.percentile(error[rows], 90)),
            *speed_distances(counts[rows], linear[rows], true_counts[rows]),
            _ratio(n_filled[rows], n_true[rows]),
            *([] if inside is None else [float(inside[rows].mean())]),
        ]

    return _line(gaps, name, measured, after=0 if len(drawn) > 1 else 1)


def floor_row(gaps: Gaps, linear: Counts) -> str:
    """The row of the true gaze in other gaps of the same windows."""
    true, first, other = gaps.true_degrees, gaps.first, gaps.other_first
    counts, true_counts = speed_counts(gaps, true, other), speed_counts(gaps, true, first)
    n_other, n_true = saccade_counts(gaps, true, other), saccade_counts(gaps, true, first)

    def measured(rows: NDArray[np.integer]) -> list[float]:
        distances = speed_distances(counts[rows], linear[rows], true_counts[rows])
        return [*distances, _ratio(n_other[rows], n_true[rows])]

    return _line(gaps, "real, other gaps", measured, before=2, after=1)


def _ratio(counted: Floats, true: Counts) -> float:
    return float(counted.sum() / true.sum()) if true.any() else np.nan


def _line(
    gaps: Gaps,
    name: str,
    measured: Callable[[NDArray[np.integer]], list[float]],
    before: int = 0,
    after: int = 0,
) -> str:
    """A line of measures with their intervals; before, after: how many cells are empty."""
    participants = gaps.windows.participant
    replicates = np.array(list(_bootstrapped(participants, measured))).T
    cells = [""] * before
    for value, drawn in zip(measured(np.arange(len(participants))), replicates, strict=True):
        known = drawn[np.isfinite(drawn)]  # without a true saccade there is no rate
        low, high = np.percentile(known, (2.5, 97.5)) if len(known) else (np.nan, np.nan)
        cells.append(f"{value:.3g} [{low:.3g}, {high:.3g}]")
    n = len(np.unique(participants))
    start = [f"{1000 * gaps.size / gaps.rate_hz:g}", name, str(len(participants)), str(n)]
    return f"| {' | '.join([*start, *cells, *[''] * after])} |"


def _bootstrapped(
    participants: NDArray[np.int32], measured: Callable[[NDArray[np.integer]], list[float]]
) -> Iterator[list[float]]:
    """The measures of participants drawn with replacement."""
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(participants == one) for one in np.unique(participants)]
    for _ in range(N_BOOTSTRAP):
        yield measured(np.concatenate([rows[k] for k in rng.integers(0, len(rows), len(rows))]))


def table(
    windows: gd.Windows, model: gd.Model | None, n: int, draws: int, seed: int, quality: str
) -> Iterator[str]:
    """The lines of the table of one file."""
    if model is not None and (windows.length, windows.rate_hz) != (
        model.config.length,
        model.config.rate_hz,
    ):
        raise GazeError("the windows do not have the length and rate of the model's")
    yield HEAD
    for length_ms in LENGTHS_MS:
        gaps = Gaps(windows.held_out, n, length_ms, seed)
        filled = {name: gaps.interpolated(name) for name in ("hold", "linear", "PCHIP", "cubic")}
        linear = speed_counts(gaps, gaps.whole(filled["linear"]), gaps.first)
        yield floor_row(gaps, linear)
        for method, course in filled.items():
            yield row(gaps, method, course[None], linear)
        if model is not None:
            drawn = gaps.drawn(model, draws, seed, quality)
            yield row(gaps, f"{model.name}, {draws} draws", drawn, linear)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--model")
    parser.add_argument("-n", type=int, default=300, help="gaps of each length and file")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quality", default="default")
    given = parser.parse_args(arguments)
    model = None if given.model is None else gd.load(given.model)
    for path in given.windows:
        print(f"\n{path.stem}\n")
        windows = gd.Windows.load(path)
        for line in table(windows, model, given.n, given.draws, given.seed, given.quality):
            print(line, flush=True)


if __name__ == "__main__":
    main()
