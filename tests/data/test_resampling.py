from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from gazediffusion.data.resampling import Clock, read_clock, resample_segment, thinning_factor
from gazediffusion.errors import GazeError


def sine(rate_hz: float, frequency_hz: float, seconds: float = 4.0) -> tuple[np.ndarray, ...]:
    time_ms = np.arange(round(rate_hz * seconds)) * 1000 / rate_hz
    wave = 640 + 100 * np.sin(2 * np.pi * frequency_hz * time_ms / 1000)
    return time_ms, np.stack([wave, wave]).astype(np.float32)


@pytest.mark.parametrize("rate_hz", [250.0, 500.0, 1000.0, 2000.0])
def test_a_multiple_of_the_target_is_thinned_exactly(rate_hz: float) -> None:
    time_ms, gaze = sine(rate_hz, 3)
    clock = read_clock(time_ms)
    factor = round(rate_hz / 250)
    assert clock == Clock(rate_hz, is_steady=True)
    assert thinning_factor(clock, 250) == factor
    np.testing.assert_array_equal(resample_segment(time_ms, gaze, clock, 250), gaze[:, ::factor])


@pytest.mark.parametrize("rate_hz", [300.0, 600.0, 1200.0 / 1.1])
def test_other_rates_keep_slow_motion(rate_hz: float) -> None:
    time_ms, gaze = sine(rate_hz, 5)
    clock = read_clock(time_ms)
    resampled = resample_segment(time_ms, gaze, clock, 250)
    seconds = np.arange(resampled.shape[1]) / 250
    truth = 640 + 100 * np.sin(2 * np.pi * 5 * seconds)
    # The ends feel the filter's edge; the rest agrees to a pixel in a hundred.
    np.testing.assert_allclose(resampled[0, 25:-25], truth[25:-25], atol=1.0)


def test_motion_above_the_new_nyquist_is_filtered_away_not_folded_down() -> None:
    time_ms, gaze = sine(600, 200)
    clock = read_clock(time_ms)
    assert np.std(resample_segment(time_ms, gaze, clock, 250)[0, 25:-25]) < 2.0
    # Thinning the same wave, as a naive reader would, keeps it all as an alias.
    assert np.std(gaze[0, :: round(600 / 250)]) > 50


def test_the_filter_is_that_of_scipy() -> None:
    time_ms, gaze = sine(300, 7)
    ours = resample_segment(time_ms, gaze, Clock(300, is_steady=True), 250)
    theirs = signal.resample_poly(gaze.astype(np.float64), 5, 6, axis=1, padtype="line")
    n = min(ours.shape[1], theirs.shape[1])
    np.testing.assert_allclose(ours[:, : n - 10], theirs[:, : n - 10], atol=0.5)


def test_an_unsteady_clock_is_brought_to_an_even_grid() -> None:
    rng = np.random.default_rng(0)
    time_ms = np.cumsum(rng.uniform(3.5, 6.5, 800))
    wave = (640 + 100 * np.sin(2 * np.pi * 2 * time_ms / 1000)).astype(np.float32)
    clock = read_clock(time_ms)
    assert not clock.is_steady
    assert clock.rate_hz == pytest.approx(200, rel=0.02)
    resampled = resample_segment(time_ms, np.stack([wave, wave]), clock, 100)
    seconds = time_ms[0] / 1000 + np.arange(resampled.shape[1]) / 100
    truth = 640 + 100 * np.sin(2 * np.pi * 2 * seconds)
    np.testing.assert_allclose(resampled[0, 10:-10], truth[10:-10], atol=1.5)


def test_whole_millisecond_stamps_of_300_hz_are_read_as_300_hz() -> None:
    time_ms = np.rint(np.arange(1000) * 1000 / 300).astype(np.float64)
    clock = read_clock(time_ms)
    assert clock.rate_hz == 300
    assert not clock.is_steady


def test_the_stated_rate_wins_when_the_clock_agrees_with_it() -> None:
    time_ms = np.arange(1000, dtype=np.float64) * (1000 / 59.94)
    assert read_clock(time_ms, stated_hz=59.94).rate_hz == 59.94
    assert read_clock(time_ms, stated_hz=1000).rate_hz == 60


def test_gaps_do_not_change_the_rate() -> None:
    time_ms = np.arange(1000, dtype=np.float64) * 4.0
    time_ms[500:] += 60_000
    assert read_clock(time_ms) == Clock(250.0, is_steady=True)


def test_a_rate_below_the_target_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        GazeError, match="60 Hz is below the target of 250 Hz; choose a `rate_hz` of 60"
    ):
        thinning_factor(Clock(60, is_steady=True), 250)


def test_a_single_sample_has_no_rate() -> None:
    with pytest.raises(GazeError, match="too short"):
        read_clock(np.array([0.0]))
