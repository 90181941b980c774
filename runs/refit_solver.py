"""Fit the solver of a packaged model again: a change of `diffusion/olss.py`.

    python runs/refit_solver.py NAME

Weights and conditioning stay as they are; `config.json` of src/gazediffusion/models/pretrained/NAME
is written. Takes half a minute on two CPU cores. Prints how far windows of each sampler are from
those of quality best with the same noise: the root mean square over the standard deviation of gaze,
and the ratio of the median and of the 99th percentile of speed.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import gazediffusion as gd
from gazediffusion.files import read_json, write_json
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.qualities import SamplerName
from gazediffusion.models.checkpoint import CONFIG
from gazediffusion.models.pretrained import pretrained_folder
from gazediffusion.training.fitted_solver import fitted_solver

COMPARED: tuple[tuple[SamplerName, int | None], ...] = (
    ("olss", None),
    ("multistep", 7),
    ("multistep", 10),
    ("unipc", 10),
    ("unipc", 15),
)


def main() -> None:
    """Write the solver of the model named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("-n", type=int, default=96, help="windows that are compared")
    given = parser.parse_args()
    run = gd.load(given.name).run
    solver = fitted_solver(run)
    assert solver is not None
    path = pretrained_folder() / given.name / CONFIG
    write_json(path, {**read_json(path), "solver": solver.to_json()})
    print(f"wrote {path}")
    run = replace(run, config=replace(run.config, solver=solver))
    best = DiffusionGenerator.of_quality(run, "best").sample(given.n).cut()
    print("| sampler | steps | distance | median speed | 99 % |\n|---|---:|---:|---:|---:|")
    for sampler, steps in COMPARED:
        generator = DiffusionGenerator.of_quality(run, "default", sampler=sampler, steps=steps)
        gaze = generator.sample(given.n).cut()
        distance = np.sqrt(np.mean((gaze - best) ** 2)) / best.std()
        speeds = [np.hypot(*np.diff(one).swapaxes(0, 1)) for one in (gaze, best)]
        ratios = [np.divide(*(np.quantile(one, q) for one in speeds)) for q in (0.5, 0.99)]
        n = generator.settings["steps"]
        print(
            f"| {sampler} | {n} | {distance:.3f} | {ratios[0]:.3f} | {ratios[1]:.3f} |", flush=True
        )


if __name__ == "__main__":
    main()
