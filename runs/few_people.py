"""Few recordings: training from the start against beginning with a model that has seen many.

    python runs/few_people.py WINDOWS.safetensors ... --task dots -o FOLDER [--people 10]
        [--recipe joint] [--epochs 40] [--before 60] [--rate 1e-3]

One task is held away. A model learns everything else for `before` epochs; then ten training people
of that task are all there is, and two runs of the same number of steps learn them: one begins with
random weights, one with that model (`train --from`). Both are judged against the held-out people of
the task, the ten people being the floor (see `gazediffusion evaluate`).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from gazediffusion.cli.console import training_bar
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig
from gazediffusion.evaluation.loading import evaluate_model
from gazediffusion.models.checkpoint import Run, read_metrics
from gazediffusion.models.recipes import Recipe, find_recipe
from gazediffusion.training.calibration import calibrated
from gazediffusion.training.loop import train


def only(windows: Windows, tasks: list[str]) -> Windows | None:
    """The windows of these tasks, knowing no others; None where there are none."""
    kept = [task for task in windows.tasks if task in tasks]
    if not kept:
        return None
    places = np.array([kept.index(task) if task in kept else -1 for task in windows.tasks])
    chosen = windows.select(np.isin(windows.task, [windows.tasks.index(task) for task in kept]))
    number = np.maximum(places[windows.segment_task], 0).astype(np.int32)
    return replace(chosen, tasks=tuple(kept), segment_task=number)


def with_people(windows: Windows, n: int, seed: int) -> Windows:
    """The held-out people, and n of the training people."""
    train = np.unique(windows.train.participant)
    chosen = np.random.default_rng(seed).permutation(train)[:n]
    return windows.select(windows.is_validation | np.isin(windows.participant, chosen))


def learned(windows: list[Windows], folder: Path, recipe: Recipe, start: Run | None) -> Run:
    """A run, trained where it is not complete, and corrected as `train` does at its end."""
    if len(read_metrics(folder)) < recipe.epochs:
        with training_bar(recipe.epochs) as bar:
            for epoch in train(windows, folder, recipe, seed=0, start=start, on_step=bar.on_step):
                bar.on_epoch(epoch)
    return calibrated(folder, choose_device("auto"))


def main() -> None:
    """Print one line for either way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--task", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--recipe", default="joint")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--before", type=int, help="epochs of the model, the recipe's if not given")
    parser.add_argument("--rate", type=float, help="learning rate, the recipe's if not given")
    parser.add_argument("-n", type=int, default=800)
    given = parser.parse_args()
    files = [Windows.load(path) for path in given.windows]
    recipe = find_recipe(given.recipe)
    recipe = replace(recipe, learning_rate=given.rate or recipe.learning_rate)
    others = [
        part
        for windows in files
        if (part := only(windows, [task for task in windows.tasks if task != given.task]))
    ]
    mine = [part for windows in files if (part := only(windows, [given.task]))]
    if not mine:
        raise GazeError(f"no task {given.task!r} in these files")
    few = with_people(mine[0], given.people, seed=0)
    before = replace(recipe, epochs=given.before or recipe.epochs)
    model = learned(others, given.output / "others", before, None)
    short = replace(recipe, epochs=given.epochs)
    ways = {"from the start": None, "from a model": model}
    for name, start in ways.items():
        run = learned([few], given.output / name.replace(" ", "-"), short, start)
        found = evaluate_model(run, few, given.n, EvaluationConfig(n_bootstrap=0))
        found.to_json(given.output / f"{name.replace(' ', '-')}.json")
        print(f"{name}\n{found.headline()}", flush=True)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
