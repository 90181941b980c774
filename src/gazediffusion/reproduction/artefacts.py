"""What tables, figures and page are built from, and which part of it is required."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.reproduction.plan import Plan

# Kind (evaluations, features, histories, levels) -> names of the artefacts that are required.
Required = Mapping[str, list[str]]


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Everything that is there; a part that was not required is not among the keys.

    evaluations: by name, the results of `evaluation.evaluate` in plain values.
    features: by set, and of "real" and "train" (as many windows of the training participants),
        bottleneck features (window, width) for the Frechet Gaze Distance.
    histories: by run, losses by epoch, time, device. levels: by run, see `loss_by_level`.
    shown: a few windows (window, 2, time) of normalized gaze by set, for the figures.
    about: data, screen, numbers of participants and windows, versions, command.
    """

    plan: Plan
    evaluations: Mapping[str, Mapping[str, Any]]
    features: Mapping[str, NDArray[np.float64]]
    histories: Mapping[str, Mapping[str, Any]]
    levels: Mapping[str, Mapping[str, Any]]
    shown: Mapping[str, NDArray[np.float32]]
    about: Mapping[str, Any]

    def has(self, required: Required) -> bool:
        """Whether all that is required is there."""
        return all(set(names) <= set(getattr(self, kind)) for kind, names in required.items())
