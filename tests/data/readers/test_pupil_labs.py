from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gazediffusion.data.readers import pupil_labs
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

NEON = """\
section id,recording id,timestamp [ns],gaze x [px],gaze y [px],worn,fixation id,blink id
s1,r1,1700000000000000000,800.5,600.25,True,1,
s1,r1,1700000000005000000,801.5,601.25,1,1,
s1,r1,1700000000010100000,802.5,602.25,False,,
s1,r1,1700000000015000000,803.5,603.25,True,,3
"""
CORE = """\
gaze_timestamp,world_index,confidence,norm_pos_x,norm_pos_y,base_data
10.000,0,0.99,0.5,0.75,a
10.005,0,0.30,0.5,0.75,a
10.010,1,0.60,0.25,0.0,a
"""
MARKER_MAPPER = """\
section id,recording id,timestamp [ns],gaze detected on surface,\
gaze position on surface x [normalized],gaze position on surface y [normalized],fixation id,blink id
s1,r1,1700000000000000000,True,0.25,0.75,1,
s1,r1,1700000000005000000,False,1.25,0.75,1,
s1,r1,1700000000010000000,False,,,,2
s1,r1,1700000000015000000,true,1.0,0.0,,
"""
REFERENCE_IMAGE = MARKER_MAPPER.replace("on surface", "in reference image").replace(
    "[normalized]", "[px]"
)
OLDER_CORE = """\
timestamp,index,confidence,norm_pos_x,norm_pos_y,base_data,gaze_point_3d_x
10.000,0,0.99,0.5,0.75,a,1
10.008,0,0.30,0.5,0.75,a,1
10.017,1,0.60,0.25,0.0,a,1
"""
CORE_SURFACE = """\
world_timestamp,world_index,gaze_timestamp,x_norm,y_norm,x_scaled,y_scaled,on_surf,confidence
9.99,0,10.000,0.5,0.75,50,75,True,0.99
9.99,0,10.005,0.5,0.75,50,75,True,0.30
9.99,1,10.010,1.5,0.75,150,75,False,0.99
9.99,1,10.015,0.25,0.0,25,0,True,0.99
"""


def write(folder: Path, text: str, name: str = "gaze.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read_one(path: Path, options: ReadOptions | None = None) -> Recording:
    (recording,) = pupil_labs.read(path, options or ReadOptions())
    return recording


def is_matched(path: Path) -> bool:
    return pupil_labs.matches(path, path.read_bytes(), ReadOptions())


def test_neon_gaze_is_in_scene_camera_pixels_on_the_nanosecond_clock(tmp_path: Path) -> None:
    path = write(tmp_path, NEON)
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(np.diff(recording.time_ms), [5, 5.1, 4.9], atol=1e-3)
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][:, 0], [800.5, 600.25])
    assert recording.trial == "r1-s1"
    assert recording.screen == Screen(1600, 1200)
    assert recording.format == "pupil-labs"


def test_neon_gaze_is_lost_where_the_glasses_are_not_worn(tmp_path: Path) -> None:
    lost = np.isnan(read_one(write(tmp_path, NEON)).gaze_px["cyclopean"])
    np.testing.assert_array_equal(lost, [[False, False, True, False]] * 2)


def test_neon_blink_ids_mark_blinks(tmp_path: Path) -> None:
    blinks = read_one(write(tmp_path, NEON)).is_blink["cyclopean"]
    np.testing.assert_array_equal(blinks, [False, False, False, True])


def test_neon_sections_are_trials_of_their_own(tmp_path: Path) -> None:
    text = NEON + "s2,r1,1600000000000000000,1,2,True,,\n"
    trials = [r.trial for r in pupil_labs.read(write(tmp_path, text), ReadOptions())]
    assert trials == ["r1-s1", "r1-s2"]


def test_core_gaze_is_flipped_scaled_and_lost_at_low_confidence(tmp_path: Path) -> None:
    path = write(tmp_path, CORE, "gaze_positions.csv")
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [10_000, 10_005, 10_010])
    np.testing.assert_allclose(
        recording.gaze_px["cyclopean"], [[640, np.nan, 320], [180, np.nan, 720]]
    )
    assert recording.screen == Screen(1280, 720)


def test_gaze_on_a_surface_is_a_fraction_of_it_and_lost_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path, MARKER_MAPPER)
    assert is_matched(path)
    recording = read_one(path, ReadOptions(screen=Screen(1920, 1080)))
    np.testing.assert_allclose(
        recording.gaze_px["cyclopean"], [[480, np.nan, np.nan, 1920], [810, np.nan, np.nan, 0]]
    )
    np.testing.assert_array_equal(recording.is_blink["cyclopean"], [False, False, True, False])
    facts = recording.facts
    assert (facts["unit"].value, facts["origin"].value) == ("norm", "top-left")
    with pytest.raises(GazeError, match=r"norm from top-left.*give `screen`"):
        read_one(path)


def test_gaze_on_a_reference_image_is_in_its_pixels_and_lost_beside_it(tmp_path: Path) -> None:
    path = write(tmp_path, REFERENCE_IMAGE)
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.gaze_px["cyclopean"][0], [0.25, np.nan, np.nan, 1])
    assert recording.screen is None


def test_older_core_exports_have_other_names_for_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, OLDER_CORE, "gaze_positions.csv")
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [10_000, 10_008, 10_017])
    np.testing.assert_allclose(
        recording.gaze_px["cyclopean"], [[640, np.nan, 320], [180, np.nan, 720]]
    )
    assert recording.facts["origin"].value == "bottom-left"


def test_core_surfaces_count_from_the_bottom_left(tmp_path: Path) -> None:
    path = write(tmp_path, CORE_SURFACE, "gaze_positions_on_surface_Screen.csv")
    assert is_matched(path)
    recording = read_one(path, ReadOptions(screen=Screen(1000, 500)))
    np.testing.assert_allclose(
        recording.gaze_px["cyclopean"], [[500, np.nan, np.nan, 250], [125, np.nan, np.nan, 500]]
    )
    np.testing.assert_allclose(recording.time_ms, [10_000, 10_005, 10_010, 10_015])


@pytest.mark.parametrize("text", [NEON, CORE])
def test_a_given_screen_goes_before_the_cameras(tmp_path: Path, text: str) -> None:
    screen = Screen(1088, 1080)
    assert read_one(write(tmp_path, text), ReadOptions(screen=screen)).screen == screen


@pytest.mark.parametrize(
    "header",
    [
        "section id,recording id,fixation id,start timestamp [ns],fixation x [px],fixation y [px]",
        "section id,recording id,blink id,start timestamp [ns],end timestamp [ns],duration [ms]",
        "section id,recording id,timestamp [ns],gyro x [deg/s],acceleration x [g]",
        "section id,recording id,timestamp [ns]",
        "timestamp,index,id,confidence,norm_pos_x,norm_pos_y,diameter,method",
        "world_timestamp,world_index,fixation_id,start_timestamp,norm_pos_x,norm_pos_y,on_surf",
    ],
)
def test_the_other_files_of_an_export_are_not_matched(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, f"{header}\n")
    assert not is_matched(path)
    with pytest.raises(GazeError):
        read_one(path)


@pytest.mark.parametrize("text", [NEON, CORE, MARKER_MAPPER, CORE_SURFACE])
@fuzz
@given(edits)
def test_damaged_export_is_read_or_refused(
    tmp_path: Path, text: str, changes: list[tuple[float, str, bytes]]
) -> None:
    path = tmp_path / "gaze.csv"
    path.write_bytes(damage(text.encode(), changes))
    with contextlib.suppress(GazeError):
        is_matched(path)
        list(pupil_labs.read(path, ReadOptions(screen=Screen(1920, 1080))))
