"""Few participants: training from random weights against fine-tuning a model of other tasks.

    python runs/few_participants.py WINDOWS.safetensors ... --task dots -o FOLDER
        [--participants 10] [--recipe joint] [--epochs 40] [--before 60] [--rate 1e-3]

One task is held out. A model is trained on all other tasks for `before` epochs. Then two models are
trained on ten training participants of that task, for the same number of steps: one from random
weights, one initialised from that model (`Model.fine_tune`). Both are evaluated against the
held-out participants of the task; the ten participants are the floor.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd


def of_tasks(windows: gd.Windows, tasks: list[str]) -> gd.Windows:
    """The windows of these tasks, without the names of others."""
    places = np.array([tasks.index(task) if task in tasks else -1 for task in windows.tasks])
    chosen = windows.select(places[windows.task] >= 0)
    number = np.maximum(places[windows.segment_task], 0).astype(np.int32)
    return replace(chosen, tasks=tuple(tasks), segment_task=number)


def main() -> None:
    """Print the headline of either model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--task", required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--participants", type=int, default=10)
    parser.add_argument("--recipe", default="joint")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--before", type=int, help="epochs on the other tasks")
    parser.add_argument("--rate", type=float, help="learning rate of all three models")
    parser.add_argument("-n", type=int, default=800)
    given = parser.parse_args()
    others, of_task = [], []
    for windows in map(gd.Windows.load, given.windows):
        if rest := [task for task in windows.tasks if task != given.task]:
            others.append(of_tasks(windows, rest))
        if given.task in windows.tasks:
            of_task.append(of_tasks(windows, [given.task]))
    if not of_task:
        raise gd.GazeError(f"no task {given.task!r} in these files")
    train = np.unique(of_task[0].train.participant)
    chosen = np.random.default_rng(0).permutation(train)[: given.participants]
    is_chosen = np.isin(of_task[0].participant, chosen)
    few = of_task[0].select(of_task[0].is_validation | is_chosen)
    settings: dict[str, Any] = {"seed": 0} | ({"learning_rate": given.rate} if given.rate else {})
    before = {"epochs": given.before} if given.before else {}
    model = gd.train(others, given.output / "others", given.recipe, **settings, **before)
    settings["epochs"] = given.epochs
    models = {
        "random weights": gd.train(few, given.output / "random", given.recipe, **settings),
        "fine-tuned": model.fine_tune(few, given.output / "fine-tuned", **settings),
    }
    n = min(given.n, len(few.train) // 2)
    synthetic = {name: one.sample(n, task=given.task) for name, one in models.items()}
    config = gd.EvaluationConfig(n_bootstrap=0)
    result = gd.evaluate(few.held_out, synthetic, few.train, config)
    result.to_json(given.output / "results.json")
    print(result.headline())
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
