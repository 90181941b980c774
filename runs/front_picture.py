"""The picture of the README and of the first page of the documentation; all gaze is synthetic.

    python runs/front_picture.py docs/images/front.png [--seed 0]

Film viewing and reading on their screens, coloured by time, and the reading over time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import gazediffusion as gd
from gazediffusion.plotting.style import BLUE, ORANGE, house_style, save_figure

SECONDS = 8


def draw_path(windows: gd.Windows, axes: Any) -> Any:
    """The first window on its screen, coloured by time."""
    from matplotlib.collections import LineCollection

    points = windows.to_numpy("px")[0].T
    lines = np.stack([points[:-1], points[1:]], axis=1)
    path = LineCollection(list(lines), cmap="viridis", linewidths=2)
    path.set_array(np.linspace(0, SECONDS, len(lines)))
    axes.add_collection(path)
    screen = windows.screen
    axes.set(xlim=(0, screen.width_px), ylim=(screen.height_px, 0), aspect="equal")
    axes.set(xlabel="x (px)", ylabel="y (px)")
    return path


def front(model: gd.Model, seed: int) -> Any:
    """Three panels: movies, reading, reading over time."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 14, "axes.titlesize": 16, "axes.labelsize": 14})
    plt.rcParams.update({"xtick.labelsize": 13, "ytick.labelsize": 13, "legend.fontsize": 13})
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), width_ratios=(1.25, 1.05, 1.2))
    for axis, task in zip(axes, ("movies", "reading"), strict=False):
        windows = model.sample(1, task=task, seed=seed)
        path = draw_path(windows, axis)
        axis.set_title(
            f"film viewing, {SECONDS} s" if task == "movies" else f"reading, {SECONDS} s"
        )
    figure.colorbar(path, ax=axes[1], label="time (s)", shrink=0.8)
    seconds = np.arange(windows.length) / windows.rate_hz
    for row, colour, style, name in zip(
        windows.to_numpy("px")[0], (BLUE, ORANGE), "-:", "xy", strict=True
    ):
        axes[2].plot(seconds, row, style, color=colour, linewidth=2, label=name)
    axes[2].set(xlabel="time (s)", ylabel="position (px)", xlim=(0, SECONDS))
    axes[2].set_title("the same reading over time")
    axes[2].legend(ncols=2, loc="best")
    return figure


def main() -> None:
    """Draw it, in few colours, so that the file is small."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with house_style():
        save_figure(front(gd.load("default"), given.seed), given.picture)
    Image.open(given.picture).convert("RGB").quantize(192).save(given.picture, optimize=True)
    print(f"wrote {given.picture}")


if __name__ == "__main__":
    main()
