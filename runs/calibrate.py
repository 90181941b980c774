"""How far a model misses the manner it is told, written into its configuration.

    python runs/calibrate.py RUN [-n 400] [--seed 1000]

Makes n windows of every task, measures their manner (manner.py) against what was wanted, and keeps
a straight line for each number, for recordings of each resolution. From then on the network is told
that much less or more. Needs no recordings: the model is compared with what it was told. Print: for
each task the mean and the slope of what was missed, in standard deviations.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from gazediffusion.checkpoint import load_run
from gazediffusion.errors import GazeError
from gazediffusion.files import write_json
from gazediffusion.generator import DiffusionGenerator
from gazediffusion.learner import choose_device
from gazediffusion.manner import NAMES


def main() -> None:
    """Correct one run folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("-n", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1000)
    given = parser.parse_args()
    run = load_run(given.run, device=choose_device("auto"))
    manners = run.config.manners
    if manners is None:
        raise GazeError("this model is told no manner", path=given.run)
    manners = manners.uncorrected()
    run = replace(run, config=replace(run.config, manners=manners))
    kinds, wanted, made = [], [], []
    for number, task in enumerate(run.config.tasks):
        generator = DiffusionGenerator.of_quality(run, "default", task=task)
        gaze = torch.from_numpy(generator.sample(given.n, given.seed).cut())
        drawn = manners.drawn([number] * given.n, generator.places(0, given.n, given.seed)[:, 1:])
        wanted.append(drawn[0])
        kinds.append(drawn[1])
        made.append(manners.told(gaze, run.config.rate_hz))
    corrected = manners.corrected(kinds, wanted, made)
    write_json(given.run / "config.json", replace(run.config, manners=corrected).to_json())
    for task, of_task in zip(run.config.tasks, corrected.tasks, strict=True):
        for kind in of_task:
            found = ", ".join(
                f"{name} {constant:+.3f} {slope:+.3f}"
                for name, (constant, slope) in zip(NAMES, kind.missed, strict=True)
            )
            print(f"{task:12} {'in whole steps' if any(kind.step) else 'fine':14} {found}")
    print(f"wrote {given.run / 'config.json'}")


if __name__ == "__main__":
    main()
