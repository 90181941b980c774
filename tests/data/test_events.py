"""The simulator's truth, and pymovements' own I-VT as an oracle."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest

from gazediffusion.data.events import (
    MIN_FIXATION_MS,
    MIN_SACCADE_MS,
    SACCADE_DEG_S,
    detect_events,
    detect_ivt,
    smoothed_saccades,
)
from gazediffusion.data.simulation import simulate
from gazediffusion.settings import SimulationConfig
from tests.conftest import SCREEN


def test_simulated_saccades_are_found_with_their_size() -> None:
    config = SimulationConfig(n_participants=2, minutes=0.5, rate_hz=250, binocular=False)
    n_true = n_found = 0
    ratios = []
    for simulated in simulate(config):
        recording = simulated.recording
        gaze = recording.gaze_px["right"]
        seen = np.isfinite(gaze).all(axis=0)
        gaze = np.stack([np.interp(recording.time_ms, recording.time_ms[seen], axis[seen])
                         for axis in gaze]).astype(np.float32)  # fmt: skip
        assert recording.screen is not None
        found = [e for e in detect_events(gaze, recording.time_ms, recording.screen)
                 if e.event == "saccade"]  # fmt: skip
        for true in simulated.events:
            if true.event != "saccade" or true.amplitude_deg < 2:
                continue
            n_true += 1
            middle = (true.onset_ms + true.offset_ms) / 2
            near = [e for e in found if e.onset_ms <= middle <= e.offset_ms]
            n_found += bool(near)
            if near:
                ratios.append(near[0].amplitude_deg / true.amplitude_deg)
    assert n_true > 50
    assert n_found / n_true > 0.97
    assert np.median(ratios) == np.float64(np.clip(np.median(ratios), 0.9, 1.1))


def test_saccades_are_those_of_pymovements() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pymovements as pm
    rng = np.random.default_rng(0)
    is_fast = np.repeat(rng.random(333) < 0.1, 3)  # three steps, the shortest saccade
    steps = np.where(is_fast, 60.0, 0.1) * rng.uniform(0.5, 1, (2, 999)) * rng.choice([-1, 1], 999)
    gaze = (640 + np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)).astype(np.float32)
    time_ms = np.arange(1000, dtype=np.float64) * 4.0
    ours = [e for e in detect_events(gaze, time_ms, SCREEN) if e.event == "saccade"]
    degrees = gaze * (SCREEN.width_deg / SCREEN.width_px)
    velocities = np.diff(degrees, axis=1).T * 250
    padded = np.concatenate([velocities, np.zeros((1, 2))])
    theirs = pm.events.ivt(
        velocities=padded, minimum_duration=0, velocity_threshold=SACCADE_DEG_S,
        timesteps=np.arange(1000) * 4,
    )  # fmt: skip
    # Their fixations are the segments of slow steps; ours lie between the saccades.
    slow = np.ones(1000, dtype=bool)
    for event in ours:
        slow[int(event.onset_ms / 4) : int(event.offset_ms / 4)] = False
    edges = np.flatnonzero(np.diff(slow.astype(int), prepend=0, append=0)).reshape(-1, 2)
    assert [int(start) * 4 for start, _ in edges] == theirs.frame["onset"].to_list()


def test_short_rests_are_no_fixations() -> None:
    gaze = np.zeros((2, 200), dtype=np.float32)
    for first in (100, 113):
        for sample in range(first, first + 3):
            gaze[0, sample:] += 30
    events = detect_events(gaze, np.arange(200, dtype=np.float64) * 4.0, SCREEN)
    assert [event.event for event in events] == ["fixation", "saccade", "saccade", "fixation"]


@pytest.mark.parametrize("rate_hz", [60.0, 120.0, 250.0, 1000.0])
def test_events_have_a_minimum_duration_and_an_order(rate_hz: float) -> None:
    rng = np.random.default_rng(2)
    n = 4000
    # Noise above and below the threshold of 30 deg/s, from one sample to many.
    scale = np.repeat(rng.choice([0.01, 0.3], n // 4), 4) * 250 / rate_hz
    gaze = (640 + np.cumsum(rng.normal(0, scale / 0.03, (2, n)), axis=1)).astype(np.float32)
    time_ms = np.arange(n, dtype=np.float64) * (1000.0 / rate_hz)
    events = detect_events(gaze, time_ms, SCREEN)
    shortest = {"saccade": MIN_SACCADE_MS, "fixation": MIN_FIXATION_MS}
    assert {event.event for event in events} == set(shortest)
    for event in events:
        assert event.offset_ms - event.onset_ms >= shortest[event.event] - 1e-9
        samples = event.samples(time_ms)
        assert samples.stop - samples.start >= 2, "an event ends after it begins"
    for event, following in pairwise(events):
        assert event.offset_ms <= following.onset_ms


def test_a_saccade_too_short_to_be_one_belongs_to_the_fixation_around_it() -> None:
    gaze = np.zeros((2, 200), dtype=np.float32)
    gaze[0, 100] += 100  # a spike: two fast steps, 8 ms
    (fixation,) = detect_events(gaze, np.arange(200, dtype=np.float64) * 4.0, SCREEN)
    assert (fixation.event, fixation.onset_ms, fixation.offset_ms) == ("fixation", 0.0, 796.0)
    gaze[0, 100:103], gaze[0, 103:] = (100, 200, 300), 300  # three fast steps
    events = detect_events(gaze, np.arange(200, dtype=np.float64) * 4.0, SCREEN)
    assert [event.event for event in events] == ["fixation", "saccade", "fixation"]


def test_segments_are_those_of_a_plain_loop_over_steps() -> None:
    rng = np.random.default_rng(1)
    speed = rng.exponential(1.0, (5, 40))
    found = detect_ivt(speed, threshold=1.0, min_fixation_steps=2)
    events: dict[bool, list[list[int]]] = {True: [], False: []}
    for window, row in enumerate(speed.tolist()):
        start = 0
        for step in range(1, len(row) + 1):
            if step == len(row) or (row[step] > 1.0) != (row[start] > 1.0):
                first = window * 41 + start
                events[row[start] > 1.0].append([first, window * 41 + step])
                start = step
    assert found.saccades.tolist() == events[True]
    assert found.fixations.tolist() == [one for one in events[False] if one[1] - one[0] >= 2]
    peaks = [max(speed[a // 41, a % 41 : a % 41 + b - a]) for a, b in events[True]]
    assert found.saccade_peak_speed.tolist() == peaks


def test_no_segment_crosses_the_border_of_a_window() -> None:
    found = detect_ivt(np.full((3, 10), 5.0), threshold=1.0)
    assert found.saccades.tolist() == [[0, 10], [11, 21], [22, 32]]
    assert len(found.fixations) == 0
    still = detect_ivt(np.zeros((3, 10)), threshold=1.0)
    assert still.fixations.tolist() == [[0, 10], [11, 21], [22, 32]]
    assert still.saccade_peak_speed.tolist() == []


def test_a_step_at_the_threshold_is_slow() -> None:
    assert detect_ivt(np.array([[1.0, 1.0]]), threshold=1.0).fixations.tolist() == [[0, 2]]


def test_smoothed_saccades_are_found_in_noise_above_the_threshold() -> None:
    rng = np.random.default_rng(3)
    gaze = rng.normal(0, 0.05, (2, 500))  # steps of 18 deg/s: single ones exceed 30 deg/s
    assert (np.hypot(*np.diff(gaze)) * 250 > SACCADE_DEG_S).mean() > 0.05
    gaze[1, 300:] += np.clip(np.arange(200) / 10, 0, 1) * 8  # 8 degrees in 40 ms
    gaze[0, 100:] += 0.3  # a step within the noise
    ((first, stop),) = smoothed_saccades(gaze, 250)
    assert 297 <= first <= 301
    assert 308 <= stop <= 313


def test_smoothed_saccades_last_three_samples() -> None:
    velocity = 1.25 * SACCADE_DEG_S / 250
    ramp = np.zeros((2, 60))
    ramp[0] = np.clip(np.arange(60) - 20, 0, 10) * velocity
    # One sample from the ends of the ramp, five of six steps are fast.
    assert smoothed_saccades(ramp, 250).tolist() == [[21, 30]]
    assert len(smoothed_saccades(ramp * 0.75, 250)) == 0
    # A jump is fast over four samples, and two jumps back and forth over two at a time.
    ramp[0] = np.arange(60) >= 20
    assert smoothed_saccades(ramp, 250).tolist() == [[18, 22]]
    ramp[0] = np.arange(60) == 20
    assert len(smoothed_saccades(ramp, 250)) == 0
