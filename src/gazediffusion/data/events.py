"""Events: fixations and saccades by velocity threshold (I-VT, Salvucci & Goldberg 2000).

Everything faster than the threshold is a saccade, the rest is fixation. Used to label synthetic
recordings on export; the evaluation has the paper's own threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export import Event
from gazediffusion.data.recordings import true_segments
from gazediffusion.geometry import Screen

SACCADE_DEG_S = 30.0  # EyeLink's own parser, cognitive configuration
MIN_FIXATION_MS = 60.0  # paper, "Evaluation protocols"


def detect_events(
    gaze_px: NDArray[np.float32], time_ms: NDArray[np.float64], screen: Screen
) -> list[Event]:
    """Fixations and saccades of gapless gaze (2, time), in order.

    Speed in degrees is taken from the screen's width; fixations shorter than 60 ms are left out.
    """
    degrees_per_px = screen.width_deg / screen.width_px
    step_ms = float(np.median(np.diff(time_ms)))
    speed = np.hypot(*np.diff(gaze_px.astype(np.float64))) * degrees_per_px / step_ms * 1000
    is_fast = speed > SACCADE_DEG_S
    events = []
    # A step joins two samples; a segment of fast steps [a, b) moves the eye from sample a to b.
    for first, stop in true_segments(is_fast).tolist():
        way = (gaze_px[:, stop] - gaze_px[:, first]) * degrees_per_px
        events.append(
            Event(
                "saccade",
                float(time_ms[first]),
                float(time_ms[stop]),
                float(np.hypot(*way)),
                float(speed[first:stop].max()),
            )
        )
    for first, stop in true_segments(~is_fast).tolist():
        onset, offset = float(time_ms[first]), float(time_ms[stop])
        if offset - onset >= MIN_FIXATION_MS:
            events.append(Event("fixation", onset, offset))
    return sorted(events, key=lambda event: event.onset_ms)
