"""Training on several processes against one: how far weights and losses differ after some steps.

    python runs/processes.py [--steps 50] [--processes 1 2 3] [--recipe position-tiny]

Simulated recordings are prepared, and the recipe is trained on them in fp32 on the CPU: by the
command alone, and by torchrun (Gloo) with each number of processes. Prints the largest difference
of a weight and the relative differences of the losses to those of the command alone, as a table in
Markdown. Biases before a group norm have no effect on the output and are left out: their gradient
is rounding error, which AdamW scales to steps of usual size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from safetensors.torch import load_file

import gazediffusion as gd

BATCH_SIZE = 6


def trained(windows: Path, folder: Path, n: int, recipe: str, epochs: int) -> Path:
    """The run folder of n processes; 0 is the command without torchrun."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n)]
    command = [sys.executable, *(torchrun if n else []), "-m", "gazediffusion", "train"]
    options = ["--recipe", recipe, "--epochs", str(epochs), "--batch-size", str(BATCH_SIZE)]
    command += [str(windows), "-o", str(folder), *options, "--device", "cpu"]
    subprocess.run(
        command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    return folder


def losses(folder: Path) -> tuple[float, float]:
    """Training and validation loss of the last epoch."""
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return last["training_loss"], last["validation_loss"]


def largest_difference(one: Path, other: Path) -> float:
    """Of weights that have an effect."""
    first, second = (load_file(folder / "last.safetensors") for folder in (one, other))
    kept = [name for name in first if not name.endswith("bias")]
    return max(float((first[name] - second[name]).abs().max()) for name in kept)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--recipe", default="position-tiny")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = gd.SimulationConfig(n_participants=4, minutes=0.5, rate_hz=250)
        gd.write_simulation(config, folder / "study", "csv")
        windows = gd.prepare(gd.read(folder / "study"), gd.PrepareConfig(seconds=2.048))
        windows.save(folder / "windows.safetensors")
        per_epoch = len(windows.train) // BATCH_SIZE
        epochs = -(-given.steps // per_epoch)
        print(f"{len(windows.train)} training windows, {per_epoch * epochs} steps", flush=True)
        path = folder / "windows.safetensors"
        alone = trained(path, folder / "alone", 0, given.recipe, epochs)
        print("\n| processes | largest difference of a weight | training loss | validation loss |")
        print("|---:|---:|---:|---:|")
        for n in given.processes:
            several = trained(path, folder / f"by-{n}", n, given.recipe, epochs)
            pairs = zip(losses(several), losses(alone), strict=True)
            cells = [f"{abs(a / b - 1):.1g}" for a, b in pairs]
            moved = largest_difference(several, alone)
            print(f"| {n} | {moved:.1g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
