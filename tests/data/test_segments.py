from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.data.cleaning import clean
from gazediffusion.data.preparing import Segment, clean_segments, joined_labels, joined_targets
from gazediffusion.data.resampling import read_clock
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig
from tests.conftest import SCREEN, MakeRecording, wandering_gaze


@pytest.mark.parametrize("rate_hz", [250.0, 1000.0, 300.0])
def test_segments_at_another_rate_keep_labels_and_targets_at_their_times(
    make_recording: MakeRecording, rate_hz: float
) -> None:
    n = round(10 * rate_hz)
    gaze = wandering_gaze(n)
    gaze[:, round(5 * rate_hz)] = np.nan
    time_ms = np.arange(n) * (1000.0 / rate_hz)
    second = (time_ms // 1000).astype(np.uint8)
    targets_px = np.stack([100.0 * second, 50.0 * second]).astype(np.float32)
    recording = replace(
        make_recording(gaze=gaze, rate_hz=rate_hz), labels=second % 5, targets_px=targets_px
    )
    cleaned = clean(recording, CleaningConfig())
    found = list(clean_segments(cleaned, read_clock(cleaned.time_ms), 250.0, 250))
    assert len(found) == 2
    for segment in found:
        at_ms = segment.onset_ms + np.arange(segment.gaze_px.shape[1]) * 4.0
        assert segment.labels is not None
        assert segment.targets_px is not None
        nearest = np.abs(time_ms[:, None] - at_ms).argmin(axis=0)
        np.testing.assert_array_equal(segment.labels, second[nearest] % 5)
        np.testing.assert_array_equal(segment.targets_px[0], 100 * ((at_ms + 1e-6) // 1000))


def segment(n: int, **more: object) -> Segment:
    return Segment(0.0, np.zeros((2, n), np.float32), False, **more)  # type: ignore[arg-type]


def test_segments_without_labels_or_targets_are_joined_as_unlabelled() -> None:
    labels = np.array([1, 2], np.uint8)
    targets_px = np.array([[640, 0], [360, np.nan]], np.float32)
    segments = [segment(3), segment(2, labels=labels), segment(2, targets_px=targets_px)]
    joined = joined_labels(segments)
    assert joined is not None
    assert joined.tolist() == [0, 0, 0, 1, 2, 0, 0]
    targets = joined_targets(segments, [SCREEN, SCREEN, Screen(1280, 360)])
    assert targets is not None
    assert np.isnan(targets[:, :5]).all()
    assert targets[:, 5].tolist() == [0.0, 1.0]


def test_nothing_labelled_and_no_target_anywhere_are_none() -> None:
    unlabelled = np.zeros(2, np.uint8)
    nowhere = np.full((2, 2), np.nan, np.float32)
    segments = [segment(3), segment(2, labels=unlabelled, targets_px=nowhere)]
    assert joined_labels(segments) is None
    assert joined_targets(segments, [SCREEN, SCREEN]) is None
