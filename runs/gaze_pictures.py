"""Pictures of documents; all gaze in them is synthetic.

    python runs/gaze_pictures.py docs/images [--only labels losses] [--seed 0]

writes steering.png (a scanpath, a jumping target, a minute of gaze), filling.png (gaps of 200 and
500 ms cut out of generated gaze, with that gaze and five draws of `fill`), losses.png (windows with
losses, over the same without) and labels.png (a window with the event class of every sample).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd
from gazediffusion.data.recordings import true_segments
from gazediffusion.data.scanpaths import Scanpath
from gazediffusion.data.targets import Targets
from gazediffusion.generation.constraints import Constraints
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style
from pictures import save_small

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
EVENT_COLOURS = {"saccade": ORANGE, "pursuit": GREEN, "noise": PURPLE}


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


def losses(model: gd.Model, seed: int) -> Any:
    """For each of two tasks, the first window with two losses or more."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), sharex=True)
    for column, task in zip(axes.T, ("movies", "reading"), strict=True):
        lossy, plain = (model.sample(12, task=task, seed=seed, losses=one) for one in (True, False))
        n_losses = [len(true_segments(one)) for one in lossy.is_lost]
        k = int(np.argmax(np.array(n_losses) >= 2))
        seconds = np.arange(lossy.length) / lossy.rate_hz
        pairs = zip(column, plain.to_numpy("deg")[k], lossy.to_numpy("deg")[k], strict=True)
        for axis, without, gaze in pairs:
            axis.plot(seconds, without, color=GREY, linewidth=0.7, label="without losses")
            axis.plot(seconds, gaze, color=BLUE, label="with losses")
            for first, stop in true_segments(lossy.is_lost[k]).tolist():
                axis.axvspan(seconds[first], stop / lossy.rate_hz, color=ORANGE, alpha=0.3)
        column[0].set_title(f"{task}, window {k} of seed {seed}", loc="left")
        column[1].set_xlabel("time (s)")
    for axis, name in zip(axes[:, 0], ("x (deg)", "y, down (deg)"), strict=True):
        axis.set_ylabel(name)
    axes[1, 0].legend(loc="upper center", bbox_to_anchor=(0.64, 1))
    return figure


def labels(model: gd.Model, seed: int) -> Any:
    """The window of 48 with most pursuits, its events shaded."""
    import matplotlib.pyplot as plt

    made = model.sample(48, task="movies", labels=True, seed=seed)
    numbers = {name: gd.EVENT_CLASSES.index(name) + 1 for name in EVENT_COLOURS}
    is_pursuit = made.cut_labels() == numbers["pursuit"]
    k = int(np.argmax([len(true_segments(one)) for one in is_pursuit]))
    seconds = np.arange(made.length) / made.rate_hz
    figure, axes = plt.subplots(2, 1, figsize=(9, 3.8), sharex=True)
    pairs = zip(axes, made.to_numpy("deg")[k], ("x (deg)", "y, down (deg)"), strict=True)
    for axis, gaze, name in pairs:
        axis.plot(seconds, gaze, color=BLUE)
        axis.set_ylabel(name)
        for event, colour in EVENT_COLOURS.items():
            segments = true_segments(made.cut_labels()[k] == numbers[event]).tolist()
            for number, (first, stop) in enumerate(segments):
                span = seconds[first], stop / made.rate_hz
                axis.axvspan(*span, color=colour, alpha=0.35, label=None if number else event)
    axes[0].set_title(f"movies, window {k} of seed {seed}; fixations unshaded", loc="left")
    axes[1].set_xlabel("time (s)")
    axes[1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=3)
    return figure


PICTURES = {"steering": steering, "filling": filling, "losses": losses, "labels": labels}


def main() -> None:
    """Draw them."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="default")
    given = parser.parse_args()
    model = gd.load(given.model)
    with house_style():
        plt.rcParams["font.size"] = 13  # readable at half the size
        for name in given.only:
            path = given.folder / f"{name}.png"
            save_small(PICTURES[name](model, given.seed), path)


if __name__ == "__main__":
    main()
