"""Where gaze is when a recording begins, and a second later: positions of training participants.

A page is read from its top, but gaze is elsewhere when it appears. Long gaze begins at positions
drawn from these distributions, unless it is steered otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.seeds import quantile_draw

TIMES_S = (0.0, 1.0)  # of a window that begins with the recording
BEGINNING_S = 1.0  # a window that begins within this time shows the beginning
POSITION_S = 0.1  # over which the position is averaged
_LEVELS = np.linspace(0.02, 0.98, 13)  # without the extremes of single participants
_LEAST_WINDOWS, _LEAST_PARTICIPANTS = 20, 5


@dataclass(frozen=True)
class Beginning:
    """Quantiles at equal levels of x and y at each of TIMES_S, normalized and independent.

    Windows that are too short for the second time have the first alone.
    """

    x: tuple[tuple[float, ...], ...]
    y: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> Beginning | None:
        """From the training participants of windows files; None where too few begin."""
        places: list[NDArray[np.float64]] = []
        n_participants = 0
        for part in parts:
            if task not in part.tasks:
                continue
            windows = part.of_task(task).train
            windows = windows.select(windows.elapsed_s < BEGINNING_S)
            n_participants += len(np.unique(windows.participant))
            n_samples = max(1, round(POSITION_S * part.rate_hz))
            gaze = windows.cut()
            firsts = [round(seconds * part.rate_hz) for seconds in TIMES_S]
            spans = [gaze[:, :, a : a + n_samples] for a in firsts if a + n_samples <= part.length]
            places.append(np.stack([np.median(span, axis=2) for span in spans], axis=2))
        values = np.concatenate(places) if places else np.empty(0)
        if len(values) < _LEAST_WINDOWS or n_participants < _LEAST_PARTICIPANTS:
            return None
        x, y = np.quantile(values, _LEVELS, axis=0).round(6).transpose(1, 2, 0).tolist()
        return cls(tuple(map(tuple, x)), tuple(map(tuple, y)))

    def draw(self, seed: int) -> list[tuple[float, float]]:
        """A position at each of TIMES_S."""
        rng = np.random.default_rng(seed)
        return [
            (float(quantile_draw(x, rng.random(1))[0]), float(quantile_draw(y, rng.random(1))[0]))
            for x, y in zip(self.x, self.y, strict=True)
        ]

    def to_json(self) -> dict[str, list[list[float]]]:
        """The quantiles by name."""
        return {name: [list(one) for one in values] for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Beginning:
        """Read what `to_json` wrote."""
        return cls(**{name: tuple(map(tuple, one)) for name, one in values.items()})
