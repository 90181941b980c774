"""Subsampling: some windows out of many, always the same ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gazediffusion.data.windows import Windows


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most so many indices out of n, evenly spaced from the first to the last.

    >>> evenly_spaced(10, 4).tolist(), evenly_spaced(3, 100).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).round().astype(np.int64))


def alone(windows: Windows) -> Windows:
    """The same windows over their own segments, without the gaze of others (copied)."""
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    of_window = windows.segment_of_window
    kept, number = np.unique(of_window, return_inverse=True)
    lengths = ends[kept] - windows.segment_starts[kept]
    spans = zip(windows.segment_starts[kept].tolist(), ends[kept].tolist(), strict=True)
    samples = np.concatenate([np.arange(0), *(np.arange(a, b) for a, b in spans)])
    starts = np.cumsum(lengths) - lengths
    step = windows.segment_step
    return replace(
        windows,
        gaze=windows.gaze[:, samples],
        starts=starts[number] + windows.starts - windows.segment_starts[of_window],
        segment_starts=starts,
        segment_participant=windows.segment_participant[kept],
        segment_task=windows.segment_task[kept],
        segment_screen=windows.segment_screen[kept],
        segment_trial=tuple(windows.segment_trial[k] for k in kept),
        segment_onset_ms=windows.segment_onset_ms[kept],
        segment_step=None if step is None else step[kept],
        labels=None if windows.labels is None else windows.labels[samples],
        targets=None if windows.targets is None else windows.targets[:, samples],
    )


def not_overlapping(starts: NDArray[np.int64], length: int) -> NDArray[np.bool_]:
    """Which windows of so many samples are taken, from the first start on, without overlap.

    >>> not_overlapping(np.array([500, 0, 2000, 2600]), 2000).tolist()
    [False, True, True, False]
    """
    taken, end = np.zeros(len(starts), dtype=bool), -1
    for k in np.argsort(starts, kind="stable").tolist():
        if starts[k] >= end:
            taken[k], end = True, int(starts[k]) + length
    return taken
