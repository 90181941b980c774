"""The training step's rate: eager, compiled, and captured as one CUDA graph.

    python benchmarks/train_step.py [--recipe position --batches 8 32 128 --steps 100]

The same step in three ways, in one run on one device. On the CPU only the eager step exists.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import torch

from gazediffusion.device import choose_device
from gazediffusion.network.recipes import Recipe, find_recipe
from gazediffusion.training.learner import Learner, choose_precision


def milliseconds(recipe: Recipe, way: str, n_steps: int, device: torch.device) -> float:
    """Mean time of one step after warming up."""
    precision = choose_precision("auto", recipe, device)
    learner = Learner(
        recipe,
        0,
        device,
        precision,
        compiled=way in ("compiled", "captured"),
        captured=way == "captured",
    )
    x0 = torch.randn(recipe.batch_size, 2, 2000, device=device)
    t = torch.randint(1, recipe.diffusion_steps, (recipe.batch_size,), device=device)
    eps = torch.randn_like(x0)
    for _ in range(5):
        learner.step((x0, t, eps), 1e-4, 1e-3)
    _wait(device)
    begun = time.perf_counter()
    for _ in range(n_steps):
        learner.step((x0, t, eps), 1e-4, 1e-3)
    _wait(device)
    return (time.perf_counter() - begun) / n_steps * 1000


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="position")
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 32, 128])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    recipe = find_recipe(arguments.recipe)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    precision = choose_precision("auto", recipe, device)
    print(f"{recipe.name} on {name}, {precision}, torch {torch.__version__}")
    print(f"{'batch':>5} {'way':>9} {'ms/step':>9} {'windows/s':>10} {'faster':>7}")
    for batch in arguments.batches:
        ways = ("eager", "compiled", "captured") if device.type == "cuda" else ("eager",)
        eager = None
        for way in ways:
            ms = milliseconds(replace(recipe, batch_size=batch), way, arguments.steps, device)
            eager = eager or ms
            print(f"{batch:5} {way:>9} {ms:9.2f} {batch / ms * 1000:10.0f} {eager / ms:6.1f}x")
            torch._dynamo.reset()


if __name__ == "__main__":
    main()
