"""What rounding does to a network's answers, and how small the file becomes.

    python runs/rounding.py RUN WINDOWS [--levels 127 63 31 15]

For held-out windows at several steps t: the root mean square by which the rounded network's answer
differs from the full one's, and by which its mean over time does, which is what shifts a window as
a whole. The answers themselves have a root mean square of about 1.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from gazediffusion.data.windows import Windows
from gazediffusion.models.checkpoint import load_run
from gazediffusion.models.compact import rounded, save_compact
from gazediffusion.training.batches import some_held_out

STEPS = (5, 50, 200, 500, 900)


@torch.no_grad()
def main() -> None:
    """Print one line for each number of levels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("windows", type=Path)
    parser.add_argument("--levels", type=int, nargs="+", default=[127, 63, 31, 15])
    parser.add_argument("-n", type=int, default=6)
    arguments = parser.parse_args()
    run = load_run(arguments.run)
    full = {name: tensor.clone() for name, tensor in run.network.state_dict().items()}
    gaze = some_held_out(Windows.load(arguments.windows), arguments.n)
    x0 = run.config.representation.encode(gaze)
    eps = torch.randn(x0.shape, generator=torch.Generator().manual_seed(0))
    schedule = run.config.recipe.schedule()
    asked = []
    for t in STEPS:
        steps = torch.full((len(x0),), t)
        noisy = schedule.noisy(x0, steps, eps).float()
        asked.append((noisy, steps, run.network(noisy, steps)))
    print(f"{'levels':>6} {'MB':>6}  " + "  ".join(f"t={t:<4} all / mean" for t in STEPS))
    for levels in arguments.levels:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "w.safetensors"
            save_compact(path, full, levels, {})
            size = path.stat().st_size / 1e6
        run.network.load_state_dict(rounded(full, levels))
        cells = []
        for noisy, steps, answer in asked:
            moved = run.network(noisy, steps) - answer
            whole, mean = moved.square().mean().sqrt(), moved.mean(-1).square().mean().sqrt()
            cells.append(f"{float(whole):.1e} / {float(mean):.1e}")
        print(f"{levels:6} {size:6.2f}  " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
