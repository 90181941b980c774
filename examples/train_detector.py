"""Event detectors trained on synthetic labelled gaze, tested on labels of unseen participants.

    python examples/train_detector.py [LABELLED ...] [-n 100]

LABELLED: recordings with a column of event labels (fixation, saccade, pursuit, noise), with the
size of their screen, or a windows file of them. Without any, recordings are simulated, whose true
events are known. The packaged model generates as many labelled windows, each chosen from two so
that pursuit is as frequent as in recordings. A small network and a random forest are trained on
recorded windows, on synthetic ones and on both, and tested on participants that none of them has
seen. A few minutes on a laptop.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import gazediffusion as gd
from gazediffusion.data.writers import write_into
from gazediffusion.evaluation.labels import (
    Detector,
    ForestDetector,
    NetworkDetector,
    match_events,
    match_samples,
)


def simulated_windows(n_participants: int) -> gd.Windows:
    """Windows of simulated participants with their true labels."""
    config = gd.SimulationConfig(n_participants=n_participants, minutes=1, binocular=False)
    with tempfile.TemporaryDirectory() as folder:
        trials = ((replace(one.recording, labels=one.labels), ()) for one in gd.simulate(config))
        write_into(Path(folder) / "recordings", trials, "parquet")
        return gd.prepare(gd.read(Path(folder) / "recordings"))


def labelled_windows(paths: Sequence[Path]) -> gd.Windows:
    """Windows of recordings or of a windows file; only those with labels."""
    is_file = len(paths) == 1 and paths[0].suffix == ".safetensors"
    windows = gd.Windows.load(paths[0]) if is_file else gd.prepare(gd.read(list(paths)))
    return windows.select((windows.cut_labels() > 0).mean(axis=1) > 0.5)


def line(name: str, detector: Detector, test: gd.Windows) -> str:
    """A row of the table: F1 of samples and of events by class."""
    true, found = test.cut_labels(), detector.labels(test)
    rows = [match(true, found).f1() for match in (match_samples, match_events)]
    cells = ["" if np.isnan(v) else f"{v:.3f}" for row in rows for v in row]
    return f"| {name} | {' | '.join(cells)} |"


def main(paths: Sequence[Path] = (), n: int = 100, steps: int = 300, participants: int = 8) -> None:
    windows = labelled_windows(paths) if paths else simulated_windows(participants)
    real, test = windows.train.subsample(n), windows.held_out.subsample(n)
    print(f"recorded: {real}; tested on: {test}")
    model = gd.load("default")
    synthetic = model.sample(n, task="movies", seed=0, labels=True)
    print(f"synthetic: {synthetic}")
    kinds = [f"{unit} {name}" for unit in ("sample", "event") for name in gd.EVENT_CLASSES]
    print(f"| detector, trained on | {' | '.join(kinds)} |\n|---|{'---:|' * len(kinds)}")
    sets = {"recorded": [real], "synthetic": [synthetic], "both": [real, synthetic]}
    for name, chosen in sets.items():
        network = NetworkDetector.fit(chosen, steps=steps, device=model.device)
        print(line(f"network, {name}", network, test), flush=True)
        print(line(f"forest, {name}", ForestDetector.fit(chosen), test), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", type=Path, nargs="*")
    parser.add_argument("-n", type=int, default=100, help="windows of each kind")
    arguments = parser.parse_args()
    main(arguments.labelled, arguments.n)
