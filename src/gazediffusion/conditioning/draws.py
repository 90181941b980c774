"""What windows are generated from: their condition, and what of it users and files are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

import numpy as np
import torch
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

    @classmethod
    def joined(cls, parts: Sequence[Draw]) -> Draw:
        """Draws of one model as that of one batch; they have no style."""

        def whole(values: list[Any]) -> Any:
            if isinstance(values[0], Tensor):
                return torch.cat(values)
            return np.concatenate(values) if isinstance(values[0], np.ndarray) else None

        found = {one.name: [getattr(part, one.name) for part in parts] for one in fields(cls)}
        return cls(
            condition=tuple(map(torch.cat, zip(*found.pop("condition"), strict=True))),
            tasks=tuple(chain(*found.pop("tasks"))),
            components=tuple(chain(*found.pop("components"))),
            **{name: whole(values) for name, values in found.items()},
        )
