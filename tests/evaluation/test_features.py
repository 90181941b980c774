"""Trajectories with features known by hand, slow loops, and pymovements as an oracle."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation import features
from gazediffusion.evaluation.features import (
    LOG_SPEED_FLOOR,
    autocorrelation,
    degree_events,
    ivt_statistics,
    kinematic_features,
    lag_one_autocorrelation,
    main_sequence_fit,
    motion_quantities,
    normalized_spectra,
    velocity_quantities,
    wrapped,
)
from gazediffusion.screen import Screen

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pymovements' own imports are not ours to mend
    import pymovements as pm

Floats = NDArray[np.float64]
RATE_HZ = 250.0
SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)


def jumping_gaze(n: int, length: int, seed: int = 0, jumps: float = 0.05) -> NDArray[np.float32]:
    """Fixations with noise between random jumps that last a few samples, (n, 2, length)."""
    rng = np.random.default_rng(seed)
    is_fast = rng.random((n, 1, length)) < jumps
    is_fast |= np.roll(is_fast, 1, axis=2)
    steps = rng.normal(0, 1, (n, 2, length)) * np.where(is_fast, 0.05, 0.001)
    return np.cumsum(steps, axis=2).astype(np.float32)


def test_the_nine_features_of_a_path_done_by_hand() -> None:
    x = [0.0, 0.3, 0.3, 0.3, 0.31]
    y = [0.0, 0.4, 0.4, 0.4, 0.4]
    found = kinematic_features(np.array([[x, y]]))
    expected = {
        "mean_speed": 0.51 / 4,
        "max_speed": 0.5,
        "path_length": 0.51,
        "x_range": 0.31,
        "y_range": 0.4,
        "x_std": math.sqrt(sum((v - 0.242) ** 2 for v in x) / 5),
        "y_std": 0.16,
        "displacement": math.hypot(0.31, 0.4),
        "fixation_ratio": 3 / 4,
    }
    assert {name: value.item() for name, value in found.items()} == pytest.approx(expected)


def test_mirroring_changes_no_feature_and_no_event() -> None:
    gaze = jumping_gaze(5, 300)
    mirrored = gaze * np.array([[-1], [1]], dtype=np.float32)
    for name, values in kinematic_features(gaze).items():
        np.testing.assert_allclose(kinematic_features(mirrored)[name], values, rtol=1e-12)
    one, other = ivt_statistics(gaze, RATE_HZ), ivt_statistics(mirrored, RATE_HZ)
    np.testing.assert_allclose(one.saccade_amplitude, other.saccade_amplitude, rtol=1e-12)
    np.testing.assert_allclose(one.fixation_dispersion, other.fixation_dispersion, rtol=1e-9)


def slow_events(gaze: NDArray[np.float32], threshold: float, min_steps: int) -> list[list[float]]:
    """I-VT as a loop: [is fixation, window, seconds, dispersion or amplitude, peak speed]."""
    events = []
    for number, window in enumerate(gaze.astype(np.float64)):
        speed = [math.hypot(*(window[:, i + 1] - window[:, i])) for i in range(window.shape[1] - 1)]
        start = 0
        for i in range(1, len(speed) + 1):
            if i < len(speed) and (speed[i] > threshold) == (speed[start] > threshold):
                continue
            part = window[:, start : i + 1]
            seconds = (i - start) / RATE_HZ
            if speed[start] > threshold:
                size = math.hypot(*(part[:, -1] - part[:, 0]))
                events.append([0.0, number, seconds, size, max(speed[start:i])])
            elif i - start >= min_steps:
                size = math.sqrt(np.var(part[0]) + np.var(part[1]))
                events.append([1.0, number, seconds, size, 0.0])
            start = i
    return events


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([1, 2, features._CHUNK + 1]),
    length=st.integers(2, 60),
    jumps=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
)
def test_events_are_those_of_a_loop(seed: int, n: int, length: int, jumps: float) -> None:
    gaze = jumping_gaze(n, length, seed, jumps)
    expected = np.array(slow_events(gaze, 0.02, 15)).reshape(-1, 5)
    fixations, saccades = expected[expected[:, 0] == 1], expected[expected[:, 0] == 0]
    found = ivt_statistics(gaze, RATE_HZ)
    np.testing.assert_array_equal(found.fixation_window, fixations[:, 1])
    np.testing.assert_allclose(found.fixation_duration_s, fixations[:, 2])
    np.testing.assert_allclose(found.fixation_dispersion, fixations[:, 3], rtol=1e-9)
    np.testing.assert_array_equal(found.saccade_window, saccades[:, 1])
    np.testing.assert_allclose(found.saccade_duration_s, saccades[:, 2])
    np.testing.assert_allclose(found.saccade_amplitude, saccades[:, 3], rtol=1e-9)
    np.testing.assert_allclose(found.saccade_peak_speed, saccades[:, 4], rtol=1e-12)
    windows = np.arange(n)
    np.testing.assert_array_equal(
        found.fixation_count, (fixations[:, 1] == windows[:, None]).sum(axis=1)
    )
    np.testing.assert_array_equal(
        found.saccade_count, (saccades[:, 1] == windows[:, None]).sum(axis=1)
    )


def test_a_fixation_lasts_sixty_ms_or_it_is_none() -> None:
    x = np.zeros(32)
    x[15:] += 0.5  # 14 slow steps, one fast, 16 slow
    gaze = np.stack([x, np.zeros(32)])[None]
    assert ivt_statistics(gaze, RATE_HZ).fixation_duration_s.tolist() == [16 / 250]
    shifted = np.roll(x, 1)
    shifted[0] = 0.0  # 15 slow steps, one fast, 15 slow: 60 ms each
    gaze = np.stack([shifted, np.zeros(32)])[None]
    assert ivt_statistics(gaze, RATE_HZ).fixation_duration_s.tolist() == [0.06, 0.06]


def test_a_step_at_the_threshold_is_slow() -> None:
    gaze = np.array([[[0.0, 0.25, 0.5, 1.0], [0.0] * 4]])
    found = ivt_statistics(gaze, RATE_HZ, threshold=0.25)
    assert found.saccade_amplitude.tolist() == [0.5]


def test_directions_and_turns_of_a_square() -> None:
    x = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    y = np.array([0.0, 0.0, 1.0, 1.0, 0.0])
    found = motion_quantities(np.stack([x, y])[None])
    np.testing.assert_allclose(found["direction"][0], [0, np.pi / 2, np.pi, -np.pi / 2])
    # From pi to -pi/2 is a quarter turn, not three quarters the other way.
    np.testing.assert_allclose(found["turning_angle"][0], [np.nan, *[np.pi / 2] * 3])


def test_a_step_of_no_length_has_no_direction_and_no_turns() -> None:
    gaze = np.array([[[0.0, 1.0, 1.0, 2.0, 3.0], [0.0] * 5]])
    found = motion_quantities(gaze)
    assert np.isnan(found["direction"][0]).tolist() == [False, True, False, False]
    assert np.isnan(found["turning_angle"][0]).tolist() == [True, True, True, False]
    assert found["speed"][0].tolist() == [1.0, 0.0, 1.0, 1.0]


@given(st.floats(-50, 50))
def test_wrapping_keeps_the_angle_and_its_sign(angle: float) -> None:
    short = float(wrapped(np.array(angle)))
    assert abs(short) <= np.pi + 1e-12
    assert math.cos(short) == pytest.approx(math.cos(angle), abs=1e-12)
    assert math.sin(short) == pytest.approx(math.sin(angle), abs=1e-12)
    assert float(wrapped(np.array(-angle))) == -short


def test_velocities_are_per_second_and_integrate_to_the_path() -> None:
    gaze = jumping_gaze(4, 200)
    found = velocity_quantities(gaze, RATE_HZ)
    back = np.cumsum(found["v_x"], axis=1) / RATE_HZ + gaze[:, 0, :1]
    np.testing.assert_allclose(back, gaze[:, 0, 1:], atol=1e-6)
    length = found["speed"].sum(axis=1) / RATE_HZ
    np.testing.assert_allclose(length, kinematic_features(gaze)["path_length"])
    np.testing.assert_allclose(np.hypot(found["v_x"], found["v_y"]), found["speed"])


def test_log_speed_of_standing_still_is_the_floor() -> None:
    gaze = np.array([[[0.0, 0.0, 0.01], [0.0, 0.0, 0.0]]])
    found = velocity_quantities(gaze, RATE_HZ)["log_speed"]
    np.testing.assert_allclose(found[0], [math.log(LOG_SPEED_FLOOR), math.log(2.5)])


def test_autocorrelation_is_that_of_numpy() -> None:
    series = np.random.default_rng(0).gamma(1.0, 1.0, (features._CHUNK + 2, 101))
    found = autocorrelation(series, 100)
    for row, values in zip(found, series, strict=True):
        centred = values - values.mean()
        direct = np.correlate(centred, centred, "full")[100:] / (centred @ centred)
        np.testing.assert_allclose(row, direct, atol=1e-12)
    np.testing.assert_allclose(lag_one_autocorrelation(series), found[:, 1], atol=1e-12)


def test_spectra_are_those_of_the_fourier_transform() -> None:
    series = np.random.default_rng(0).normal(3, 1, (5, 200))
    frequency, share = normalized_spectra(series, RATE_HZ)
    np.testing.assert_allclose(frequency, np.fft.rfftfreq(200, 1 / RATE_HZ)[1:])
    power = np.abs(np.fft.rfft(series)) ** 2
    power[:, 1:-1] *= 2  # one-sided: all but the first and the last stand for two
    np.testing.assert_allclose(share, power[:, 1:] / power[:, 1:].sum(axis=1, keepdims=True))


def test_constant_series_have_no_value() -> None:
    series = np.stack([np.full(50, 0.1), np.random.default_rng(0).normal(0, 1, 50)])
    for values in (autocorrelation(series, 5), normalized_spectra(series, RATE_HZ)[1]):
        assert np.isnan(values[0]).all()
        assert np.isfinite(values[1]).all()
    assert np.isnan(lag_one_autocorrelation(series)).tolist() == [True, False]


def test_lost_gaze_and_wrong_shapes_are_refused() -> None:
    gaze = jumping_gaze(3, 50)
    gaze[1, 0, 7] = np.nan
    for refused in (kinematic_features, motion_quantities):
        with pytest.raises(GazeError, match="window 1 holds NaN"):
            refused(gaze)
    with pytest.raises(GazeError, match="window 1 holds NaN"):
        ivt_statistics(gaze, RATE_HZ)
    with pytest.raises(GazeError, match="shape"):
        kinematic_features(gaze[0])
    with pytest.raises(GazeError, match="no windows"):
        kinematic_features(gaze[:0])
    with pytest.raises(GazeError, match="lags"):
        autocorrelation(np.ones((2, 5)), 5)


def test_degree_events_are_those_of_a_pymovements_gaze() -> None:
    gaze = jumping_gaze(4, 1000, seed=3, jumps=0.01)
    found = degree_events(gaze, SCREEN, RATE_HZ)
    assert len(found.fixation_duration_s) > 10
    assert len(found.saccade_amplitude_deg) > 10
    experiment = pm.Experiment(1280, 720, 40.0, 22.5, 45.0, "upper left", sampling_rate=RATE_HZ)
    for number, window in enumerate(gaze):
        pixels = SCREEN.to_pixels(window.astype(np.float64))
        oracle = pm.gaze.from_numpy(
            pixel=pixels, time=np.arange(1000) * 4, time_unit="ms", experiment=experiment
        )
        oracle.pix2deg()
        positions = np.array(oracle.samples["position"].to_list())
        velocity = pm.transforms.numpy.pos2vel(positions, RATE_HZ, "smooth")
        time_ms = np.arange(1000) * 4
        fixations = pm.events.ivt(velocity, time_ms, minimum_duration=100).frame
        saccades = pm.events.microsaccades(velocity, time_ms, minimum_duration=6).frame
        assert found.fixation_duration_s[found.fixation_window == number].tolist() == pytest.approx(
            (fixations["duration"].to_numpy() / 1000).tolist()
        )
        first, last = (saccades[name].to_numpy() // 4 for name in ("onset", "offset"))
        amplitude = np.hypot(*(positions[last] - positions[first]).T)
        mine = found.saccade_window == number
        np.testing.assert_allclose(found.saccade_amplitude_deg[mine], amplitude, rtol=1e-6)
        speed = np.hypot(*velocity.T)
        peak = [speed[a : b + 1].max() for a, b in zip(first, last, strict=True)]
        np.testing.assert_allclose(found.saccade_peak_deg_s[mine], peak, rtol=1e-6)
        assert found.microsaccades_per_s[number] == (amplitude < 1).sum() / 4.0


@pytest.mark.parametrize("rate_hz", [60.0, 120.0])
def test_below_200_hz_degree_events_are_those_of_neighbouring_samples(rate_hz: float) -> None:
    gaze = jumping_gaze(1, 500, seed=3, jumps=0.02)
    found = degree_events(gaze, SCREEN, rate_hz)
    positions = SCREEN.to_degrees(SCREEN.to_pixels(gaze[0].astype(np.float64))).T
    velocity = pm.transforms.numpy.pos2vel(positions, rate_hz, "neighbors")
    # The ends of a window have no neighbours in pymovements.
    velocity[[0, -1]] = (positions[[1, -1]] - positions[[0, -2]]) * rate_hz / 2
    steps = np.arange(500)
    saccades = pm.events.microsaccades(velocity, steps, minimum_duration=1).frame
    first, last = (saccades[name].to_numpy() for name in ("onset", "offset"))
    amplitude = np.hypot(*(positions[last] - positions[first]).T)
    assert len(amplitude) > 3
    np.testing.assert_allclose(found.saccade_amplitude_deg, amplitude, rtol=1e-6)
    assert np.isnan(found.microsaccades_per_s).all()


@pytest.mark.parametrize("rate_hz", [60.0, 120.0, 250.0, 1000.0])
def test_the_speed_that_parts_fixations_from_saccades_is_the_same_at_every_rate(
    rate_hz: float,
) -> None:
    # Ramps of half a second at 4.9, 5.1 and 0 normalized units per second.
    n = round(rate_hz / 10)
    speed = np.concatenate([np.full(n, 4.9), np.full(n, 5.1), np.zeros(8 * n)])
    x = np.cumsum(speed) / rate_hz - 0.5
    gaze = np.stack([x, np.zeros_like(x)])[None]
    found = ivt_statistics(gaze, rate_hz)
    assert found.saccade_duration_s.tolist() == pytest.approx([0.1])
    assert found.saccade_amplitude.tolist() == pytest.approx([0.51])
    ratio = kinematic_features(gaze, rate_hz)["fixation_ratio"]
    assert ratio.tolist() == pytest.approx([0.9], abs=1 / n)


def test_only_so_many_windows_are_looked_at_evenly_spaced() -> None:
    found = degree_events(jumping_gaze(9, 500), SCREEN, RATE_HZ, max_windows=3)
    assert found.window.tolist() == [0, 4, 8]
    assert set(found.saccade_window.tolist()) <= {0, 4, 8}
    assert found.microsaccades_per_s.shape == (3,)


def test_gaze_that_stands_still_has_fixations_and_unknown_saccades() -> None:
    gaze = np.zeros((2, 2, 500), dtype=np.float32)
    gaze[1] = jumping_gaze(1, 500)[0]
    found = degree_events(gaze, SCREEN, RATE_HZ)
    assert found.fixation_duration_s[0] == 499 / RATE_HZ
    assert np.isnan(found.microsaccades_per_s).tolist() == [True, False]
    assert 0 not in found.saccade_window


def test_degrees_without_a_screen_size_are_refused() -> None:
    with pytest.raises(GazeError, match="size and distance"):
        degree_events(jumping_gaze(1, 100), Screen(1280, 720), RATE_HZ)


def test_the_main_sequence_fit_finds_the_line_it_was_made_of() -> None:
    amplitude = np.geomspace(0.1, 20, 400)
    noise = np.random.default_rng(0).normal(0, 0.1, 400)
    exact = main_sequence_fit(amplitude, 60 * amplitude**0.6)
    assert (exact.slope, exact.intercept) == pytest.approx((0.6, math.log10(60)))
    assert exact.spread < 1e-12
    noisy = main_sequence_fit(amplitude, 60 * amplitude**0.6 * 10**noise)
    slope, intercept = np.polyfit(np.log10(amplitude), np.log10(60 * amplitude**0.6) + noise, 1)
    assert (noisy.slope, noisy.intercept) == pytest.approx((slope, intercept))
    assert noisy.spread == pytest.approx(0.1, rel=0.1)


def test_the_main_sequence_leaves_out_saccades_of_no_size_and_needs_three() -> None:
    amplitude = np.array([0.0, 1.0, 2.0, 4.0])
    assert main_sequence_fit(amplitude, 10 * amplitude).n == 3
    with pytest.raises(GazeError, match="three saccades"):
        main_sequence_fit(amplitude[:3], 10 * amplitude[:3])
