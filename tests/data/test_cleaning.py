from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gazediffusion.data.cleaning import REASONS, choose_eye, clean, gaps_after
from gazediffusion.data.recordings import true_segments
from gazediffusion.errors import GazeError
from gazediffusion.settings import CleaningConfig
from tests.conftest import SCREEN, MakeRecording, wandering_gaze

NO_PADDING = CleaningConfig(blink_before_ms=0, blink_after_ms=0)


def test_runs_of_a_mask_are_half_open() -> None:
    mask = np.array([True, False, False, True, True])
    assert true_segments(mask).tolist() == [[0, 1], [3, 5]]


def test_clean_gaze_is_valid_throughout(make_recording: MakeRecording) -> None:
    cleaned = clean(make_recording(n=500), CleaningConfig())
    assert cleaned.is_valid.all()
    assert cleaned.counts.valid == cleaned.counts.total == 500


def test_a_loss_is_padded_60_ms_before_and_100_ms_after(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(500)
    gaze[:, 200:220] = np.nan
    cleaned = clean(make_recording(gaze=gaze), CleaningConfig())
    # 60 ms are 15 samples at 250 Hz, 100 ms are 25.
    assert true_segments(~cleaned.is_valid).tolist() == [[185, 245]]
    assert (cleaned.counts.lost, cleaned.counts.padding) == (20, 40)
    assert cleaned.counts.blinks == 1


def test_padding_has_the_same_length_in_time_at_1000_hz(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(2000)
    gaze[:, 800:880] = np.nan
    cleaned = clean(make_recording(gaze=gaze, rate_hz=1000), CleaningConfig())
    assert true_segments(~cleaned.is_valid).tolist() == [[740, 980]]


def test_blink_labels_are_believed_where_the_eye_was_not_lost(
    make_recording: MakeRecording,
) -> None:
    blink = np.zeros(500, dtype=bool)
    blink[100:130] = True
    cleaned = clean(make_recording(n=500, is_blink=blink), CleaningConfig())
    assert true_segments(~cleaned.is_valid).tolist() == [[85, 155]]
    assert cleaned.counts.labelled_blink == 30
    assert cleaned.counts.blinks == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e8, -32768.0])
def test_every_spelling_of_lost_is_lost(make_recording: MakeRecording, value: float) -> None:
    gaze = wandering_gaze(200)
    gaze[0, 50:60] = value
    cleaned = clean(make_recording(gaze=gaze), NO_PADDING)
    assert cleaned.counts.lost == 10
    assert not cleaned.is_valid[50:60].any()


def test_zero_coordinates_are_dropped_but_a_zero_on_one_axis_is_not(
    make_recording: MakeRecording,
) -> None:
    gaze = wandering_gaze(200)
    gaze[:, 50:60] = 0
    gaze[1, 100] = 0
    counts = clean(make_recording(gaze=gaze), replace(NO_PADDING, max_speed_deg_s=1e9)).counts
    assert counts.zero == 10
    assert counts.valid == 190


def test_gaze_frozen_for_200_ms_is_dropped_and_for_less_is_kept(
    make_recording: MakeRecording,
) -> None:
    gaze = wandering_gaze(400)
    gaze[:, 100:151] = gaze[:, 100:101]  # 51 samples span 200 ms
    gaze[:, 300:350] = gaze[:, 300:301]  # 50 samples span 196 ms
    counts = clean(make_recording(gaze=gaze), replace(NO_PADDING, max_speed_deg_s=1e9)).counts
    assert counts.frozen == 51


def test_a_jump_faster_than_any_saccade_is_dropped(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(200)
    gaze[0, 100] += 400  # 15 degrees within 4 ms
    cleaned = clean(make_recording(gaze=gaze), NO_PADDING)
    assert np.flatnonzero(~cleaned.is_valid).tolist() == [99, 100, 101]
    assert cleaned.counts.too_fast == 3


def test_a_fast_but_human_saccade_is_kept(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(200)
    gaze[0, 100:] += np.minimum(np.arange(100) * 60, 400)  # 60 px per 4 ms: 560 deg/s
    assert clean(make_recording(gaze=gaze), NO_PADDING).is_valid.all()


def test_speed_is_computed_over_4_ms_at_1000_hz_too(make_recording: MakeRecording) -> None:
    noisy = wandering_gaze(400)
    noisy[0, ::2] += 40  # 1,500 deg/s from sample to sample, yet no net movement
    assert clean(make_recording(gaze=noisy, rate_hz=1000), NO_PADDING).counts.too_fast == 0


def test_repeated_time_stamps_are_dropped_and_counted(make_recording: MakeRecording) -> None:
    time_ms = np.arange(100) * 4.0
    time_ms[50] = time_ms[49]
    cleaned = clean(make_recording(n=100, time_ms=time_ms), NO_PADDING)
    assert cleaned.counts.repeated_time == 1
    assert len(cleaned.time_ms) == 99
    assert (np.diff(cleaned.time_ms) > 0).all()


def test_valid_runs_do_not_cross_a_gap_of_the_clock(make_recording: MakeRecording) -> None:
    time_ms = np.arange(100) * 4.0
    time_ms[60:] += 40
    cleaned = clean(make_recording(n=100, time_ms=time_ms), NO_PADDING)
    assert cleaned.valid_segments().tolist() == [[0, 60], [60, 100]] or (
        cleaned.valid_segments().tolist() == [[0, 59], [61, 100]]
    )
    assert cleaned.counts.gaps == 1


def test_a_steady_clock_may_not_skip_one_sample_but_a_jittery_one_may() -> None:
    steady = np.delete(np.arange(200) * 4.0, 100)
    assert gaps_after(steady).tolist() == [99]
    rng = np.random.default_rng(0)
    jittery = np.cumsum(rng.uniform(3, 7, 200))
    assert len(gaps_after(jittery)) == 0


def test_off_screen_samples_are_counted_and_kept(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(200)
    gaze[0] += np.float32(1290 - gaze[0].min())
    cleaned = clean(make_recording(gaze=gaze), NO_PADDING)
    assert cleaned.counts.off_screen == 200
    assert cleaned.is_valid.all()


def test_the_right_eye_is_taken_and_best_takes_the_one_seen_more(
    make_recording: MakeRecording,
) -> None:
    right, left = wandering_gaze(100), wandering_gaze(100, seed=1)
    right[:, :50] = np.nan
    recording = replace(make_recording(n=100), gaze_px={"left": left, "right": right})
    assert choose_eye(recording, "right") == "right"
    assert choose_eye(recording, "best") == "left"


def test_equally_good_eyes_give_the_right_one(make_recording: MakeRecording) -> None:
    gaze = wandering_gaze(100)
    recording = replace(make_recording(n=100), gaze_px={"left": gaze, "right": gaze})
    assert choose_eye(recording, "best") == "right"


def test_a_monocular_recording_gives_the_eye_it_has(make_recording: MakeRecording) -> None:
    recording = replace(make_recording(n=100), gaze_px={"left": wandering_gaze(100)})
    assert choose_eye(recording, "right") == "left"


def test_bad_settings_are_refused() -> None:
    with pytest.raises(GazeError, match="`eye`"):
        CleaningConfig(eye="both")  # type: ignore[arg-type]
    with pytest.raises(GazeError, match="0 or more"):
        CleaningConfig(blink_before_ms=-1)


gaze_strategy = hnp.arrays(
    np.float32,
    st.tuples(st.just(2), st.integers(0, 60)),
    elements=st.one_of(
        st.sampled_from([np.nan, np.inf, 0.0, 1e8, 640.0]), st.floats(-100, 1400, width=32)
    ),
)


@settings(deadline=None, max_examples=200)
@given(gaze=gaze_strategy, data=st.data())
def test_every_sample_is_counted_once_and_valid_ones_are_finite(gaze: Any, data: Any) -> None:
    from pathlib import Path

    from gazediffusion.data.recordings import Recording

    n = gaze.shape[1]
    steps = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 4.0, 4.0, 50.0])))
    blink = data.draw(hnp.arrays(np.bool_, n))
    recording = Recording(
        "p", "t", "0", np.cumsum(steps), {"right": gaze}, Path("x"), "x", SCREEN, None,
        {"right": blink},
    )  # fmt: skip
    cleaned = clean(recording, CleaningConfig(blink_before_ms=4, blink_after_ms=8))
    counts = cleaned.counts
    assert sum(getattr(counts, reason) for reason in REASONS) + counts.valid == counts.total == n
    assert np.isfinite(cleaned.gaze_px[:, cleaned.is_valid]).all()
    for start, stop in cleaned.valid_segments():
        assert cleaned.is_valid[start:stop].all()


def test_no_moment_of_a_simulated_blink_or_loss_passes_and_little_else_is_lost() -> None:
    """The simulator's truth: lids disturb the gaze for 40 ms before and after a blink."""
    from gazediffusion.data.simulation import simulate
    from gazediffusion.settings import SimulationConfig

    n_good = n_good_lost = 0
    for simulated in simulate(SimulationConfig(n_participants=4, minutes=1, rate_hz=250)):
        recording = simulated.recording
        cleaned = clean(recording, CleaningConfig())
        time_ms = recording.time_ms
        near = np.zeros(len(time_ms), dtype=bool)
        for event in simulated.events:
            if event.event == "blink":
                disturbed = (time_ms > event.onset_ms - 40) & (time_ms < event.offset_ms + 40)
                assert not (cleaned.is_valid & disturbed).any()
            if event.event in ("blink", "loss"):
                near |= (time_ms >= event.onset_ms - 64) & (time_ms <= event.offset_ms + 104)
        n_good += int((~near).sum())
        n_good_lost += int((~near & ~cleaned.is_valid).sum())
    assert n_good > 10_000
    assert n_good_lost == 0


def test_labels_and_targets_follow_the_samples_that_are_kept(make_recording: MakeRecording) -> None:
    time_ms = np.arange(200) * 4.0
    time_ms[50] = time_ms[49]
    labels = (np.arange(200) % 5).astype(np.uint8)
    targets_px = np.arange(400, dtype=np.float32).reshape(2, 200)
    recording = replace(
        make_recording(n=200, time_ms=time_ms), labels=labels, targets_px=targets_px
    )
    cleaned = clean(recording, CleaningConfig())
    np.testing.assert_array_equal(cleaned.labels, np.delete(labels, 50))
    np.testing.assert_array_equal(cleaned.targets_px, np.delete(targets_px, 50, axis=1))
