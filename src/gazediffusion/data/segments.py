"""Segments: gap-free stretches of clean gaze at one rate, with their labels and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import CleanRecording
from gazediffusion.data.resampling import (
    Clock,
    resample_segment,
    source_samples,
    thinning_factor,
)
from gazediffusion.geometry import Screen


@dataclass(frozen=True)
class Segment:
    """A gap-free stretch of clean gaze at the target rate.

    gaze_px, targets_px: (2, time); labels: (time,). The last two as in `Recording`.
    """

    onset_ms: float
    gaze_px: NDArray[np.float32]
    is_filtered: bool
    labels: NDArray[np.uint8] | None = None
    targets_px: NDArray[np.float32] | None = None


def clean_segments(
    cleaned: CleanRecording, clock: Clock, rate_hz: float, at_least: int
) -> Iterator[Segment]:
    """The valid segments that give `at_least` samples at the target rate."""
    is_filtered = thinning_factor(clock, rate_hz) is None
    for start, stop in cleaned.valid_segments():
        if stop - start < (at_least - 1) * clock.rate_hz / rate_hz:
            continue
        time_ms, labels, targets_px = (
            cleaned.time_ms[start:stop],
            cleaned.labels,
            cleaned.targets_px,
        )
        gaze_px = resample_segment(time_ms, cleaned.gaze_px[:, start:stop], clock, rate_hz)
        if gaze_px.shape[1] < at_least:
            continue
        nearest, held = source_samples(time_ms, clock, rate_hz, gaze_px.shape[1])
        # Copies, so that the recording it was cut from can be forgotten.
        yield Segment(
            float(time_ms[0]),
            gaze_px.copy(),
            is_filtered,
            None if labels is None else labels[start + nearest],
            None if targets_px is None else targets_px[:, start + held],
        )


def joined_labels(segments: Sequence[Segment]) -> NDArray[np.uint8] | None:
    """The event classes of segments end to end, (sample,); None where no sample is labelled."""
    if not any(one.labels is not None and one.labels.any() for one in segments):
        return None
    unlabelled = (np.zeros(one.gaze_px.shape[1], np.uint8) for one in segments)
    parts = zip(segments, unlabelled, strict=True)
    return np.concatenate([none if one.labels is None else one.labels for one, none in parts])


def joined_targets(
    segments: Sequence[Segment], screens: Sequence[Screen]
) -> NDArray[np.float32] | None:
    """Targets normalized to the segments' screens, (2, sample); None where there are none."""
    if all(one.targets_px is None or np.isnan(one.targets_px).all() for one in segments):
        return None
    targets_px = (
        np.full_like(one.gaze_px, np.nan) if one.targets_px is None else one.targets_px
        for one in segments
    )
    parts = zip(screens, targets_px, strict=True)
    return np.concatenate([screen.to_normalized(part) for screen, part in parts], axis=1)
