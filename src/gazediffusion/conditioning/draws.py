"""What windows are generated from: their condition, and what of it users and files are shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.style import Style

# The tensors that a network takes after its input and noise level.
Condition = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Draw:
    """What some windows are generated from.

    tasks, components: of each window, empty for an unconditional model. targets: (window,
    statistic), standardized, where there are statistics. steps, grids: (window, 2) resolution of
    the recordings they are drawn after, normalized; empty where there is none. style: whose
    statistics they have (style.py).
    """

    condition: Condition = ()
    tasks: tuple[int, ...] = ()
    components: tuple[int, ...] = ()
    targets: Tensor | None = None
    steps: NDArray[np.float64] | None = None
    grids: NDArray[np.float64] | None = None
    style: Style | None = None
