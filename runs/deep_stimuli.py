"""Does the deep two-sample test recognise stimuli that its participants share?

    python runs/deep_stimuli.py gazecom6.safetensors --task movies [--model joint] [--seeds 6]
    python runs/deep_stimuli.py bioeye6.safetensors --task reading

A network is trained on windows of training participants in half of the stimuli, against windows of
the model, and tested on held-out participants: in the same stimuli, and in the others. As a
control, the same on half of the windows of all stimuli, where both halves were seen. Stimuli of
GazeCom are films by name; of BioEye's reading, the text of each session. Prints the AUC of 8 s of
every trial and the means. A trial takes about 15 s on an H200, and tens of minutes on two cores.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

import gazediffusion as gd
from gazediffusion.device import choose_device
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.snippet_network import Fitting, fit, scores
from gazediffusion.models.representations import Joint

STOPPING = 5  # one of so many participants stops the training
SHARES = (0.55, 0.7)  # of generated windows: trained on, up to here stopped at, the rest tested


def stimuli(windows: gd.Windows, task: str) -> NDArray[np.str_]:
    """The stimulus of each window, from the name of its trial."""
    trials = [str(one) for one in windows.identity["trial"]]
    if task == "reading":
        return np.array([one.split("-")[0] for one in trials])
    return np.array([re.sub(r"^rep_\d+_|-\d+$", "", one) for one in trials])


def auc(real: NDArray[np.float32], generated: NDArray[np.float32]) -> float:
    """The probability that a generated window has the larger logit."""
    is_generated = np.r_[np.zeros(len(real)), np.ones(len(generated))]
    return float(roc_auc_score(is_generated, np.r_[real, generated]))


def trials(
    training: gd.Windows,
    held_out: gd.Windows,
    encoded: Callable[[gd.Windows], Tensor],
    generated: Tensor,
    task: str,
    given: argparse.Namespace,
) -> Iterator[tuple[str, float, float]]:
    """For each trial what was trained on, and the AUC in the same stimuli and in the others."""
    of_training, of_held_out = stimuli(training, task), stimuli(held_out, task)
    x_training, x_held_out = encoded(training), encoded(held_out)
    length = training.length
    for seed in range(given.seeds):
        rng = np.random.default_rng(seed)
        names = rng.permutation(np.unique(of_training))
        is_half = np.isin(of_training, names[: len(names) // 2])
        is_seen = np.isin(of_held_out, names[: len(names) // 2])
        participants = rng.permutation(np.unique(training.participant))
        stops = np.isin(training.participant, participants[: max(2, len(participants) // STOPPING)])
        order = rng.permutation(len(generated))
        first, second, third = np.split(order, [int(one * len(order)) for one in SHARES])
        is_drawn = rng.permutation(len(training)) < is_half.sum()
        for name, chosen in {
            "half of the stimuli": is_half,
            "half of the windows": is_drawn,
        }.items():
            network = fit(
                (x_training[np.flatnonzero(chosen & ~stops)], generated[first]),
                (x_training[np.flatnonzero(chosen & stops)], generated[second]),
                length,
                Fitting(n_steps=given.steps, batch_size=given.batch_size),
                seed,
            )
            real, made = (
                scores(network, one, length, 1).mean(1).cpu().numpy()
                for one in (x_held_out, generated[third])
            )
            yield name, auc(real[is_seen], made), auc(real[~is_seen], made)


def main() -> None:
    """Print every trial, then the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows")
    parser.add_argument("--task", default="movies")
    parser.add_argument("--model", default="joint")
    parser.add_argument("-n", type=int, default=5000, help="windows generated")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    device = choose_device(given.device)
    windows = gd.Windows.load(given.windows)
    training, held_out = (part.of_task(given.task) for part in (windows.train, windows.held_out))
    representation = Joint.of_gaze(GazeSet.of("real", training).gaze[::20], windows.rate_hz)

    def encoded(part: gd.Windows) -> Tensor:
        gaze = np.ascontiguousarray(GazeSet.of("set", part).gaze, dtype=np.float32)
        return representation.encode(torch.from_numpy(gaze).to(device))

    made = gd.load(given.model, device=given.device).sample(given.n, task=given.task, seed=1000)
    found: dict[str, list[tuple[float, float]]] = {}
    for name, same, other in trials(training, held_out, encoded, encoded(made), given.task, given):
        found.setdefault(name, []).append((same, other))
        print(f"{name}: same stimuli {same:.3f}, others {other:.3f}", flush=True)
    print("\n| trained on | n trials | same stimuli | others |\n|---|---:|---:|---:|")
    for name, rows in found.items():
        same, other = np.mean(rows, axis=0)
        print(f"| {name} | {len(rows)} | {same:.3f} | {other:.3f} |")


if __name__ == "__main__":
    main()
