"""Recordings for the tests of interop, and what a round trip must keep."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from gazediffusion.data.reading import Recordings
from gazediffusion.data.recordings import EVENT_CLASSES, Recording
from gazediffusion.data.simulation import simulate
from gazediffusion.data.windows import Windows
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig

OTHER = Screen(1024, 768, 36.5, 27.4, 60.5)


@cache
def study(binocular: bool = True) -> Recordings:
    """Two participants with two trials each at 500 Hz: losses, blinks, true labels, two screens."""
    config = SimulationConfig(
        n_participants=2, minutes=0.2, trial_seconds=6, rate_hz=500, binocular=binocular
    )
    found = []
    for number, one in enumerate(simulate(config)):
        recording = replace(one.recording, labels=one.labels)
        recording = replace(recording, time_ms=recording.time_ms + 1234.0 + 10_000 * number)
        found.append(recording if number < 2 else replace(recording, task="b", screen=OTHER))
    assert any(mask.any() for one in found for mask in one.is_blink.values())
    assert any(np.isnan(gaze).any() for one in found for gaze in one.gaze_px.values())
    return Recordings.of(found, "simulated")


def labelled_windows() -> Windows:
    """Six windows of two tasks, screens and participants with labels, at 200 Hz."""
    rng = np.random.default_rng(0)
    gaze = rng.normal(0, 0.02, (6, 2, 300)).cumsum(axis=2).clip(-0.9, 0.9)
    labels = np.repeat(rng.integers(0, len(EVENT_CLASSES) + 1, (6, 30)), 10, axis=1)
    screens = [Screen(1280, 720, 40, 22.5, 45)] * 3 + [OTHER] * 3
    return Windows.from_array(
        gaze, 200, screens, list("aabbcc"), ["film"] * 3 + ["text"] * 3, labels=labels
    )


def assert_same(found: Recording, expected: Recording, *, atol: float = 0.0) -> None:
    """What a recording is: identity, screen, rate, clock, gaze, blinks and labels."""
    for word in ("participant", "task", "trial", "screen"):
        assert getattr(found, word) == getattr(expected, word), word
    assert found.rate_hz == expected.rate_hz
    np.testing.assert_allclose(found.time_ms, expected.time_ms, rtol=0, atol=1e-6)
    assert set(found.gaze_px) == set(expected.gaze_px)
    for eye, gaze in expected.gaze_px.items():
        assert found.gaze_px[eye].dtype == np.float32
        np.testing.assert_allclose(found.gaze_px[eye], gaze, rtol=0, atol=atol)
        none = np.zeros(len(expected), dtype=bool)
        np.testing.assert_array_equal(
            found.is_blink.get(eye, none), expected.is_blink.get(eye, none)
        )
    assert (found.labels is None) == (expected.labels is None)
    if expected.labels is not None:
        np.testing.assert_array_equal(found.labels, expected.labels)
