"""The picture of docs/losses.md: generated windows with losses, over the same without.

python runs/losses_picture.py docs/images/losses.png [--seed 3]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import gazediffusion as gd
from gazediffusion.data.recordings import true_segments
from gazediffusion.plotting.style import BLUE, GREY, ORANGE, house_style, save_figure

TASKS = ("movies", "reading")


def main() -> None:
    """Draw, for each task, the first window of the seed with two losses or more."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    model = gd.load("joint")
    with house_style():
        plt.rcParams["font.size"] = 12  # readable at half the size
        figure, axes = plt.subplots(2, 2, figsize=(9, 4.6), sharex=True)
        for column, task in zip(axes.T, TASKS, strict=True):
            lossy, plain = (
                model.sample(12, task=task, seed=given.seed, losses=losses)
                for losses in (True, False)
            )
            n_losses = [len(true_segments(one)) for one in lossy.is_lost]
            k = int(np.argmax(np.array(n_losses) >= 2))
            seconds = np.arange(lossy.length) / lossy.rate_hz
            pairs = zip(column, plain.to_numpy("deg")[k], lossy.to_numpy("deg")[k], strict=True)
            for axis, without, gaze in pairs:
                axis.plot(seconds, without, color=GREY, linewidth=0.7, label="without losses")
                axis.plot(seconds, gaze, color=BLUE, label="with losses")
                for first, stop in true_segments(lossy.is_lost[k]).tolist():
                    axis.axvspan(seconds[first], stop / lossy.rate_hz, color=ORANGE, alpha=0.3)
            column[0].set_title(f"{task}, window {k} of seed {given.seed}", loc="left")
            column[1].set_xlabel("time (s)")
        for axis, name in zip(axes[:, 0], ("x (deg)", "y, down (deg)"), strict=True):
            axis.set_ylabel(name)
        axes[1, 0].legend(loc="upper center", bbox_to_anchor=(0.64, 1))
        save_figure(figure, given.output)
    picture = Image.open(given.output).convert("RGB")
    picture.quantize(colors=64, dither=Image.Dither.NONE).save(given.output, optimize=True)
    print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
