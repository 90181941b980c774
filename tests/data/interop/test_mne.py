"""MNE's Raw and Epochs: round trips, FIF files, its reader of ASC, its angles."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from tests.data.interop.made import OTHER, assert_same, labelled_windows, study

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mne


def test_a_saved_and_cropped_fif_file_keeps_everything_but_the_crop(tmp_path: Path) -> None:
    expected = list(study())[2]
    (raw,) = gd.Recordings.of([expected]).to_mne()
    path = tmp_path / "gaze_raw.fif"
    raw.save(path, fmt="double", verbose="error")
    read = mne.io.read_raw_fif(path, verbose="error")
    (found,) = gd.from_mne(read)
    assert_same(found, expected)
    (cropped,) = gd.from_mne(read.crop(tmin=1.0))
    assert_same(cropped, expected.part(500, len(expected)))


def test_skipped_samples_are_annotated_and_left_out_again() -> None:
    one = next(iter(study()))
    kept = np.r_[0:400, 460:2000]
    skipping = replace(
        one,
        time_ms=one.time_ms[kept],
        gaze_px={eye: gaze[:, kept] for eye, gaze in one.gaze_px.items()},
        is_blink={},
        labels=None,
    )
    (raw,) = gd.Recordings.of([skipping]).to_mne()
    assert list(raw.annotations.description) == ["BAD_ACQ_SKIP"]
    assert raw.annotations.duration[0] == pytest.approx(60 / 500)
    (found,) = gd.from_mne(raw)
    assert_same(found, skipping)


def test_an_uneven_clock_is_refused_and_jitter_is_not() -> None:
    one = replace(next(iter(study())), labels=None)
    rng = np.random.default_rng(0)
    jitter = replace(one, time_ms=one.time_ms + rng.uniform(-0.4, 0.4, len(one)))
    assert gd.Recordings.of([jitter]).to_mne()[0].n_times == len(one)
    uneven = replace(one, time_ms=np.sort(one.time_ms + rng.uniform(-2, 2, len(one))))
    with pytest.raises(gd.GazeError, match=r"clock of participant 01.*not even at 500 Hz"):
        gd.Recordings.of([uneven]).to_mne()


def test_angles_of_mne_become_our_pixels() -> None:
    expected = list(study())[2]
    (raw,) = gd.Recordings.of([expected]).to_mne()
    calibration = mne.preprocessing.eyetracking.Calibration(
        onset=0, model="HV5", eye="right", avg_error=0.5, max_error=1.0, positions=np.zeros((5, 2)),
        offsets=np.zeros(5), gaze=np.zeros((5, 2)), screen_size=(0.365, 0.274),
        screen_distance=0.605, screen_resolution=(1024, 768),
    )  # fmt: skip
    mne.preprocessing.eyetracking.convert_units(raw, calibration, to="radians")
    assert np.nanmax(np.abs(raw.get_data())) < 0.5
    (found,) = gd.from_mne(raw)
    assert_same(found, expected, atol=1e-3)
    raw.info["description"] = None
    with pytest.raises(gd.GazeError, match="radians"):
        gd.from_mne(raw)
    (found,) = gd.from_mne(raw, screen=OTHER, participant="x", task="b")
    assert (found.participant, found.task) == ("x", "b")
    np.testing.assert_allclose(found.gaze_px["right"], expected.gaze_px["right"], atol=1e-3)


def test_labelled_windows_have_annotations() -> None:
    windows = labelled_windows()
    epochs = windows.to_mne()
    by_epoch = epochs.get_annotations_per_epoch()
    labels = windows.cut_labels()[4]
    n_events = np.count_nonzero((np.diff(labels, prepend=0) != 0) & (labels > 0))
    own = [one for one in by_epoch[4] if 0 <= one[0] < windows.length / 200]
    assert len(own) == n_events


def test_an_object_without_gaze_says_what_is_needed() -> None:
    raw = mne.io.RawArray(np.zeros((1, 10)), mne.create_info(["EEG1"], 100, "eeg"), verbose="error")
    with pytest.raises(gd.GazeError, match="no pair of gaze channels"):
        gd.from_mne(raw)
