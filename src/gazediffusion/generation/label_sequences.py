"""From the probabilities of event classes to labels: the most probable ones, or as an annotator.

The most probable sequence puts a price on every change of class (Viterbi 1967), so that no label
flickers for a sample. It varies less than hand labels do: an annotator decides about events, and
not always alike. So an `Annotator` adds to the log probability of each class a Gaussian offset that
is constant over each event of the most probable sequence, and takes the most probable sequence of
these. An uncertain event changes its class as a whole or in part, others move their borders. How
strong offsets are is fitted on training participants (runs/annotator.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.errors import GazeError
from gazediffusion.files import read_json, write_json
from gazediffusion.geometry import Floats
from gazediffusion.models.pretrained import LABELS
from gazediffusion.seeds import seed_for

Labels = NDArray[np.uint8]
LabelKind = bool | Literal["annotator"]  # none, the most probable ones, or drawn
FORMAT = "gazediffusion-labels"
# A change of class costs as much as e^3 times the probability; chosen by event F1 on GazeCom's
# training participants among 1, 2, 3 and 4.
CHANGE_COST = 3.0
_STREAM = 5  # names the random numbers of labels


@dataclass(frozen=True)
class Annotator:
    """Draws labels that vary as hand labels do.

    strengths: standard deviation of the offset of each class, in log probability. fitted_on: data
    and weights.
    """

    strengths: Mapping[str, float]
    fitted_on: Mapping[str, Any]

    def draw(self, probabilities: Floats, seed: int, first: int = 0) -> Labels:
        """Classes (window, time), from 0 on, of windows first.. of a seed.

        probabilities: (window, class, time), positive. Labels of a window depend on its number and
        not on the others.
        """
        n, n_classes, n_samples = probabilities.shape
        onset = _onsets(most_probable_sequence(probabilities))
        scale = np.array([self.strengths[name] for name in EVENT_CLASSES])
        gain = np.log(probabilities.astype(np.float64))
        for k in range(n):
            rng = np.random.default_rng(seed_for(seed, _STREAM, first + k))
            gain[k] += scale[:, None] * rng.standard_normal((n_classes, n_samples))[:, onset[k]]
        return most_probable_sequence(np.exp(gain - gain.max(axis=1, keepdims=True)))

    def describe(self) -> dict[str, Any]:
        """What a card says."""
        return {"strengths": dict(self.strengths), **self.fitted_on}

    def save(self, path: Path) -> None:
        """Write the strengths as JSON, to three digits."""
        strengths = {name: round(value, 3) for name, value in self.strengths.items()}
        fitted_on = dict(self.fitted_on)
        write_json(path, {"format": FORMAT, "strengths": strengths, "fitted_on": fitted_on})

    @classmethod
    def load(cls, folder: Path) -> Annotator:
        """The annotator in the folder of a model."""
        path = folder / LABELS
        if not path.is_file():
            raise GazeError(
                f"`labels` cannot be an annotator's: none is fitted for the model {folder.name}",
                remedy="take the most probable ones, or the default model",
            )
        try:
            values = read_json(path)
            if values["format"] != FORMAT:
                raise ValueError("another format")
            strengths = {name: float(values["strengths"][name]) for name in EVENT_CLASSES}
            return cls(strengths, dict(values["fitted_on"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GazeError(f"the annotator is damaged ({error})", path=path) from error


def most_probable_sequence(probabilities: Floats, cost: float = CHANGE_COST) -> Labels:
    """The classes (window, time), from 0 on, of largest log probability less `cost` per change.

    probabilities: (window, class, time), positive.

    >>> p = np.array([[[0.9, 0.9, 0.3, 0.9, 0.9, 0.1, 0.1, 0.1]]])
    >>> most_probable_sequence(np.concatenate([p, 1 - p], axis=1)).tolist()
    [[0, 0, 0, 0, 0, 1, 1, 1]]
    """
    # Time first, so that every step reads what lies together.
    gain = np.log(probabilities.astype(np.float64)).transpose(2, 0, 1)
    n_samples, n, n_classes = gain.shape
    before = np.empty((n_samples, n, n_classes), dtype=np.uint8)
    own = np.arange(n_classes, dtype=np.uint8)
    rows = np.arange(n)
    score = gain[0]
    for time in range(1, n_samples):
        best = score.argmax(axis=1)
        changed = (score[rows, best] - cost)[:, None]
        before[time] = np.where(score >= changed, own, best[:, None])
        score = np.maximum(score, changed) + gain[time]
    found = np.empty((n_samples, n), dtype=np.uint8)
    found[-1] = score.argmax(axis=1)
    for time in range(n_samples - 1, 0, -1):
        found[time - 1] = before[time, rows, found[time]]
    return np.ascontiguousarray(found.T)


def _onsets(labels: Labels) -> NDArray[np.int64]:
    """The first sample of the event that each sample (window, time) belongs to."""
    is_first = np.diff(labels.astype(np.int64), axis=1, prepend=-1) != 0
    starts = np.where(is_first, np.arange(labels.shape[1]), 0)
    return np.maximum.accumulate(starts, axis=1)
