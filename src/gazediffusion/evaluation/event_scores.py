"""Scores of event labels: F1 of samples and of events, by class.

An event of one labelling is found where an event of the same class in the other overlaps it by more
than half of their union (IoU > 0.5; Startsev, Agtzidis, Dorr 2019, Behavior Research Methods
51:556). Above one half no event has two partners, so that the order does not matter. F1 is twice
the hits over the number of events, or samples, of both labellings. Samples without a true label do
not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES, label_segments

Floats = NDArray[np.float64]
Labels = NDArray[np.uint8]
N_CLASSES = len(EVENT_CLASSES)
MIN_IOU = 0.5


@dataclass(frozen=True, eq=False)
class Matches:
    """Hits and numbers of both labellings, each (window, class) or (group, class)."""

    hits: Floats
    n_true: Floats
    n_found: Floats

    def by_group(self, group: NDArray[np.integer]) -> Matches:
        """Summed over the windows of each group, in the order of the groups' numbers."""
        _, number = np.unique(group, return_inverse=True)
        is_in = (number[None] == np.arange(number.max() + 1)[:, None]).astype(np.float64)
        return Matches(is_in @ self.hits, is_in @ self.n_true, is_in @ self.n_found)

    def f1(self, weights: Floats | None = None) -> Floats:
        """F1 of each class, (class,), NaN where neither labelling has it.

        weights (replicate, window): how often each window counts; F1 is then (replicate, class).
        """
        weights = np.ones(len(self.hits)) if weights is None else weights
        hits, n_true, n_found = (weights @ one for one in (self.hits, self.n_true, self.n_found))
        n = n_true + n_found
        return np.divide(2 * hits, n, out=np.full_like(n, np.nan), where=n > 0)


def match_samples(true: Labels, found: Labels) -> Matches:
    """Matches of the samples of two labellings (window, time)."""
    found = np.where(true > 0, found, 0)
    one, other = (
        np.stack([labels == number for number in range(1, N_CLASSES + 1)], axis=1)
        for labels in (true, found)
    )
    counts = [np.asarray(np.count_nonzero(mask, axis=2)) for mask in (one & other, one, other)]
    return Matches(*(count.astype(np.float64) for count in counts))


def match_events(true: Labels, found: Labels) -> Matches:
    """Matches of the events of two labellings (window, time).

    >>> true = np.array([[1, 1, 1, 1, 2, 2, 1, 1, 1, 1]], dtype=np.uint8)
    >>> found = np.array([[1, 1, 1, 1, 1, 2, 2, 2, 1, 1]], dtype=np.uint8)
    >>> match_events(true, found).f1().round(2).tolist()  # saccades: 1 of 4 samples in common
    [0.5, 0.0, nan, nan]
    """
    found = np.where(true > 0, found, 0).astype(np.uint8)
    counts = np.zeros((3, len(true), N_CLASSES))
    for window, (own, other) in enumerate(zip(true, found, strict=True)):
        a, b = label_segments(own), label_segments(other)
        overlap = np.minimum(a[:, None, 1], b[:, 1]) - np.maximum(a[:, None, 0], b[:, 0])
        union = np.maximum(a[:, None, 1], b[:, 1]) - np.minimum(a[:, None, 0], b[:, 0])
        is_hit = (overlap > MIN_IOU * union) & (a[:, None, 2] == b[:, 2])
        for number, classes in enumerate((a[is_hit.any(axis=1), 2], a[:, 2], b[:, 2])):
            counts[number, window] = np.bincount(classes, minlength=N_CLASSES + 1)[1:]
    return Matches(*counts)


def confusion(true: Labels, found: Labels) -> Floats:
    """Share (true class, found class) of the samples of each true class; NaN without any."""
    pairs = true.astype(np.int64).ravel() * (N_CLASSES + 1) + found.ravel()
    counts = np.bincount(pairs, minlength=(N_CLASSES + 1) ** 2).reshape(N_CLASSES + 1, -1)
    table = counts[1:, 1:].astype(np.float64)
    total = table.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)
    return shares
