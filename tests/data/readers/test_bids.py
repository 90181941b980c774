from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazediffusion.data.readers import bids, read_recordings
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)
FIELDS: dict[str, Any] = {
    "SamplingFrequency": 250,
    "StartTime": 0,
    "Columns": ["timestamp", "x_coordinate", "y_coordinate", "pupil_size"],
    "PhysioType": "eyetrack",
    "RecordedEye": "left",
    "SampleCoordinateSystem": "gaze-on-screen",
    "x_coordinate": {"Units": "pixel"},
    "y_coordinate": {"Units": "pixel"},
}
SAMPLES = "1000\t1.5\t2.5\t900\n1004\t1.6\t2.6\t901\n1008\tn/a\tn/a\tn/a\n1012\t1.8\t2.8\t903\n"


def write_gz(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def write_eye(
    root: Path, number: int = 1, samples: str = SAMPLES, fields: dict[str, Any] | None = None
) -> Path:
    """One eye of sub-01 with its own sidecar; returns its data file."""
    folder = root / "sub-01" / "beh"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"sub-01_task-read_run-2_recording-eye{number}_physio.tsv.gz"
    write_gz(path, samples)
    sidecar = folder / path.name.replace(".tsv.gz", ".json")
    sidecar.write_text(json.dumps(FIELDS if fields is None else fields))
    return path


def read_all(path: Path, options: ReadOptions | None = None) -> list[Recording]:
    return list(bids.read(path, options or ReadOptions()))


def read_one(path: Path, options: ReadOptions | None = None) -> Recording:
    (recording,) = read_all(path, options)
    return recording


def is_matched(path: Path) -> bool:
    return bids.matches(path, b"", ReadOptions())


def test_one_eye_is_read_with_its_identity_rate_and_clock(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    assert is_matched(path)
    recording = read_one(path)
    assert (recording.participant, recording.task, recording.trial) == ("01", "read", "2")
    assert recording.rate_hz == 250
    np.testing.assert_array_equal(recording.time_ms, [1000, 1004, 1008, 1012])
    np.testing.assert_allclose(recording.gaze_px["left"][0], [1.5, 1.6, np.nan, 1.8], rtol=1e-6)
    assert recording.format == "bids"
    assert recording.screen is None


def test_both_eyes_on_one_clock_are_one_recording(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    second = write_eye(
        tmp_path, 2, SAMPLES.replace("1.5", "9.5"), {**FIELDS, "RecordedEye": "right"}
    )
    recording = read_one(path)
    assert recording.gaze_px["left"][0, 0] == 1.5
    assert recording.gaze_px["right"][0, 0] == 9.5
    assert set(read_one(second).gaze_px) == {"right"}


@pytest.mark.parametrize("named", [".", "sub-*/beh/*.tsv.gz"])
def test_a_folder_or_glob_reads_both_eyes_once(tmp_path: Path, named: str) -> None:
    write_eye(tmp_path)
    write_eye(tmp_path, 2, SAMPLES, {**FIELDS, "RecordedEye": "right"})
    (recording,) = read_recordings([f"{tmp_path}/{named}"])
    assert set(recording.gaze_px) == {"left", "right"}


def test_eyes_on_different_clocks_stay_apart(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    write_eye(tmp_path, 2, SAMPLES.replace("1012", "1013"), {**FIELDS, "RecordedEye": "right"})
    assert [(set(r.gaze_px), r.trial) for r in read_all(path)] == [
        ({"left"}, "2"),
        ({"right"}, "2-eye2"),
    ]


def test_a_second_eye_alone_is_read(tmp_path: Path) -> None:
    assert len(list(read_recordings([write_eye(tmp_path, 2)]))) == 1


def test_fields_are_inherited_and_the_nearer_one_counts(tmp_path: Path) -> None:
    (tmp_path / "dataset_description.json").write_text("{}")
    path = write_eye(tmp_path, fields={"RecordedEye": "right"})
    (tmp_path / "physio.json").write_text(json.dumps(FIELDS))
    (tmp_path / "task-read_physio.json").write_text(json.dumps({"SamplingFrequency": 500}))
    (tmp_path / "task-other_physio.json").write_text(json.dumps({"SamplingFrequency": 60}))
    recording = read_one(path)
    assert set(recording.gaze_px) == {"right"}
    assert recording.rate_hz == 500


def test_the_screen_is_in_the_tasks_events(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    events = tmp_path / "task-read_events.json"
    events.write_text(json.dumps({"StimulusPresentation": SCREEN.to_bids()}))
    assert read_one(path).screen == SCREEN
    with pytest.raises(GazeError, match="`screen` is 10x10 px"):
        read_one(path, ReadOptions(screen=Screen(10, 10)))


def test_degrees_become_pixels_through_the_screen(tmp_path: Path) -> None:
    units = {axis: {"Units": "degree"} for axis in ("x_coordinate", "y_coordinate")}
    path = write_eye(tmp_path, fields={**FIELDS, **units})
    gaze = read_one(path, ReadOptions(screen=SCREEN)).gaze_px["left"]
    expected = SCREEN.from_degrees(np.array([[1.5], [2.5]]))
    np.testing.assert_allclose(gaze[:, :1], expected, rtol=1e-6)


@pytest.mark.parametrize(("unit", "first_ms"), [("s", 1_000_000), ("ms", 1000), ("us", 1)])
def test_the_clocks_unit_is_the_stated_one(tmp_path: Path, unit: str, first_ms: float) -> None:
    path = write_eye(tmp_path, fields={**FIELDS, "timestamp": {"Units": unit}})
    assert read_one(path).time_ms[0] == pytest.approx(first_ms)


def test_without_timestamps_the_rate_makes_the_clock(tmp_path: Path) -> None:
    fields = {**FIELDS, "Columns": ["x_coordinate", "y_coordinate"], "StartTime": -1}
    path = write_eye(tmp_path, samples="1\t2\n3\t4\n", fields=fields)
    np.testing.assert_allclose(read_one(path).time_ms, [-1000, -996])


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (None, "1003\t6\tblink\t0\tn/a\n1012\t1\tsaccade\t0\tn/a\nn/a\tn/a\tn/a\tn/a\tMSG\n"),
        (["onset", "duration", "type"], "1003\t6\tBlink\n"),
        (["onset", "duration", "trial_type", "blink"], "1003\t6\tsaccade\t1\n"),
    ],
)
def test_blink_events_label_the_samples_they_cover(
    tmp_path: Path, columns: list[str] | None, rows: str
) -> None:
    path = write_eye(tmp_path)
    assert not read_one(path).is_blink
    events = path.with_name(path.name.replace("_physio.", "_physioevents."))
    write_gz(events, rows)
    if columns is not None:
        sidecar = events.with_name(events.name.replace(".tsv.gz", ".json"))
        sidecar.write_text(json.dumps({"Columns": columns}))
    blinks = read_one(path).is_blink["left"]
    np.testing.assert_array_equal(blinks, [False, True, True, False])


def test_event_units_are_turned_into_the_samples_clock(tmp_path: Path) -> None:
    path = write_eye(tmp_path, fields={**FIELDS, "timestamp": {"Units": "ms"}})
    events = path.with_name(path.name.replace("_physio.", "_physioevents."))
    write_gz(events, "1003\t0.006\tblink\n")
    fields = {"Columns": ["onset", "duration", "trial_type"], "duration": {"Units": "s"}}
    events.with_name(events.name.replace(".tsv.gz", ".json")).write_text(json.dumps(fields))
    np.testing.assert_array_equal(read_one(path).is_blink["left"], [False, True, True, False])


def test_other_physio_files_are_not_matched(tmp_path: Path) -> None:
    assert not is_matched(write_eye(tmp_path, fields={**FIELDS, "PhysioType": "generic"}))
    assert not is_matched(tmp_path / "sub-01_task-read_events.tsv")


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
    path = write_eye(tmp_path, fields={**FIELDS, **changes})
    with pytest.raises(GazeError, match=message):
        read_all(path)


def test_missing_and_damaged_sidecars_are_matched_and_refused(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    sidecar = path.with_name(path.name.replace(".tsv.gz", ".json"))
    sidecar.write_text('{"Columns": [')
    assert is_matched(path)
    with pytest.raises(GazeError, match="no JSON"):
        read_all(path)
    sidecar.unlink()
    assert is_matched(path)
    with pytest.raises(GazeError, match="no JSON sidecar"):
        read_all(path)


def test_truncated_gzip_is_refused(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(GazeError, match="gzip"):
        read_all(path)


def test_a_wrong_cell_is_named_by_file_line_and_column(tmp_path: Path) -> None:
    path = write_eye(tmp_path)
    fields = {**FIELDS, "RecordedEye": "right"}
    write_eye(tmp_path, 2, SAMPLES.replace("1.6", "oops"), fields)
    with pytest.raises(GazeError, match=r"eye2_physio.tsv.gz, line 2, column 'x_coordinate'"):
        read_all(path)


def read_or_refuse(path: Path) -> None:
    with contextlib.suppress(GazeError):
        is_matched(path)
        read_all(path, ReadOptions(screen=SCREEN))


@fuzz
@given(edits, st.booleans())
def test_damaged_samples_are_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]], inside: bool
) -> None:
    path = write_eye(tmp_path)
    if inside:
        path.write_bytes(gzip.compress(damage(SAMPLES.encode(), changes)))
    else:
        path.write_bytes(damage(path.read_bytes(), changes))
    read_or_refuse(path)


@fuzz
@given(edits)
def test_damaged_sidecars_are_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = write_eye(tmp_path)
    sidecar = path.with_name(path.name.replace(".tsv.gz", ".json"))
    sidecar.write_bytes(damage(sidecar.read_bytes(), changes))
    read_or_refuse(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Units", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@fuzz
@given(st.sampled_from([*FIELDS, "timestamp", "StimulusPresentation"]), json_values)
def test_any_field_may_hold_anything(tmp_path: Path, name: str, value: object) -> None:
    path = write_eye(tmp_path, fields={**FIELDS, name: value})
    events = tmp_path / "task-read_events.json"
    events.write_text(json.dumps({**SCREEN.to_bids(), name: value, "ScreenSize": value}))
    read_or_refuse(path)
