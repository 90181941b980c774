"""Losses of recordings: planted ones are found, with what was measured beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.data.recordings import Recording
from gazediffusion.data.simulation import simulate
from gazediffusion.data.track_loss import AFTER_MS, BEFORE_MS, Losses, find_losses
from gazediffusion.settings import SimulationConfig
from tests.conftest import SCREEN

STEP_MS = 4.0


def losses_of(degrees: NDArray[np.float64]) -> Losses:
    """The losses of gaze (2, time) in degrees at 250 Hz, with a tracker's noise."""
    noise = np.random.default_rng(0).normal(0, 0.02, degrees.shape)
    gaze_px = SCREEN.from_degrees(degrees + noise).astype(np.float32)
    time_ms = np.arange(gaze_px.shape[1]) * STEP_MS
    eyes = {"right": gaze_px}
    return find_losses(Recording("a", "film", "1", time_ms, eyes, Path(), "csv", SCREEN))  # type: ignore[arg-type]


def test_onset_duration_and_the_time_seen_before_are_found() -> None:
    degrees = np.zeros((2, 2000))
    for first, stop in ((0, 10), (500, 505), (1000, 1040), (1990, 2000)):
        degrees[:, first:stop] = np.nan
    found = losses_of(degrees)
    assert [one.onset_ms for one in found.losses] == [0, 2000, 4000, 7960]
    assert [one.duration_ms for one in found.losses] == [40, 20, 160, 40]
    assert [one.seen_before_ms for one in found.losses[1:]] == [1960, 1980, 3800]
    assert np.isnan(found.losses[0].seen_before_ms)
    assert [one.is_whole for one in found.losses] == [False, True, True, False]
    assert [one.is_long for one in found.losses] == [False, False, True, False]
    assert found.seen_ms.tolist() == [1960, 1980, 3800]
    assert (found.duration_ms, found.lost_ms) == (8000, 260)


def test_a_recording_that_begins_seen_has_its_first_loss_after_an_unknown_time() -> None:
    degrees = np.zeros((2, 500))
    degrees[:, 200:220] = np.nan
    found = losses_of(degrees)
    assert found.losses[0].seen_before_ms == np.inf
    assert found.since_loss.tolist() == [False, True]


def test_a_flank_is_the_deviation_and_a_saccade_is_none() -> None:
    degrees = np.zeros((2, 1000))
    degrees[0, 490:] = 8.0  # a saccade within the flank before the loss
    lid = 6.0 * np.exp(-AFTER_MS / 30.0)
    degrees[1, 520 : 520 + len(lid)] += lid
    degrees[:, 500:520] = np.nan
    (loss,) = losses_of(degrees).losses
    assert loss.flank_deg is not None
    expected = np.zeros((2, len(BEFORE_MS) + len(AFTER_MS)))
    expected[1, len(BEFORE_MS) :] = lid
    np.testing.assert_allclose(loss.flank_deg, expected, atol=0.12)


def test_losses_close_to_each_other_have_no_flanks() -> None:
    degrees = np.zeros((2, 1000))
    degrees[:, 300:310] = degrees[:, 340:350] = degrees[:, 700:710] = np.nan
    assert [one.flank_deg is None for one in losses_of(degrees).losses] == [True, True, False]


@pytest.mark.parametrize("rate_hz", [250.0, 1000.0])
def test_the_losses_of_simulated_recordings_are_the_true_ones(rate_hz: float) -> None:
    config = SimulationConfig(n_participants=1, minutes=1, rate_hz=rate_hz, binocular=False)
    for one in simulate(config):
        (gaze,) = one.recording.gaze_px.values()
        found = find_losses(one.recording)
        assert found.lost_ms == pytest.approx(np.isnan(gaze).any(axis=0).sum() * 1000 / rate_hz)
