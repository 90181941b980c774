"""Gaps: which are filled, known gaze at the model's rate, and where windows are placed."""

from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.data.resampling import read_clock
from gazediffusion.errors import GazeError
from gazediffusion.generation.filling import find_gaps, on_grid, place_windows
from gazediffusion.settings import CleaningConfig
from tests.conftest import MakeRecording, wandering_gaze

BARE = CleaningConfig(blink_before_ms=0, blink_after_ms=0)


def lost(gaze: np.ndarray, *spans: tuple[int, int]) -> np.ndarray:
    gaze = gaze.copy()
    for start, stop in spans:
        gaze[:, start:stop] = np.nan
    return gaze


def test_gaps_at_the_ends_and_long_ones_stay_lost_and_are_counted(
    make_recording: MakeRecording,
) -> None:
    gaze = lost(wandering_gaze(2500), (0, 10), (500, 750), (1000, 1251), (1500, 1501), (2400, 2500))
    found = find_gaps(make_recording(gaze=gaze), BARE, 1.0)
    assert [tuple(gap) for gap in found.gaps] == [(500, 750), (1500, 1501)]
    counts = found.counts
    assert (counts.gaps, counts.filled, counts.too_long, counts.at_ends) == (5, 2, 1, 2)
    assert (counts.samples, counts.filled_samples) == (2500, 251)
    np.testing.assert_array_equal(
        np.flatnonzero(found.is_filled), np.append(np.arange(500, 750), 1500)
    )


def test_the_flanks_of_a_blink_are_part_of_its_gap(make_recording: MakeRecording) -> None:
    gaze = lost(wandering_gaze(2500), (500, 550))
    (gap,) = find_gaps(make_recording(gaze=gaze), CleaningConfig(), 1.0).gaps
    assert tuple(gap) == (500 - 15, 550 + 25)  # 60 ms before, 100 ms after
    assert find_gaps(make_recording(gaze=gaze), CleaningConfig(), 0.3).counts.too_long == 1


def test_repeated_times_within_a_gap_are_filled_as_well(make_recording: MakeRecording) -> None:
    gaze = lost(wandering_gaze(1000), (500, 520))
    time_ms = np.arange(1000) * 4.0
    time_ms[510] = time_ms[509]
    found = find_gaps(make_recording(gaze=gaze, time_ms=time_ms), BARE, 1.0)
    np.testing.assert_array_equal(np.flatnonzero(found.is_filled), np.arange(500, 520))


def test_a_slow_recording_is_refused_with_the_reason(make_recording: MakeRecording) -> None:
    with pytest.raises(GazeError, match="60 Hz is below 100 Hz: samples so far apart"):
        find_gaps(make_recording(n=600, rate_hz=60.0), BARE, 1.0)


def test_a_recording_without_a_valid_sample_has_no_gap_to_fill(
    make_recording: MakeRecording,
) -> None:
    found = find_gaps(make_recording(gaze=np.full((2, 500), np.nan, np.float32)), BARE, 1.0)
    assert (found.gaps, found.counts.valid, found.counts.at_ends) == ((), 0, 1)


@pytest.mark.parametrize("rate_hz", [120.0, 250.0, 300.0, 500.0, 1000.0])
def test_known_gaze_is_on_one_grid_whatever_the_rate_and_never_from_lost_samples(
    make_recording: MakeRecording, rate_hz: float
) -> None:
    # Gaze that is a smooth function of time, so that its value on the grid is known.
    n = int(8 * rate_hz)
    time_s = np.arange(n) / rate_hz
    gaze = np.stack([640 + 300 * np.sin(2 * time_s), 360 + 200 * np.cos(3 * time_s)])
    first, stop = int(3.003 * rate_hz), int(3.4 * rate_hz)
    gaze = lost(gaze.astype(np.float32), (first, stop))
    found = find_gaps(make_recording(gaze=gaze, rate_hz=rate_hz), BARE, 1.0)
    grid = on_grid(found.cleaned, read_clock(found.cleaned.time_ms), 250.0)
    at_s = np.arange(grid.shape[1]) / 250
    expected = np.stack([640 + 300 * np.sin(2 * at_s), 360 + 200 * np.cos(3 * at_s)])
    is_known = ~np.isnan(grid[0])
    assert np.abs(grid - expected)[:, is_known].max() < (0.001 if rate_hz % 250 == 0 else 1.0)
    in_gap = (at_s > (first - 1) / rate_hz + 0.001) & (at_s < stop / rate_hz - 0.001)
    np.testing.assert_array_equal(~is_known[5:-5], in_gap[5:-5])


def test_windows_are_centred_hold_every_gap_once_and_leave_context() -> None:
    spans = [(100, 150), (900, 1000), (1500, 1510), (3000, 3250), (9990, 9995)]
    windows = place_windows(spans, 10_000, 2000, 250)
    assert sorted(number for _, group in windows for number in group) == list(range(5))
    for start, group in windows:
        assert 0 <= start <= 8000
        for number in group:
            first, stop = spans[number]
            assert start + min(250, first) <= first
            assert stop <= start + 2000 - min(250, 10_000 - stop)
    assert windows[0] == (0, [0, 1, 2])
    # A recording shorter than a window has one, from its beginning.
    assert place_windows([(10, 20)], 100, 2000, 250) == [(0, [0])]
