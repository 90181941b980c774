"""The noise level of long gaze: slow motion is scaled, saccades and known samples stay."""

from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.generation.long_gaze import at_noise_level, noise_level

RATE_HZ, N, N_KNOWN = 250.0, 2000, 300


def stepping_gaze(level: float, seed: int = 0) -> np.ndarray:
    """Two windows of noise around positions that jump every 0.8 s over 20 ms."""
    rng = np.random.default_rng(seed)
    places = np.repeat(rng.uniform(-0.5, 0.5, (2, 2, 10)), 200, axis=2)
    ramp = np.apply_along_axis(np.convolve, 2, places, np.ones(5) / 5, "same")
    return (ramp + rng.normal(0, level, (2, 2, N))).astype(np.float32)


def test_noise_gets_the_level_and_saccades_and_fixations_stay() -> None:
    gaze = stepping_gaze(0.001)
    known = np.full_like(gaze, np.nan)
    known[..., :N_KNOWN] = gaze[..., :N_KNOWN]
    target = 0.7 * noise_level(gaze)
    found = at_noise_level(gaze, known, target, RATE_HZ)
    # Nine tenths of the difference, in logarithms.
    ratio = noise_level(found[..., N_KNOWN:]) / noise_level(gaze[..., N_KNOWN:])
    assert ratio == pytest.approx(0.7**0.9, rel=0.02)
    assert np.abs(found - gaze)[..., : N_KNOWN - 100].max() < 1e-5
    peaks = [np.abs(np.diff(one, axis=2)).max(axis=2) for one in (found, gaze)]
    assert peaks[0] == pytest.approx(peaks[1], rel=0.05)
    middles = [one[..., N_KNOWN:].reshape(2, 2, -1, 100).mean(axis=3) for one in (found, gaze)]
    assert np.abs(middles[0] - middles[1]).max() < 3e-4


def test_noise_that_has_the_level_stays_and_no_factor_is_extreme() -> None:
    gaze = stepping_gaze(0.001)
    known = np.full_like(gaze, np.nan)
    same = at_noise_level(gaze, known, noise_level(gaze), RATE_HZ)
    assert np.abs(same - gaze).max() < 1e-5
    louder = at_noise_level(gaze, known, 100 * noise_level(gaze), RATE_HZ)
    assert noise_level(louder) / noise_level(gaze) == pytest.approx(2.0, rel=0.05)
    still = np.zeros_like(gaze)
    np.testing.assert_array_equal(at_noise_level(still, known, noise_level(gaze), RATE_HZ), still)
