from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gazediffusion.data.readers import tobii
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

HEADER = [
    "Recording timestamp",
    "Sensor",
    "Participant name",
    "Recording name",
    "Recording resolution width",
    "Recording resolution height",
    "Gaze point X",
    "Gaze point Y",
    "Gaze point left X",
    "Gaze point left Y",
    "Gaze point right X",
    "Gaze point right Y",
    "Validity left",
    "Validity right",
    "Presented Stimulus name",
    "Eye movement type",
]
SAME = ["Eye Tracker", "P01", "Rec 1", "1920", "1080"]
ROWS = [
    ["0", *SAME, "15", "25", "10", "20", "20", "30", "Valid", "Valid", "a.png", "Fixation"],
    ["8333", "Mouse", *SAME[1:], *[""] * 8, "a.png", ""],
    ["8334", *SAME, "16", "26", "11", "21", "21", "31", "Invalid", "Valid", "b.png", "Saccade"],
    ["16667", *SAME, "", "", "", "", "22", "32", "Invalid", "Valid", "b.png", "Saccade"],
]


def export(folder: Path, header: list[str] = HEADER, rows: list[list[str]] = ROWS) -> Path:
    path = folder / "export.tsv"
    path.write_text("\n".join("\t".join(row) for row in [header, *rows]) + "\n")
    return path


def without(*names: str) -> tuple[list[str], list[list[str]]]:
    """The export without some of its columns."""
    kept = [index for index, name in enumerate(HEADER) if name not in names]
    return [HEADER[i] for i in kept], [[row[i] for i in kept] for row in ROWS]


def read_one(path: Path, options: ReadOptions | None = None) -> Recording:
    (recording,) = tobii.read(path, options or ReadOptions())
    return recording


def is_matched(path: Path) -> bool:
    return tobii.matches(path, path.read_bytes(), ReadOptions())


def test_both_eyes_are_read_in_pixels_on_the_microsecond_clock(tmp_path: Path) -> None:
    path = export(tmp_path)
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [0, 8.334, 16.667])
    np.testing.assert_array_equal(recording.gaze_px["right"], [[20, 21, 22], [30, 31, 32]])
    assert (recording.participant, recording.trial) == ("P01", "Rec 1")
    assert recording.screen == Screen(1920, 1080)
    assert recording.rate_hz is None
    assert recording.format == "tobii"


def test_invalid_samples_are_lost_in_their_eye_only(tmp_path: Path) -> None:
    recording = read_one(export(tmp_path))
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["left"][0]), [False, True, True])
    assert not np.isnan(recording.gaze_px["right"]).any()


def test_validity_codes_above_one_are_lost(tmp_path: Path) -> None:
    codes = {"Valid": "0", "Invalid": "4"}
    rows = [[codes.get(cell, cell) for cell in row] for row in ROWS]
    recording = read_one(export(tmp_path, rows=rows))
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["left"][0]), [False, True, True])


def test_rows_of_other_sensors_are_left_out_and_lines_still_count(tmp_path: Path) -> None:
    rows = [list(row) for row in ROWS]
    rows[3][10] = "wrong"
    with pytest.raises(GazeError, match="line 5, column 'Gaze point right X': 'wrong'"):
        read_one(export(tmp_path, rows=rows))


def test_the_presented_stimulus_is_not_the_task(tmp_path: Path) -> None:
    assert read_one(export(tmp_path)).task == "unknown"


def test_the_timeline_is_the_task(tmp_path: Path) -> None:
    path = export(tmp_path, [*HEADER, "Timeline name"], [[*row, "reading"] for row in ROWS])
    assert read_one(path).task == "reading"


def test_the_mean_of_both_eyes_is_read_where_they_are_not_apart(tmp_path: Path) -> None:
    eyes = [name for name in HEADER if "left" in name or "right" in name]
    recording = read_one(export(tmp_path, *without(*eyes)))
    assert set(recording.gaze_px) == {"cyclopean"}
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][0], [15, 16, np.nan])


@pytest.mark.parametrize(("unit", "ms"), [("μs", 8.334), ("ms", 8334.0), ("us", 8.334)])
def test_newer_headers_tell_their_units(tmp_path: Path, unit: str, ms: float) -> None:
    renamed = [
        f"{name} [{unit}]"
        if name == "Recording timestamp"
        else f"{name} [DACS px]"
        if name.startswith("Gaze point")
        else name
        for name in HEADER
    ]
    path = export(tmp_path, renamed)
    assert is_matched(path)
    assert read_one(path).time_ms[1] == pytest.approx(ms)


def events(sensor: str, event: str = "MouseEvent") -> tuple[list[str], list[list[str]]]:
    """The export with a column of events and a row of one between its samples."""
    blank = ["9000", sensor, "P01", "Rec 1", "1920", "1080", *[""] * 10, event]
    return [*HEADER, "Event"], [*([*row, ""] for row in ROWS[:2]), blank, [*ROWS[3], ""]]


@pytest.mark.parametrize("sensor", ["", "Mouse"])
def test_rows_of_events_are_no_lost_samples(tmp_path: Path, sensor: str) -> None:
    recording = read_one(export(tmp_path, *events(sensor)))
    np.testing.assert_allclose(recording.time_ms, [0, 16.667])


def test_a_row_without_a_sensor_is_the_eye_trackers_if_it_has_a_validity(tmp_path: Path) -> None:
    rows = [["" if cell == "Eye Tracker" else cell for cell in row] for row in ROWS]
    rows[3][10:12] = "", ""
    recording = read_one(export(tmp_path, rows=rows))
    np.testing.assert_allclose(recording.time_ms, [0, 8.334, 16.667])
    assert np.isnan(recording.gaze_px["right"][:, 2]).all()


def test_without_validity_and_sensor_an_empty_row_is_lost_unless_it_has_an_event(
    tmp_path: Path,
) -> None:
    header, rows = events("", "KeyboardEvent")
    dropped = {"Sensor", "Validity left", "Validity right"}
    kept = [i for i, name in enumerate(header) if name not in dropped]
    path = export(tmp_path, [header[i] for i in kept], [[row[i] for i in kept] for row in rows])
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [0, 8.333, 16.667])
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["right"][0]), [False, True, False])


def test_the_mean_of_both_eyes_is_lost_where_both_are_invalid(tmp_path: Path) -> None:
    eyes = [name for name in HEADER if name.startswith(("Gaze point left", "Gaze point right"))]
    header, rows = without(*eyes)
    rows[2][-4:-2] = ["Invalid", "Invalid"]
    recording = read_one(export(tmp_path, header, rows))
    np.testing.assert_array_equal(recording.gaze_px["cyclopean"][0], [15, np.nan, np.nan])


def test_gaze_on_a_medium_is_not_taken_for_gaze_on_the_screen(tmp_path: Path) -> None:
    both = [f"{one} [MCS px]" if one.startswith("Gaze point") else one for one in HEADER]
    assert not is_matched(export(tmp_path, both))
    # Beside gaze on the screen it is passed over.
    header = [*both, *(one for one in HEADER if one.startswith("Gaze point"))]
    path = export(tmp_path, header, [[*row, *row[6:12]] for row in ROWS])
    np.testing.assert_array_equal(read_one(path).gaze_px["right"][0], [20, 21, 22])


STUDIO_3 = """\
ExportDate\tStudioVersionRec\tStudioTestName\tParticipantName\tRecordingName\t\
RecordingResolution\t\
MediaName\tRecordingTimestamp\tLocalTimeStamp\tStudioEvent\tGazePointIndex\t\
GazePointLeftX (ADCSpx)\tGazePointLeftY (ADCSpx)\tGazePointRightX (ADCSpx)\t\
GazePointRightY (ADCSpx)\tGazePointX (ADCSpx)\tGazePointY (ADCSpx)\tGazePointX (MCSpx)\t\
GazePointY (MCSpx)\tGazePointLeftX (ADCSmm)\tPupilLeft\tPupilRight\tValidityLeft\tValidityRight\t
{same}0\t10:00:00.000\t\t1\t100,5\t200,5\t110,5\t210,5\t105\t205\t5\t5\t30,1\t3,1\t3,2\t0\t1\t
{same}2\t10:00:00.002\tImageStart\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t
{same}3\t10:00:00.003\t\t2\t101,5\t201,5\t111,5\t211,5\t106\t206\t6\t6\t30,2\t3,1\t3,2\t2\t0\t
{same}7\t10:00:00.007\t\t3\t\t\t\t\t\t\t\t\t\t\t\t4\t4\t
""".replace("{same}", "2.3.2014\t3.2.1\tTest 1\tP02\tRec 07\t1920 x 1080\ta.png\t")

STUDIO_2 = """System Properties:
Operating System:\tMicrosoft Windows XP Professional

Data Properties:
Recording name:\tRec 01
Recording date:\t07.06.2009
Recording resolution:\t1280 x 1024
Coordinate unit:\tPixels
Timestamp unit:\tMilliseconds

Timestamp\tDateTimeStamp\tNumber\tGazePointXLeft\tGazePointYLeft\tCamXLeft\tPupilLeft\t\
ValidityLeft\tGazePointXRight\tGazePointYRight\tCamXRight\tPupilRight\tValidityRight\t\
FixationIndex\tGazePointX\tGazePointY\tEvent\tStimuliName\t
0\t10:00\t1\t100\t200\t0,4\t3,1\t0\t110\t210\t0,5\t3,2\t0\t1\t105\t205\t\t\t
9\t10:00\t\t\t\t\t\t\t\t\t\t\t\t\t\t\tLMouseButton\t\t
17\t10:00\t2\t-1\t-1\t-1\t-1\t4\t112\t212\t0,5\t3,2\t1\t1\t112\t212\t\t\t
"""


def test_studio_3_counts_milliseconds_with_decimal_commas_and_codes_of_validity(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.tsv"
    path.write_text(STUDIO_3, encoding="utf-16")
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [0, 3, 7])
    np.testing.assert_array_equal(recording.gaze_px["left"][0], [100.5, np.nan, np.nan])
    np.testing.assert_array_equal(recording.gaze_px["right"][1], [210.5, 211.5, np.nan])
    assert (recording.participant, recording.trial) == ("P02", "Rec 07")
    assert recording.screen == Screen(1920, 1080)
    assert (recording.facts["unit"].value, recording.facts["origin"].value) == ("px", "top-left")


def test_studio_2_states_the_screen_above_its_header(tmp_path: Path) -> None:
    path = tmp_path / "Rec 01-All-Data.tsv"
    path.write_text(STUDIO_2)
    assert is_matched(path)
    recording = read_one(path)
    np.testing.assert_allclose(recording.time_ms, [0, 17])
    np.testing.assert_array_equal(recording.gaze_px["left"][0], [100, np.nan])
    np.testing.assert_array_equal(recording.gaze_px["right"], [[110, 112], [210, 212]])
    assert recording.screen == Screen(1280, 1024)
    path.write_text(STUDIO_2.replace("\t112\t", "\toops\t", 1))
    with pytest.raises(GazeError, match="line 14, column 'GazePointXRight': 'oops'"):
        read_one(path)


def test_a_table_of_another_program_with_a_timestamp_is_not_studios(tmp_path: Path) -> None:
    assert not is_matched(export(tmp_path, ["Timestamp", "GazePointX", "GazePointY"], [["0"] * 3]))


def test_a_given_screen_goes_before_the_files(tmp_path: Path) -> None:
    screen = Screen(1920, 1080, 53.0, 30.0, 65.0)
    assert read_one(export(tmp_path), ReadOptions(screen=screen)).screen == screen


def test_other_tables_are_not_matched_and_refused_when_forced(tmp_path: Path) -> None:
    path = export(tmp_path, *without("Recording timestamp"))
    assert not is_matched(path)
    with pytest.raises(GazeError, match="Recording timestamp"):
        read_one(path)


@pytest.mark.parametrize("text", [None, STUDIO_2, STUDIO_3], ids=["Pro Lab", "2", "3"])
@fuzz
@given(edits)
def test_damaged_export_is_read_or_refused(
    tmp_path: Path, text: str | None, changes: list[tuple[float, str, bytes]]
) -> None:
    path = export(tmp_path)
    path.write_bytes(damage(text.encode() if text else path.read_bytes(), changes))
    with contextlib.suppress(GazeError):
        is_matched(path)
        list(tobii.read(path, ReadOptions()))
