"""How near synthetic windows come to training windows, against how near people come to each other.

    python runs/copies.py RUN WINDOWS.safetensors ... [-n 1000] [-o FILE]

The report's test of copies (memorisation.py) takes held-out people for what is near by chance. With
a few of them that is also a matter of who they are: calm gaze is near to everything, and of a few
people some are calmer than others. Here n windows of the training people stand for chance too, each
sought among the windows of all the *other* training people. Printed: the share of synthetic windows
that are nearer than all but 1 % of those, with its 95 % interval (1 % is chance), and nearer than
the nearest.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidelity import mixture
from gazediffusion.checkpoint import Run
from gazediffusion.files import write_json
from gazediffusion.learner import choose_device
from gazediffusion.memorisation import COPY_QUANTILE, nearest
from gazediffusion.shipped import load_model
from gazediffusion.windows import Windows


def among_others(training: Windows, n: int, seed: int) -> NDArray[np.float64]:
    """The distance of n training windows to the nearest of another person's, (window,)."""
    gaze = training.dequantized(seed=0).cut()
    chosen = np.random.default_rng(seed).permutation(len(gaze))[:n]
    people = training.participant
    found = [
        nearest(gaze[chosen[people[chosen] == one]], gaze[people != one]).distance
        for one in np.unique(people[chosen])
    ]
    return np.concatenate(found)


def compare(run: Run, windows: Windows, n: int) -> dict[str, Any]:
    """Shares of synthetic and of held-out windows that are too near for chance."""
    from scipy.stats import binomtest

    training = windows.train.dequantized(seed=0).cut()
    chance = among_others(windows.train, n, seed=0)
    limit, least = float(np.quantile(chance, COPY_QUANTILE)), float(chance.min())
    sets = {
        "model": mixture(run, windows, n, 0, quality="default").cut(),
        "held-out people": windows.held_out.dequantized(seed=0).cut(),
    }
    result: dict[str, Any] = {"n_chance": len(chance), "copy_distance": limit}
    for name, gaze in sets.items():
        distance = nearest(gaze, training).distance
        n_near = int((distance < limit).sum())
        interval = binomtest(n_near, len(gaze)).proportion_ci()
        result[name] = {
            "n": len(gaze),
            "share_of_copies": n_near / len(gaze),
            "interval": [float(interval.low), float(interval.high)],
            "share_below_minimum": float((distance < least).mean()),
            "median_distance": float(np.median(distance)),
        }
    result["median_distance"] = float(np.median(chance))
    return result


def main() -> None:
    """Print two lines for each windows file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    run = load_model(given.run, device=choose_device("auto"))
    found = {}
    for path in given.windows:
        found[path.stem] = one = compare(run, Windows.load(path), given.n)
        for name in ("model", "held-out people"):
            low, high = one[name]["interval"]
            print(
                f"{path.stem:10} {name:16} n {one[name]['n']:5}  nearer than 99 % of people to "
                f"others {100 * one[name]['share_of_copies']:.1f} % "
                f"[{100 * low:.1f}, {100 * high:.1f}], than all "
                f"{100 * one[name]['share_below_minimum']:.1f} %, median distance "
                f"{one[name]['median_distance']:.4f} (people to others "
                f"{one['median_distance']:.4f})",
                flush=True,
            )
    if given.output:
        write_json(given.output, found)
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
