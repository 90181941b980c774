"""From the probabilities of event classes to labels: the most probable ones, or as an annotator.

The most probable sequence puts a price on every change of class (Viterbi 1967), so that no label
flickers for a sample. It varies less than hand labels do: annotators decide about the class of an
event, and not always alike, and they set its borders apart: those of saccades by a few
milliseconds, those of pursuit and noise by more. So an `Annotator` divides gaze into the events of
the most probable sequence. The class of an event is that of the largest mean log probability plus a
Gaussian offset, and every border between two classes moves by a Gaussian. Both are fitted on
training participants (runs/annotator.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES, label_segments
from gazediffusion.errors import GazeError
from gazediffusion.files import table_of, write_json
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

    strengths: standard deviation of the offset of each class, in log probability. borders: standard
    deviation of the place of a border, in samples; of its two classes the larger one. fitted_on:
    data and weights.
    """

    strengths: Mapping[str, float]
    borders: Mapping[str, float]
    fitted_on: Mapping[str, Any]

    def draw(self, probabilities: Floats, seed: int, first: int = 0) -> Labels:
        """Classes (window, time), from 0 on, of windows first.. of a seed.

        probabilities: (window, class, time), positive. Labels of a window depend on its number and
        not on the others.
        """
        labels = most_probable_sequence(probabilities)
        scale = np.array([self.strengths[name] for name in EVENT_CLASSES])
        scatter = np.array([self.borders[name] for name in EVENT_CLASSES])
        for k, own in enumerate(labels):
            rng = np.random.default_rng(seed_for(seed, _STREAM, first + k))
            starts, lengths = _events(own)
            mean = np.add.reduceat(np.log(probabilities[k].astype(np.float64)), starts, axis=1)
            offsets = scale[:, None] * rng.standard_normal((len(scale), len(starts)))
            classes = (mean / lengths + offsets).argmax(axis=0).astype(np.uint8)
            starts, lengths = _events(drawn := np.repeat(classes, lengths))
            of_event = scatter[drawn[starts]]
            of_border = np.maximum(of_event[:-1], of_event[1:])
            moved = starts[1:] + np.rint(of_border * rng.standard_normal(len(of_border)))
            # An event keeps the sample in its middle.
            middles = starts + lengths // 2
            borders = np.clip(moved.astype(np.int64), middles[:-1] + 1, middles[1:])
            labels[k] = np.repeat(drawn[starts], np.diff([0, *borders, len(own)]))
        return labels

    def describe(self) -> dict[str, Any]:
        """What a card says."""
        borders = dict(self.borders)
        return {"strengths": dict(self.strengths), "borders_samples": borders, **self.fitted_on}

    def save(self, path: Path) -> None:
        """Write strengths and borders as JSON, to three digits."""
        found = {
            name: {one: round(value, 3) for one, value in values.items()}
            for name, values in (("strengths", self.strengths), ("borders_samples", self.borders))
        }
        write_json(path, {"format": FORMAT, **found, "fitted_on": dict(self.fitted_on)})

    @classmethod
    def load(cls, folder: Path) -> Annotator:
        """The annotator in the folder of a model."""
        path = folder / LABELS
        if not path.is_file():
            raise GazeError(
                f"`labels` cannot be an annotator's: none is fitted for the model {folder.name}",
                remedy="take the most probable ones, or the default model",
            )
        with table_of(path, FORMAT, "the annotator is damaged") as values:
            strengths, borders = (
                {name: float(values[key][name]) for name in EVENT_CLASSES}
                for key in ("strengths", "borders_samples")
            )
            return cls(strengths, borders, dict(values["fitted_on"]))


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


def _events(labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First sample and length of each event of labels (time,)."""
    starts, stops, _ = label_segments(labels + np.uint8(1)).T
    return starts, stops - starts
