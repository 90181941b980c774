"""The picture of docs/scores.md: ROC curves of the scores of runs/scores.py for some oddities.

    python runs/scores_picture.py GAZECOM.safetensors BIOEYE.safetensors docs/images/roc.png -n 200

A row for each file, a column for each oddity. Clean windows are those of held-out participants, odd
ones the same with the oddity planted; the likelihood takes --likelihoods windows of each. Profile
distance and contrasts take the model's own calibration.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

import gazediffusion as gd
import scores
from gazediffusion.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, house_style
from gazediffusion.scoring.calibration import Calibration
from pictures import save_small

ODDITIES = (
    ("jitter", "0.5 px"),
    ("wrong rate", "1.5 times"),
    ("stitched from two", ""),
    ("time reversed", ""),
    ("given another task", ""),
    ("interpolated blinks", "8"),
)
COLOURS = (BLUE, GREEN, ORANGE, PURPLE, GREY)  # of scores.SCORES


def curves(axis: Any, clean: scores.Floats, odd: scores.Floats) -> None:
    """The ROC curve of each score; clean and odd are (score, window), NaN without a score."""
    axis.plot([0, 1], [0, 1], color="black", linewidth=0.6, linestyle=":")
    for name, colour, *sides in zip(scores.SCORES, COLOURS, clean, odd, strict=True):
        of_clean, of_odd = (one[np.isfinite(one)] for one in sides)
        is_odd = np.repeat([0, 1], [len(of_clean), len(of_odd)])
        found = roc_curve(is_odd, np.concatenate([of_clean, of_odd]), drop_intermediate=False)
        axis.plot(*found[:2], color=colour, linewidth=1.5, label=name)


def main() -> None:
    """Draw all panels."""
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="windows files")
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", default="joint")
    parser.add_argument("-n", type=int, default=200, help="windows of each file and oddity")
    parser.add_argument("--likelihoods", type=int, default=48, help="of these, with a likelihood")
    given = parser.parse_args()
    model = gd.load(given.model)
    cheap, costly = scores.scorers(model)
    calibration = Calibration.load(model.run.path)
    if calibration is None:
        parser.error(f"{given.model} has no scores.json: python runs/scores.py --fit writes it")
    planted = {(name, strength): plant for name, strength, plant in scores.oddities(model)}
    with house_style():
        plt.rcParams["font.size"] = 12  # readable at half the size
        size = len(given.files), len(ODDITIES)
        figure, axes = plt.subplots(
            *size, figsize=(2.0 * size[1], 2.2 * size[0] + 0.6), sharex=True, sharey=True,
            squeeze=False,
        )  # fmt: skip
        for row, path in zip(axes, given.files, strict=True):
            whole = gd.Windows.load(path)
            bench = scores.Bench(cheap, costly, calibration, scores.forests_of(whole.train))
            clean = scores.Clean.of(whole, given.n)
            base, _ = bench(clean.set(clean.gaze), given.likelihoods)
            for axis, which in zip(row, ODDITIES, strict=True):
                curves(axis, base, bench(planted[which](clean), given.likelihoods)[0])
                axis.set(aspect="equal", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
                print(f"{path.stem}: {' '.join(which)}", flush=True)
            row[0].set_ylabel(f"{path.stem}\nodd windows found")
        for axis, which in zip(axes[0], ODDITIES, strict=True):
            axis.set_title("\n".join(which), fontsize=11)
        axes[-1, len(ODDITIES) // 2].set_xlabel("clean windows called odd", loc="left")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(scores.SCORES))
        save_small(figure, given.output)


if __name__ == "__main__":
    main()
