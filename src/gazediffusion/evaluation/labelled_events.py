"""Statistics of labelled events: durations, amplitudes, rates and transitions.

Events that the border of a window cuts have no duration and no amplitude; they count in rates and
transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES, label_segments
from gazediffusion.data.windows import Windows

Floats = NDArray[np.float64]
MOVING = ("saccade", "pursuit")  # classes with an amplitude


def labelled_throughout(windows: Windows) -> Windows:
    """The windows of which every sample has a label."""
    return windows.select(np.flatnonzero((windows.cut_labels() > 0).all(axis=1)))


@dataclass(frozen=True, eq=False)
class EventStatistics:
    """Values of each quantity with the window of each, and transitions.

    values: name -> (value,); window: name -> (value,). transitions: (window, class, class), how
    often an event of the first class is followed by one of the second.
    """

    values: dict[str, Floats]
    window: dict[str, NDArray[np.int64]]
    transitions: Floats

    @classmethod
    def of(cls, windows: Windows) -> EventStatistics:
        """Those of windows with labels."""
        gaze_deg, labels = windows.to_numpy("deg").astype(np.float64), windows.cut_labels()
        ms, seconds = 1000 / windows.rate_hz, windows.length / windows.rate_hz
        found: dict[str, list[tuple[int, float]]] = {name: [] for name in quantities()}
        transitions = np.zeros((len(windows), len(EVENT_CLASSES), len(EVENT_CLASSES)))
        for k, (gaze, own) in enumerate(zip(gaze_deg, labels, strict=True)):
            events = label_segments(own)
            for number, name in enumerate(EVENT_CLASSES, start=1):
                rate = np.count_nonzero(events[:, 2] == number) / seconds
                found[f"{name} rate (1/s)"].append((k, rate))
            follows = events[1:, 0] == events[:-1, 1]
            np.add.at(
                transitions[k], (events[:-1, 2][follows] - 1, events[1:, 2][follows] - 1), 1.0
            )
            is_whole = (events[:, 0] > 0) & (events[:, 1] < windows.length)
            for first, stop, number in events[is_whole].tolist():
                name = EVENT_CLASSES[number - 1]
                found[f"{name} duration (ms)"].append((k, (stop - first) * ms))
                if name in MOVING:
                    way = gaze[:, stop - 1] - gaze[:, first]
                    found[f"{name} amplitude (deg)"].append((k, float(np.hypot(*way))))
        values = {name: np.array([value for _, value in rows]) for name, rows in found.items()}
        window = {name: np.array([k for k, _ in rows], dtype=int) for name, rows in found.items()}
        return cls(values, window, transitions)

    def drawn(self, windows: NDArray[np.int64], name: str) -> Floats:
        """The values of a quantity of drawn windows (draw,), with repetition."""
        times = np.bincount(windows, minlength=len(self.transitions))
        return np.repeat(self.values[name], times[self.window[name]])

    def transition_shares(self, windows: NDArray[np.int64]) -> Floats:
        """Share of each pair of classes among the transitions of drawn windows, (pair,)."""
        total = self.transitions[windows].sum(axis=0).ravel()
        return np.asarray(total / max(total.sum(), 1.0))


def quantities() -> list[str]:
    """Names of all quantities."""
    durations = [f"{name} duration (ms)" for name in EVENT_CLASSES]
    amplitudes = [f"{name} amplitude (deg)" for name in MOVING]
    return [*durations, *amplitudes, *(f"{name} rate (1/s)" for name in EVENT_CLASSES)]
