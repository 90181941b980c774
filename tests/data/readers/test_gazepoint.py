from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gazediffusion.data.readers import find_sources, gazepoint
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

SCREEN = Screen(1920, 1080)
# The header and every row of Gazepoint Analysis end with a comma.
ANALYSIS = """\
MEDIA_ID,MEDIA_NAME,CNT,TIME(2023/02/20 13:50:12.345),TIMETICK(f=10000000),\
FPOGX,FPOGY,FPOGS,FPOGD,FPOGID,FPOGV,BPOGX,BPOGY,BPOGV,CX,CY,CS,USER,\
LPCX,LPCY,LPD,LPS,LPV,RPCX,RPCY,RPD,RPS,RPV,BKID,BKDUR,
0,a.png,1,0.00000,6900000,0.1,0.1,0,0.1,1,1,0.50000,0.25000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
0,a.png,2,0.01660,6900166,0.1,0.1,0,0.1,1,1,0.51000,0.26000,0,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,1,0,
0,a.png,3,0.03320,6900332,0.1,0.1,0,0.1,1,1,0.52000,1.27000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
1,b.png,4,0.00000,6900498,0.1,0.1,0,0.1,2,1,0.53000,0.28000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
1,b.png,5,0.01660,6900664,0.1,0.1,0,0.1,2,1,0.54000,0.29000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
0,a.png,6,0.00000,6900830,0.1,0.1,0,0.1,3,1,0.55000,0.30000,1,0,0,0,,.4,.6,18,1,1,.6,.6,18,1,1,0,0,
"""
API = (
    "CNT\tTIME\tTIME_TICK\tFPOGX\tFPOGY\tFPOGV\tLPOGX\tLPOGY\tLPOGV\tRPOGX\tRPOGY\tRPOGV\t"
    "BPOGX\tBPOGY\tBPOGV\tLEYEX\tLEYEY\tLEYEZ\tLPV\tREYEX\tREYEY\tREYEZ\tRPV\tUSER\n"
    "1\t12.000\t1\t.1\t.1\t1\t.2\t.3\t1\t.4\t.5\t1\t.3\t.4\t1\t-.03\t.01\t.6\t1\t.03\t.01\t.6\t1\t0\n"
    "2\t12.007\t2\t.1\t.1\t1\t.2\t.3\t0\t.4\t.5\t1\t.4\t.5\t1\t-.03\t.01\t.6\t1\t.03\t.01\t.6\t1\tgo\n"
)


def write(folder: Path, text: str = ANALYSIS, name: str = "User 3_all_gaze.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(path: Path, screen: Screen | None = SCREEN) -> list[Recording]:
    return list(gazepoint.read(path, ReadOptions(screen=screen)))


def is_matched(path: Path) -> bool:
    return gazepoint.matches(path, path.read_bytes(), ReadOptions())


def test_the_best_point_of_gaze_is_a_fraction_of_the_screen_from_the_top_left(
    tmp_path: Path,
) -> None:
    (source,) = find_sources([write(tmp_path)], ReadOptions(screen=SCREEN))
    assert source.reader.NAME == "gazepoint"
    first, second, _ = source.read()
    np.testing.assert_allclose(first.time_ms, [0, 16.6, 33.2])
    np.testing.assert_allclose(first.gaze_px["cyclopean"][:, 0], [960, 270])
    np.testing.assert_allclose(second.gaze_px["cyclopean"][:, 1], [0.54 * 1920, 0.29 * 1080])
    facts = first.facts
    assert (facts["unit"].value, facts["origin"].value) == ("norm", "top-left")
    assert (first.participant, first.rate_hz, first.screen) == ("User 3", None, SCREEN)


def test_an_invalid_point_is_lost_and_one_beside_the_screen_is_not(tmp_path: Path) -> None:
    recording = read(write(tmp_path))[0]
    lost = np.isnan(recording.gaze_px["cyclopean"][0])
    np.testing.assert_array_equal(lost, [False, True, False])
    np.testing.assert_array_equal(recording.is_blink["cyclopean"], [False, True, False])


def test_each_showing_of_a_medium_is_a_trial_since_its_clock_starts_again(tmp_path: Path) -> None:
    assert [(r.trial, len(r)) for r in read(write(tmp_path))] == [
        ("0-0", 3),
        ("1-1", 2),
        ("0-2", 1),
    ]


def test_tables_of_the_api_give_the_best_point_and_not_the_eyes_position(tmp_path: Path) -> None:
    path = write(tmp_path, API, "p1.tsv")
    assert is_matched(path)
    (recording,) = read(path)
    assert list(recording.gaze_px) == ["cyclopean"]
    np.testing.assert_allclose(recording.gaze_px["cyclopean"][0], [0.3 * 1920, 0.4 * 1920])
    np.testing.assert_allclose(np.diff(recording.time_ms), [7])


def test_without_a_best_point_each_eye_has_its_own_and_its_validity(tmp_path: Path) -> None:
    (recording,) = read(write(tmp_path, API.replace("BPOG", "other"), "p1.tsv"))
    assert list(recording.gaze_px) == ["left", "right"]
    np.testing.assert_allclose(recording.gaze_px["left"][0], [0.2 * 1920, np.nan])
    np.testing.assert_allclose(recording.gaze_px["right"][0], [0.4 * 1920] * 2)


def test_a_fixation_point_alone_is_refused(tmp_path: Path) -> None:
    text = API.replace("BPOG", "b").replace("LPOG", "l").replace("RPOG", "r")
    path = write(tmp_path, text, "p1.tsv")
    assert is_matched(path)
    with pytest.raises(GazeError, match=r"BPOGX.*FPOGX is averaged"):
        read(path)


def test_the_screen_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"norm from top-left.*give `screen`"):
        read(write(tmp_path), screen=None)


def test_the_list_of_fixations_beside_it_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path)
    write(tmp_path, name="User 3_fixations.csv")
    assert [source.path for source in find_sources([tmp_path])] == [path]


@fuzz
@given(edits)
def test_damaged_file_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = write(tmp_path)
    path.write_bytes(damage(ANALYSIS.encode(), changes))
    with contextlib.suppress(GazeError):
        is_matched(path)
        read(path)
