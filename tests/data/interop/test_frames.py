"""Frames of polars and pandas keep what recordings are, and errors name what is missing."""

from __future__ import annotations

from itertools import islice

import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.data.plausibility import ImplausibleError
from tests.data.interop.made import OTHER, assert_same, labelled_windows, study


@pytest.mark.parametrize("binocular", [True, False])
def test_a_polars_frame_gives_recordings_back_with_the_screen_that_is_said(binocular: bool) -> None:
    some = gd.Recordings.of(islice(study(binocular), 2))
    again = gd.from_frame(some.to_frame(), screen=next(iter(some)).screen)
    for found, expected in zip(again, some, strict=True):
        # A table of one eye does not say which.
        eye = {"cyclopean": found.gaze_px.get("cyclopean")}
        assert_same(
            gd.Recording(**{**vars(found), "rate_hz": 500.0}),
            expected if binocular else gd.Recording(**{
                **vars(expected), "gaze_px": {"cyclopean": expected.gaze_px["right"]},
                "is_blink": {"cyclopean": expected.is_blink["right"]},
            }),
        )  # fmt: skip
        assert binocular or eye["cyclopean"] is not None


def test_a_pandas_frame_keeps_screens_and_rate() -> None:
    frame = study().to_pandas()
    assert type(frame).__module__.split(".")[0] == "pandas"
    for found, expected in zip(gd.from_frame(frame), study(), strict=True):
        assert_same(found, expected)
    changed = frame.rename(columns={"t_ms": "clock"})
    again = gd.from_frame(changed, columns="t=clock")
    assert next(iter(again)).screen == next(iter(study())).screen


def test_windows_come_back_as_trials_named_by_their_numbers() -> None:
    windows = labelled_windows()
    pixels, labels = windows.to_numpy("px"), windows.cut_labels()
    again = list(gd.from_frame(windows.to_pandas()))
    assert [one.trial for one in again] == [str(k) for k in range(6)]
    assert [one.screen for one in again] == [windows.screens[k] for k in windows.screen_index]
    for number, one in enumerate(again):
        np.testing.assert_array_equal(one.gaze_px["cyclopean"], pixels[number])
        np.testing.assert_array_equal(one.labels, labels[number])
    assert again[5].screen == OTHER


def test_recordings_of_one_eye_and_of_two_are_no_frame() -> None:
    both = [next(iter(study(True))), next(iter(study(False)))]
    with pytest.raises(gd.GazeError, match="one eye and of two"):
        gd.Recordings.of(both).to_frame()


def test_a_frame_in_an_implausible_unit_is_refused_as_a_file_is() -> None:
    frame = next(iter([study().to_frame()])).with_columns(pl.col("^[xy]_.*_px$") / 1e3)
    with pytest.raises(ImplausibleError, match="check `screen`"):
        gd.from_frame(frame, screen=OTHER)
    with pytest.raises(gd.GazeError, match="no x and y columns"):
        gd.from_frame(pl.DataFrame({"a": [1]}))
