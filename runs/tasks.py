"""Does each task look like itself? Reading as reading, dots as dots.

    python runs/tasks.py RUN_OR_MODEL WINDOWS.safetensors ... [-n 200] [-o FILE]

For every task, of the training people, of those held out and of the model: the median and the mean
fixation, how often the gaze moves on, how many of its moves go a little to the right (progress
along a line) and how many sweep back by a quarter of the screen. Then a classifier learns the tasks
from the training people and names the others' windows; the model's should be recognised about as
often as those of people.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import MIN_FIXATION_MS, SACCADE_DEG_S
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.files import write_json
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.geometry import Screen
from gazediffusion.models.pretrained import load_model

SWEEP_SHARE = 0.25  # of the screen's width
SMALLEST_DEG, LINE_DEG = 0.5, 6.0
SIDES = ("train", "real", "model")
NAMES = ("fixation_ms", "mean_fixation_ms", "moves_per_s", "right_share", "sweeps_per_s")


def scanpath(gaze: NDArray[np.float32], screen: Screen, rate_hz: float) -> tuple[Any, Any]:
    """Fixation durations (ms), and the moves between fixations (move, 2) in degrees."""
    degrees = screen.to_degrees(screen.to_pixels(gaze.astype(np.float64)))
    speed = np.hypot(*np.diff(degrees)) * rate_hz
    shortest = MIN_FIXATION_MS / 1000 * rate_hz
    runs = [(a, b) for a, b in true_segments(speed <= SACCADE_DEG_S).tolist() if b - a >= shortest]
    places = np.array([degrees[:, a : b + 1].mean(axis=1) for a, b in runs]).reshape(-1, 2)
    return np.array([(b - a) / rate_hz * 1000 for a, b in runs]), np.diff(places, axis=0)


def looks(windows: Windows) -> NDArray[np.float64]:
    """The numbers of `NAMES` of each window, (window, 5)."""
    rows = []
    seconds = windows.length / windows.rate_hz
    for gaze in windows.cut():
        fixations, moves = scanpath(gaze, windows.screen, windows.rate_hz)
        moves = moves[np.hypot(*moves.T) > SMALLEST_DEG] if len(moves) else moves
        flat = np.abs(moves[:, 1]) < np.abs(moves[:, 0])
        right = flat & (moves[:, 0] > 0) & (moves[:, 0] < LINE_DEG)
        back = flat & (moves[:, 0] < -SWEEP_SHARE * windows.screen.width_deg)
        rows.append(
            [
                np.median(fixations) if len(fixations) else np.nan,
                fixations.mean() if len(fixations) else np.nan,
                len(moves) / seconds,
                right.mean() if len(moves) else np.nan,
                back.sum() / seconds,
            ]
        )
    return np.array(rows)


def described(windows: Windows) -> NDArray[np.float64]:
    """What the classifier sees of each window: the nine features and these numbers."""
    features = np.stack(list(kinematic_features(windows.cut()).values()), axis=1)
    return np.concatenate([features, looks(windows)], axis=1)


def some(windows: Windows, n: int) -> Windows:
    """At most n windows, drawn."""
    order = np.random.default_rng(0).permutation(len(windows))[:n]
    return windows.select(np.sort(order))


def main() -> None:
    """Print one block for each task."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--quality", default="default")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    device = choose_device("auto")
    run = load_model(given.model, device=device)
    sets: dict[str, dict[str, NDArray[np.float64]]] = {}
    for path in given.windows:
        windows = Windows.load(path)
        for task in windows.tasks:
            generator = DiffusionGenerator.of_quality(run, given.quality, task=task)
            of_task = windows.of_task(task)
            sets[task] = {
                "train": described(some(of_task.train, 2 * given.n)),
                "real": described(some(of_task.held_out, given.n)),
                "model": described(generator.sample(given.n)),
            }
    learned = HistGradientBoostingClassifier(random_state=0).fit(
        np.concatenate([one["train"] for one in sets.values()]),
        np.repeat(list(sets), [len(one["train"]) for one in sets.values()]),
    )
    found: dict[str, Any] = {}
    for task, one in sets.items():
        found[task] = {}
        for side in SIDES:
            looked = np.nanmean(one[side][:, -len(NAMES) :], axis=0).tolist()
            numbers = dict(zip(NAMES, looked, strict=True))
            if side != "train":
                numbers["recognised"] = float((learned.predict(one[side]) == task).mean())
            found[task][side] = {**numbers, "n": len(one[side])}
            told = "  ".join(f"{key} {value:.3g}" for key, value in found[task][side].items())
            print(f"{task:12} {side:6} {told}", flush=True)
    if given.output:
        write_json(given.output, found)
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
