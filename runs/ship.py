"""Put a trained run into the package: weights rounded and coded, the configuration beside them.

    python runs/ship.py RUN NAME [--levels 31]     # writes src/gazediffusion/models/NAME

How many levels a model needs was measured: docs/results, "Rounded weights".
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gazediffusion.checkpoint import load_run
from gazediffusion.shipped import models_folder, ship


def main() -> None:
    """Ship the run named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--levels", type=int, default=31)
    arguments = parser.parse_args()
    folder = models_folder() / arguments.name
    ship(load_run(arguments.run), folder, arguments.levels)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"wrote {folder}: {size:.1f} MB")


if __name__ == "__main__":
    main()
