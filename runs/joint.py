"""Train variants of the joint recipe on several splits concurrently, calibrate and evaluate them.

    python runs/joint.py WINDOWS.safetensors ... -o FOLDER --variants base adamw ... [--epochs 160]
        [--split-seed 42 1 2] [-n 2500]

Each variant changes one setting of `base`, the recipe `joint`; docs/log.md has the results. It is
trained once for each split, calibrated, and evaluated on the participants it was trained without.
Runs are kept in FOLDER and resumed. With --seconds training stops in time, and the same command
resumes; nothing is evaluated before all runs are complete. Prints the headline of each run and
windows file.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import gazediffusion as gd
from gazediffusion.diffusion.edm import Edm
from gazediffusion.evaluation.loading import evaluate_model, split_again
from gazediffusion.models.recipes import JOINT, Recipe
from gazediffusion.models.unet import UNetConfig
from gazediffusion.training.concurrent import Job, train_concurrently

# The recipe before summary statistics and further attention blocks.
FORMER = replace(
    JOINT,
    network=UNetConfig(channels=4, widths=(64, 128, 256), patch=2),
    edm=Edm(amplitude_weighting=1.0),
    has_statistics=False,
    epochs=160,
)
VARIANTS: dict[str, Recipe] = {
    "base": JOINT,
    # What two CPU cores can do in an hour.
    "laptop": replace(
        JOINT,
        network=replace(JOINT.network, widths=(48, 96, 192)),
        batch_size=16,
        epochs=20,
        warmup_epochs=1,
        learning_rate=5e-4,
        ema_decay=0.999,
    ),
    "rate-1e-3": replace(JOINT, learning_rate=1e-3),
    "rate-5e-3": replace(JOINT, learning_rate=5e-3),
    "adamw": replace(JOINT, optimizer="adamw"),
    "biases": replace(JOINT, network=replace(JOINT.network, biases=True)),
    "attention-8": replace(JOINT, network=replace(JOINT.network, attention_blocks=8)),
    "wide-320": replace(JOINT, network=replace(JOINT.network, widths=(64, 128, 320))),
    "kernel-5": replace(JOINT, network=replace(JOINT.network, kernel=5)),
    "attention-1": replace(JOINT, network=FORMER.network),
    "no-statistics": replace(FORMER, network=JOINT.network, edm=JOINT.edm),
    "former": FORMER,
    "former-plain": replace(FORMER, learning_rate=3e-4, edm=Edm()),
}


def unfinished(jobs: list[Job]) -> list[Job]:
    """The jobs with epochs left."""
    return [
        job
        for job in jobs
        if not (job.folder / "config.json").is_file()
        or len(gd.describe(job.folder)["epochs_done"]) < job.recipe.epochs
    ]


def main() -> None:
    """Train what is missing, then calibrate and evaluate all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--variants", nargs="+", default=["base"], choices=list(VARIANTS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split-seed", type=int, nargs="+", help="a run for each split")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop training after")
    parser.add_argument("-n", type=int, default=2500, help="windows evaluated")
    parser.add_argument("--calibrate", type=int, default=1000, help="windows of a task and round")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    files = [gd.Windows.load(path) for path in given.windows]
    splits = {"": files}
    if given.split_seed is not None:
        splits = {
            f"-{seed}": [split_again(one, seed) for one in files] for seed in given.split_seed
        }
    started = time.monotonic()
    jobs = []
    parts_of: dict[Job, list[gd.Windows]] = {}
    for name in given.variants:
        recipe = replace(VARIANTS[name], epochs=given.epochs or VARIANTS[name].epochs)
        for split, parts in splits.items():
            folder = given.output / f"{name}-{given.seed}{split}"
            jobs.append(Job(parts, folder, recipe, given.seed))
            parts_of[jobs[-1]] = parts
    epochs = train_concurrently(
        unfinished(jobs),
        device=given.device,
        should_stop=lambda: time.monotonic() - started > given.seconds,
    )
    for job, epoch in epochs:
        if epoch.epoch % 20 == 0:
            print(f"{job.folder.name} {json.dumps(vars(epoch))}", flush=True)
    if late := unfinished(jobs):
        names = ", ".join(job.folder.name for job in late)
        print(f"wrote {given.output}; the same command resumes {names}")
        return
    for job in jobs:
        model = gd.load(job.folder, device=given.device)
        if not model.is_calibrated:
            model = model.calibrate(given.calibrate)
        for path, part in zip(given.windows, parts_of[job], strict=True):
            result = evaluate_model(model.run, part, given.n, gd.EvaluationConfig(quick=True))
            result.to_json(given.output / "evaluations" / f"{job.folder.name}-{path.stem}.json")
            print(f"{path.stem}\n{result.headline()}", flush=True)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
