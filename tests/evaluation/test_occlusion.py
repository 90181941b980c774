"""Filters equal scipy's, a band is taken out alone, events are where they were put."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.signal import butter, sosfiltfilt

from gazediffusion.evaluation.occlusion import (
    AFTER_SACCADE,
    bands,
    event_masks,
    filtered,
    low_pass,
    without_band,
    without_samples,
)
from gazediffusion.geometry import Screen
from tests.conftest import SCREEN

RATE_HZ = 250.0
TIME = np.arange(1000) / RATE_HZ


def sines(*hz: float) -> torch.Tensor:
    """Cosines that are even at both ends, (1, 2, 1000), about 0.3."""
    sample = np.arange(1000) + 0.5
    wave = sum(np.cos(2 * np.pi * one / RATE_HZ * sample) for one in hz) + 0.3
    return torch.from_numpy(np.tile(wave, (1, 2, 1)))


def test_the_low_pass_equals_scipys_forwards_and_backwards_filter() -> None:
    gaze = np.cumsum(np.random.default_rng(0).normal(size=(2, 2, 1000)), axis=-1)
    found = filtered(torch.from_numpy(gaze), RATE_HZ, [low_pass(30.0)]).numpy()
    expected = sosfiltfilt(butter(4, 30.0, fs=RATE_HZ, output="sos"), gaze, axis=-1)
    # The digital filter's frequencies are warped, and its ends are padded otherwise.
    inner = slice(100, -100)
    assert np.abs(found - expected)[..., inner].max() < 0.02 * gaze.std()
    assert np.abs(gaze - expected)[..., inner].max() > 0.05 * gaze.std()


def test_a_band_is_taken_out_and_the_others_stay() -> None:
    found = filtered(sines(5.0, 40.0), RATE_HZ, [without_band(30, 60)])
    assert torch.allclose(found, sines(5.0), atol=1e-9)
    found = filtered(sines(5.0, 40.0), RATE_HZ, [without_band(2, 10)])
    assert torch.allclose(found, sines(40.0), atol=1e-9)


def test_bands_cover_all_frequencies_once() -> None:
    gaze = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 2, 500)))
    out = [
        gaze - filtered(gaze, RATE_HZ, [without_band(*band)]) for band in bands(RATE_HZ).values()
    ]
    assert torch.allclose(sum(out) + gaze.mean(-1, keepdim=True), gaze, atol=1e-9)


@pytest.mark.parametrize(
    ("rate_hz", "below_hz", "names"),
    [
        (250, None, ["0 to 2 Hz", "2 to 10 Hz", "10 to 30 Hz", "30 to 60 Hz", "60 to 125 Hz"]),
        (250, 30, ["0 to 2 Hz", "2 to 10 Hz", "10 to 30 Hz"]),
        (60, None, ["0 to 2 Hz", "2 to 10 Hz", "10 to 30 Hz"]),
        (50, None, ["0 to 2 Hz", "2 to 10 Hz", "10 to 25 Hz"]),
    ],
)
def test_bands_end_at_half_the_rate(rate_hz: float, below_hz: float, names: list[str]) -> None:
    assert list(bands(rate_hz, below_hz)) == names


def test_events_are_a_saccade_the_time_after_it_and_the_rest() -> None:
    gaze = np.zeros((2, 2, 500), dtype=np.float32)
    gaze[0, 0, 200:] = 0.4
    gaze[0, 0, 200:210] = np.linspace(0, 0.4, 10)
    masks = event_masks(gaze, (SCREEN, SCREEN), RATE_HZ)
    assert masks is not None
    saccade, after = masks["saccades"][0], masks[AFTER_SACCADE][0]
    assert saccade[203:207].all()
    assert saccade.sum() < 16
    assert after.sum() == 25
    assert np.flatnonzero(after)[0] == np.flatnonzero(saccade)[-1] + 1
    assert masks["fixations"][1].all()
    assert (np.sum(list(masks.values()), axis=0) == 1).all()


def test_events_need_degrees() -> None:
    gaze = np.zeros((1, 2, 50), dtype=np.float32)
    assert event_masks(gaze, (Screen(800, 600),), RATE_HZ) is None


def test_samples_taken_out_are_straight_lines() -> None:
    line = np.arange(100, dtype=np.float32) / 100
    gaze = np.stack([[line, -line]] * 2).astype(np.float32)
    is_out = np.zeros((2, 100), dtype=bool)
    is_out[0, 30:50] = True
    is_out[1] = True
    bent = gaze.copy()
    bent[0, :, 30:50] = 9
    found = without_samples(bent, is_out)
    assert found == pytest.approx(gaze, abs=1e-6)
    assert (bent[0, :, 30:50] == 9).all()


def test_lines_equal_numpys_interpolation() -> None:
    rng = np.random.default_rng(0)
    gaze = rng.normal(size=(20, 2, 60)).astype(np.float32)
    is_out = np.repeat(rng.random((20, 12)) < 0.5, 5, axis=1)
    found = without_samples(gaze, is_out)
    place = np.arange(60)
    for one, out, line in zip(gaze, is_out, found, strict=True):
        for before, after in zip(one, line, strict=True):
            expected = np.interp(place, place[~out], before[~out])
            assert after == pytest.approx(expected, abs=1e-6)
