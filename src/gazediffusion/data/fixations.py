"""Fixations of prepared windows, as a position for every sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.events import detect_events
from gazediffusion.data.windows import Windows


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
