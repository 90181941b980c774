"""Gaps cut out of held-out gaze, filled by a model and by interpolation; and blinks and losses.

    python experiments/filling.py gazecom.safetensors bioeye.safetensors     # 40 minutes, two cores
    python experiments/filling.py ... --recordings DATA     # gazecom.parquet, bioeye.parquet in it
    python experiments/filling.py --recordings DATA --fit   # write the model's table of losses

A table for each windows file. Gaps of each length are cut out at random places and filled by hold,
linear, PCHIP and cubic interpolation (the last two through a second of samples on each side) and by
draws of a steerable model. For the course of a method, of a model the median of its draws:

    median, 90 %   over gaps of the mean distance to the true gaze, in degrees
    speed JS       of the speeds within gaps, of a model of its first draw, against the true ones
    linear's       speed JS of linear interpolation in multiples of this one
    saccades       saccades that begin in gaps, in multiples of the true number; of all draws
    coverage       share of true coordinates within the 90 % interval of the draws

Speeds are counted in 40 logarithmic bins between the 1st and the 99.5th percentile of all true
speeds of the file; those beyond count in the end bins. "real, other gaps" is the floor: the true
gaze in as many other gaps of the same windows. Draws are rounded to the tracker's step, as `fill`
rounds them. Intervals: 95 % over participants.

The table `losses` (--recordings) compares blinks and losses of generated windows with those that
`find_losses` finds in the participants' recordings.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator

import gazediffusion as gd
from gazediffusion.conditioning.conditioning import quantized
from gazediffusion.data.events import smoothed_saccades
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.resolution import recorded_steps
from gazediffusion.data.track_loss import Losses, LossModel, find_losses
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.generation.filling import CONTEXT_S
from gazediffusion.network.pretrained import LOSSES, find_model
from report import Floats, Result, in_degrees, kept_to, options, over_groups, tiny_windows

LENGTHS_MS = (50, 100, 200, 500, 1000)
BINS, PERCENTILES, COVERAGE = 40, (1.0, 99.5), 0.9
METHODS = ("hold", "linear", "PCHIP", "cubic")
MEASURES = ("median (deg)", "90 % (deg)", "speed JS", "linear's", "saccades", "coverage")
Counts = NDArray[np.int64]


class Gaps:
    """Gaps [first, stop) of one length in windows of gaze, normalized (gap, 2, time)."""

    def __init__(self, windows: gd.Windows, n: int, length_ms: int, seed: int) -> None:
        chosen = np.round(np.linspace(0, len(windows) - 1, n)).astype(np.int64)
        recorded = windows.select(chosen)
        self.steps, self.grids = recorded_steps(recorded), recorded.grid_of_window[:, :, 0]
        self.windows = recorded.dequantized(seed=0)
        self.gaze, self.rate_hz = self.windows.cut(), windows.rate_hz
        self.size = max(1, round(length_ms * self.rate_hz / 1000))
        edge = min(round(CONTEXT_S * self.rate_hz), (windows.length - self.size) // 2)
        n_places = windows.length - 2 * edge - self.size + 1
        place = np.random.default_rng([seed, length_ms]).integers(0, n_places, n)
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
        return in_degrees(self.windows, self.with_gaps(filled))

    def with_gaps(self, filled: Any) -> Floats:
        """The gaze, normalized, with other values in the gaps."""
        gaze = self.gaze.copy()
        np.put_along_axis(gaze, np.repeat(self.inside[:, None], 2, axis=1), filled, axis=2)
        return gaze

    def interpolated(self, method: str) -> Floats:
        """The gaps by interpolation, (gap, 2, size)."""
        result, context = np.empty_like(self.true), round(CONTEXT_S * self.rate_hz)
        for k, (gaze, first) in enumerate(zip(self.gaze, self.first.tolist(), strict=True)):
            stop = first + self.size
            before = np.arange(max(0, first - context), first)
            at = np.concatenate([before, np.arange(stop, min(stop + context, gaze.shape[1]))])
            if method == "hold":
                result[k] = gaze[:, first - 1 : first]
            elif method == "linear":
                result[k] = [np.interp(self.inside[k], at, axis[at]) for axis in gaze]
            else:
                fit = PchipInterpolator if method == "PCHIP" else CubicSpline
                result[k] = fit(at, gaze[:, at], axis=1)(self.inside[k])
        return result

    def drawn(self, model: gd.Model, draws: int, seed: int) -> Floats:
        """The gaps by a model, (draw, gap, 2, size), each with its window's task."""
        known, tasks = self.with_gaps(np.nan), self.windows.identity["task"]
        result = np.empty((draws, *self.true.shape), dtype=np.float32)
        for task in dict.fromkeys(tasks.tolist()):
            rows = np.flatnonzero(tasks == task)
            of_task = task if task in model.tasks else None
            made = kept_to(model, of_task, seed, draws * len(rows), known=known[rows]).cut()
            by_draw = made.reshape(draws, len(rows), *made.shape[1:])
            inside = self.inside[rows][None, :, None]
            result[:, rows] = np.take_along_axis(by_draw, inside, axis=3)
        rng = np.random.default_rng(seed)
        uniforms = (torch.from_numpy(rng.random(one.shape, dtype=np.float32)) for one in result)
        grids = self.grids.astype(np.float64)
        pairs = zip(torch.from_numpy(result), uniforms, strict=True)
        rounded = [quantized(one, self.steps, grids, u).numpy() for one, u in pairs]
        return np.stack(rounded)


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


def distances(counts: Counts, linear: Counts, true: Counts) -> list[float]:
    """Speed JS of counts (gap, bin) to the true ones, and that of linear ones over it."""
    of_linear, own = (float(js_from_counts(x.sum(0), true.sum(0))) for x in (linear, counts))
    return [own, of_linear / own if own else np.nan]


def fill_table(result: Result, name: str, gaps: Gaps, methods: dict[str, Floats]) -> None:
    """The rows of one length; methods: courses (draw, gap, 2, size)."""
    true, first, who = gaps.true_degrees, gaps.first, gaps.windows.participant
    linear = speed_counts(gaps, gaps.whole(methods["linear"][0]), first)
    true_counts, n_true = speed_counts(gaps, true, first), saccade_counts(gaps, true, first)
    other_counts = speed_counts(gaps, true, gaps.other_first)
    n_other = saccade_counts(gaps, true, gaps.other_first)

    def ratio(counted: NDArray[Any], rows: Counts) -> float:
        return float(counted[rows].sum() / n_true[rows].sum()) if n_true[rows].any() else np.nan

    def add(method: str, cells: Sequence[Any]) -> None:
        about: dict[str, Any] = {"gap (ms)": 1000 * gaps.size / gaps.rate_hz, "method": method}
        about |= {"n": len(who), "participants": len(np.unique(who))}
        result.add(name, about | dict(zip(MEASURES, cells, strict=True)))

    def of_floor(rows: Counts) -> Floats:
        apart = distances(other_counts[rows], linear[rows], true_counts[rows])
        return np.array([*apart, ratio(n_other, rows)])

    add("real, other gaps", [None, None, *over_groups(who, of_floor), None])
    for method, drawn in methods.items():
        middle = gaps.whole(np.median(drawn, axis=0))
        error = gaps.cut(np.linalg.norm(middle - true, axis=1, keepdims=True)).mean(axis=(1, 2))
        counts = speed_counts(gaps, gaps.whole(drawn[0]), first)
        n_filled = np.mean([saccade_counts(gaps, gaps.whole(one), first) for one in drawn], axis=0)
        inside = covered(gaps.true, drawn) if len(drawn) > 1 else np.full(len(who), np.nan)

        def of_method(
            rows: Counts, error: Floats = error, counts: Counts = counts,
            n_filled: Floats = n_filled, inside: Floats = inside,
        ) -> Floats:  # fmt: skip
            sizes = np.median(error[rows]), np.percentile(error[rows], 90)
            apart = distances(counts[rows], linear[rows], true_counts[rows])
            return np.array([*sizes, *apart, ratio(n_filled, rows), inside[rows].mean()])

        cells = list(over_groups(who, of_method))
        add(method, [*cells[:-1], cells[-1] if len(drawn) > 1 else None])


# Blinks and losses of the eye.

SCREENS = {
    "gazecom": gd.Screen(1280, 720, 40, 22.5, 45),
    "bioeye": gd.Screen(1680, 1050, 47.4, 29.7, 55),
}
TASKS = {
    "gazecom": {
        "natural_movies": "movies",
        "natural_movies_repeated": "movies",
        "hollywood_trailers": "trailers",
        "stop_motion_movies": "stop-motion",
        "static_images": "stills",
        "additional_shuffled_stills": "stills",
    },
    "bioeye": {"reading_text": "reading", "random_dot_saccades": "dots"},
}
SAME = {"gazecom": (("R_K1B1", "K1B"),), "bioeye": ()}
N_WINDOWS = 300  # generated with losses
LOSS_MEASURES = ("losses per min", "time lost (%)", "duration (ms)")


def observed(folder: Path, model: gd.Model) -> tuple[list[Losses], list[Losses]]:
    """The losses of every recording of the training and of the held-out participants."""
    sides: tuple[list[Losses], list[Losses]] = ([], [])
    n_windows = 0
    for name, screen in SCREENS.items():
        recordings = gd.read(folder / f"{name}.parquet", screen=screen)
        names = tuple(TASKS[name].items())
        windows = gd.prepare(
            recordings, gd.PrepareConfig(task_names=names, same_participant=SAME[name])
        )
        n_windows += len(windows.train)
        for one in recordings:
            if one.participant in windows.participants:
                losses = find_losses(replace(one, task=TASKS[name][one.task]))
                sides[one.participant in windows.validation].append(losses)
    assert n_windows == model.config.data["n_windows"], "the split is not the model's"
    return sides


def loss_measures(durations_ms: Sequence[float], lost_ms: float, total_ms: float) -> Floats:
    """Losses per minute, time lost (%), median duration (ms)."""
    middle = np.median(durations_ms) if len(durations_ms) else np.nan
    return np.array([len(durations_ms) / total_ms * 60_000, 100 * lost_ms / total_ms, middle])


def loss_table(result: Result, model: gd.Model, sides: tuple[list[Losses], list[Losses]]) -> None:
    """Three rows for each task: held-out and training participants, generated windows."""
    tasks = sorted({one.task for one in sides[0]} & set(model.tasks))
    for task in tasks:
        training, held_out = ([one for one in side if one.task == task] for side in sides)

        def of_rows(rows: Counts, of: Sequence[Losses] = held_out) -> Floats:
            some = [of[k] for k in rows]
            durations = [loss.duration_ms for one in some for loss in one.losses]
            lost, total = (sum(getattr(one, name) for one in some)
                           for name in ("lost_ms", "duration_ms"))  # fmt: skip
            return loss_measures(durations, lost, total)

        windows = model.sample(N_WINDOWS, task=task, seed=result.seeds[0], track_loss=True)
        ms = 1000.0 / windows.rate_hz
        spans = np.concatenate([true_segments(one) for one in windows.is_lost])
        durations = (ms * np.diff(spans, axis=1).ravel()).tolist()
        total = ms * windows.is_lost.size
        sets: dict[str, Any] = {
            "held out": over_groups(np.array([one.participant for one in held_out]), of_rows),
            "training": of_rows(np.arange(len(training)), training),
            "generated": loss_measures(durations, float(sum(durations)), total),
        }
        for name, cells in sets.items():
            about = {"task": task, "set": name}
            result.add("losses", about | dict(zip(LOSS_MEASURES, cells, strict=True)))


def main() -> None:
    """Write the tables."""
    parser = options(__doc__, "filling")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("--recordings", type=Path, help="folder with gazecom and bioeye")
    parser.add_argument("--fit", action="store_true", help="write the model's table of losses")
    parser.add_argument("-n", type=int, default=300, help="gaps of each length and file")
    parser.add_argument("--draws", type=int, default=20)
    given: argparse.Namespace = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    if given.tiny:
        files, given.n, given.draws = {"tiny": tiny_windows(model, "movies")}, 4, 2
    result = Result.of(given, model, n=given.n)
    for name, windows in files.items():
        for length_ms in LENGTHS_MS[-1:] if given.tiny else LENGTHS_MS:
            gaps = Gaps(windows.held_out, given.n, length_ms, given.seed)
            methods = {method: gaps.interpolated(method)[None] for method in METHODS}
            methods[f"model, {given.draws} draws"] = gaps.drawn(model, given.draws, given.seed)
            fill_table(result, name, gaps, methods)
    if given.recordings is not None:
        sides = observed(given.recordings, model)
        if given.fit:
            path = find_model(given.model) / LOSSES
            LossModel.fit(sides[0], sources=[f"{name}.parquet" for name in SCREENS]).save(path)
            print(f"wrote {path}")
        loss_table(result, model, sides)
    result.save()


if __name__ == "__main__":
    main()
