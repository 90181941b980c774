"""Frames of polars and pandas keep what recordings are, and errors name what is missing."""

from __future__ import annotations

import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.data.plausibility import ImplausibleError
from tests.data.interop.made import OTHER, study


def test_a_frame_with_another_name_keeps_screens_and_rate() -> None:
    changed = study().to_pandas().rename(columns={"t_ms": "clock"})
    again = gd.from_frame(changed, columns="t=clock")
    assert next(iter(again)).screen == next(iter(study())).screen


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
