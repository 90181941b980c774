from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gazediffusion.data.readers import find_sources, gazebase
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

SCREEN = Screen(1680, 1050, 47.4, 29.7, 55.0)
RANDOM = """\
n,x,y,val,xT,yT,dP,lab
0,0.0,0.0,0,0,0,1043,1
1,5.0,-2.5,0,0,0,1044,1
2,6.0,-3.5,4,0,0,0,NaN
3,NaN,NaN,4,0,0,0,NaN
4,-10.0,8.0,0,0,0,1042,1
"""
READING = "n,x,y,val,dP,lab,xT,yT\n" + "".join(
    f"{n},{n / 10},{-n / 10},0,1000,1,NaN,NaN\n" for n in range(5)
)


def write(folder: Path, text: str = RANDOM, name: str = "S_1001_S2_RAN.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(path: Path, options: ReadOptions | None = None) -> Recording:
    (recording,) = gazebase.read(path, options or ReadOptions())
    return recording


def test_degrees_are_counted_from_the_centre_upwards_on_the_assumed_screen(tmp_path: Path) -> None:
    (source,) = find_sources([write(tmp_path)])
    assert source.reader.NAME == "gazebase"
    (recording,) = source.read()
    assert recording.screen == SCREEN
    assert recording.facts["screen"].source == "assumed"
    gaze_px = recording.gaze_px["left"]
    np.testing.assert_allclose(gaze_px[:, 0], [839.5, 524.5])
    assert gaze_px[1, 1] > 524.5 > gaze_px[1, 4]
    np.testing.assert_allclose(
        SCREEN.to_degrees(gaze_px)[:, [1, 4]], [[5.0, -10.0], [2.5, -8.0]], rtol=1e-4
    )
    assert (recording.facts["unit"].value, recording.facts["origin"].value) == ("deg", "center-up")


def test_samples_that_are_not_valid_are_lost(tmp_path: Path) -> None:
    recording = read(write(tmp_path))
    lost = np.isnan(recording.gaze_px["left"][0])
    np.testing.assert_array_equal(lost, [False, False, True, True, False])
    np.testing.assert_array_equal(recording.time_ms, np.arange(5))


def test_the_name_tells_round_participant_session_and_task(tmp_path: Path) -> None:
    recording = read(write(tmp_path))
    assert (recording.participant, recording.task, recording.trial) == ("001", "RAN", "1-2")


def test_the_order_of_the_columns_does_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path, READING, "S_1001_S1_TEX.csv")
    assert gazebase.matches(path, path.read_bytes(), ReadOptions())
    degrees = SCREEN.to_degrees(read(path).gaze_px["left"])
    np.testing.assert_allclose(degrees, np.tile(np.arange(5) / 10, (2, 1)), atol=1e-4)


def test_a_given_screen_goes_before_the_assumed_one(tmp_path: Path) -> None:
    screen = Screen(1920, 1080, 53.0, 30.0, 60.0)
    assert read(write(tmp_path), ReadOptions(screen=screen)).screen == screen


def test_pymovements_gazebase_is_the_same_gaze(tmp_path: Path) -> None:
    data = tmp_path / "GazeBase" / "raw" / "Round_1" / "Subject_1001" / "S2"
    data.mkdir(parents=True)
    ours = read(write(data))
    (source,) = find_sources(["pymovements:GazeBase"], ReadOptions(data_dir=tmp_path))
    (theirs,) = source.read()
    seen = [0, 1, 4]
    np.testing.assert_allclose(
        next(iter(theirs.gaze_px.values()))[:, seen], ours.gaze_px["left"][:, seen], rtol=1e-6
    )


def test_other_tables_are_not_matched_and_refused_when_forced(tmp_path: Path) -> None:
    path = write(tmp_path, "t,x,y,val\n0,1,2,0\n")
    assert not gazebase.matches(path, path.read_bytes(), ReadOptions())
    with pytest.raises(GazeError, match="lack dP, n"):
        read(path)


@fuzz
@given(edits)
def test_damaged_file_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = write(tmp_path)
    path.write_bytes(damage(RANDOM.encode(), changes))
    with contextlib.suppress(GazeError):
        gazebase.matches(path, path.read_bytes(), ReadOptions())
        read(path)
