"""Where gaze is when a recording begins: positions of the training participants.

A page is read from its top. Long gaze begins at a position drawn from this distribution, unless it
is steered otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gazediffusion.data.windows import Windows
from gazediffusion.seeds import quantile_draw

BEGINNING_S = 1.0  # a window that begins within this time shows the beginning
POSITION_S = 0.1  # over which the position is averaged
_LEVELS = np.linspace(0.02, 0.98, 13)  # without the extremes of single participants
_LEAST_WINDOWS, _LEAST_PARTICIPANTS = 20, 5


@dataclass(frozen=True)
class Beginning:
    """Quantiles at equal levels of x and y at the beginning, normalized and independent."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> Beginning | None:
        """From the training participants of windows files; None where too few begin."""
        places, n_participants = [np.empty((0, 2))], 0
        for part in parts:
            if task not in part.tasks:
                continue
            windows = part.of_task(task).train
            windows = windows.select(windows.elapsed_s < BEGINNING_S)
            n_participants += len(np.unique(windows.participant))
            n_samples = max(1, round(POSITION_S * part.rate_hz))
            places.append(np.median(windows.cut()[:, :, :n_samples], axis=2))
        values = np.concatenate(places)
        if len(values) < _LEAST_WINDOWS or n_participants < _LEAST_PARTICIPANTS:
            return None
        x, y = np.quantile(values, _LEVELS, axis=0).round(6).T.tolist()
        return cls(tuple(x), tuple(y))

    def draw(self, seed: int) -> tuple[float, float]:
        """A position."""
        x, y = np.random.default_rng(seed).random((2, 1))
        return float(quantile_draw(self.x, x)[0]), float(quantile_draw(self.y, y)[0])

    def to_json(self) -> dict[str, list[float]]:
        """The quantiles by name."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Beginning:
        """Read what `to_json` wrote."""
        return cls(**{name: tuple(one) for name, one in values.items()})
