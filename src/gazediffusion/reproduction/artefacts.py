"""What a reproduction has made, read back: all that tables, figures and page are built from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.reproduction.plan import Plan


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Everything made so far; a part that was not asked for is not among the keys.

    evaluations: by name, what `evaluation.evaluate` returned.
    features: by set, and of "real" and "train" (the training people, cut to as many windows),
        bottleneck features (window, width) for the Frechet Gaze Distance.
    histories: by run, see `making.history_of`.
    levels: by run, see `noise_levels.loss_by_level`.
    shown: a few windows (window, 2, time) of normalized gaze by set, for the figures.
    about: data, screen, counts of people and windows, versions, command.
    """

    plan: Plan
    evaluations: Mapping[str, Mapping[str, Any]]
    features: Mapping[str, NDArray[np.float64]]
    histories: Mapping[str, Mapping[str, Any]]
    levels: Mapping[str, Mapping[str, Any]]
    shown: Mapping[str, NDArray[np.float32]]
    about: Mapping[str, Any]
