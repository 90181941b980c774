"""Variants of the joint recipe, trained side by side and judged against the floor.

    python runs/joint.py WINDOWS.safetensors ... -o FOLDER --variants base slow ... [--epochs 160]
        [--split-seed 42 1 2] [-n 2500]

Each variant is told by what it changes of `base`, or of `before` and `plain`, which came first; it
is trained once for each split, corrected (runs/calibrate.py) and judged on the people it was
trained without. Runs are kept in FOLDER and resumed; what was learned from them is in docs/log.md.
With --seconds training stops in time, to be gone on with by the same command, and nothing is
judged. Print: one line for each run and windows file (see `gazediffusion evaluate`), and where
the runs and scores are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.edm import Edm
from gazediffusion.evaluation.evaluation import EvaluationConfig
from gazediffusion.evaluation.loading import evaluate_model, split_again
from gazediffusion.models.checkpoint import read_metrics
from gazediffusion.models.recipes import JOINT, Recipe
from gazediffusion.models.unet import UNetConfig
from gazediffusion.training.calibration import calibrated
from gazediffusion.training.concurrent import Job, train_side_by_side
from gazediffusion.training.loop import Epoch, train

# What the recipe was before the whole window was thought of: no manner, one attention that does not
# know distances, a kernel of 5, less training at high noise.
BEFORE = replace(
    JOINT,
    network=UNetConfig(channels=4, widths=(64, 128, 256), patch=2),
    edm=Edm(emphasis=1.0),
    is_told_manner=False,
    epochs=160,
)
PLAIN = replace(BEFORE, learning_rate=3e-4, edm=Edm())
LOOKS = replace(BEFORE, network=JOINT.network, edm=JOINT.edm)
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
    "slow": replace(JOINT, learning_rate=1e-3),
    "high": replace(JOINT, learning_rate=5e-3),
    "higher": replace(JOINT, learning_rate=1e-2),
    "adamw": replace(JOINT, optimizer="adamw"),
    "biases": replace(JOINT, network=replace(JOINT.network, biases=True)),
    "looks8": replace(JOINT, network=replace(JOINT.network, attentions=8)),
    "wide320": replace(JOINT, network=replace(JOINT.network, widths=(64, 128, 320))),
    "k5": replace(JOINT, network=replace(JOINT.network, kernel=5)),
    "no-looks": replace(JOINT, network=BEFORE.network),
    "no-manner": LOOKS,
    # The whole window, one thing after the other.
    "before": BEFORE,
    "before-high": replace(BEFORE, edm=JOINT.edm),
    "before-looks-k5": replace(LOOKS, network=replace(JOINT.network, kernel=5)),
    "before-higher": replace(LOOKS, edm=replace(JOINT.edm, log_mean=0.2)),
    "before-broad": replace(
        BEFORE,
        network=replace(BEFORE.network, widths=(80, 160, 320)),
        epochs=240,
        learning_rate=1e-3,
    ),
    # What was compared first, one thing changed at a time.
    "plain": PLAIN,
    "plain-patch1": replace(PLAIN, network=replace(BEFORE.network, patch=1)),
    "plain-sigma-low": replace(PLAIN, edm=Edm(log_mean=-2.0)),
    "plain-emphasis": replace(PLAIN, edm=BEFORE.edm),
    "plain-lr": replace(PLAIN, learning_rate=1e-3),
}

QUICK = EvaluationConfig(quick=True)


def unfinished(jobs: Iterable[Job]) -> list[Job]:
    """Those of which epochs are missing."""
    return [job for job in jobs if len(read_metrics(job.folder)) < job.recipe.epochs]


def main() -> None:
    """Train what is missing, then judge all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--variants", nargs="+", default=["base"], choices=list(VARIANTS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--split-seed",
        type=int,
        nargs="+",
        help="who is held out, a run for each; else as in the files",
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop training after")
    parser.add_argument("-n", type=int, default=2500, help="windows judged")
    parser.add_argument("--made", type=int, default=1000, help="windows of a task to correct by")
    parser.add_argument("--quality", default="default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compile", action="store_true", help="on a CPU: one run, bf16, compiled")
    given = parser.parse_args()
    files = [Windows.load(path) for path in given.windows]
    splits = {"": files}
    if given.split_seed is not None:
        splits = {
            f"-{seed}": [split_again(one, seed) for one in files] for seed in given.split_seed
        }
    begun = time.monotonic()
    people: dict[Job, list[Windows]] = {}
    for name in given.variants:
        recipe = VARIANTS[name]
        recipe = replace(recipe, epochs=given.epochs or recipe.epochs)
        for split, parts in splits.items():
            folder = given.output / f"{name}-{given.seed}{split}"
            people[Job(parts, folder, recipe, given.seed)] = parts
    waiting = unfinished(people)

    def is_late() -> bool:
        return time.monotonic() - begun > float(given.seconds)

    if given.compile:
        epochs: Iterator[tuple[Job, Epoch]] = (
            (job, epoch)
            for job in waiting
            for epoch in train(
                job.windows,
                job.folder,
                job.recipe,
                seed=job.seed,
                device=given.device,
                precision="bf16",
                compiled=True,
                should_stop=is_late,
            )
        )
    else:
        epochs = train_side_by_side(waiting, device=given.device, should_stop=is_late)
    for job, epoch in epochs:
        if given.compile or epoch.epoch % 20 == 0:
            print(f"{job.folder.name} {json.dumps(vars(epoch))}", flush=True)
    if late := unfinished(people):
        names = ", ".join(job.folder.name for job in late)
        print(f"wrote {given.output}; to be gone on with: {names}")
        return
    device = choose_device(given.device)
    for job, parts in people.items():
        run = calibrated(job.folder, device, given.made)
        for path, part in zip(given.windows, parts, strict=True):
            found = evaluate_model(run, part, given.n, QUICK, quality=given.quality)
            found.to_json(given.output / "scores" / f"{job.folder.name}-{path.stem}.json")
            print(f"{job.folder.name} {path.stem}\n{found.headline()}", flush=True)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
