"""A jumping target followed by a steerable model and by held-out participants.

    python runs/targets.py BIOEYE.safetensors --model RUN [-n 400] [--task dots]

BIOEYE: windows with targets (`prepare --targets`). Prints a table in Markdown of responses to
jumps: held-out participants, training participants (the floor), the model given the held-out
participants' own targets, and the model given targets it was never trained on (other places, other
intervals).

    followed       share of jumps with a saccade towards the target within a second
    latency        of the first saccade towards it after 80 ms, median and interquartile range (ms)
    anticipations  share of jumps with such a saccade from -100 to 80 ms
    gain           amplitude of that saccade over the target's distance, median
    corrective     share of responses with a second saccade within 300 ms after the first
    error          median distance from the target in the last 300 ms before it jumps again (deg)

In brackets: 95 % intervals over participants (of synthetic sets: over windows). JS: of the
latencies against the held-out participants', in 30 bins from 80 to 1000 ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.events import smoothed_saccades
from gazediffusion.data.units import conversions_of
from gazediffusion.evaluation.metrics import js_from_counts
from gazediffusion.generation.constraints import Constraints

N_BOOTSTRAP = 300
FIRST_MS, LAST_MS, ANTICIPATION_MS, CORRECTION_MS, SETTLED_MS = 80.0, 1000.0, -100.0, 300.0, 300.0
EDGES = np.linspace(FIRST_MS, LAST_MS, 31)
COLUMNS = ("followed", "latency", "anticipations", "gain", "corrective", "error (deg)")
HEAD = (
    f"| set | jumps | groups | {' | '.join(COLUMNS)} | JS of latency |\n|---|---:|---:|{'---|' * 7}"
)
Floats = NDArray[np.floating]


def responses(gaze_deg: Floats, target_deg: Floats, rate_hz: float) -> Iterator[list[float]]:
    """A row (followed, latency, anticipated, gain, corrected, error) for each jump in a window."""
    found = smoothed_saccades(gaze_deg, rate_hz)
    jumps = np.flatnonzero(np.any(np.diff(target_deg, axis=1) != 0, axis=0)) + 1
    ms = 1000 / rate_hz
    for jump, after in zip(jumps, [*jumps[1:], gaze_deg.shape[1]], strict=True):
        if not np.isfinite(target_deg[:, [jump - 1, jump]]).all() or jump * ms < -ANTICIPATION_MS:
            continue
        if (after - jump) * ms < LAST_MS / 2:
            continue
        start = (found[:, 0] - jump) * ms
        aim = target_deg[:, jump, None] - gaze_deg[:, found[:, 0]]
        move = (
            gaze_deg[:, np.minimum(found[:, 1], gaze_deg.shape[1] - 1)] - gaze_deg[:, found[:, 0]]
        )
        far = np.maximum(np.hypot(*aim), 1e-6)
        towards = (aim * move).sum(axis=0) / far > 0.5 * np.hypot(*move)
        large = np.hypot(*move) > 0.3 * far
        is_early = towards & large & (start >= ANTICIPATION_MS) & (start < FIRST_MS)
        is_answer = (
            towards & large & (start >= FIRST_MS) & (start <= min(LAST_MS, (after - jump) * ms))
        )
        settled = slice(max(jump, after - round(SETTLED_MS / ms)), after)
        error = float(np.median(np.hypot(*(gaze_deg - target_deg)[:, settled])))
        row = [0.0, np.nan, float(is_early.any()), np.nan, np.nan, error]
        if is_answer.any():
            k = int(np.flatnonzero(is_answer)[0])
            later = (found[:, 0] - found[k, 1]) * ms
            is_corrected = ((later > 0) & (later < CORRECTION_MS)).any()
            row[:2] = [1.0, start[k]]
            row[3:5] = [float(np.hypot(*move[:, k]) / far[k]), float(is_corrected)]
        yield row


def measured(windows: gd.Windows, targets: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Responses (jump, 6) of windows to targets (window, 2, time), and each one's group."""
    rows, group = [], []
    who = (
        windows.participant
        if len(set(windows.participant.tolist())) > 1
        else np.arange(len(windows))
    )

    def degrees(gaze: Floats) -> Floats:
        to_degrees, _ = conversions_of("deg")
        return windows.on_screens(gaze.astype(np.float32), to_degrees).astype(np.float64)

    for k, (gaze, target) in enumerate(zip(degrees(windows.cut()), degrees(targets), strict=True)):
        found = list(responses(gaze, target, windows.rate_hz))
        rows += found
        group += [int(who[k])] * len(found)
    return np.array(rows).reshape(-1, len(COLUMNS)), np.array(group)


def summary(rows: Floats) -> list[float]:
    """One number for each column."""
    means, medians = np.nanmean(rows, axis=0), np.nanmedian(rows, axis=0)
    return [means[0], medians[1], means[2], medians[3], means[4], medians[5]]


def line(name: str, rows: Floats, group: NDArray[np.int64], real: Floats) -> str:
    """The row of a set."""
    rng = np.random.default_rng(0)
    of = [np.flatnonzero(group == one) for one in np.unique(group)]
    draws = [
        summary(rows[np.concatenate([of[k] for k in rng.integers(0, len(of), len(of))])])
        for _ in range(N_BOOTSTRAP)
    ]
    low, high = np.nanpercentile(draws, (2.5, 97.5), axis=0)
    quarter = np.nanpercentile(rows[:, 1], (25, 75))
    cells = [
        f"{v:.3g} [{a:.3g}, {b:.3g}]" for v, a, b in zip(summary(rows), low, high, strict=True)
    ]
    cells[1] += f" ({quarter[0]:.0f} to {quarter[1]:.0f})"
    p, q = (np.histogram(one[np.isfinite(one[:, 1]), 1], EDGES)[0] for one in (rows, real))
    distance = float(js_from_counts(p, q))
    return f"| {name} | {len(rows)} | {len(of)} | {' | '.join(cells)} | {distance:.4f} |"


def new_targets(n: int, length: int, rate_hz: float, seed: int = 0) -> NDArray[np.float32]:
    """Targets never trained on, (n, 2, time): uniform places, intervals of 0.5 to 3 s."""
    rng = np.random.default_rng(seed)
    array = np.empty((n, 2, length), dtype=np.float32)
    for entry in array:
        at = 0
        while at < length:
            entry[:, at:] = rng.uniform(-0.75, 0.75, (2, 1))
            at += round(rng.uniform(0.5, 3.0) * rate_hz)
    return array


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--task", default="dots")
    parser.add_argument("-n", type=int, default=400, help="windows of each set")
    parser.add_argument("--quality", default="default")
    arguments = parser.parse_args()
    windows = gd.Windows.load(arguments.windows).of_task(arguments.task)
    sides = {
        "held-out participants": windows.held_out.subsample(arguments.n),
        "training participants (floor)": windows.train.subsample(arguments.n),
    }
    found = {name: measured(one, one.cut_targets()) for name, one in sides.items()}
    if arguments.model:
        model = gd.load(arguments.model)
        base = model.generator(task=arguments.task, quality=arguments.quality)
        held_out = sides["held-out participants"]
        n, rate_hz = len(held_out), windows.rate_hz
        for name, targets in {
            "model, the same targets": held_out.cut_targets(),
            "model, new targets": new_targets(n, windows.length, rate_hz),
        }.items():
            generator = replace(base, constraints=Constraints(targets=targets))
            gaze = np.concatenate(list(generator.pieces(0, n, 0)))
            found[name] = measured(generator.as_windows(gaze, 0), targets)
    print(HEAD)
    real = found["held-out participants"][0]
    for name, (rows, group) in found.items():
        print(line(name, rows, group, real))


if __name__ == "__main__":
    main()
