"""How far windows of each sampler are from those of quality best with the same noise.

    python runs/samplers.py [MODEL] [-n 96]

Prints the root mean square difference over the standard deviation of gaze, and the ratio of the
median and of the 99th percentile of speed. The distilled network is given the model's conditions
here, which its own calibration would change. Takes two minutes on two CPU cores.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import gazediffusion as gd
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.qualities import SamplerName

COMPARED: list[tuple[SamplerName, int | None]] = [
    ("olss", None),
    ("multistep", 7),
    ("multistep", 10),
    ("unipc", 10),
    ("unipc", 15),
]


def main() -> None:
    """Compare the samplers of the model named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="default")
    parser.add_argument("-n", type=int, default=96, help="windows that are compared")
    given = parser.parse_args()
    run = gd.load(given.model).run
    compared = COMPARED
    if run.distilled is not None:
        solvers = run.distilled.solvers
        compared = [*(("distilled", len(one.levels)) for one in solvers), *COMPARED]
        distilled = replace(run.distilled, conditioning=run.config.conditioning)
        run = replace(run, distilled=distilled)
    best = DiffusionGenerator.of_quality(run, "best").sample(given.n).cut()
    print("| sampler | steps | distance | median speed | 99 % |\n|---|---:|---:|---:|---:|")
    for sampler, steps in compared:
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
