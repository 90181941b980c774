"""Choice by events: a window is generated twice, and one of the two is taken by its events.

A network can give events of a class less often than recordings have them, as pursuits in movies.
Both windows have the same condition and different noise. The second is taken with the odds
exp(sum over classes of weight x difference of the numbers of events), so that the distribution of
everything else changes as little as it can. Weights are fitted so that the mean number of events is
that of the training participants' windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES, label_segments
from gazediffusion.errors import GazeError
from gazediffusion.files import table_of, write_json
from gazediffusion.models.pretrained import EVENTS
from gazediffusion.seeds import seed_for

Labels = NDArray[np.uint8]
Values = NDArray[np.float64]
FORMAT = "gazediffusion-events"
_STREAM = 6  # names the random numbers of the choice
_MOST = 3.0  # log odds of an event


@dataclass(frozen=True)
class EventChoice:
    """Takes one of two windows by the numbers of their events.

    task: of the windows. weights: log odds of an event of a class. fitted_on: data and weights of
    the network.
    """

    task: str
    weights: Mapping[str, float]
    fitted_on: Mapping[str, Any]

    def takes_second(self, one: Values, other: Values, seed: int, first: int) -> NDArray[np.bool_]:
        """Of which windows first.. of a seed the second is taken, (window,).

        one, other: numbers of events (window, class) of both. The choice of a window depends on its
        number and not on the others.
        """
        weights = np.array([self.weights.get(name, 0.0) for name in EVENT_CLASSES])
        uniforms = [
            np.random.default_rng(seed_for(seed, _STREAM, first + k)).random()
            for k in range(len(one))
        ]
        return np.asarray(np.array(uniforms) < _share_of_second((other - one) @ weights))

    def describe(self) -> dict[str, Any]:
        """What a card says."""
        return {"weights": dict(self.weights), **self.fitted_on}

    def save(self, path: Path) -> None:
        """Write as JSON, weights to three digits."""
        weights = {name: round(value, 3) for name, value in self.weights.items()}
        found = {"format": FORMAT, "task": self.task, "weights": weights}
        write_json(path, {**found, "fitted_on": dict(self.fitted_on)})

    @classmethod
    def load(cls, folder: Path) -> EventChoice:
        """The choice in the folder of a model."""
        path = folder / EVENTS
        if not path.is_file():
            raise GazeError(
                f"`candidates` cannot be chosen by events: no weights are fitted for the model "
                f"{folder.name}",
                remedy="leave `candidates` out, or take the default model",
            )
        with table_of(path, FORMAT, "the weights of events are damaged") as values:
            weights = {str(name): float(one) for name, one in values["weights"].items()}
            if unknown := weights.keys() - set(EVENT_CLASSES):
                raise ValueError(f"there is no event class {min(unknown)!r}")
            return cls(str(values["task"]), weights, dict(values["fitted_on"]))


def count_events(labels: Labels) -> Values:
    """Number of events of each class in windows (window, time), (window, class).

    >>> count_events(np.array([[1, 1, 2, 1, 3, 3]], dtype=np.uint8)).tolist()
    [[2.0, 1.0, 1.0, 0.0]]
    """
    n = len(EVENT_CLASSES)
    counts = [np.bincount(label_segments(own)[:, 2], minlength=n + 1)[1:] for own in labels]
    return np.array(counts, dtype=float).reshape(len(labels), n)


def _share_of_second(log_odds: Values) -> Values:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def fitted_weight(one: Values, other: Values, recorded: float) -> float:
    """The log odds of an event by which a mean of `recorded` events is expected.

    one, other: numbers of events in both windows of each pair, (pair,). Means that no weight
    reaches give the largest or the least.

    >>> n = np.array([0.0, 1.0, 2.0, 3.0])
    >>> round(fitted_weight(n, n[::-1], 1.5), 6)
    0.0
    >>> 0 < fitted_weight(n, n[::-1], 2.0) < 3
    True
    """
    from scipy.optimize import brentq

    def excess(weight: float) -> float:
        share = _share_of_second(weight * (other - one))
        return float((one + share * (other - one)).mean() - recorded)

    if excess(-_MOST) >= 0 or excess(_MOST) <= 0:
        return _MOST if excess(_MOST) <= 0 else -_MOST
    return float(brentq(excess, -_MOST, _MOST))
