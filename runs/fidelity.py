"""How near a model comes to people, by file and by task, against the floor.

    python runs/fidelity.py RUN WINDOWS.safetensors ... [-n 800] [--quality default] [-o FILE]

For each windows file the model generates the training people's mixture of that file's tasks, as
many windows as are held out (at most n), and every distance to the held-out people is divided by
the training people's own. Printed: the median and the worst of these ratios, saccade count, path
length and main-sequence slope against the training people's, and a classifier's accuracy.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.checkpoint import Run
from gazediffusion.evaluation import EvaluationConfig, evaluate
from gazediffusion.files import write_json
from gazediffusion.generator import DiffusionGenerator, usual_batch
from gazediffusion.geometry import Screen
from gazediffusion.learner import choose_device
from gazediffusion.shipped import load_model
from gazediffusion.windows import Windows

FAMILIES = ("features", "events", "directions", "velocity")


def mixture(run: Run, windows: Windows, n: int, seed: int, **settings: Any) -> Windows:
    """n generated windows with the training people's shares of this file's tasks."""
    of_task = np.bincount(windows.train.task, minlength=len(windows.tasks))
    counts = np.floor(np.cumsum(of_task) / of_task.sum() * n + 0.5).astype(int)
    pieces, screen = [], windows.screen
    for number, task in enumerate(windows.tasks):
        wanted = int(counts[number] - (counts[number - 1] if number else 0))
        if wanted:
            chosen = {"task": task} if run.config.tasks else {}
            generator = DiffusionGenerator.of_quality(run, **chosen, **settings)
            pieces.append(np.concatenate(list(generator.pieces(0, wanted, seed + number))))
    return Windows.of_array(np.concatenate(pieces), windows.rate_hz, screen, "position")


def scores(results: dict[str, Any], name: str) -> dict[str, Any]:
    """The numbers that decide, of one set in an evaluation."""
    entries = {
        row["name"]: row["distances"]["js"]["synthetic"][name]["ratio"]
        for row in results["quantities"]
        if row["family"] in FAMILIES
    }
    entries |= {row["name"]: row["synthetic"][name]["ratio"] for row in results["scalars"]}
    ratios = {key: value for key, value in entries.items() if value is not None}
    worst = sorted(ratios, key=lambda key: -ratios[key])[:5]
    means = {row["name"]: row["mean"] for row in results["quantities"]}
    found = {
        "median_ratio": float(np.median(list(ratios.values()))),
        "worst": {key: ratios[key] for key in worst},
        "n_above_1.5": sum(value > 1.5 for value in ratios.values()),
        "n_entries": len(ratios),
        "overall": results["ratios"]["overall"][name],
    }
    for key in ("saccade_count", "path_length", "fixation_count"):
        found[f"{key}_percent"] = 100 * (means[key][name] / means[key]["train"] - 1)
    sequence = results["main_sequence"].get("sets", {})
    if name in sequence and "train" in sequence:
        slopes = sequence[name]["slope"], sequence["train"]["slope"]
        found["main_sequence_percent"] = 100 * (slopes[0] / slopes[1] - 1)
    test = results["tests"]["c2st"]
    if "synthetic" in test:
        found["c2st_features"] = test["synthetic"][name]["features_accuracy"]
        found["c2st_floor"] = test["floor"]["features_accuracy"] if test["floor"] else None
    return found


def line(label: str, found: dict[str, Any]) -> str:
    """One line of the printed table."""
    worst = ", ".join(f"{key} {value:.2f}" for key, value in found["worst"].items())
    parts = [
        f"{label:28} median {found['median_ratio']:.2f}",
        f">1.5: {found['n_above_1.5']}/{found['n_entries']}",
        f"saccades {found['saccade_count_percent']:+.1f} %",
        f"path {found['path_length_percent']:+.1f} %",
    ]
    if "main_sequence_percent" in found:
        parts.append(f"slope {found['main_sequence_percent']:+.1f} %")
    if "c2st_features" in found:
        parts.append(f"C2ST {found['c2st_features']:.2f}")
    return "  ".join(parts) + f"  worst: {worst}"


def judge(run: Run, path: Path, n: int, quick: bool, **settings: Any) -> dict[str, Any]:
    """Scores of a model on one windows file."""
    windows = Windows.load(path)
    if importlib.util.find_spec("pymovements") is None:
        # Events in degrees are found by pymovements, which a bare GPU machine has not.
        bare = Screen(windows.screen.width_px, windows.screen.height_px)
        windows = replace(windows, screen=bare)
    real = windows.held_out
    made = mixture(run, windows, min(n, len(real)), 0, **settings)
    config = EvaluationConfig(n_bootstrap=0, quick=quick)
    return scores(evaluate(real, {"model": made}, windows.train, config), "model")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each windows file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=800)
    parser.add_argument("--quality", default="default")
    parser.add_argument("--quick", action="store_true", help="without the classifier")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    device = choose_device("auto")
    run = load_model(given.run, device=device)
    settings = {"quality": given.quality, "batch_size": usual_batch(device)}
    found = {}
    for path in given.windows:
        found[path.stem] = judge(run, path, given.n, given.quick, **settings)
        print(line(path.stem, found[path.stem]), flush=True)
    if given.output:
        write_json(given.output, found)


if __name__ == "__main__":
    main()
