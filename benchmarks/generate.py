"""How long one window takes: the paper's sampler, the package's default, and peers', in one run.

    python benchmarks/generate.py [--device auto] [-n 4] [--model joint] [-o times.json]

Windows are made n at a time; on a GPU four times n of them, since the CPU draws the noise of one
batch while the GPU makes another. "paper" is the 19.35 M network with 100 DDIM steps, as `generate
--model position` runs it; "diffusers" steps the same network with diffusers' scheduler;
"denoising-diffusion-pytorch" is that package's own 1-D network and sampler, where it is installed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from gazediffusion.device import choose_device
from gazediffusion.files import write_json
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.qualities import QUALITIES, default_batch_size
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import load_model

LENGTH = 2000
MEASURED_S = 3.0


def by_generator(generator: DiffusionGenerator) -> Callable[[int], object]:
    return lambda n: list(generator.pieces(0, n, 0))


def by_diffusers(run: Run, size: int, device: torch.device) -> Callable[[int], object] | None:
    try:
        from diffusers import DDIMScheduler
    except ImportError:
        return None
    recipe = run.config.recipe
    scheduler = DDIMScheduler(
        num_train_timesteps=recipe.diffusion_steps,
        beta_start=recipe.beta_first,
        beta_end=recipe.beta_last,
        clip_sample=False,
        timestep_spacing="trailing",
    )

    @torch.inference_mode()
    def generate(n: int) -> Tensor:
        return torch.cat([batch(min(size, n - first)) for first in range(0, n, size)])

    def batch(n: int) -> Tensor:
        scheduler.set_timesteps(100)
        x = torch.randn(n, 2, LENGTH, device=device)
        for t in scheduler.timesteps:
            eps = run.network(x, torch.full((n,), int(t) + 1, device=device))
            x = scheduler.step(eps, t, x).prev_sample
        return x

    return generate


def by_lucidrains(size: int, device: torch.device) -> Callable[[int], object] | None:
    try:
        from denoising_diffusion_pytorch import (  # type: ignore[import-not-found]
            GaussianDiffusion1D,
            Unet1D,
        )
    except ImportError:
        return None
    network = Unet1D(dim=64, dim_mults=(1, 2, 4, 8), channels=2)
    model = GaussianDiffusion1D(network, seq_length=LENGTH, sampling_timesteps=100).to(device)
    return lambda n: [model.sample(batch_size=min(size, n - k)) for k in range(0, n, size)]


def seconds_per_window(generate: Callable[[int], object], n: int, device: torch.device) -> float:
    """The median of runs of at least MEASURED_S; a first batch of n windows is not counted."""
    total = 4 * n if device.type == "cuda" else n
    generate(n)
    _wait(device)
    taken: list[float] = []
    while sum(taken) < MEASURED_S:
        begun = time.perf_counter()
        generate(total)
        _wait(device)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) / total


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("-n", type=int, default=None, help="windows at a time")
    parser.add_argument("--model", default="default", help="a run of the joint recipe, or its name")
    parser.add_argument("-o", "--output", type=Path, help="times for runs/frontier.py")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    paper, joint = (load_model(name, device=device) for name in ("position", arguments.model))
    n, n_joint = (
        arguments.n or (default_batch_size(run) if device.type == "cuda" else 4)
        for run in (paper, joint)
    )
    ways: dict[str, tuple[Callable[[int], object] | None, int]] = {
        "paper: 19.35 M, DDIM 100": (by_generator(DiffusionGenerator(paper, batch_size=n)), n),
        "diffusers' DDIM, same network": (by_diffusers(paper, n, device), n),
        "denoising-diffusion-pytorch 1-D, 100": (by_lucidrains(n, device), n),
    }
    recipe = joint.config.recipe
    for quality in QUALITIES["edm"]:
        for precision in ("fp32", "bf16"):
            generator = DiffusionGenerator.of_quality(joint, quality, precision, batch_size=n_joint)
            ways[f"{recipe.name}, {quality}, {precision}"] = (by_generator(generator), n_joint)
    on_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name() if on_gpu else f"{torch.get_num_threads()} CPU cores"
    print(f"{name}, {n} windows at a time, joint {n_joint}")
    print(f"{'':38} {'s/window':>9} {'faster':>8}")
    times: dict[str, float] = {}
    for label, (generate, size) in ways.items():
        if generate is None:
            print(f"{label:38} {'not installed':>18}")
            continue
        seconds = seconds_per_window(generate, size, device)
        times[label] = seconds
        faster = next(iter(times.values())) / seconds
        print(f"{label:38} {seconds:9.5f} {faster:7.1f}x", flush=True)
        if arguments.output is not None:
            write_json(arguments.output, {"machine": name, "seconds": times})
    if arguments.output is not None:
        print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
