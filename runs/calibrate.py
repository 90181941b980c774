"""How far a model misses the manner it is told, written into its configuration.

    python runs/calibrate.py RUN [-n 1000] [--rounds 4]

What `gazediffusion train` does at its end with fewer windows (calibration.py). Print: for each task
and resolution what is told less of each number: a constant, in standard deviations, and a share.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gazediffusion.cli.console import generation_bar
from gazediffusion.conditioning.manner import NAMES
from gazediffusion.device import choose_device
from gazediffusion.models.checkpoint import read_config
from gazediffusion.training.calibration import ROUNDS, calibrate, n_made


def main() -> None:
    """Correct one run folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("-n", type=int, default=1000, help="windows of each task")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    config = read_config(given.run)
    with generation_bar(n_made(config, given.n, given.rounds)) as progress:
        corrected = calibrate(given.run, choose_device("auto"), given.n, given.rounds, progress)
    for task, of_task in zip(config.tasks, corrected.tasks, strict=True):
        for kind in of_task:
            found = ", ".join(
                f"{name} {constant:+.3f} {slope:+.3f}"
                for name, (constant, slope) in zip(NAMES, kind.missed, strict=True)
            )
            print(f"{task:12} {'in whole steps' if any(kind.step) else 'fine':14} {found}")
    print(f"wrote {given.run / 'config.json'}")


if __name__ == "__main__":
    main()
