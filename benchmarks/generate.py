"""How long one window takes: the paper's sampler, the package's default, and peers', in one run.

    python benchmarks/generate.py [--device auto] [-n 4] [-o docs/results/speed_cpu.json]

Windows are made n at a time; on a GPU four times n of them, since the CPU draws the noise of one
batch while the GPU makes another. "paper" is the 19.35 M network with 100 DDIM steps, as `generate
--model position` runs it; "diffusers" steps the same network with diffusers' scheduler;
"denoising-diffusion-pytorch" is that package's own 1-D network and sampler, where it is
installed. The last table has recordings of a minute, whose windows are made one after another,
beside as many seconds of gaze in windows.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import gazediffusion as gd
from gazediffusion.device import choose_device
from gazediffusion.generation.sampler import QUALITIES, Sampler, default_batch_size
from gazediffusion.network.checkpoint import Run

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from report import Result, options

LENGTH = 2000
MEASURED_S = 3.0
MINUTE_S, WINDOW_S = 60.0, 8.0


def by_sampler(sampler: Sampler) -> Callable[[int], object]:
    return lambda n: list(sampler.pieces(0, n))


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


def minutes(model: gd.Model, n: int) -> dict[str, float]:
    """Seconds of n recordings of a minute, and of as much gaze in windows."""

    def seconds(n_windows: int, length_s: float | None = None) -> float:
        taken = []
        for _ in range(3):
            begun = time.perf_counter()
            model.sample(n_windows, task="reading", seconds=length_s)
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)

    n_all = round(n * MINUTE_S / WINDOW_S)
    long, windows = seconds(n, MINUTE_S), seconds(n_all) * n * MINUTE_S / WINDOW_S / n_all
    return {"recordings": n, "minutes (s)": long, "windows (s)": windows, "ratio": long / windows}


def main() -> None:
    parser = options(__doc__, "speed_cpu")
    parser.add_argument("-n", type=int, default=None, help="windows at a time")
    given = parser.parse_args()
    device = choose_device(given.device)
    model = gd.load(given.model, device=given.device)
    paper, joint = gd.load("position", device=given.device).run, model.run
    n, n_joint = (
        given.n or (default_batch_size(run) if device.type == "cuda" else 4)
        for run in (paper, joint)
    )
    ways: dict[str, tuple[Callable[[int], object] | None, int]] = {
        "paper: 19.35 M, DDIM 100": (by_sampler(Sampler(paper, batch_size=n)), n),
        "diffusers' DDIM, same network": (by_diffusers(paper, n, device), n),
        "denoising-diffusion-pytorch 1-D, 100": (by_lucidrains(n, device), n),
    }
    recipe = joint.config.recipe
    for quality in QUALITIES:
        for precision in ("fp32", "bf16"):
            sampler = Sampler.of_quality(joint, quality, precision, batch_size=n_joint)
            ways[f"{recipe.name}, {quality}, {precision}"] = (by_sampler(sampler), n_joint)
    if given.tiny:
        ways = dict([ways.popitem()])
    result = Result.of(given, model, n=n)
    times: dict[str, float] = {}
    for label, (generate, size) in ways.items():
        if generate is None:
            result.say(f"{label}: not installed")
            continue
        times[label] = seconds_per_window(generate, size, device)
        faster = next(iter(times.values())) / times[label]
        cells = {"at a time": size, "s/window": times[label], "faster": faster}
        result.add("window", {"sampler": label, **cells})
    for n_long in () if given.tiny else (1, 16):
        result.add("minute", minutes(model, n_long))
    result.save()


if __name__ == "__main__":
    main()
