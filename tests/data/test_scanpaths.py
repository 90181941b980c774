from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.scanpaths import parse_position, parse_waypoint, read_scanpaths
from gazediffusion.errors import GazeError
from tests.conftest import SCREEN


def written(folder: Path, text: str) -> Path:
    path = folder / "fixations.csv"
    path.write_text(text)
    return path


def test_scanpaths_are_distinguished_by_id_and_normalized(tmp_path: Path) -> None:
    text = "id,onset_ms,x_px,y_px,duration_ms\na,0,640,360,250\na,300,960,180,200\nb,,0,720,\n"
    first, second = read_scanpaths(written(tmp_path, text), SCREEN)
    assert (first.name, second.name) == ("a", "b")
    assert (first.x.tolist(), first.y.tolist()) == ([0.0, 0.5], [0.0, -0.5])
    assert (first.onset_ms.tolist(), first.duration_ms.tolist()) == ([0, 300], [250, 200])
    assert (second.x.tolist(), second.y.tolist()) == ([-1.0], [1.0])
    assert np.isnan([second.onset_ms, second.duration_ms]).all()
    assert first.x.dtype == np.float32
    assert first.onset_ms.dtype == np.float64


def test_times_that_are_not_given_are_free(tmp_path: Path) -> None:
    (scanpath,) = read_scanpaths(written(tmp_path, "x,y\n1,2\n3,4\n"), SCREEN)
    assert scanpath.name == "fixations"
    assert np.isnan(scanpath.onset_ms).all()
    assert np.isnan(scanpath.duration_ms).all()


def test_rows_are_put_in_the_order_that_a_column_states(tmp_path: Path) -> None:
    text = "fixation,x,y,dur\n3,300,0,300\n1,100,0,100\n2,200,0,200\n"
    (scanpath,) = read_scanpaths(written(tmp_path, text), SCREEN)
    assert scanpath.duration_ms.tolist() == [100, 200, 300]
    assert np.all(np.diff(scanpath.x) > 0)


def test_seconds_degrees_tabs_parquet_and_names_of_fixation_reports_are_read(
    tmp_path: Path,
) -> None:
    text = "trial\tonset_s\tx_deg\ty_deg\n1\t0\t0\t0\n1\t0.5\t5\t-2\n"
    (scanpath,) = read_scanpaths(written(tmp_path, text), SCREEN, origin="center-up")
    assert scanpath.onset_ms.tolist() == [0, 500]
    expected = SCREEN.to_normalized(SCREEN.from_degrees(np.array([[0.0, 5.0], [0.0, 2.0]])))
    np.testing.assert_allclose([scanpath.x, scanpath.y], expected, atol=1e-6)
    report = {
        "TRIAL_INDEX": [1, 1, 2],
        "CURRENT_FIX_INDEX": [1, 2, 1],
        "CURRENT_FIX_X": [640.0, 320.0, 10.0],
        "CURRENT_FIX_Y": [360.0, 180.0, 10.0],
        "CURRENT_FIX_START": [0, 400, 0],
        "CURRENT_FIX_DURATION": [300, 100, 90],
    }
    pl.DataFrame(report).write_parquet(tmp_path / "report.parquet")
    first, second = read_scanpaths(tmp_path / "report.parquet", SCREEN)
    assert (first.name, second.name, first.x.tolist()) == ("1", "2", [0.0, -0.5])
    assert first.onset_ms.tolist() == [0, 400]


def test_a_unit_in_the_column_names_holds_and_a_given_one_is_for_columns_without(
    tmp_path: Path,
) -> None:
    stated = written(tmp_path, "x_px,y_px\n640,360\n")
    (scanpath,) = read_scanpaths(stated, SCREEN, unit="deg", origin="center-up")
    assert (scanpath.x[0], scanpath.y[0]) == (0, 0)
    (scanpath,) = read_scanpaths(written(tmp_path, "x,y\n0.5,0.25\n"), SCREEN, unit="norm")
    assert (scanpath.x[0], scanpath.y[0]) == (0, -0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x_px,y_px\n640,360\n1500,360\n", r"line 3: \(1500, 360\) px from top-left is off the"),
        ("x,y,onset,duration\n1,1,0,300\n9,9,200,300\n", "line 3: it begins at 200 ms, and the"),
        ("x,y,onset\n1,1,500\n9,9,100\n", "line 3: the onset of 100 ms is before the one above"),
        ("x,y,onset\n1,1,0\n9,9,50\n", "line 3: an onset of 50 ms leaves no time.*60 ms or later"),
        ("x,y,onset\n1,1,-5\n9,9,500\n", "line 2: an onset of -5 ms"),
        ("x,y,onset\n1,1,0\n9,9,inf\n", "line 3: an onset of inf ms"),
        ("x,y,duration\n1,1,300\n9,9,30\n", "line 3: no fixation lasts 30 ms; .*duration_s"),
        ("x,y,duration\n1,1,20000\n", "line 2: no fixation lasts 20000 ms"),
        ("x,y,duration\n1,1,0.25\n", "line 2: no fixation lasts 0.25 ms"),
        ("x,y,onset\n1,1,0\n9,9,0.5\n", "'onset' does not tell its unit.*name it onset_s"),
        ("x,y,order\n1,1,2\n9,9,2\n", "line 3: its place in the order is missing or taken"),
        ("x,y\n1,one\n", "line 2, column 'y': 'one' is no number"),
        ("x,y\n1,\n", "line 2: the position is missing"),
        ("x,duration\n1,300\n", "no x and y columns among x, duration; name them x_px"),
        ("x,y\n", "there are no rows"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_scanpath_is_refused_in_one_line_with_its_row(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(GazeError, match=f"fixations.csv.*{words}"):
        read_scanpaths(written(tmp_path, text), SCREEN)


def test_an_onset_must_leave_time_for_the_fixations_without_one_before_it(tmp_path: Path) -> None:
    text = "x,y,onset,duration\n1,1,0,300\n5,5,,300\n9,9,{},200\n"
    with pytest.raises(GazeError, match=r"line 4: it begins at 400 ms, .* lasts to 600 ms"):
        read_scanpaths(written(tmp_path, text.format(400)), SCREEN)
    (scanpath,) = read_scanpaths(written(tmp_path, text.format(650)), SCREEN)
    assert math.isnan(scanpath.onset_ms[1])


def test_a_file_that_is_not_there_and_degrees_without_a_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"no.csv: there is no such file"):
        read_scanpaths(tmp_path / "no.csv", SCREEN)
    path = written(tmp_path, "x_deg,y_deg\n1,1\n")
    with pytest.raises(GazeError, match=r"fixations.csv: the gaze is in deg .* give `screen` with"):
        read_scanpaths(path, type(SCREEN)(1280, 720))


def test_waypoints_and_starts_are_normalized() -> None:
    assert parse_waypoint("2.0:640,360", SCREEN) == (2.0, 0.0, 0.0)
    assert parse_waypoint(" 0.5 : 1280 , 0 ", SCREEN) == (0.5, 1.0, -1.0)
    assert parse_position("0,720", SCREEN) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("640,360", "`at` must look like 2.0:640,360"),
        ("x:640,360", "`at` must look like"),
        ("-1:640,360", "`at` must look like"),
        ("nan:640,360", "`at` must look like"),
        ("2:640", "`at` needs a position in pixels as 640,360, not '640'"),
        ("2:640,360,1", "`at` needs a position"),
        ("2:9000,360", "`at` 9000,360 is off the screen of 1280x720 px"),
    ],
)
def test_a_bad_waypoint_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(GazeError, match=words):
        parse_waypoint(text, SCREEN)
