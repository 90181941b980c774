"""What tables, figures and page are built from, and which part of it is required."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.reproduction.plan import Plan

# Kind (evaluations, frechet, histories, levels, bounds) -> names of the artefacts required.
Required = Mapping[str, list[str]]


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Everything that is there; a part that was not required is not among the keys.

    evaluations: by name, the results of `evaluation.evaluate` in plain values.
    frechet: by set, and of "train" (as many windows of the training participants), the Frechet
        Gaze Distance to the held-out participants with its bootstrap replicates.
    histories: by run, losses by epoch, time, device. levels: by run, see `loss_by_level`.
    bounds: by run, the variational bound on held-out windows, see `held_out_bound`.
    shown: a few windows (window, 2, time) of normalized gaze by set, for the figures.
    about: data, screen, numbers of participants and windows, versions, command.
    """

    plan: Plan
    evaluations: Mapping[str, Mapping[str, Any]]
    frechet: Mapping[str, Mapping[str, Any]]
    histories: Mapping[str, Mapping[str, Any]]
    levels: Mapping[str, Mapping[str, Any]]
    bounds: Mapping[str, Mapping[str, Any]]
    shown: Mapping[str, NDArray[np.float32]]
    about: Mapping[str, Any]

    def has(self, required: Required) -> bool:
        """Whether all that is required is there."""
        return all(set(names) <= set(getattr(self, kind)) for kind, names in required.items())
