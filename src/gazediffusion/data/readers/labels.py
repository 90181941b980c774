"""Columns of event labels: fixation, saccade, pursuit or noise, in words or as F, S, P, B, N.

A name such as `event` may also be that of a trigger or a message, so the content decides whether a
column holds labels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.data.readers.text import MISSING
from gazediffusion.data.recordings import EVENT_CLASSES

_FORMS = {
    "fixation": "f fix fixation fixations",
    "saccade": "s sac sacc saccade saccades",
    "pursuit": "p sp pursuit smooth_pursuit smoothpursuit",
    "noise": "b n blink blinks noise noise_blink blink/noise",
}
_NO_LABEL = [*MISSING, "unassigned", "unlabelled", "unlabeled", "unclassified", "undefined"]
_CLASS = {
    form: EVENT_CLASSES.index(word) + 1 for word, forms in _FORMS.items() for form in forms.split()
} | dict.fromkeys([*_NO_LABEL, "unknown", "other"], 0)
_OTHER = 255  # a cell that is no label


def event_classes(series: pl.Series) -> NDArray[np.uint8]:
    """The event class of each cell: 0 where it is empty, 255 where it holds something else."""
    if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
        return np.full(len(series), _OTHER, dtype=np.uint8)
    words = series.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    words = words.str.replace_all(r"\b[ -]\b", "_")
    classes = words.replace_strict(_CLASS, default=_OTHER, return_dtype=pl.UInt8)
    return classes.to_numpy()


def event_names(classes: NDArray[np.uint8]) -> pl.Series:
    """The names of event classes (time,), null where there is no label: what is written."""
    return pl.Series([None, *EVENT_CLASSES], dtype=pl.String).gather(classes)


def labels_among(columns: Mapping[str, NDArray[np.uint8]]) -> dict[str, NDArray[np.uint8]]:
    """The columns of labels, their other cells now 0.

    At least as many cells must be labels as hold something else, and not all of them noise (N may
    also mean no).
    """
    found = {}
    for name, classes in columns.items():
        counts = np.bincount(classes, minlength=_OTHER + 1)
        if counts[1:_OTHER].sum() >= counts[_OTHER] and counts[1 : len(EVENT_CLASSES)].any():
            found[name] = np.where(classes == _OTHER, 0, classes).astype(np.uint8)
    return found
