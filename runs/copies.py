"""How near synthetic windows come to training windows, against how near people come to each other.

    python runs/copies.py RUN WINDOWS.safetensors ... [-n 1000] [-o FILE]

The report's test of copies (memorisation.py) takes held-out people for what is near by chance. With
a few of them that is also a matter of who they are: calm gaze is near to everything, and of a few
people some are calmer than others. Here n windows of the training people stand for chance too, each
sought among the windows of all the *other* training people; and distances are also taken as shares
of a window's own spread, which a calm window has little of. Printed: the shares of windows that are
nearer than all but 1 % of those, with their 95 % intervals (1 % is chance), and nearer than all.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidelity import mixture
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.evaluation.memorisation import COPY_QUANTILE, nearest
from gazediffusion.files import write_json
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import load_model

Distances = dict[str, NDArray[np.float64]]


def distances(gaze: NDArray[np.float32], training: NDArray[np.float32]) -> Distances:
    """Of each window to the nearest training window, as it is and over the window's spread."""
    distance = nearest(gaze, training).distance
    spread = np.sqrt(gaze.var(axis=2, dtype=np.float64).sum(axis=1))
    return {"distance": distance, "over its spread": distance / np.maximum(spread, 1e-6)}


def among_others(
    gaze: NDArray[np.float32], people: NDArray[np.integer[Any]], n: int, seed: int
) -> Distances:
    """The same of n of these people's windows to the nearest of another person's."""
    chosen = np.random.default_rng(seed).permutation(len(gaze))[:n]
    found = [
        distances(gaze[chosen[people[chosen] == one]], gaze[people != one])
        for one in np.unique(people[chosen])
    ]
    return {key: np.concatenate([one[key] for one in found]) for key in found[0]}


def compare(run: Run, windows: Windows, n: int) -> dict[str, Any]:
    """Shares of synthetic and of held-out windows that are too near for chance."""
    from scipy.stats import binomtest

    training = windows.train.dequantized(seed=0).cut()
    chance = among_others(training, windows.train.participant, n, seed=0)
    sets = {
        "model": mixture(run, windows, n, 0, quality="default").cut(),
        "held-out people": windows.held_out.dequantized(seed=0).cut(),
    }
    result: dict[str, Any] = {}
    for name, gaze in sets.items():
        result[name] = {"n": len(gaze)}
        for key, found in distances(gaze, training).items():
            n_near = int((found < np.quantile(chance[key], COPY_QUANTILE)).sum())
            interval = binomtest(n_near, len(gaze)).proportion_ci()
            result[name][key] = {
                "share_of_copies": n_near / len(gaze),
                "interval": [float(interval.low), float(interval.high)],
                "share_below_minimum": float((found < chance[key].min()).mean()),
                "median": float(np.median(found)),
                "median_by_chance": float(np.median(chance[key])),
            }
    return result


def main() -> None:
    """Print four lines for each windows file."""
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
        for name, of_set in one.items():
            for key in ("distance", "over its spread"):
                near = of_set[key]
                low, high = (100 * edge for edge in near["interval"])
                print(
                    f"{path.stem:10} {name:16} n {of_set['n']:5} {key:16} nearer than 99 % of "
                    f"people to others: {100 * near['share_of_copies']:.1f} % [{low:.1f}, "
                    f"{high:.1f}], than all: {100 * near['share_below_minimum']:.1f} %; median "
                    f"{near['median']:.3f} ({near['median_by_chance']:.3f})",
                    flush=True,
                )
    if given.output:
        write_json(given.output, found)
        print(f"wrote {given.output}")


if __name__ == "__main__":
    main()
