"""Put a version of the benchmark into the package: its network, and a definition of each task.

    python runs/define_benchmark.py BIOEYE.safetensors GAZECOM.safetensors --generated FOLDER
        [--steps 600] [--draws 40] [--only-network | --only TASK ...]

Five minutes on two cores. A version that was published never changes: raise VERSION in
evaluation/benchmark_definition.py first, or the script refuses to write. The network is trained on
half of the training participants of all tasks, against the four baselines, planted defects and
windows of the packaged model (FOLDER/TASK.safetensors, of another seed than any row). Definitions
hold histograms, means and centres of balls, never rows (docs/benchmark.md).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.benchmark_defining import N_DRAWS, define, participant_halves
from gazediffusion.evaluation.benchmark_definition import VERSION, definitions_folder
from gazediffusion.evaluation.classifier import participant_folds
from gazediffusion.evaluation.fixed_network import NETWORK, trained_network
from gazediffusion.evaluation.gaze_sets import GazeSet, stream
from gazediffusion.evaluation.trials import jitter, median_step, scaled
from gazediffusion.files import written_whole
from gazediffusion.generation.baselines import BASELINES, fit_baseline

Gaze = NDArray[np.float32]

CITATIONS = {
    "movies": "Dorr, Martinetz, Gegenfurtner, Barth 2010, Variability of eye movements when "
    "viewing dynamic natural scenes, J Vision 10(10):28",
    "reading": "BioEye 2015 - Competition on Biometrics via Eye Movements, "
    "doi 10.1109/BTAS.2015.7358750",
    "dots": "BioEye 2015 - Competition on Biometrics via Eye Movements, "
    "doi 10.1109/BTAS.2015.7358750",
}
SMOOTH = 2.0  # samples, standard deviation of a planted filter
N_EACH = 200  # windows of each kind of synthetic gaze and task
STOPPING = 5  # one of so many folds stops the training


def defective(real: GazeSet, rng: np.random.Generator) -> dict[str, Gaze]:
    """Real windows with planted defects."""
    step = median_step(real.gaze)

    def some() -> GazeSet:
        return real.select(rng.permutation(len(real.gaze))[:N_EACH])

    found = {f"jitter {share:g}": jitter(share, step)(some(), rng).gaze for share in (0.5, 1, 2)}
    found |= {f"scale {by:g}": scaled(by)(some(), rng).gaze for by in (0.8, 1.25)}
    found["reversed"] = some().gaze[..., ::-1]
    found["smooth"] = gaussian_filter1d(some().gaze, SMOOTH, axis=-1)
    return {name: np.ascontiguousarray(gaze, dtype=np.float32) for name, gaze in found.items()}


def two_sides(
    files: Sequence[Windows], tasks: Sequence[str], generated: Path
) -> tuple[list[Gaze], list[Gaze]]:
    """Real and synthetic windows to train on, and windows that stop the training."""
    sides: tuple[list[list[Gaze]], list[list[Gaze]]] = ([[], []], [[], []])
    for windows in files:
        for task in (one for one in tasks if one in windows.tasks):
            of_task = windows.of_task(task)
            train = GazeSet.of("train", of_task.train)
            rng = stream(0, f"network {task}")
            half = train.select(participant_halves(train)[0])
            is_stopping = participant_folds(half.group, STOPPING) == 0
            for part, chosen in enumerate((~is_stopping, is_stopping)):
                real = half.select(chosen)
                sides[0][part].append(real.gaze)
                sides[1][part] += list(defective(real, rng).values())
            made = {name: fit_baseline(name, of_task).sample(N_EACH, 1) for name in BASELINES}
            made["packaged model"] = Windows.load(generated / f"{task}.safetensors")
            for name, one in made.items():
                gaze = GazeSet.of(name, one, True).gaze
                n_stop = len(gaze) // STOPPING
                sides[1][0].append(gaze[n_stop:])
                sides[1][1].append(gaze[:n_stop])
            print(f"{task}: {len(half.gaze)} real windows, against {', '.join(made)}", flush=True)
    real, synthetic = ([np.concatenate(part) for part in side] for side in sides)
    return real, synthetic


def show(name: str) -> Callable[[Any], None]:
    """Progress in one line."""
    return lambda step: print(f"\r{name} {step}   ", end="", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the network, then write the definitions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("windows", type=Path, nargs="+")
    parser.add_argument("--generated", type=Path, help="windows of the packaged model, by task")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--only", nargs="+", help="tasks; the network stays as it is")
    parser.add_argument("--only-network", action="store_true")
    parser.add_argument("--folder", type=Path, default=definitions_folder(VERSION))
    given = parser.parse_args(arguments)
    files = [Windows.load(path) for path in given.windows]
    tasks = given.only or [task for task in CITATIONS if any(task in one.tasks for one in files)]
    network = given.folder / NETWORK
    if given.only is None:
        if network.exists():
            raise GazeError("this version has a network", path=network, remedy="raise VERSION")
        real, synthetic = two_sides(files, tasks, given.generated)
        fixed = trained_network(real, synthetic, files[0].rate_hz, 0, given.steps,
                                on_step=show("network: step"))  # fmt: skip
        given.folder.mkdir(parents=True, exist_ok=True)
        fixed.save(network)
        print(f"\nwrote {network}: {network.stat().st_size / 1000:.0f} kB")
    for task in () if given.only_network else tasks:
        path = given.folder / f"{task}.json"
        windows = next(one for one in files if task in one.tasks)
        content = define(
            windows, task, CITATIONS[task], network, n_draws=given.draws, progress=show(task)
        )
        with written_whole(path, overwrite=False) as temporary:
            text = json.dumps(content, separators=(",", ":"), allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        row = {key: content["training_row"][key] for key in ("ratio", "coverage", "network_auc")}
        print(f"\nwrote {path}: {path.stat().st_size / 1000:.0f} kB, real windows {row}")


if __name__ == "__main__":
    main()
