"""Attack a model with the windows it was trained on: does its loss give away who was in the data?

    python runs/membership.py RUN_OR_MODEL WINDOWS.safetensors ... [-n 200 --levels 8] [-o FILE]

0.5 is a coin. Printed with the 95 % interval from drawing people, and over people.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from gazediffusion.cli.console import progress_bar
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.evaluation.membership import membership
from gazediffusion.files import write_json
from gazediffusion.models.pretrained import load_model


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=200, help="windows of either side")
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    run = load_model(given.model, device=choose_device("auto"))
    parts = [Windows.load(path) for path in given.windows]
    with progress_bar("attacking", 100, "percent") as update:
        found = membership(run, parts, given.n, given.levels, lambda share: update(100 * share, ""))
    low, high = found.interval
    print(
        f"{given.model}: AUC {found.auc:.3f} [{low:.3f}, {high:.3f}] over windows, "
        f"{found.auc_people:.3f} over people; {found.n_members} training and {found.n_others} "
        f"held-out windows, {found.n_levels} noise levels"
    )
    if given.output:
        write_json(given.output, asdict(found))
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
