from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from gazediffusion.data.resampling import (
    Clock,
    read_clock,
    resample_segment,
    source_samples,
    thinning_factor,
    windows_at,
)
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from tests.conftest import SCREEN


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


@pytest.mark.parametrize("rate_hz", [60.0, 120.0])
def test_stated_rates_in_whole_milliseconds_are_steady_and_lose_no_sample(rate_hz: float) -> None:
    n = round(8 * rate_hz)
    time_ms = np.rint(np.arange(n) * 1000 / rate_hz)
    clock = read_clock(time_ms, stated_hz=rate_hz)
    assert clock == Clock(rate_hz, is_steady=True)
    gaze = np.random.default_rng(0).normal(640, 9, (2, n)).astype(np.float32)
    np.testing.assert_array_equal(resample_segment(time_ms, gaze, clock, rate_hz), gaze)
    unsteady = resample_segment(time_ms, gaze, Clock(rate_hz, is_steady=False), rate_hz)
    assert unsteady.shape[1] == n


def walking_windows(n: int, length: int = 2000) -> Windows:
    steps = np.random.default_rng(0).normal(0, 0.01, (n, 2, length))
    return Windows.from_array(np.cumsum(steps, axis=2).clip(-1, 1), 250.0, SCREEN)


@pytest.mark.parametrize(("rate_hz", "up", "down"), [(60.0, 6, 25), (120.0, 12, 25), (50.0, 1, 5)])
def test_windows_at_a_lower_rate_are_those_of_scipy(rate_hz: float, up: int, down: int) -> None:
    windows = walking_windows(3)
    found = windows_at(windows, rate_hz)
    assert (found.length, found.rate_hz) == (8 * rate_hz, rate_hz)
    theirs = signal.resample_poly(
        windows.cut().astype(np.float64), up, down, axis=2, padtype="line"
    )
    np.testing.assert_allclose(found.cut(), theirs.clip(-1.2, 1.2), atol=1e-6)
    assert found.provenance["resampled"] == {"from_hz": 250.0, "how": "low-passed"}


def test_a_window_at_a_lower_rate_does_not_depend_on_the_others() -> None:
    windows = walking_windows(5)
    together = windows_at(windows, 60).cut()
    for k in range(5):
        alone = windows_at(windows.select(np.array([k])), 60)
        np.testing.assert_array_equal(alone.cut()[0], together[k])
        assert alone.identity["trial"].tolist() == [str(k)]


def test_windows_keep_motion_below_the_new_nyquist_frequency_and_lose_that_above() -> None:
    seconds = np.arange(2000) / 250
    waves = [0.5 * np.sin(2 * np.pi * hz * seconds) for hz in (5, 100)]
    found = windows_at(Windows.from_array(np.array([waves]), 250.0, SCREEN), 60).cut()[0]
    truth = 0.5 * np.sin(2 * np.pi * 5 * np.arange(480) / 60)
    np.testing.assert_allclose(found[0, 10:-10], truth[10:-10], atol=0.005)
    assert np.abs(found[1, 10:-10]).max() < 0.01


def test_thinned_windows_are_every_second_sample() -> None:
    windows = walking_windows(2)
    np.testing.assert_array_equal(
        windows_at(windows, 125, thins=True).cut(), windows.cut()[..., ::2]
    )
    assert windows_at(windows, 250) is windows
    with pytest.raises(GazeError, match="250 Hz is below the target of 500 Hz"):
        windows_at(windows, 500)


def test_labels_take_the_nearest_sample_and_targets_the_last_one_before() -> None:
    time_ms = np.arange(300, dtype=np.float64) * (1000.0 / 300)
    nearest, held = source_samples(time_ms, Clock(300.0, True), 250.0, 250)
    at_ms = np.arange(250) * 4.0
    np.testing.assert_array_equal(nearest, np.abs(time_ms[:, None] - at_ms).argmin(axis=0))
    assert (time_ms[held] <= at_ms + 1e-6).all()
    assert (time_ms[held] > at_ms - 1000 / 300).all()
    thinned = source_samples(np.arange(100.0), Clock(1000.0, True), 250.0, 25)
    np.testing.assert_array_equal(thinned, [np.arange(0, 100, 4)] * 2)


@pytest.mark.parametrize("rate_hz", [125.0, 60.0])
def test_windows_at_a_lower_rate_keep_their_labels_and_targets(rate_hz: float) -> None:
    gaze = np.zeros((2, 2, 500))
    windows = Windows.from_array(gaze, 250, SCREEN)
    assert windows_at(windows, rate_hz).labels is None
    assert windows_at(windows, rate_hz).targets is None
    labels = np.repeat(np.arange(4, dtype=np.uint8), 250)
    places = np.array([0.1, 0.2, 0.3, np.nan], dtype=np.float32)
    targets = np.stack([np.repeat(places, 250)] * 2)
    lower = windows_at(replace(windows, labels=labels, targets=targets), rate_hz)
    n = round(rate_hz)
    expected = np.repeat(np.arange(4).reshape(2, 2), n, axis=1)
    np.testing.assert_array_equal(lower.cut_labels(), expected)
    np.testing.assert_array_equal(lower.cut_targets()[:, 1], places[expected])
