from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.readers import ReadOptions, eyelink
from gazediffusion.data.recordings import Eye
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import (
    ASC_HEADER,
    asc,
    assert_found,
    block,
    calibration,
    gaze_of,
    read,
    read_one,
    right_block,
    write,
)

BOTH_EYES = pytest.mark.parametrize("eyes", [["left"], ["right"], ["left", "right"]], ids="-".join)


@BOTH_EYES
@pytest.mark.parametrize("extra", ["", "\t.....", "\t  12.0\t   .\t 27.1\t 27.2\t127\t.C.R."])
def test_every_sample_comes_back_whatever_fields_follow(
    tmp_path: Path, eyes: list[Eye], extra: str
) -> None:
    gaze = [gaze_of(30, seed) for seed in range(len(eyes))]
    gaze[0][:, 5:9] = np.nan
    path = asc(tmp_path / "a.asc", block(eyes, range(1000, 1030), gaze, extra=extra))
    recording = read_one(path)
    assert list(recording.gaze_px) == eyes
    np.testing.assert_array_equal(recording.time_ms, np.arange(1000, 1030))
    for eye, expected in zip(eyes, gaze, strict=True):
        np.testing.assert_array_equal(recording.gaze_px[eye], expected.astype(np.float32))
    assert recording.rate_hz == 1000
    assert recording.screen == Screen(1920, 1080)
    assert recording.format == "eyelink-asc"


@BOTH_EYES
def test_pymovements_and_mne_read_the_same_gaze(tmp_path: Path, eyes: list[Eye]) -> None:
    import mne
    import pymovements

    gaze = [gaze_of(40, seed) for seed in range(len(eyes))]
    gaze[-1][:, 10:14] = np.nan
    path = asc(tmp_path / "a.asc", block(eyes, range(2000, 2040), gaze, extra="\t127.0\t....."))
    ours = read_one(path)
    plain = asc(tmp_path / "b.asc", block(eyes, range(2000, 2040), gaze))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pymovements|mne")
        theirs = pymovements.gaze.from_asc(plain).samples
        raw = mne.io.read_raw_eyelink(path, create_annotations=False, verbose="ERROR")
    np.testing.assert_array_equal(theirs["time"].to_numpy(), ours.time_ms)
    expected = np.array(theirs["pixel"].to_list(), dtype=np.float32).T
    np.testing.assert_array_equal(np.concatenate([ours.gaze_px[eye] for eye in eyes]), expected)
    np.testing.assert_allclose(raw.times * 1000, ours.time_ms - ours.time_ms[0], atol=1e-6)
    for eye in eyes:
        found = raw.get_data(picks=[f"xpos_{eye}", f"ypos_{eye}"]).astype(np.float32)
        np.testing.assert_array_equal(ours.gaze_px[eye], found)


def test_each_block_is_a_trial_with_its_own_eyes_and_rate(tmp_path: Path) -> None:
    first, second = gaze_of(10, 1), gaze_of(8, 2)
    times = [5000 + i / 2 for i in range(8)]
    path = asc(
        tmp_path / "Waldo_Ruj12.asc",
        block(["left", "right"], range(1000, 1010), [first, first + 1]),
        "MSG\t1010 TRIAL_RESULT 0\n",
        block(["left"], times, [second], rate="2000.00"),
    )
    a, b = read(path)
    assert (a.trial, b.trial) == ("0", "1")
    assert (a.participant, a.task) == (b.participant, b.task) == ("Ruj12", "Waldo")
    assert (list(a.gaze_px), list(b.gaze_px)) == (["left", "right"], ["left"])
    assert (a.rate_hz, b.rate_hz) == (1000, 2000)
    np.testing.assert_array_equal(b.time_ms, times)
    np.testing.assert_array_equal(b.gaze_px["left"], second.astype(np.float32))


@pytest.mark.parametrize("begins_with_half", [False, True])
def test_whole_milliseconds_written_twice_are_2000_hz(
    tmp_path: Path, begins_with_half: bool
) -> None:
    true = (1000 + np.arange(20) / 2)[int(begins_with_half) :]
    gaze = gaze_of(len(true), 1)
    text = block(["right"], np.floor(true).tolist(), [gaze], rate="2000.00")
    recording = read_one(asc(tmp_path / "a.asc", text))
    np.testing.assert_array_equal(recording.time_ms, true)
    np.testing.assert_array_equal(recording.gaze_px["right"], gaze.astype(np.float32))
    assert recording.rate_hz == 2000


def test_repeated_times_at_1000_hz_stay_repeated(tmp_path: Path) -> None:
    times = [1000, 1001, 1001, 1002]
    recording = read_one(asc(tmp_path / "a.asc", block(["right"], times, [gaze_of(4, 1)])))
    np.testing.assert_array_equal(recording.time_ms, times)


def test_a_block_without_samples_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    empty = "START\t900 \tRIGHT\tSAMPLES\tEVENTS\nEND\t950 \tSAMPLES\tEVENTS\n"
    path = asc(tmp_path / "a.asc", empty, right_block(start=1000), right_block(start=3000))
    assert [recording.trial for recording in read(path)] == ["1", "2"]


def test_a_samples_line_without_eye_or_rate_leaves_them_to_start_and_clock(tmp_path: Path) -> None:
    text = right_block().replace("SAMPLES\tGAZE\tRIGHT\tRATE\t1000.00", "SAMPLES\tGAZE\tRATE\t0")
    recording = read_one(asc(tmp_path / "a.asc", text))
    assert list(recording.gaze_px) == ["right"]
    assert recording.rate_hz is None


def test_a_lone_block_keeps_the_run_in_the_file_name(tmp_path: Path) -> None:
    recording = read_one(asc(tmp_path / "sub-03_task-read_run-2.asc", right_block()))
    assert (recording.participant, recording.task, recording.trial) == ("03", "read", "2")


def test_a_block_without_end_runs_to_the_next_start(tmp_path: Path) -> None:
    text = right_block(start=1000, n=12) + right_block(start=3000, n=7)
    lines = [line for line in text.split("\n") if not line.startswith("END")]
    assert [len(r) for r in read(asc(tmp_path / "a.asc", "\n".join(lines)))] == [12, 7]


@pytest.mark.parametrize(
    ("events", "blinks"),
    [
        # The right eye's blink never ended within the block.
        (
            ["SBLINK L 1003", "EBLINK L 1003\t1006\t4", "SBLINK R 1015"],
            {"left": [3, 4, 5, 6], "right": [15, 16, 17, 18, 19]},
        ),
        (["SBLINK R 1002", "EBLINK R 1001.5\t1004\t3"], {"left": [], "right": [2, 3, 4]}),
        ([], {"left": [], "right": []}),
    ],
)
def test_blinks_are_labelled_for_their_own_eye_with_both_ends(
    tmp_path: Path, events: list[str], blinks: dict[str, list[int]]
) -> None:
    both = [gaze_of(20, 1)] * 2
    text = block(["left", "right"], range(1000, 1020), both, events=events)
    assert_found(read_one(asc(tmp_path / "a.asc", text)), blinks=blinks)


def test_no_blink_differs_from_no_events(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, Any], dict[str, list[int]]]] = [
        ({"start_extra": "\tSAMPLES"}, {"right": []}),
        ({"events_line": False}, {"right": []}),
        ({"start_extra": "\tSAMPLES", "events_line": False}, {}),
    ]
    for given, blinks in changes:
        assert_found(read_one(asc(tmp_path / "a.asc", right_block(**given))), blinks=blinks)


def test_other_lines_between_samples_are_skipped(tmp_path: Path) -> None:
    noise = ["** note", "MSG 1000 hello", "INPUT\t1003\t0", "BUTTON\t1004\t1\t1", "WHAT 1 2"]
    noise += [
        "SFIX R   1003",
        "EFIX R   1003\t1009\t6\t  501.1\t  400.2\t  1234",
        "",
        "SSACC R 1010",
    ]
    plain = right_block().split("\n")
    mixed = "\n".join([*plain[:15], *noise, *plain[15:]])
    expected = read_one(asc(tmp_path / "a.asc", "\n".join(plain)))
    recording = read_one(asc(tmp_path / "b.asc", mixed))
    np.testing.assert_array_equal(recording.gaze_px["right"], expected.gaze_px["right"])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["unix", "windows", "mac"])
@pytest.mark.parametrize("delimiter", ["\t", " ", "  "], ids=["tab", "space", "spaces"])
def test_line_ends_and_delimiters_do_not_matter(
    tmp_path: Path, newline: str, delimiter: str
) -> None:
    text = (ASC_HEADER + right_block()).replace("\t", delimiter).replace("\n", newline)
    (tmp_path / "a.asc").write_bytes(text.encode())
    recording = read_one(tmp_path / "a.asc")
    np.testing.assert_array_equal(recording.gaze_px["right"], gaze_of(20, 1).astype(np.float32))


@pytest.mark.parametrize(
    "message",
    [
        "DISPLAY_COORDS 0 0 1279 719",
        "DISPLAY_COORDS 0 0 1280 720",
        "GAZE_COORDS 0.00 0.00 1280.00 720.00",
        "DISPLAY_COORDS -640 -360 640 360",
        "DISPLAY_COORDS = 0 0 1279 719",
        "-3 GAZE_COORDS 0.00 0.00 1279.00 719.00",
        "!MODE DISPLAY_COORDS: 0 0 1279 719",
    ],
)
def test_the_screen_is_read_from_the_coordinates(tmp_path: Path, message: str) -> None:
    text = right_block().replace("GAZE_COORDS 0.00 0.00 1919.00 1079.00", message)
    recording = read_one(asc(tmp_path / "a.asc", text, header=""))
    assert recording.screen == Screen(1280, 720)


def test_a_given_screen_completes_the_stated_one_and_does_not_replace_it(tmp_path: Path) -> None:
    bare = asc(tmp_path / "a.asc", right_block().replace("GAZE_COORDS", "NOTHING"), header="")
    stated = asc(tmp_path / "b.asc", right_block())
    given, other = Screen(1920, 1080, 53.0, 30.0, 60.0), Screen(800, 600)
    assert read(bare)[0].screen is None
    assert read(stated)[0].screen == Screen(1920, 1080)
    for path in (bare, stated):
        assert read_one(path, screen=given).screen == given
    assert read_one(bare, screen=other).screen == other
    with pytest.raises(GazeError, match="1920x1080 px, and `screen` is 800x600 px"):
        read(stated, screen=other)
    assert read_one(stated, screen=other, override_screen=True).screen == other


def test_coordinates_around_the_centre_are_moved_to_the_top_left(tmp_path: Path) -> None:
    text = right_block().replace("0.00 0.00 1919.00 1079.00", "-960 -540 959 539")
    recording = read_one(asc(tmp_path / "a.asc", text))
    assert recording.screen == Screen(1920, 1080)
    expected = (gaze_of(20, 1) + np.array([[960], [540]])).astype(np.float32)
    np.testing.assert_array_equal(recording.gaze_px["right"], expected)


def test_the_calibration_error_is_that_of_the_last_validation_before_the_trial(
    tmp_path: Path,
) -> None:
    path = asc(
        tmp_path / "a.asc",
        right_block(start=1000),
        calibration("RIGHT", "R", 1.25) + calibration("RIGHT", "R", 0.35),
        right_block(start=2000),
        right_block(start=3000),
        calibration("RIGHT", "R", None),
        right_block(start=4000),
        calibration("LEFT", "LR", 0.7) + calibration("RIGHT", "LR", 0.41),
        right_block(start=5000),
        "MSG\t5900 !CAL VALIDATION HV9 R ABORTED\n",  # leaves the one before it
        right_block(start=6000),
    )
    errors = [recording.calibration_error_deg for recording in read(path)]
    last = {"left": 0.7, "right": 0.41}
    assert errors == [{}, {"right": 0.35}, {"right": 0.35}, {}, last, last]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("1007\t", "1007\toops", "oops"),
        ("1007\t", "1007x\t", "1007x"),
        ("1007\t", "1007\t1e99\t", "1e99"),
        ("1007\t", "1007\t1 2\n1007\t", "ends early"),
        ("1007\t", "999\t", "backwards"),
        ("SAMPLES\tGAZE", "SAMPLES\tHREF", "HREF"),
        ("SAMPLES\tGAZE", "SAMPLES\tGAZE\tRATE\tfast", "RATE|number"),
        ("PRESCALER", "EBLINK R 1003 soon\nPRESCALER", "number"),
        ("PRESCALER", "SBLINK\nPRESCALER", "no eye"),
        ("GAZE_COORDS 0.00 0.00", "GAZE_COORDS 5000 5000", "span no screen"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, old: str, new: str, problem: str) -> None:
    text = ASC_HEADER + right_block()
    assert old in text
    damaged = text.replace(old, new, 1)
    line = 1 + [new.split("\n")[0] in one for one in damaged.split("\n")].index(True)
    path = asc(tmp_path / "a.asc", damaged, header="")
    with pytest.raises(GazeError, match=rf"a\.asc, line {line}\b.*(?:{problem})"):
        read(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"SR_RESEARCH\x00\x01\x02", "binary"),
        (ASC_HEADER.encode(), "no START"),
        (b"START 1 RIGHT SAMPLES\nSAMPLES GAZE RIGHT\nEND 2\n", "no samples"),
        (right_block().replace("SAMPLES\tGAZE", "XAMPLES\tGAZE").encode(), "no SAMPLES line"),
    ],
)
def test_a_file_without_samples_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(GazeError, match=problem):
        read(write(tmp_path, content, "a.asc"), "eyelink-asc")


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.asc", ASC_HEADER, True),
        ("renamed.txt", ASC_HEADER, True),
        ("bare.txt", right_block(), True),
        ("messages.asc", "MSG\t990 hello\n", True),
        ("messages.txt", "MSG 990 hello\n1 2 3 4 5 6 7 0 0 0\n", False),
        ("table.csv", "time,x,y\n1,2,3\n", False),
        ("raw.edf", "** TYPE: EDF_FILE BINARY\n\x00", False),
    ],
)
def test_a_file_is_known_by_its_content(name: str, head: str, expected: bool) -> None:
    assert eyelink.matches(Path(name), head.encode(), ReadOptions()) is expected
