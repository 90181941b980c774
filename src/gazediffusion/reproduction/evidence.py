"""Evidence: published numbers that can be computed again from the packaged weights.

The packaged models `position` and `velocity` are the runs of `PACKAGED`. `reproduce --packaged`
generates their sets again, and `disagreements` compares the rows that follow from these runs alone
with published ones. `features_of_first` describes the first windows of a set, which a test
generates again in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.models.checkpoint import Run, RunConfig
from gazediffusion.models.unet import n_parameters
from gazediffusion.reproduction.rows import Row, Rows

# run -> the packaged model that has its weights
PACKAGED = {"position-42": "position", "velocity-0": "velocity"}
# The sampler on another device differs in the last digits of every step.
TOLERANCE = 0.02
N_FIRST = 2


def features_of_first(gaze: NDArray[np.float32], rate_hz: float) -> list[dict[str, float]]:
    """The nine features of the first windows of gaze (window, 2, time)."""
    found = kinematic_features(gaze[:N_FIRST], rate_hz)
    n = min(N_FIRST, len(gaze))
    return [{name: float(values[k]) for name, values in found.items()} for k in range(n)]


def disagreements(
    found: Iterable[Mapping[str, Any]],
    published: Iterable[Mapping[str, Any]],
    tolerance: float = TOLERANCE,
) -> tuple[int, list[str]]:
    """How many rows of both are of the same runs and windows, and those whose numbers differ.

    A number agrees within the tolerance, relative to the larger of it and its floor.
    """
    of, n_compared, lines = Rows.from_json(published).of, 0, []
    for key, row in Rows.from_json(found).of.items():
        other = of.get(key)
        if other is None or not _are_of_the_same_runs(row, other):
            continue
        n_compared += 1
        scale = max(abs(other.number), abs(other.floor or 0.0), 1e-12)
        if abs(row.number - other.number) > tolerance * scale:
            lines.append(f"{': '.join(key)}: {row.number:.4g} here, {other.number:.4g} published")
    return n_compared, lines


def _are_of_the_same_runs(row: Row, other: Row) -> bool:
    """Whether both are numbers of one run each, the same, at as many windows."""
    is_number = isinstance(row.ours, float | int) and isinstance(other.ours, float | int)
    return is_number and len(row.seeds) == 1 and (row.seeds, row.n) == (other.seeds, other.n)


def packaged_history(name: str, run: Run) -> dict[str, Any]:
    """What is known of the training of packaged weights: no curve, no time."""
    return {
        **described_run(name, run.config),
        "epochs": run.config.recipe.epochs,
        "best_validation_loss": run.validation_loss,
        "best_epoch": run.epoch + 1,
        "training_loss_at_best": None,
        "seconds": None,
        "gpu": None,
        "validation_loss": [],
        "training_loss": [],
    }


def described_run(name: str, config: RunConfig) -> dict[str, Any]:
    """What a run's configuration says of its history."""
    kept = ("seed", "device", "precision", "gazediffusion_version", "torch_version")
    return {
        "run": name,
        "recipe": config.recipe.name,
        "objective": config.recipe.objective,
        "n_parameters": n_parameters(config.recipe.network),
        **{key: getattr(config, key) for key in kept},
    }
