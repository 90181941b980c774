"""How near a model comes to people, by file and by task, against the floor.

    python runs/fidelity.py RUN WINDOWS.safetensors ... [-n 2500] [--quality default] [--by-task]
        [--perfect] [--split-seed 42] [-o FILE]

For each windows file the model generates n windows with the training people's mixture of that
file's tasks (at most half as many as the training people have), and every distance to the held-out
people is divided by the training people's own. With --perfect, windows drawn from the training
people stand for the model's: what a model without fault would get. Printed: the median and the
worst of these ratios, saccade count, path length and main-sequence slope against those of all the
windows of the training people (of 2,000 for the slope), and a classifier's accuracy. With
--split-seed other people are held out, for a run that was trained without them (runs/joint.py
--split-seed).
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.splits import split_participants
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.evaluation.degree_events import degree_events, main_sequence_fit
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.features import ivt_statistics, kinematic_features
from gazediffusion.files import write_json
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import load_model

MIN_PEOPLE = 3
SLOPE_WINDOWS = 2000
FAMILIES = ("features", "events", "directions", "velocity")


def mixture(run: Run, windows: Windows, n: int, seed: int, **settings: Any) -> Windows:
    """n generated windows with the training people's shares of this file's tasks."""
    of_task = np.bincount(windows.train.task, minlength=len(windows.tasks))
    counts = np.floor(np.cumsum(of_task) / of_task.sum() * n + 0.5).astype(int)
    pieces, screen = [], windows.screen
    for number, task in enumerate(windows.tasks):
        wanted = int(counts[number] - (counts[number - 1] if number else 0))
        if wanted:
            told = task if run.config.tasks else None
            generator = DiffusionGenerator.of_quality(run, task=told, **settings)
            pieces.append(np.concatenate(list(generator.pieces(0, wanted, seed + number))))
    return Windows.from_array(np.concatenate(pieces), windows.rate_hz, screen)


def counted(windows: Windows) -> dict[str, float]:
    """Mean saccade and fixation count and path length, and the slope of the main sequence."""
    gaze = windows.dequantized(seed=0).cut()
    events = ivt_statistics(gaze, windows.rate_hz)
    found = {
        "saccade_count": float(events.saccade_count.mean()),
        "fixation_count": float(events.fixation_count.mean()),
        "path_length": float(kinematic_features(gaze)["path_length"].mean()),
    }
    if windows.screen.has_degrees:
        moved = degree_events(gaze, windows.screen, windows.rate_hz, SLOPE_WINDOWS)
        sequence = main_sequence_fit(moved.saccade_amplitude_deg, moved.saccade_peak_deg_s)
        found["main_sequence"] = sequence.slope
    return found


@lru_cache
def of_training_people(windows: Windows) -> dict[str, float]:
    """What is counted in all their windows, once."""
    return counted(windows.train)


def scores(results: dict[str, Any], name: str) -> dict[str, Any]:
    """The numbers of one set in an evaluation that are ratios and tests."""
    entries = {
        row["name"]: row["distances"]["js"]["synthetic"][name]["ratio"]
        for row in results["quantities"]
        if row["family"] in FAMILIES
    }
    entries |= {row["name"]: row["synthetic"][name]["ratio"] for row in results["scalars"]}
    ratios = {key: value for key, value in entries.items() if value is not None}
    worst = sorted(ratios, key=lambda key: -ratios[key])[:5]
    found = {
        "median_ratio": float(np.median(list(ratios.values()))),
        "worst": {key: ratios[key] for key in worst},
        "n_above_1.5": sum(value > 1.5 for value in ratios.values()),
        "n_entries": len(ratios),
        "overall": results["ratios"]["overall"][name],
    }
    test = results["tests"]["c2st"]
    if "synthetic" in test:
        found["c2st_features"] = test["synthetic"][name]["features_accuracy"]
        found["c2st_floor"] = test["floor"]["features_accuracy"] if test["floor"] else None
    copies = results["tests"]["memorisation"]
    if "synthetic" in copies:
        found["memorisation"] = {
            key: copies["synthetic"][name][key]
            for key in ("share_of_copies", "share_of_copies_interval", "share_below_minimum", "auc")
        }
    found["n"] = results["sets"]["synthetic"][name]["n_windows"]
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


def drawn(windows: Windows, n: int, seed: int) -> Windows:
    """n windows of the training people, as if a model had made them."""
    train = windows.train
    chosen = np.random.default_rng(seed).permutation(len(train))[:n]
    gaze = train.dequantized(seed=seed + 1).cut(chosen)
    return Windows.from_array(gaze, windows.rate_hz, windows.screen)


def split_again(windows: Windows, seed: int) -> Windows:
    """The same windows with other people held out, as `prepare --split-seed` would."""
    config = windows.provenance["config"]
    tasks_of: dict[str, set[str]] = {}
    for person, task in set(zip(windows.participant.tolist(), windows.task.tolist(), strict=True)):
        tasks_of.setdefault(windows.participants[person], set()).add(windows.tasks[task])
    kept = split_participants(
        tasks_of, config["validation_fraction"], seed, config["same_participant"]
    )
    config = {**config, "split_seed": seed}
    provenance = {**windows.provenance, "config": config}
    return replace(windows, validation=frozenset(kept), provenance=provenance)


def judge(
    run: Run | None, windows: Windows, n: int, quick: bool, **settings: Any
) -> dict[str, Any]:
    """Scores of a model on windows, or of a draw of their training people where it is None."""
    if importlib.util.find_spec("pymovements") is None:
        # Events in degrees are found by pymovements, which a bare GPU machine has not.
        bare = Screen(windows.screen.width_px, windows.screen.height_px)
        windows = replace(windows, screens=(bare,))
    n = min(n, len(windows.train) // 2)
    made = drawn(windows, n, 0) if run is None else mixture(run, windows, n, 0, **settings)
    return compared(made, windows, quick)


def compared(made: Windows, windows: Windows, quick: bool) -> dict[str, Any]:
    """Scores of windows that a model made, against the people's."""
    config = EvaluationConfig(n_bootstrap=0, quick=quick)
    found = scores(evaluate(windows.held_out, {"model": made}, windows.train, config), "model")
    people, model = of_training_people(windows), counted(made)
    return found | {f"{key}_percent": 100 * (model[key] / people[key] - 1) for key in people}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each windows file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=2500)
    parser.add_argument("--quality", default="default")
    parser.add_argument("--quick", action="store_true", help="without the classifier")
    parser.add_argument("--by-task", action="store_true", help="also each task by itself")
    parser.add_argument("--perfect", action="store_true", help="a draw of the training people")
    parser.add_argument("--split-seed", type=int, help="other people held out than in the files")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    device = choose_device("auto")
    run = None if given.perfect else load_model(given.run, device=device)
    found = {}
    for path in given.windows:
        windows = Windows.load(path)
        if given.split_seed is not None:
            windows = split_again(windows, given.split_seed)
        parts = {path.stem: windows}
        if given.by_task:
            parts |= {f"{path.stem}/{task}": windows.of_task(task) for task in windows.tasks}
        for name, part in parts.items():
            if len(np.unique(part.held_out.participant)) < MIN_PEOPLE:
                print(f"{name:28} fewer than {MIN_PEOPLE} people are held out", flush=True)
                continue
            found[name] = judge(run, part, given.n, given.quick, quality=given.quality)
            print(line(name, found[name]), flush=True)
    if given.output:
        write_json(given.output, found)
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
