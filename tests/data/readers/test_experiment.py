from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.reading import read
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

pm = pytest.importorskip("pymovements")


def save(folder: Path, origin: str, extension: str = "feather") -> Path:
    """Both eyes at 500 Hz, as pymovements saves them."""
    experiment = pm.Experiment(1280, 1024, 38, 30, 68, origin, 500)
    samples = {"time": [0, 2, 4], "xl": [1.0, 2, 3], "yl": [4.0, 5, 6]}
    samples |= {"xr": [7.0, 8, 9], "yr": [10.0, 11, 12]}
    gaze = pm.Gaze(
        pl.DataFrame(samples),
        experiment=experiment,
        pixel_columns=["xl", "yl", "xr", "yr"],
    )
    gaze.save(folder, extension=extension, verbose=0)
    return folder


@pytest.mark.parametrize("extension", ["feather", "csv"])
def test_a_folder_saved_by_pymovements_is_read_with_its_screen(
    tmp_path: Path, extension: str
) -> None:
    (recording,) = read(save(tmp_path / "p1", "upper left", extension))
    assert recording.screen == Screen(1280, 1024, 38, 30, 68)
    assert recording.rate_hz == 500
    np.testing.assert_array_equal(recording.gaze_px["left"], [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(recording.gaze_px["right"], [[7, 8, 9], [10, 11, 12]])


def test_pixels_from_the_centre_are_known_as_such(tmp_path: Path) -> None:
    (recording,) = read(save(tmp_path / "p1", "center"))
    assert recording.facts["origin"].value == "center"
    assert recording.gaze_px["left"][0, 0] > 600


@pytest.mark.parametrize("content", ["[1, 2", "just words", "screen: {width_px: a, height_px: b}"])
def test_a_damaged_experiment_is_refused(tmp_path: Path, content: str) -> None:
    save(tmp_path / "p1", "center")
    (tmp_path / "p1" / "experiment.yaml").write_text(content)
    with pytest.raises(GazeError, match=r"experiment\.yaml: this is no experiment of pymovements"):
        list(read(tmp_path / "p1"))
