"""Where a joint model goes wrong: at which noise level, and what it overlooks there.

    python runs/where.py RUN WINDOWS.safetensors ... [-n 128] [--resample]

For each task and noise level: the error of the model's estimate D of the position (averaged over 8
samples), against the error of the best linear filter, which knows the covariance of the training
windows and nothing else. A network that does worse overlooks something that is there to be seen.
Errors are split into that of a window's mean and the rest; "slope" is that of the truth against the
estimate, above 1 where the estimate is too timid.

With --resample: training windows are noised up to a level and denoised from there; the lowest level
from which counts and path length come out wrong is where the model errs. (The first steps of the
solver are of low order, so the level at which this begins is slightly worse than in sampling.)
Below each line: by how much the windows' numbers (manner.py) have moved on average, in standard
deviations, where that is more than a twentieth.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from gazediffusion.conditioning.manner import NAMES
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.diffusion.solvers import unipc
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import load_model
from gazediffusion.training.batches import Batches

LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
BEGINS = (0.1, 0.3, 1.0, 3.0, 10.0, 80.0)
BLOCK, BATCH = 8, 16
QUICK = EvaluationConfig(quick=True)


def drawn(run: Run, windows: Windows, n: int) -> tuple[Tensor, Tensor]:
    """n training windows, encoded, and what the network is told of them."""
    chosen = np.random.default_rng(7).permutation(len(windows.train))[:n]
    some = windows.train.dequantized(seed=7).select(np.sort(chosen))
    batches = Batches([some], run.config, 0, torch.device("cpu"))
    everything = torch.arange(len(some))
    return run.config.representation.encode(batches.clean(everything)), batches.told(everything)[0]


@torch.inference_mode()
def estimate(run: Run, noisy: Tensor, level: float, told: Tensor) -> Tensor:
    """D of all windows, in batches."""
    edm = run.config.recipe.edm
    pieces = [
        edm.denoise(
            run.network,
            noisy[k : k + BATCH],
            torch.full((len(noisy[k : k + BATCH]),), level),
            told[k : k + BATCH],
        )
        for k in range(0, len(noisy), BATCH)
    ]
    return torch.cat(pieces)


def blocks(channels: Tensor) -> NDArray[np.float64]:
    """Position channels averaged over a few samples, (window, 2, time / BLOCK)."""
    position = channels[:, :2].double().numpy()
    mean: NDArray[np.float64] = position.reshape(*position.shape[:2], -1, BLOCK).mean(axis=-1)
    return mean


class Linear:
    """The best linear estimate from noisy blocks, by the training windows' covariance."""

    def __init__(self, train: NDArray[np.float64]) -> None:
        self.mean = train.mean(axis=0)
        self.covariance = [np.cov((train[:, axis] - self.mean[axis]).T) for axis in range(2)]

    def estimate(self, noisy: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        """Of all windows, (window, 2, time / BLOCK)."""
        result = np.empty_like(noisy)
        for axis, (mean, covariance) in enumerate(zip(self.mean, self.covariance, strict=True)):
            whole = covariance + level**2 / BLOCK * np.eye(len(covariance))
            result[:, axis] = mean + (noisy[:, axis] - mean) @ np.linalg.solve(whole, covariance)
        return result


def errors(found: NDArray[np.float64], truth: NDArray[np.float64]) -> str:
    """Mean squared error of the windows' means and of the rest."""
    error = found - truth
    mean = error.mean(axis=-1, keepdims=True)
    return f"{np.mean(mean**2):.5f} {np.mean((error - mean) ** 2):.5f}"


def against_linear(run: Run, windows: Windows, task: str, n: int) -> None:
    """One line for each level."""
    of_task = windows.of_task(task)
    x0, told = drawn(run, of_task, n)
    people = torch.from_numpy(of_task.train.dequantized(seed=7).cut())
    linear = Linear(blocks(run.config.representation.encode(people)))
    truth = blocks(x0)
    for level in LEVELS:
        noise = torch.Generator().manual_seed(1)
        noisy = x0 + level * torch.randn(x0.shape, generator=noise)
        best = errors(linear.estimate(blocks(noisy), level), truth)
        found = blocks(estimate(run, noisy, level, told))
        means = truth.mean(axis=-1).ravel(), found.mean(axis=-1).ravel()
        slope = np.cov(*means)[0, 1] / np.var(means[1])
        print(
            f"{task:12} sigma {level:4g}  linear: mean, rest {best}"
            f"  model: mean, rest {errors(found, truth)}  slope {slope:.2f}",
            flush=True,
        )


@torch.inference_mode()
def resampled(run: Run, windows: Windows, begin: float, x0: Tensor, told: Tensor) -> Windows:
    """Training windows x0 noised up to a level and denoised from there."""
    edm = run.config.recipe.edm
    levels = [begin, *(level for level in edm.grid(24).tolist() if level < 0.8 * begin)]
    noise = torch.Generator().manual_seed(3)
    x = (0 if begin >= edm.sigma_max else x0) + begin * torch.randn(x0.shape, generator=noise)
    *_, x = unipc(lambda y, level: estimate(run, y, level, told), x, levels)
    gaze = run.config.representation.decode(x).float().numpy()
    return Windows.from_array(gaze, windows.rate_hz, windows.screen)


def moved(run: Run, made: Windows, told: Tensor) -> str:
    """How far the manner of windows is from what was told, number by number."""
    assert run.config.manners is not None
    found = run.config.manners.told(torch.from_numpy(made.cut()), made.rate_hz)
    wanted = told[:, -1 - len(NAMES) : -1]
    shifts = (found - wanted).mean(dim=0).tolist()
    named = zip(NAMES, shifts, strict=True)
    return ", ".join(f"{name} {shift:+.2f}" for name, shift in named if abs(shift) > 0.05)


def main() -> None:
    """Print one table for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("--resample", action="store_true")
    given = parser.parse_args()
    run = load_model(given.run)
    for path in given.windows:
        windows = Windows.load(path)
        if not given.resample:
            for task in windows.tasks:
                against_linear(run, windows, task, given.n)
            continue
        x0, told = drawn(run, windows, given.n)
        for begin in BEGINS:
            made = resampled(run, windows, begin, x0, told)
            found = evaluate(windows.held_out, {"model": made}, windows.train, QUICK)
            print(f"{path.stem} from {begin:g}\n{found.headline()}", flush=True)
            if run.config.manners is not None:
                print(f"  {moved(run, made, told)}", flush=True)


if __name__ == "__main__":
    main()
