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
from gazediffusion.geometry import Screen
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


def test_a_given_screen_goes_before_the_files(tmp_path: Path) -> None:
    screen = Screen(1920, 1080, 53.0, 30.0, 65.0)
    assert read_one(export(tmp_path), ReadOptions(screen=screen)).screen == screen


def test_other_tables_are_not_matched_and_refused_when_forced(tmp_path: Path) -> None:
    path = export(tmp_path, *without("Recording timestamp"))
    assert not is_matched(path)
    with pytest.raises(GazeError, match="Recording timestamp"):
        read_one(path)


@fuzz
@given(edits)
def test_damaged_export_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = export(tmp_path)
    path.write_bytes(damage(path.read_bytes(), changes))
    with contextlib.suppress(GazeError):
        is_matched(path)
        list(tobii.read(path, ReadOptions()))
