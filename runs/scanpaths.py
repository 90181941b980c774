"""Held-out participants' own fixations, rendered again by a steerable model.

    python runs/scanpaths.py WINDOWS.safetensors ... --model RUN [-n 300] [--quality default]

Prints a table in Markdown, a row for each file and task. The fixations of held-out windows
(`detect_events`) with their onsets and durations steer the model, whose gaze is compared with them:

    scatter     median distance of the participants' own samples from their fixation's mean (deg)
    landing     median distance of a generated fixation's mean from the one asked for (deg)
    onset       median absolute difference of a fixation's onset and the one asked for (ms)
    made        share of the fixations asked for that overlap a generated one by half
    main seq.   slope of the generated main sequence relative to the participants' (%)
    ratio       median ratio to the floor of `evaluate`, generated against held-out windows

In brackets: 95 % intervals over participants.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.fixations import fixation_positions
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.units import conversions_of
from gazediffusion.evaluation.degree_events import degree_events, main_sequence_fit
from gazediffusion.generation.constraints import Constraints

N_BOOTSTRAP = 300
HEAD = "| file | task | n | participants | scatter | landing | onset (ms) | made | main seq. (%) |"
HEAD += " ratio |\n|---|---|---:|---:|---|---|---|---|---:|---:|"
Floats = NDArray[np.floating]


def given_fixations(windows: gd.Windows) -> NDArray[np.float32]:
    """The participants' fixations as constraints, (window, 2, time)."""
    positions = fixation_positions(windows)
    return np.stack([positions[:, start : start + windows.length] for start in windows.starts])


def in_degrees(windows: gd.Windows, gaze: Floats) -> Floats:
    """Normalized gaze (window, 2, time) in degrees of each window's screen, NaN where it is NaN."""
    to_degrees, _ = conversions_of("deg")
    return windows.on_screens(gaze.astype(np.float32), to_degrees).astype(np.float64)


def landings(windows: gd.Windows, made: gd.Windows, given: Floats) -> list[NDArray[np.float64]]:
    """Of each window's fixations: landing error, onset error, whether it is made (fixation, 3)."""
    asked, got = in_degrees(windows, given), in_degrees(windows, given_fixations(made))
    result = []
    for want, have in zip(asked, got, strict=True):
        rows = []
        segments = true_segments(np.isfinite(have[0]))
        for first, stop in _stretches(want):
            overlap = np.minimum(segments[:, 1], stop) - np.maximum(segments[:, 0], first)
            best = int(overlap.argmax()) if len(overlap) else -1
            if best < 0 or overlap[best] < (stop - first) / 2:
                rows.append((np.nan, np.nan, 0.0))
                continue
            place = have[:, segments[best, 0]]
            late = abs(segments[best, 0] - first) * 1000 / windows.rate_hz if first else np.nan
            rows.append((float(np.hypot(*(place - want[:, first]))), late, 1.0))
        result.append(np.array(rows).reshape(-1, 3))
    return result


def _stretches(place: Floats) -> list[tuple[int, int]]:
    """The fixations [first, stop) of positions (2, time); neighbours differ in their position."""
    found = []
    for first, stop in true_segments(np.isfinite(place[0])).tolist():
        cuts = np.flatnonzero(np.diff(place[0, first:stop])) + 1
        edges = [first, *(first + cuts).tolist(), stop]
        found += list(pairwise(edges))
    return found


def slope(windows: gd.Windows) -> float:
    """Slope of the main sequence."""
    screens = [windows.screens[k] for k in windows.screen_index]
    events = degree_events(windows.cut(), screens, windows.rate_hz)
    return main_sequence_fit(events.saccade_amplitude_deg, events.saccade_peak_deg_s).slope


def interval(participant: NDArray[np.int32], measure: Callable[[NDArray[np.int64]], float]) -> str:
    """A measure of windows with its 95 % interval over participants."""
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(participant == one) for one in np.unique(participant)]
    draws = [
        measure(np.concatenate([rows[k] for k in rng.integers(0, len(rows), len(rows))]))
        for _ in range(N_BOOTSTRAP)
    ]
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return f"{measure(np.arange(len(participant))):.3g} [{low:.3g}, {high:.3g}]"


def row(path: Path, windows: gd.Windows, task: str, model: gd.Model, n: int, quality: str) -> str:
    """The row of one task."""
    every = windows.of_task(task)
    held_out = every.held_out.subsample(n).dequantized(seed=0)
    given = given_fixations(held_out)
    generator = replace(
        model.generator(task=task, quality=quality), constraints=Constraints(fixations=given)
    )
    gaze = np.concatenate(list(generator.pieces(0, len(held_out), 0)))
    made = generator.as_windows(gaze, 0)
    distance = np.hypot(
        *(in_degrees(held_out, held_out.cut()) - in_degrees(held_out, given)).transpose(1, 0, 2)
    )
    found = landings(held_out, made, given)
    who = held_out.participant

    def median_of(column: int) -> Callable[[NDArray[np.int64]], float]:
        return lambda rows: float(np.nanmedian(np.concatenate([found[k] for k in rows])[:, column]))

    result = gd.evaluate(
        real=held_out, synthetic={"scanpaths": made}, reference=every.train.dequantized(seed=0)
    )
    cells = [
        path.stem,
        task,
        str(len(held_out)),
        str(len(np.unique(who))),
        interval(who, lambda rows: float(np.nanmedian(distance[rows]))),
        interval(who, median_of(0)),
        interval(who, median_of(1)),
        interval(who, lambda rows: float(np.concatenate([found[k] for k in rows])[:, 2].mean())),
        f"{100 * (slope(made) / slope(held_out) - 1):+.1f}",
        f"{result.ratio:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("-n", type=int, default=300, help="windows of each task")
    parser.add_argument("--quality", default="default")
    arguments = parser.parse_args()
    model = gd.load(arguments.model)
    print(HEAD)
    for path in arguments.windows:
        windows = gd.Windows.load(path)
        for task in windows.tasks:
            if (
                task in model.tasks
                and len(np.unique(windows.of_task(task).held_out.participant)) > 2
            ):
                print(row(path, windows, task, model, arguments.n, arguments.quality), flush=True)


if __name__ == "__main__":
    main()
