"""Eye tracking in BIDS: one eye or both, inherited fields, units, blinks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.readers import read_recordings
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import (
    LOST,
    PHYSIO_ROWS,
    SCREEN,
    assert_found,
    beside,
    bids_eye,
    matched,
    read,
    read_one,
)


def second_eye(root: Path, rows: str = PHYSIO_ROWS) -> Path:
    return bids_eye(root, 2, rows, RecordedEye="right")


def test_one_eye_is_read_with_its_identity_rate_and_clock(tmp_path: Path) -> None:
    path = bids_eye(tmp_path)
    assert matched(path, "bids")
    assert_found(
        read_one(path),
        who=("01", "read", "2"),
        ms=[1000, 1004, 1008, 1012],
        left=[[1.5, 1.6, LOST, 1.8], [2.5, 2.6, LOST, 2.8]],
        blinks={},
        rate_hz=250,
        format="bids",
        screen=None,
    )


@pytest.mark.parametrize("named", [".", "sub-*/beh/*.tsv.gz", "sub-01/beh/*eye1_physio.tsv.gz"])
def test_both_eyes_on_one_clock_are_one_recording(tmp_path: Path, named: str) -> None:
    bids_eye(tmp_path)
    second = second_eye(tmp_path, PHYSIO_ROWS.replace("1.5", "9.5"))
    (recording,) = read_recordings([f"{tmp_path}/{named}"])
    assert (recording.gaze_px["left"][0, 0], recording.gaze_px["right"][0, 0]) == (1.5, 9.5)
    assert set(read_one(second).gaze_px) == {"right"}


def test_eyes_on_different_clocks_stay_apart(tmp_path: Path) -> None:
    path = bids_eye(tmp_path)
    second_eye(tmp_path, PHYSIO_ROWS.replace("1012", "1013"))
    found = [(set(one.gaze_px), one.trial) for one in read(path)]
    assert found == [({"left"}, "2"), ({"right"}, "2-eye2")]


def test_fields_are_inherited_and_the_nearer_one_counts(tmp_path: Path) -> None:
    (tmp_path / "dataset_description.json").write_text("{}")
    path = bids_eye(tmp_path)
    (tmp_path / "physio.json").write_text(beside(path).read_text())
    beside(path).write_text(json.dumps({"RecordedEye": "right"}))
    (tmp_path / "task-read_physio.json").write_text(json.dumps({"SamplingFrequency": 500}))
    (tmp_path / "task-other_physio.json").write_text(json.dumps({"SamplingFrequency": 60}))
    recording = read_one(path)
    assert (set(recording.gaze_px), recording.rate_hz) == ({"right"}, 500)


def test_the_screen_is_in_the_tasks_events(tmp_path: Path) -> None:
    path = bids_eye(tmp_path)
    events = tmp_path / "task-read_events.json"
    events.write_text(json.dumps({"StimulusPresentation": SCREEN.to_bids()}))
    assert read_one(path).screen == SCREEN
    with pytest.raises(GazeError, match="`screen` is 10x10 px"):
        read(path, screen=Screen(10, 10))


NO_TIMES = {"Columns": ["x_coordinate", "y_coordinate"], "StartTime": -1}
DEGREES = {axis: {"Units": "degree"} for axis in ("x_coordinate", "y_coordinate")}


@pytest.mark.parametrize(
    ("fields", "rows", "expected"),
    [
        ({"timestamp": {"Units": "s"}}, PHYSIO_ROWS, {"ms": [1e6, 1.004e6, 1.008e6, 1.012e6]}),
        ({"timestamp": {"Units": "us"}}, PHYSIO_ROWS, {"ms": [1, 1.004, 1.008, 1.012]}),
        (NO_TIMES, "1\t2\n3\t4\n", {"ms": [-1000, -996]}),
        (
            DEGREES,
            "1000\t1.5\t2.5\t9\n1004\t1.5\t2.5\t9\n",
            {"left": SCREEN.from_degrees(np.array([[1.5, 1.5], [2.5, 2.5]])), "unit": "deg"},
        ),
    ],
)
def test_units_are_the_stated_ones(
    tmp_path: Path, fields: dict[str, Any], rows: str, expected: dict[str, Any]
) -> None:
    path = bids_eye(tmp_path, 1, rows, **fields)
    assert_found(read_one(path, screen=SCREEN), **expected)


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ({}, "1003\t6\tblink\t0\tn/a\n1012\t1\tsaccade\t0\tn/a\nn/a\tn/a\tn/a\tn/a\tMSG\n"),
        ({"Columns": ["onset", "duration", "type"]}, "1003\t6\tBlink\n"),
        ({"Columns": ["onset", "duration", "trial_type", "blink"]}, "1003\t6\tsaccade\t1\n"),
        (
            {"Columns": ["onset", "duration", "trial_type"], "duration": {"Units": "s"},
             "onset": {"Units": "ms"}},
            "1003\t0.006\tblink\n",
        ),
    ],
)  # fmt: skip
def test_blink_events_label_the_samples_they_cover(
    tmp_path: Path, fields: dict[str, Any], rows: str
) -> None:
    path = bids_eye(tmp_path, timestamp={"Units": "ms"})
    events = path.with_name(path.name.replace("_physio.", "_physioevents."))
    events.write_bytes(gzip.compress(rows.encode()))
    beside(events).write_text(json.dumps(fields))
    assert_found(read_one(path), blinks={"left": [1, 2]})


def test_other_physio_files_are_not_matched(tmp_path: Path) -> None:
    assert not matched(bids_eye(tmp_path, PhysioType="generic"), "bids")
    (tmp_path / "sub-01_task-read_events.tsv").write_text("onset\n")
    assert not matched(tmp_path / "sub-01_task-read_events.tsv", "bids")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SampleCoordinateSystem": "eye-in-head"}, "eye-in-head"),
        ({"Columns": ["timestamp", "x_coordinate", "y_coordinate"]}, "4 cells where there are 3"),
        ({"Columns": ["timestamp", "x_coordinate", "a", "b"]}, "lack y_coordinate"),
        ({"Columns": ["timestamp", "timestamp", "a", "b"]}, "different names"),
        ({"Columns": "timestamp"}, "different names"),
        ({"x_coordinate": {"Units": "mm"}}, "'mm'"),
        ({"x_coordinate": {"Units": "degree"}}, "x is in deg but y in px"),
        ({"SamplingFrequency": "fast"}, "SamplingFrequency"),
    ],
)
def test_a_wrong_sidecar_names_the_field(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(GazeError, match=message):
        read(bids_eye(tmp_path, **changes))


def test_what_is_missing_or_damaged_is_matched_and_refused(tmp_path: Path) -> None:
    path = bids_eye(tmp_path)
    second_eye(tmp_path, PHYSIO_ROWS.replace("1.6", "oops"))
    with pytest.raises(GazeError, match=r"eye2_physio.tsv.gz, line 2, column 'x_coordinate'"):
        read(path)
    content = path.read_bytes()
    path.write_bytes(content[:-12])
    with pytest.raises(GazeError, match="gzip"):
        read(path)
    path.write_bytes(content)
    beside(path).write_text('{"Columns": [')
    assert matched(path, "bids")
    with pytest.raises(GazeError, match="no JSON"):
        read(path)
    beside(path).unlink()
    assert matched(path, "bids")
    with pytest.raises(GazeError, match="no JSON sidecar"):
        read(path)
