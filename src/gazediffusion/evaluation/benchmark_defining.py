"""Making a definition of the benchmark of recordings: histograms, curves, floors, balls; no rows.

How it is used: benchmark_definition.py. The floor of the distances is of all training participants.
Balls are fitted to half of them, and the other half gives precision and coverage of the row of real
windows. Its distances are of draws of half of the training participants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.benchmark import figures_of
from gazediffusion.evaluation.benchmark_definition import (
    DEFINITION_FORMAT,
    VERSION,
    Definition,
)
from gazediffusion.evaluation.distances import bins_of
from gazediffusion.evaluation.feature_balls import NAMES, Balls
from gazediffusion.evaluation.gaze_sets import GazeSet, stream
from gazediffusion.evaluation.headline import FAMILIES, Counted
from gazediffusion.evaluation.metrics import Estimate, histogram_counts
from gazediffusion.evaluation.quantities import FEATURES, SCALARS, Measured
from gazediffusion.evaluation.result import plain_values
from gazediffusion.evaluation.summarising import DIGITS, MIN_PARTICIPANTS
from gazediffusion.version import __version__

N_WINDOWS, N_BALLS, N_DRAWS = 300, 64, 40
# Figures of what was fitted to half of the training participants.
FITTED = ("precision", "coverage")
Floats = NDArray[np.float64]


def define(
    windows: Windows,
    task: str,
    citation: str,
    version: int = VERSION,
    n_windows: int = N_WINDOWS,
    n_balls: int = N_BALLS,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """The content of a definition: one task of a windows file as plain values.

    n_draws: of n_windows windows of the training participants that floors are the mean of.
    """
    of_task = windows.of_task(task)
    sides = {"real": of_task.held_out, "train": of_task.train}
    n_participants = {who: len(np.unique(one.participant)) for who, one in sides.items()}
    if min(n_participants.values()) < 2 * MIN_PARTICIPANTS or len(sides["train"]) < 2 * n_windows:
        raise GazeError(f"too few participants or windows of the task {task!r} for a benchmark")
    sets = {who: GazeSet.of(who, one) for who, one in sides.items()}
    progress("measuring real gaze")
    measured = {who: one.measure() for who, one in sets.items()}
    distances = _distances(measured["real"], measured["train"])
    first, second = _halves(sets["train"], seed)
    features = {who: _features(one) for who, one in measured.items()}
    balls = Balls.fit(
        features["train"][first], sets["train"].group[first], features["real"], n_balls, seed
    )
    content = {
        "format": DEFINITION_FORMAT,
        "benchmark_version": version,
        "gazediffusion_version": __version__,
        "task": task,
        "n_windows": n_windows,
        "seed": seed,
        "real": {
            "name": "benchmark",
            "citation": citation,
            "data_sha256": windows.provenance.get("data_sha256"),
            "rate_hz": windows.rate_hz,
            "length": windows.length,
            "screen": asdict(of_task.screen),
            "tasks": [task],
            "sets": {
                who: {"n_windows": len(one), "n_participants": n_participants[who]}
                for who, one in sides.items()
            },
        },
        "counts": Counted.of(sets["train"]).values,
        "distances": distances,
        "balls": balls.to_plain(),
        "training_row": {},
    }
    # What is drawn is compared with the numbers as they stand in the file.
    content = plain_values(content, digits=DIGITS)
    definition = Definition(content, "")
    held_back = sets["train"].select(second)
    _add_floors(definition, sets["train"], n_draws, progress)
    content["training_row"] = _training_row(definition, sets["train"], held_back, n_draws, progress)
    found: dict[str, Any] = plain_values(content, digits=DIGITS)
    return found


def _distances(real: Measured, train: Measured) -> dict[str, dict[str, Any]]:
    """The distances of the headline: Jensen-Shannon divergences, and curves' differences.

    Speed, turning angle and path length are in two families and count once.
    """
    of_name = {one.name: key for key, one in real.quantities.items() if one.family in FAMILIES}
    rows: dict[str, dict[str, Any]] = {}
    for key in of_name.values():
        edges = bins_of(real.quantities[key], train.quantities[key])
        low, high = plain_values(edges[[0, -1]], digits=DIGITS)
        edges = np.linspace(low, high, len(edges))
        values = real.quantities[key].values
        rows[key] = {
            "kind": "js",
            "title": real.quantities[key].title,
            "low": low,
            "high": high,
            "real": histogram_counts(values, edges) / len(values),
            "floor": 1.0,
        }
    for name, title in SCALARS.items():
        real_curve = real.curves[name].mean()
        rows[name] = {"kind": "l1", "title": title, "real": real_curve, "floor": 1.0}
    return rows


def _add_floors(
    definition: Definition, train: GazeSet, n_draws: int, progress: Callable[[str], None]
) -> None:
    """Mean distance of draws of the training participants' windows."""
    drawn = []
    for number in range(n_draws):
        progress(f"floor: draw {number + 1} of {n_draws}")
        rng = stream(definition.content["seed"], f"floor {number}")
        drawn.append(definition.values(train.cut(definition.n_windows, rng).measure()))
    for key, row in definition.distances.items():
        row["floor"] = float(f"{np.mean([one[key] for one in drawn]):.{DIGITS}g}")


def _training_row(
    definition: Definition,
    train: GazeSet,
    held_back: GazeSet,
    n_draws: int,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Figures of draws of real windows: their median and central 95 %.

    held_back: the participants whom the balls were not fitted to.
    """
    drawn = []
    for number in range(n_draws):
        progress(f"real windows: draw {number + 1} of {n_draws}")
        rng = stream(definition.content["seed"], f"training row {number}")
        participants = rng.permutation(np.unique(train.group))
        half = train.select(np.isin(train.group, participants[: len(participants) // 2]))
        both = []
        for real in (half, held_back):
            one = real.cut(definition.n_windows, rng)
            both.append(figures_of(definition, one.measure(), one))
        drawn.append(both[0] | {key: both[1][key] for key in FITTED})
    row: dict[str, Any] = {"worst": ""}
    for key, cell in drawn[0].items():
        if isinstance(cell, Estimate):
            low, value, high = np.percentile([one[key].value for one in drawn], [2.5, 50, 97.5])
            row[key] = {"value": value, "interval": [low, high]}
    return row


def _features(measured: Measured) -> Floats:
    return measured.features[:, [list(FEATURES).index(name) for name in NAMES]]


def _halves(train: GazeSet, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Windows of the half of the participants to fit to, and of the other, as indices."""
    participants = stream(seed, "benchmark halves").permutation(np.unique(train.group))
    is_first = np.isin(train.group, participants[: len(participants) // 2])
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)
