"""Drift between saccades, by the present and by the former decoding of a joint model's channels.

    python runs/decoding.py gazecom6.safetensors bioeye6.safetensors --model joint [-n 200] [-o PNG]

The net drift of a window is its mean velocity over samples below 1.25 normalized units per second
(30 degrees per second where the screen is 48 degrees wide): what fixations and pursuit move in one
direction. Prints its standard deviation over windows in degrees per second, of training
participants, held-out participants and generated windows. Formerly velocities were summed, and the
low-pass part (Gaussian, 0.1 s) of position minus sum was added, which spreads the error of a
saccade's amplitude over the fixations around it.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

import gazediffusion as gd
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.representations import JOINT_STD, Joint
from gazediffusion.plotting.style import house_style
from pictures import save_small

Floats = NDArray[np.float64]
TASKS = ("movies", "dots", "reading")
SLOW = 1.25  # normalized units per second
LOW_PASS_S = 0.1


class Former(Joint):
    """The representation with the former decoding."""

    def decode(self, channels: torch.Tensor, is_known: torch.Tensor | None = None) -> torch.Tensor:
        """Summed velocities, slowly kept to the positions."""
        std = np.array([*self.position_std, *self.velocity_std])[:, None] / JOINT_STD
        position, compressed = np.split(channels.double().cpu().numpy() * std, 2, axis=1)
        step = np.sinh(compressed) * (self.asinh_scale / self.rate_hz)
        step[..., 0] = 0
        summed = position[..., :1] + step.cumsum(axis=-1)
        slow = gaussian_filter1d(position - summed, LOW_PASS_S * self.rate_hz, mode="mirror")
        return torch.from_numpy(summed + slow).float()


def generated(run: Run, task: str, n: int) -> NDArray[np.float32]:
    """Windows (n, 2, time), normalized."""
    generator = DiffusionGenerator.of_quality(run, "default", task=task)
    return np.concatenate(list(generator.pieces(0, n, 0)))


def net_drift(gaze: NDArray[np.float32], rate_hz: float, degrees: Floats) -> Floats:
    """Mean velocity (window, 2) over slow samples, in degrees per second."""
    velocity = np.diff(gaze.astype(np.float64), axis=-1) * rate_hz
    is_slow = np.hypot(velocity[:, 0], velocity[:, 1])[:, None] < SLOW
    mean = (velocity * is_slow).sum(axis=-1) / is_slow.sum(axis=-1)
    return np.asarray(mean * degrees)


def per_unit(screen: gd.Screen) -> Floats:
    """Degrees of a normalized unit in x and y, at the centre of the screen, (2,)."""
    small = np.array([[0.0, 0.01], [0.0, 0.01]], dtype=np.float32)
    return np.asarray(np.diff(screen.to_degrees(screen.to_pixels(small)))[:, 0] / 0.01)


def recorded(windows: gd.Windows, n: int) -> NDArray[np.float32]:
    """At most n windows drawn at random."""
    chosen = np.random.default_rng(0).permutation(len(windows))[:n]
    return windows.select(np.sort(chosen)).dequantized(seed=0).cut()


def picture(drifts: dict[str, dict[str, Floats]], path: Path) -> None:
    """The distributions of horizontal net drift by task."""
    import matplotlib.pyplot as plt

    with house_style():
        figure, axes = plt.subplots(1, len(drifts), figsize=(9, 2.6), sharey=True)
        for ax, (task, sets) in zip(axes, drifts.items(), strict=True):
            edges = np.linspace(-2.5, 2.5, 41)
            for name, values in sets.items():
                if name == "held-out participants":
                    continue  # like the training participants
                ax.hist(values[:, 0], edges, density=True, histtype="step", label=name)
            ax.set(title=task, xlabel="net drift of x (deg/s)")
        axes[0].set_ylabel("density")
        axes[0].legend(fontsize=7, loc="upper left")
        save_small(figure, path)


def main() -> None:
    """Print the table; draw the picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--model", default="joint")
    parser.add_argument("-n", type=int, default=200, help="generated windows of a task")
    parser.add_argument("-o", "--output", type=Path, help="a picture")
    given = parser.parse_args()
    run = gd.load(given.model).run
    assert run.config.joint is not None
    former = replace(run, config=replace(run.config, joint=Former(**asdict(run.config.joint))))
    drifts: dict[str, dict[str, Floats]] = {}
    print("| task | set | windows | x (deg/s) | y (deg/s) |\n|---|---|---:|---:|---:|")
    for path in given.windows:
        whole = gd.Windows.load(path)
        for task in [one for one in whole.tasks if one in TASKS]:
            screen = run.config.conditioning.screen_of(task)
            degrees = per_unit(screen)
            sets = {
                "training participants": recorded(whole.train.of_task(task), 2000),
                "held-out participants": recorded(whole.held_out.of_task(task), 2000),
                "generated, former decoding": generated(former, task, given.n),
                "generated": generated(run, task, given.n),
            }
            drifts[task] = {
                name: net_drift(gaze, whole.rate_hz, degrees) for name, gaze in sets.items()
            }
            for name, values in drifts[task].items():
                x, y = values.std(axis=0)
                print(f"| {task} | {name} | {len(values)} | {x:.3f} | {y:.3f} |", flush=True)
    if given.output:
        picture(drifts, given.output)


if __name__ == "__main__":
    main()
