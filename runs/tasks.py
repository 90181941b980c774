"""Task signatures: are generated reading and dots recognised as reading and dots?

    python runs/tasks.py MODEL WINDOWS.safetensors ... [-n 200] [-o FILE]

For every task, of the training participants, of those held out and of the model: the median and
the mean fixation duration, moves between fixations per second, the share of small moves to the
right (progress along a line) and return sweeps of a quarter of the screen per second. Then a
classifier is trained on the training participants' windows and names the task of the others'. The
model's windows should be recognised about as often as those of held-out participants.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.events import MIN_FIXATION_MS, SACCADE_DEG_S, detect_ivt
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.files import write_json

Floats = NDArray[np.float64]

SWEEP_SHARE = 0.25  # of the screen's width
SMALLEST_DEG, LINE_DEG = 0.5, 6.0
NAMES = ("fixation_ms", "mean_fixation_ms", "moves_per_s", "right_share", "sweeps_per_s")


def signature(gaze: NDArray[np.float32], screen: gd.Screen, rate_hz: float) -> list[float]:
    """The numbers of `NAMES` of one window (2, time)."""
    degrees = screen.to_degrees(screen.to_pixels(gaze.astype(np.float64)))
    speed = np.hypot(*np.diff(degrees)) * rate_hz
    shortest = MIN_FIXATION_MS / 1000 * rate_hz
    fixations = detect_ivt(speed[None], SACCADE_DEG_S, shortest).fixations
    durations = (fixations[:, 1] - fixations[:, 0]) / rate_hz * 1000
    places = [degrees[:, a : b + 1].mean(axis=1) for a, b in fixations.tolist()]
    moves = np.diff(np.array(places).reshape(-1, 2), axis=0)
    moves = moves[np.hypot(*moves.T) > SMALLEST_DEG]
    is_flat = np.abs(moves[:, 1]) < np.abs(moves[:, 0])
    right = is_flat & (moves[:, 0] > 0) & (moves[:, 0] < LINE_DEG)
    sweeps = is_flat & (moves[:, 0] < -SWEEP_SHARE * screen.width_deg)
    seconds = gaze.shape[1] / rate_hz
    return [
        float(np.median(durations)) if len(durations) else np.nan,
        float(durations.mean()) if len(durations) else np.nan,
        len(moves) / seconds,
        float(right.mean()) if len(moves) else np.nan,
        float(sweeps.sum() / seconds),
    ]


def described(windows: gd.Windows, n: int) -> Floats:
    """What the classifier is given of at most n windows: the nine features and the signature."""
    order = np.random.default_rng(0).permutation(len(windows))[:n]
    gaze = windows.cut(np.sort(order))
    features = np.stack(list(kinematic_features(gaze).values()), axis=1)
    signatures = [signature(one, windows.screen, windows.rate_hz) for one in gaze]
    return np.concatenate([features, np.array(signatures)], axis=1)


def main() -> None:
    """Print one block for each task."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    model = gd.load(given.model)
    sets: dict[str, dict[str, Floats]] = {}
    for path in given.windows:
        windows = gd.Windows.load(path)
        for task in windows.tasks:
            of_task = windows.of_task(task)
            sets[task] = {
                "train": described(of_task.train, 2 * given.n),
                "real": described(of_task.held_out, given.n),
                "model": described(model.sample(given.n, task=task), given.n),
            }
    classifier = HistGradientBoostingClassifier(random_state=0).fit(
        np.concatenate([one["train"] for one in sets.values()]),
        np.repeat(list(sets), [len(one["train"]) for one in sets.values()]),
    )
    found: dict[str, Any] = {task: {} for task in sets}
    triples = [(task, side, one) for task in sets for side, one in sets[task].items()]
    for task, side, values in triples:
        means = np.nanmean(values[:, -len(NAMES) :], axis=0).tolist()
        numbers = dict(zip(NAMES, means, strict=True))
        if side != "train":
            numbers["recognised"] = float((classifier.predict(values) == task).mean())
        found[task][side] = {**numbers, "n": len(values)}
        said = "  ".join(f"{key} {value:.3g}" for key, value in found[task][side].items())
        print(f"{task:12} {side:6} {said}", flush=True)
    if given.output:
        write_json(given.output, found)
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
