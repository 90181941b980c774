"""What rounding weights does to a network's predictions, and to the size of the file.

    python runs/rounding.py RUN WINDOWS [--levels 127 63 31 15]

For held-out windows at several steps t: the root mean square difference between the predictions of
the rounded and of the full network, and that of their means over time, which shift a window as a
whole. The predictions themselves have a root mean square of about 1.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

import gazediffusion as gd
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
    given = parser.parse_args()
    run = gd.load(given.run, device="cpu").run
    full = {name: tensor.clone() for name, tensor in run.network.state_dict().items()}
    gaze = some_held_out(gd.Windows.load(given.windows), given.n).cut()
    x0 = run.config.representation.encode(torch.from_numpy(gaze))
    eps = torch.randn(x0.shape, generator=torch.Generator().manual_seed(0))
    schedule = run.config.recipe.schedule()
    inputs = {t: torch.full((len(x0),), t) for t in STEPS}
    noisy = {t: schedule.noisy(x0, step, eps).float() for t, step in inputs.items()}
    predicted = {t: run.network(noisy[t], step) for t, step in inputs.items()}
    print(f"{'levels':>6} {'MB':>6}  " + "  ".join(f"t={t:<4} all / mean" for t in STEPS))
    for levels in given.levels:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "weights.safetensors"
            save_compact(path, full, levels, {})
            megabytes = path.stat().st_size / 1e6
        run.network.load_state_dict(rounded(full, levels))
        cells = []
        for t, step in inputs.items():
            difference = run.network(noisy[t], step) - predicted[t]
            whole, mean = (one.square().mean().sqrt() for one in (difference, difference.mean(-1)))
            cells.append(f"{float(whole):.1e} / {float(mean):.1e}")
        print(f"{levels:6} {megabytes:6.2f}  " + "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()
