"""How far a model misses the manner it is told, written into its configuration.

    python runs/calibrate.py RUN [-n 400] [--seed 1000]

Makes n windows of every task, measures their manner (manner.py) against what was wanted, and keeps
a straight line for each number. From then on the network is told that much less or more. Needs no
recordings: the model is compared with what it was told. Print: for each task the mean and the slope
of what was missed, in standard deviations.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from gazediffusion.checkpoint import load_run
from gazediffusion.errors import GazeError
from gazediffusion.files import write_json
from gazediffusion.generator import DiffusionGenerator, usual_batch
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
    manners = replace(manners, missed=())
    run = replace(run, config=replace(run.config, manners=manners))
    wanted, made = [], []
    for number, task in enumerate(run.config.tasks):
        generator = DiffusionGenerator.of_quality(
            run, "default", task=task, batch_size=usual_batch(run)
        )
        gaze = torch.from_numpy(generator.sample(given.n, given.seed).cut())
        wanted.append(torch.stack([manners.drawn(number, given.seed, k) for k in range(given.n)]))
        made.append(manners.told(gaze, run.config.rate_hz))
    corrected = manners.corrected(wanted, made)
    write_json(given.run / "config.json", replace(run.config, manners=corrected).to_json())
    for task, lines in zip(run.config.tasks, corrected.missed, strict=True):
        found = ", ".join(
            f"{name} {constant:+.3f} {slope:+.3f}"
            for name, (constant, slope) in zip(NAMES, lines, strict=True)
        )
        print(f"{task:12} {found}")
    print(f"wrote {given.run / 'config.json'}")


if __name__ == "__main__":
    main()
