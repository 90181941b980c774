"""The pictures of docs/steering.md and docs/filling.md; all gaze in them is synthetic.

    python runs/steering_pictures.py docs/images [--seed 0]

writes steering.png (a scanpath, a jumping target, a minute of gaze) and filling.png (gaps of 200
and 500 ms cut out of generated gaze, with that gaze and five draws of `fill`).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import gazediffusion as gd
from gazediffusion.data.scanpaths import Scanpath
from gazediffusion.data.targets import Targets
from gazediffusion.generation.constraints import Constraints
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, house_style, save_figure

# Fixations of a scanpath: pixels on the screen of movies, and ms.
SCANPATH = np.array(
    [[300, 200, 300], [980, 180, 260], [900, 520, 420], [420, 560, 240], [640, 360, 500]]
)
# Jumps of a target: ms, and pixels on the screen of dots.
TARGETS = np.array(
    [[0, 840, 525], [900, 300, 250], [2100, 1400, 800], [3000, 1300, 240], [4600, 500, 820],
     [6000, 840, 300], [7000, 1100, 700]]
)  # fmt: skip
GAPS_S = ((2.0, 2.2), (4.5, 5.0))
N_DRAWS = 5


def steering(model: gd.Model, seed: int) -> Any:
    """Three panels: scanpath, target, length."""
    import matplotlib.pyplot as plt

    movies, dots = (model.config.conditioning.screen_of(task) for task in ("movies", "dots"))
    x, y = movies.to_normalized(SCANPATH[:, :2].T.astype(np.float32))
    free = np.full(len(SCANPATH), np.nan)
    scanpath = Scanpath("drawn", x, y, free, SCANPATH[:, 2].astype(float))
    places = dots.to_normalized(TARGETS[:, 1:].T.astype(np.float32))
    target = Targets("drawn", TARGETS[:, 0].astype(float), places[0], places[1])
    figure, axes = plt.subplots(1, 3, figsize=(11, 4), width_ratios=(1.3, 1.1, 1.2))
    axis = axes[0]
    for k, colour in enumerate((BLUE, GREEN, ORANGE)):
        made = model.sample(1, task="movies", scanpath=[scanpath], seed=seed + k)
        axis.plot(*made.to_numpy("px")[0], color=colour, linewidth=0.8, label=f"seed {seed + k}")
    axis.scatter(*SCANPATH[:, :2].T, s=SCANPATH[:, 2] / 2, color=GREY, alpha=0.4, label="asked for")
    for k, (at_x, at_y, _) in enumerate(SCANPATH, start=1):
        axis.annotate(str(k), (at_x, at_y), xytext=(10, 8), textcoords="offset points")
    axis.set(xlim=(0, 1280), ylim=(720, 0), xlabel="x (px)", ylabel="y (px)", aspect="equal")
    axis.set_title("a scanpath, three times", loc="left")
    axis = axes[1]
    made = model.sample(4, task="dots", targets=[target], seconds=8, seed=seed)
    seconds = np.arange(made.length) / made.rate_hz
    for k, gaze in enumerate(made.to_numpy("px")):
        label = "gaze, four windows" if k == 0 else None
        axis.plot(seconds, gaze[0], color=BLUE, linewidth=0.7, alpha=0.7, label=label)
    edges = [*TARGETS[:, 0] / 1000, 8]
    axis.stairs(TARGETS[:, 1], edges, baseline=None, color=ORANGE, label="target")
    axis.set(xlabel="time (s)", ylabel="x (px)", ylim=(0, 1680))
    axis.legend(loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=2, columnspacing=0.8)
    axis.set_title("a target", loc="left")
    axis = axes[2]
    made = model.sample(1, task="reading", seconds=60, seed=seed)
    seconds = np.arange(made.length) / made.rate_hz
    for gaze, colour, label in zip(made.to_numpy("px")[0], (BLUE, ORANGE), "xy", strict=True):
        axis.plot(seconds, gaze, color=colour, linewidth=0.6, label=label)
    axis.set(xlabel="time (s)", ylabel="position (px)")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
    axis.set_title("a minute of reading", loc="left")
    return figure


def filling(model: gd.Model, seed: int) -> Any:
    """One panel for each gap: the gaze that was cut out, and draws given both sides."""
    import matplotlib.pyplot as plt

    whole = model.sample(1, task="movies", seed=seed)
    gaze = whole.cut()
    known = gaze.copy()
    for first, stop in GAPS_S:
        known[..., round(first * whole.rate_hz) : round(stop * whole.rate_hz)] = np.nan
    given = Constraints(known=np.repeat(known, N_DRAWS, axis=0))
    generator = model.generator(task="movies")
    draws = next(replace(generator, constraints=given).pieces(0, N_DRAWS, seed + 1))
    seconds = np.arange(whole.length) / whole.rate_hz
    screen = model.config.conditioning.screen_of("movies")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, (first, stop) in zip(axes, GAPS_S, strict=True):
        near = (seconds > first - 0.4) & (seconds < stop + 0.4)
        inside = (seconds >= first - 0.004) & (seconds <= stop)
        for k, draw in enumerate(draws):
            label = "draws" if k == 0 else None
            axis.plot(seconds[inside], screen.to_pixels(draw)[0, inside], color=ORANGE, label=label)
        axis.plot(seconds[near], screen.to_pixels(gaze[0])[0, near], color=BLUE, label="cut out")
        axis.axvspan(first, stop, color=GREY, alpha=0.15)
        axis.set(xlabel="time (s)", ylabel="x (px)")
        axis.set_title(f"a gap of {1000 * (stop - first):.0f} ms", loc="left")
    axes[1].legend(loc="best")
    return figure


def main() -> None:
    """Draw both."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="default")
    given = parser.parse_args()
    model = gd.load(given.model)
    with house_style():
        plt.rcParams["font.size"] = 13  # readable at half the size
        for name, draw in (("steering", steering), ("filling", filling)):
            path = given.folder / f"{name}.png"
            save_figure(draw(model, given.seed), path)
            picture = Image.open(path).convert("RGB")
            picture.quantize(colors=64, dither=Image.Dither.NONE).save(path, optimize=True)
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
