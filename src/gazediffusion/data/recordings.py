"""Recording: what an eye tracker wrote for one participant during one uninterrupted trial.

Readers make recordings, cleaning finds their valid segments, windows are cut from the segments. A
recording keeps the tracker's own clock and both eyes; nothing is repaired here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

Eye = Literal["left", "right", "cyclopean"]
Bools = NDArray[np.bool_]

UNKNOWN_TASK = "unknown"
EVENT_CLASSES = ("fixation", "saccade", "pursuit", "noise")
"""The class k of a labelled sample is EVENT_CLASSES[k - 1]; 0 is a sample without a label.

>>> EVENT_CLASSES.index("saccade") + 1
2
"""
# In EyeLink ASC: MSG time LABEL class first last, the times of its first and last sample.
LABEL_MESSAGE = "LABEL"
# Of the sidecar of BIDS events: events are the labels of samples, not those of a tracker's parser.
SAMPLE_LABELS = "EventsAreSampleLabels"


class Fact(NamedTuple):
    """Something a reader found out, and where: in the file, given by the user, or assumed."""

    value: str
    source: str


@dataclass(frozen=True)
class Recording:
    """One trial of one participant, in screen pixels on the tracker's clock.

    time_ms: (time,) float64, never decreasing.
    gaze_px: eye -> (2, time) float32, origin top left, y down, NaN where the eye was lost.
    is_blink: eye -> (time,) bool, the tracker's own blink labels; empty where it gave none.
    screen: None where the file does not say.
    rate_hz: the rate the file states; None where it states none (the clock then decides).
    calibration_error_deg: eye -> the mean error of the validation before the trial, in degrees of
        visual angle; empty where the file states none.
    facts: participant, columns, unit, origin and screen, as the reader found them.
    labels: (time,) uint8, the event class of each sample (`EVENT_CLASSES`); None without labels.
    targets_px: (2, time) float32, where the target on the screen was, NaN where there was none;
        None where nothing is known of targets.
    is_filled: eye -> (time,) bool, the samples that `fill` generated; empty for gaze as recorded.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.1, rate_hz=250)
    >>> recording = next(gd.simulate(config)).recording
    >>> recording.participant, len(recording), sorted(recording.gaze_px)
    ('01', 1500, ['left', 'right'])
    >>> recording.gaze_px["right"].shape
    (2, 1500)
    """

    participant: str
    task: str
    trial: str
    time_ms: NDArray[np.float64]
    gaze_px: Mapping[Eye, NDArray[np.float32]]
    path: Path
    format: str
    screen: Screen | None = None
    rate_hz: float | None = None
    is_blink: Mapping[Eye, Bools] = field(default_factory=dict)
    calibration_error_deg: Mapping[Eye, float] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    labels: NDArray[np.uint8] | None = None
    targets_px: NDArray[np.float32] | None = None
    is_filled: Mapping[Eye, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.time_ms)
        for gaze in self.gaze_px.values():
            assert gaze.shape == (2, n), f"gaze {gaze.shape} beside {n} times"
        for mask in (*self.is_blink.values(), *self.is_filled.values()):
            assert mask.shape == (n,), f"a mask {mask.shape} beside {n} times"
        assert self.labels is None or self.labels.shape == (n,)
        assert self.targets_px is None or self.targets_px.shape == (2, n)

    def __len__(self) -> int:
        return len(self.time_ms)

    def part(self, start: int, stop: int, *, trial: str | None = None) -> Recording:
        """The samples from `start` up to `stop`, as a recording of their own (views, no copy)."""
        return replace(
            self,
            trial=self.trial if trial is None else trial,
            time_ms=self.time_ms[start:stop],
            gaze_px={eye: gaze[:, start:stop] for eye, gaze in self.gaze_px.items()},
            is_blink={eye: blink[start:stop] for eye, blink in self.is_blink.items()},
            labels=None if self.labels is None else self.labels[start:stop],
            targets_px=None if self.targets_px is None else self.targets_px[:, start:stop],
            is_filled={eye: mask[start:stop] for eye, mask in self.is_filled.items()},
        )


def eyes_of(recording: Recording) -> tuple[Eye, ...]:
    """The eyes to write: left and right, or the only one."""
    eyes = sorted(recording.gaze_px)
    if len(eyes) != 1 and eyes != ["left", "right"]:
        problem = f"one eye, or left and right, can be written, not {eyes}"
        raise GazeError(problem, place=name_of(recording))
    return tuple(eyes)


def rate_of(recording: Recording) -> float:
    """Samples per second as stated, otherwise of the clock."""
    if recording.rate_hz is not None:
        return float(recording.rate_hz)
    step_ms = float(np.median(np.diff(recording.time_ms))) if len(recording) > 1 else 0.0
    if step_ms <= 0:
        raise GazeError("the sampling rate is unknown", place=name_of(recording))
    return round(1000.0 / step_ms, 6)


def name_of(recording: Recording) -> str:
    """How messages name a recording."""
    return f"participant {recording.participant}, task {recording.task}, trial {recording.trial}"


def require_forward_time(
    time_ms: NDArray[np.float64],
    path: Path,
    place: Callable[[int], str],
    remedy: str = "sort the file by time, or name the column that separates trials",
) -> None:
    """Refuse a clock that runs backwards or is not a number; `place(i)` names sample i."""
    if len(time_ms) == 0:
        return
    unreadable = ~np.isfinite(time_ms)
    if unreadable.any():
        first = int(np.argmax(unreadable))
        raise GazeError("the time is missing or not a number", path=path, place=place(first))
    backwards = np.diff(time_ms) < 0
    if backwards.any():
        first = int(np.argmax(backwards))
        raise GazeError(
            f"time runs backwards, from {time_ms[first]:.10g} to {time_ms[first + 1]:.10g} ms",
            path=path,
            place=place(first + 1),
            remedy=remedy,
        )


def split_at_jumps(recording: Recording, jump_ms: float = 100.0) -> Iterator[Recording]:
    """Cut where the clock jumps by more than `jump_ms`: trials written one after another."""
    cuts = np.flatnonzero(np.diff(recording.time_ms) > jump_ms) + 1
    edges = [0, *cuts.tolist(), len(recording)]
    if len(edges) == 2:
        yield recording
        return
    for number, (start, stop) in enumerate(pairwise(edges)):
        yield recording.part(start, stop, trial=str(number))


def label_segments(labels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Labelled events (event, 3) as first, stop, class: samples [first, stop) of one class.

    Samples without a label belong to none.

    >>> label_segments(np.array([1, 1, 2, 0, 0, 4], dtype=np.uint8)).tolist()
    [[0, 2, 1], [2, 3, 2], [5, 6, 4]]
    """
    if not len(labels):
        return np.empty((0, 3), dtype=np.int64)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    found = np.column_stack([edges[:-1], edges[1:], labels[edges[:-1]]]).astype(np.int64)
    return found[found[:, 2] > 0]


def true_segments(mask: Bools) -> NDArray[np.int64]:
    """Segments (segment, 2) as [start, stop) where the mask is true."""
    none = np.zeros(1, dtype=np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([none, mask.astype(np.int8), none])))
    return edges.reshape(-1, 2).astype(np.int64, copy=False)
