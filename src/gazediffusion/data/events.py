"""Events: fixations and saccades by velocity threshold (I-VT, Salvucci & Goldberg 2000).

Every step faster than the threshold belongs to a saccade, every other to a fixation. `detect_ivt`
is the one implementation, on speeds in any unit: the evaluation calls it with the paper's
threshold, `detect_events` with one in degrees, to label recordings on export. `smoothed_saccades`
takes velocity over five samples, for gaze in degrees whose noise exceeds the threshold. Where
samples have labels, `labelled_events` takes the events from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import EVENT_CLASSES, label_segments, true_segments
from gazediffusion.data.windows import Windows
from gazediffusion.screen import Screen

SACCADE_DEG_S = 30.0  # EyeLink's own parser, cognitive configuration
MIN_FIXATION_MS = 60.0  # paper, "Evaluation protocols"
MIN_SACCADE_MS = 12.0  # Engbert & Kliegl 2003: three samples at 250 Hz
_MIN_SACCADE_STEPS = 2  # at low rates, so that no event ends on the sample on which it begins

EventKind = Literal["fixation", "saccade", "pursuit", "noise", "microsaccade", "blink", "loss"]


@dataclass(frozen=True)
class Event:
    """What the eye or the tracker did from `onset_ms` up to, not including, `offset_ms`.

    The clock is the recording's. Amplitude and peak velocity are NaN where they mean nothing.
    """

    event: EventKind
    onset_ms: float
    offset_ms: float
    amplitude_deg: float = math.nan
    peak_velocity_deg_s: float = math.nan
    eye: Literal["left", "right", "both"] = "both"

    def samples(self, time_ms: NDArray[np.float64]) -> slice:
        """The samples the event covers; an event between two samples covers none."""
        first, stop = np.searchsorted(time_ms, [self.onset_ms, self.offset_ms], side="left")
        return slice(int(first), int(stop))

    def later(self, by_ms: float) -> Event:
        """The same event so much later."""
        return replace(self, onset_ms=self.onset_ms + by_ms, offset_ms=self.offset_ms + by_ms)


@dataclass(frozen=True, eq=False)
class IvtSegments:
    """Saccades and fixations of many windows, as segments of steps.

    saccades, fixations: (event, 2) int64. A segment [a, b) has b - a steps and moves the eye from
        sample a to sample b. Samples are numbered over all windows end to end, so that a segment's
        window is a // n_samples and indexes gaze of the shape (2, window * n_samples).
    speed: (window * n_samples,) float64, the step from each sample to the next; NaN at the last
        sample of a window, so that no segment crosses a border.
    """

    saccades: NDArray[np.int64]
    fixations: NDArray[np.int64]
    speed: NDArray[np.float64]
    n_samples: int

    @property
    def saccade_peak_speed(self) -> NDArray[np.float64]:
        """The largest speed within each saccade, (event,)."""
        # Every second range of [a0, b0, a1, b1, ...] is a saccade; a NaN follows the last b.
        return np.asarray(np.maximum.reduceat(self.speed, self.saccades.ravel())[::2])


def detect_ivt(
    speed: NDArray[np.floating[Any]], threshold: float, min_fixation_steps: float = 0.0
) -> IvtSegments:
    """Saccades (steps faster than the threshold) and fixations of at least this many steps.

    speed: (window, step), in the unit of the threshold. Events cut by the border of a window count
    with what is in it.

    >>> found = detect_ivt(np.array([[0.1, 0.1, 5.0, 6.0, 0.1]]), threshold=1.0)
    >>> found.saccades.tolist(), found.fixations.tolist(), found.saccade_peak_speed.tolist()
    ([[2, 4]], [[0, 2], [4, 5]], [6.0])
    """
    n_windows, n_steps = speed.shape
    padded = np.full((n_windows, n_steps + 1), np.nan)
    padded[:, :-1] = speed
    flat = padded.reshape(-1)
    slow = true_segments(flat <= threshold)
    return IvtSegments(
        saccades=true_segments(flat > threshold),
        fixations=slow[slow[:, 1] - slow[:, 0] >= min_fixation_steps],
        speed=flat,
        n_samples=n_steps + 1,
    )


def detect_in_degrees(speed: NDArray[np.floating[Any]], step_ms: float) -> IvtSegments:
    """Saccades and fixations of speeds (window, step) in degrees per second.

    A fast stretch shorter than a saccade (12 ms, two steps) belongs to the fixation around it;
    fixations shorter than 60 ms are left out.
    """
    min_steps = max(round(MIN_SACCADE_MS / step_ms, 6), _MIN_SACCADE_STEPS)
    fast = detect_ivt(speed, SACCADE_DEG_S)
    steps = fast.speed.copy()
    for first, stop in fast.saccades[np.diff(fast.saccades)[:, 0] < min_steps].tolist():
        steps[first:stop] = 0.0
    steps = steps.reshape(-1, fast.n_samples)[:, :-1]
    return detect_ivt(steps, SACCADE_DEG_S, round(MIN_FIXATION_MS / step_ms, 6))


def detect_events(
    gaze_px: NDArray[np.float32], time_ms: NDArray[np.float64], screen: Screen
) -> list[Event]:
    """Fixations and saccades of gap-free gaze (2, time), in order, none overlapping another.

    Speed in degrees is taken from the screen's width. Events: `detect_in_degrees`.

    >>> gaze = np.zeros((2, 100), dtype=np.float32)
    >>> gaze[0, 20:], gaze[0, 58:60], gaze[0, 60:] = 9, (30, 60), 90
    >>> events = detect_events(gaze, np.arange(100) * 4.0, Screen(1280, 720, 40, 22.5, 45))
    >>> [(one.event, one.onset_ms, one.offset_ms) for one in events]
    [('fixation', 0.0, 228.0), ('saccade', 228.0, 240.0), ('fixation', 240.0, 396.0)]
    """
    degrees_per_px = screen.width_deg / screen.width_px
    step_ms = float(np.median(np.diff(time_ms)))
    speed = np.hypot(*np.diff(gaze_px.astype(np.float64))) * degrees_per_px / step_ms * 1000
    found = detect_in_degrees(speed[None], step_ms)
    events = []
    peaks = found.saccade_peak_speed.tolist()
    for (first, stop), peak in zip(found.saccades.tolist(), peaks, strict=True):
        way = (gaze_px[:, stop] - gaze_px[:, first]) * degrees_per_px
        onset, offset = float(time_ms[first]), float(time_ms[stop])
        events.append(Event("saccade", onset, offset, float(np.hypot(*way)), peak))
    for first, stop in found.fixations.tolist():
        events.append(Event("fixation", float(time_ms[first]), float(time_ms[stop])))
    return sorted(events, key=lambda event: event.onset_ms)


def labelled_events(
    labels: NDArray[np.uint8],
    gaze_px: NDArray[np.float32],
    time_ms: NDArray[np.float64],
    screen: Screen | None,
) -> list[Event]:
    """The events that labels (time,) of gaze (2, time) state, in order.

    An event lasts from its first sample to the first of the next. Amplitude and peak velocity are
    those of saccades, from the first to the last sample; NaN where the screen's size is unknown.

    >>> gaze = np.zeros((2, 10), dtype=np.float32)
    >>> gaze[0, 5:] = 64
    >>> labels = np.array([1] * 4 + [2] * 3 + [3] * 3, dtype=np.uint8)
    >>> found = labelled_events(labels, gaze, np.arange(10) * 4.0, Screen(1280, 720, 40, 22.5, 45))
    >>> [(one.event, one.onset_ms, one.offset_ms, round(one.amplitude_deg, 1)) for one in found]
    [('fixation', 0.0, 16.0, nan), ('saccade', 16.0, 28.0, 2.4), ('pursuit', 28.0, 40.0, nan)]
    """
    step_ms = float(np.median(np.diff(time_ms))) if len(time_ms) > 1 else 1.0
    ends_ms = np.append(time_ms, time_ms[-1:] + step_ms)
    has_degrees = screen is not None and screen.has_degrees
    per_px = screen.width_deg / screen.width_px if has_degrees and screen is not None else math.nan
    events = []
    for first, stop, number in label_segments(labels).tolist():
        kind, amplitude, peak = EVENT_CLASSES[number - 1], math.nan, math.nan
        if kind == "saccade" and stop - first > 1:
            inside = gaze_px[:, first:stop].astype(np.float64) * per_px
            amplitude = float(np.hypot(*(inside[:, -1] - inside[:, 0])))
            steps_s = np.diff(time_ms[first:stop]) / 1000
            peak = float((np.hypot(*np.diff(inside)) / np.maximum(steps_s, 1e-9)).max())
        onset_ms, offset_ms = float(time_ms[first]), float(ends_ms[stop])
        events.append(Event(cast("EventKind", kind), onset_ms, offset_ms, amplitude, peak))
    return events


def smoothed_saccades(gaze_deg: NDArray[np.floating[Any]], rate_hz: float) -> NDArray[np.int64]:
    """Saccades (event, 2) of gap-free gaze (2, time): samples [first, stop), at least 12 ms.

    Velocity is over five samples (Engbert & Kliegl 2003); at the ends the border sample is
    repeated.

    >>> gaze = np.zeros((2, 100))
    >>> gaze[0, 50:60], gaze[0, 60:] = np.arange(10) * 0.4, 4.0
    >>> smoothed_saccades(gaze, 250).tolist()
    [[50, 61]]
    """
    p = np.pad(gaze_deg, ((0, 0), (2, 2)), mode="edge")
    velocity = (p[:, 4:] + p[:, 3:-1] - p[:, 1:-3] - p[:, :-4]) * rate_hz / 6
    found = true_segments(np.hypot(*velocity) > SACCADE_DEG_S)
    return found[found[:, 1] - found[:, 0] >= round(MIN_SACCADE_MS * rate_hz / 1000, 6)]


def fixation_positions(windows: Windows) -> NDArray[np.float32]:
    """The mean position of the fixation that each sample of `windows.gaze` lies in, (2, sample).

    Normalized, NaN between fixations. Fixations are those of `detect_events` in whole segments; a
    segment on a screen without a size in degrees has none.
    """
    found = np.full_like(windows.gaze, np.nan)
    stops = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    for number, (start, stop) in enumerate(zip(windows.segment_starts, stops, strict=True)):
        screen = windows.screens[windows.segment_screen[number]]
        if not screen.has_degrees or stop - start < 3:
            continue
        gaze = windows.gaze[:, start:stop]
        sample = np.arange(stop - start, dtype=np.float64)
        pixels = np.asarray(screen.to_pixels(gaze), dtype=np.float32)
        step_ms = 1000.0 / windows.rate_hz
        for event in detect_events(pixels, sample * step_ms, screen):
            if event.event == "fixation":
                first, last = round(event.onset_ms / step_ms), round(event.offset_ms / step_ms)
                inside = slice(first, last + 1)
                found[:, start:stop][:, inside] = gaze[:, inside].mean(axis=1, keepdims=True)
    return found
