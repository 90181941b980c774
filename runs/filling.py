"""Gaps cut out of held-out participants' gaze: a model's draws against interpolation.

    python runs/filling.py WINDOWS.safetensors ... [--model RUN] [-n 300] [--draws 20]

Prints a table in Markdown for each file. Gaps of each length are cut out of the windows of held-out
participants at random places, and filled by hold, linear, PCHIP and cubic interpolation (scipy;
the last two through a second of samples on each side) and, with --model, by draws of a steerable
model. For the course of a method, of a model the median of its draws:

    median, 90 %   over gaps of the mean distance to the true gaze, in degrees
    speed JS       of the speeds within gaps, in deg/s and 100 bins; of a model of its first draw
    saccades       saccades that begin in gaps, in multiples of the true number; of all draws
    coverage       share of true coordinates within the 90 % interval of the draws

In brackets: 95 % intervals over participants. A saccade is faster than 30 deg/s for 12 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator

import gazediffusion as gd
from gazediffusion.data.events import MIN_SACCADE_MS, SACCADE_DEG_S
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.units import conversions_of
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import histogram_counts, histogram_edges, js_from_counts
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.gaps import CONTEXT_S

LENGTHS_MS = (50, 100, 200, 500, 1000)
BINS, N_BOOTSTRAP, COVERAGE = 100, 500, 0.9
Floats = NDArray[np.floating]
HEAD = "| gap (ms) | method | n | participants | median (deg) | 90 % (deg) | speed JS | saccades |"
HEAD += " coverage |\n|---:|---|---:|---:|---|---|---|---|---|"


class Gaps:
    """Gaps [first, stop) of one length in windows of gaze, normalized (gap, 2, time)."""

    def __init__(self, windows: gd.Windows, n: int, length_ms: int, seed: int) -> None:
        chosen = np.round(np.linspace(0, len(windows) - 1, n)).astype(np.int64)
        self.windows = windows.select(chosen)
        self.gaze = self.windows.cut()
        self.rate_hz = windows.rate_hz
        self.size = max(1, round(length_ms * self.rate_hz / 1000))
        edge = min(round(CONTEXT_S * self.rate_hz), (windows.length - self.size) // 2)
        rng = np.random.default_rng([seed, length_ms])
        self.first = rng.integers(edge, windows.length - edge - self.size + 1, n)
        self.inside = self.first[:, None] + np.arange(self.size)
        self.true = self.cut(self.gaze)

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
        return result


def speeds(gaps: Gaps, degrees: Floats) -> Floats:
    """Speeds of the steps into, within and out of each gap, (gap, size + 1) in deg/s."""
    steps = np.linalg.norm(np.diff(degrees, axis=2), axis=1) * gaps.rate_hz
    inside = gaps.first[:, None] - 1 + np.arange(gaps.size + 1)
    return np.asarray(np.take_along_axis(steps, inside, axis=1))


def saccades(gaps: Gaps, degrees: Floats) -> NDArray[np.int64]:
    """How many saccades begin in each gap, (gap,); velocity is over five samples."""
    p = np.pad(degrees, ((0, 0), (0, 0), (2, 2)), mode="edge")
    velocity = (p[..., 4:] + p[..., 3:-1] - p[..., 1:-3] - p[..., :-4]) * gaps.rate_hz / 6
    is_fast = np.linalg.norm(velocity, axis=1) > SACCADE_DEG_S
    counts = np.zeros(len(is_fast), dtype=np.int64)
    for k, (mask, first) in enumerate(zip(is_fast, gaps.first, strict=True)):
        found = true_segments(mask)
        found = found[np.diff(found, axis=1)[:, 0] >= MIN_SACCADE_MS * gaps.rate_hz / 1000]
        counts[k] = ((found[:, 0] >= first) & (found[:, 0] < first + gaps.size)).sum()
    return counts


def covered(true: Floats, drawn: Floats) -> Floats:
    """Share of coordinates of each gap within the central interval of the draws, (gap,).

    Of n draws, the truth lies between the r-th lowest and the r-th highest with a probability of
    (n + 1 - 2 r) / (n + 1): for 20 draws between the lowest and the highest with 0.905.
    """
    rank = max(1, round((1 - COVERAGE) / 2 * (len(drawn) + 1)))
    ordered = np.sort(drawn, axis=0)
    is_inside = (true >= ordered[rank - 1]) & (true <= ordered[-rank])
    return np.asarray(is_inside.mean(axis=(1, 2)))


def row(gaps: Gaps, name: str, drawn: Floats, participants: NDArray[np.int32]) -> str:
    """A row of the table for courses (draw, gap, 2, size)."""
    true = gaps.whole(gaps.true)
    middle = gaps.whole(np.median(drawn, axis=0))
    error = gaps.cut(np.linalg.norm(middle - true, axis=1, keepdims=True)).mean(axis=(1, 2))
    fast, slow = speeds(gaps, gaps.whole(drawn[0])), speeds(gaps, true)
    edges = histogram_edges(fast.ravel(), slow.ravel(), BINS)
    counts = np.array([[histogram_counts(one, edges) for one in both] for both in (fast, slow)])
    n_true = saccades(gaps, true)
    n_filled = np.mean([saccades(gaps, gaps.whole(one)) for one in drawn], axis=0)
    inside = covered(gaps.true, drawn) if len(drawn) > 1 else None

    def measured(rows: NDArray[np.integer]) -> list[float]:
        p, q = counts[:, rows].sum(axis=1)
        total = n_true[rows].sum()
        return [
            float(np.median(error[rows])),
            float(np.percentile(error[rows], 90)),
            float(js_from_counts(p, q)),
            float(n_filled[rows].sum() / total) if total else np.nan,
            *([] if inside is None else [float(inside[rows].mean())]),
        ]

    values = measured(np.arange(len(error)))
    replicates = np.array(list(_bootstrapped(participants, measured))).T
    cells = []
    for value, drawn_values in zip(values, replicates, strict=True):
        known = drawn_values[np.isfinite(drawn_values)]  # without a true saccade there is no rate
        low, high = np.percentile(known, (2.5, 97.5)) if len(known) else (np.nan, np.nan)
        cells.append(f"{value:.3g} [{low:.3g}, {high:.3g}]")
    n = len(np.unique(participants))
    start = [f"{1000 * gaps.size / gaps.rate_hz:g}", name, str(len(error)), str(n)]
    return f"| {' | '.join([*start, *cells, *([] if inside is not None else [''])])} |"


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
        participants = gaps.windows.participant
        for method in ("hold", "linear", "PCHIP", "cubic"):
            yield row(gaps, method, gaps.interpolated(method)[None], participants)
        if model is not None:
            drawn = gaps.drawn(model, draws, seed, quality)
            yield row(gaps, f"{model.name}, {draws} draws", drawn, participants)


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
