from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.data.readers import eyelink
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.damage import damaged_lines

LETTERS = {"left": "L", "right": "R"}
HEADER = """\
** CONVERTED FROM demo.edf using edfapi 4.2.1
** DATE: Wed Mar  8 09:25:20 2023
** TYPE: EDF_FILE BINARY EVENT SAMPLE TAGGED
** VERSION: EYELINK II 1
** SOURCE: EYELINK CL
** EYELINK II CL v6.12 Feb  1 2018 (EyeLink Portable Duo)
** CAMERA: EyeLink USBCAM Version 1.01
**

MSG\t990 DISPLAY_COORDS 0 0 1919 1079
"""


def gaze_of(n: int, seed: int) -> NDArray[np.float64]:
    """Gaze (2, n) in tenths of a pixel, so that the text holds it exactly."""
    return np.round(np.random.default_rng(seed).uniform(10, 1000, (2, n)), 1)


def block(
    eyes: Sequence[str],
    times: Sequence[float],
    gaze: Sequence[NDArray[np.float64]],
    *,
    rate: str = "1000.00",
    kind: str = "GAZE",
    extra: str = "\t.....",
    events: Sequence[str] = (),
    start_extra: str = "\tSAMPLES\tEVENTS",
    events_line: bool = True,
) -> str:
    """A START ... END block with one line per sample; NaN is written as `.`."""
    names = "\t".join(eye.upper() for eye in eyes)
    letters = "".join(LETTERS[eye] for eye in eyes)
    first = int(times[0])
    lines = [
        f"MSG\t{first} RECCFG CR {float(rate):.0f} 2 1 {letters}",
        f"MSG\t{first} ELCLCFG MTABLER",
        f"MSG\t{first} GAZE_COORDS 0.00 0.00 1919.00 1079.00",
        f"START\t{first} \t{names}{start_extra}",
        "PRESCALER\t1",
        "VPRESCALER\t1",
        "PUPIL\tAREA",
        *([f"EVENTS\tGAZE\t{names}\tRATE\t{rate}\tTRACKING\tCR\tFILTER\t2"] if events_line else []),
        f"SAMPLES\t{kind}\t{names}\tRATE\t{rate}\tTRACKING\tCR\tFILTER\t2\tINPUT",
        *events,
    ]
    for i, time in enumerate(times):
        cells = [f"{time:g}"]
        for one in gaze:
            x, y = ("   ." if np.isnan(v) else f"{v:7.1f}" for v in one[:, i])
            cells += [x, y, " 1234.0"]
        lines.append("\t".join(cells) + extra)
    lines.append(f"END\t{int(times[-1]) + 1} \tSAMPLES\tEVENTS\tRES\t  45.00\t  45.00")
    return "\n".join(lines) + "\n"


def asc(path: Path, *blocks: str, header: str = HEADER) -> Path:
    path.write_text(header + "".join(blocks))
    return path


def read(path: Path, options: ReadOptions | None = None) -> list[Recording]:
    return list(eyelink.read(path, options or ReadOptions()))


def right_block(n: int = 20, start: int = 1000, **changes: object) -> str:
    return block(["right"], range(start, start + n), [gaze_of(n, 1)], **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("eyes", [["left"], ["right"], ["left", "right"]], ids="-".join)
@pytest.mark.parametrize("extra", ["", "\t.....", "\t  12.0\t   .\t 27.1\t 27.2\t127\t.C.R."])
def test_every_sample_comes_back_whatever_fields_follow(
    tmp_path: Path, eyes: list[Eye], extra: str
) -> None:
    gaze = [gaze_of(30, seed) for seed in range(len(eyes))]
    gaze[0][:, 5:9] = np.nan
    path = asc(tmp_path / "a.asc", block(eyes, range(1000, 1030), gaze, extra=extra))
    (recording,) = read(path)
    assert list(recording.gaze_px) == eyes
    np.testing.assert_array_equal(recording.time_ms, np.arange(1000, 1030))
    for eye, expected in zip(eyes, gaze, strict=True):
        np.testing.assert_array_equal(recording.gaze_px[eye], expected.astype(np.float32))
    assert recording.rate_hz == 1000
    assert recording.screen == Screen(1920, 1080)
    assert recording.format == "eyelink-asc"


@pytest.mark.parametrize("eyes", [["left"], ["right"], ["left", "right"]], ids="-".join)
def test_pymovements_reads_the_same_gaze(tmp_path: Path, eyes: list[Eye]) -> None:
    import pymovements

    gaze = [gaze_of(40, seed) for seed in range(len(eyes))]
    gaze[-1][:, 10:14] = np.nan
    path = asc(tmp_path / "a.asc", block(eyes, range(2000, 2040), gaze))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pymovements")
        theirs = pymovements.gaze.from_asc(path).samples
    (ours,) = read(path)
    np.testing.assert_array_equal(theirs["time"].to_numpy(), ours.time_ms)
    expected = np.array(theirs["pixel"].to_list(), dtype=np.float32).T
    np.testing.assert_array_equal(np.concatenate([ours.gaze_px[eye] for eye in eyes]), expected)


@pytest.mark.parametrize("eyes", [["left"], ["right"], ["left", "right"]], ids="-".join)
def test_mne_reads_the_same_gaze(tmp_path: Path, eyes: list[Eye]) -> None:
    import mne

    gaze = [gaze_of(40, seed) for seed in range(len(eyes))]
    gaze[-1][:, 10:14] = np.nan
    path = asc(tmp_path / "a.asc", block(eyes, range(2000, 2040), gaze, extra="\t127.0\t....."))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="mne")
        raw = mne.io.read_raw_eyelink(path, create_annotations=False, verbose="ERROR")
    (ours,) = read(path)
    np.testing.assert_allclose(raw.times * 1000, ours.time_ms - ours.time_ms[0], atol=1e-6)
    for eye in eyes:
        theirs = raw.get_data(picks=[f"xpos_{eye}", f"ypos_{eye}"]).astype(np.float32)
        np.testing.assert_array_equal(ours.gaze_px[eye], theirs)


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
    (recording,) = read(asc(tmp_path / "a.asc", text))
    np.testing.assert_array_equal(recording.time_ms, true)
    np.testing.assert_array_equal(recording.gaze_px["right"], gaze.astype(np.float32))
    assert recording.rate_hz == 2000


def test_repeated_times_at_1000_hz_stay_repeated(tmp_path: Path) -> None:
    times = [1000, 1001, 1001, 1002]
    (recording,) = read(asc(tmp_path / "a.asc", block(["right"], times, [gaze_of(4, 1)])))
    np.testing.assert_array_equal(recording.time_ms, times)


def test_a_block_without_samples_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    empty = "START\t900 \tRIGHT\tSAMPLES\tEVENTS\nEND\t950 \tSAMPLES\tEVENTS\n"
    path = asc(tmp_path / "a.asc", empty, right_block(start=1000), right_block(start=3000))
    assert [recording.trial for recording in read(path)] == ["1", "2"]


def test_a_samples_line_without_eye_or_rate_leaves_them_to_start_and_clock(tmp_path: Path) -> None:
    text = right_block().replace("SAMPLES\tGAZE\tRIGHT\tRATE\t1000.00", "SAMPLES\tGAZE\tRATE\t0")
    (recording,) = read(asc(tmp_path / "a.asc", text))
    assert list(recording.gaze_px) == ["right"]
    assert recording.rate_hz is None


def test_a_lone_block_keeps_the_run_in_the_file_name(tmp_path: Path) -> None:
    (recording,) = read(asc(tmp_path / "sub-03_task-read_run-2.asc", right_block()))
    assert (recording.participant, recording.task, recording.trial) == ("03", "read", "2")


def test_a_block_without_end_runs_to_the_next_start(tmp_path: Path) -> None:
    text = right_block(start=1000, n=12) + right_block(start=3000, n=7)
    lines = [line for line in text.split("\n") if not line.startswith("END")]
    assert [len(r) for r in read(asc(tmp_path / "a.asc", "\n".join(lines)))] == [12, 7]


def test_blinks_are_labelled_for_their_own_eye_with_both_ends(tmp_path: Path) -> None:
    events = ["SBLINK L 1003", "EBLINK L 1003\t1006\t4", "SBLINK R 1015"]
    gaze = gaze_of(20, 1)
    path = asc(
        tmp_path / "a.asc", block(["left", "right"], range(1000, 1020), [gaze, gaze], events=events)
    )
    (recording,) = read(path)
    assert np.flatnonzero(recording.is_blink["left"]).tolist() == [3, 4, 5, 6]
    # The right eye's blink never ended within the block.
    assert np.flatnonzero(recording.is_blink["right"]).tolist() == [15, 16, 17, 18, 19]


def test_a_blink_that_ended_does_not_run_on(tmp_path: Path) -> None:
    events = ["SBLINK R 1002", "EBLINK R 1001.5\t1004\t3"]
    (recording,) = read(asc(tmp_path / "a.asc", right_block(events=events)))
    assert np.flatnonzero(recording.is_blink["right"]).tolist() == [2, 3, 4]


def test_no_blink_and_no_events_are_named_apart(tmp_path: Path) -> None:
    for changes in ({"start_extra": "\tSAMPLES"}, {"events_line": False}):
        (with_events,) = read(asc(tmp_path / "a.asc", right_block(**changes)))
        assert with_events.is_blink["right"].tolist() == [False] * 20
    path = asc(tmp_path / "b.asc", right_block(start_extra="\tSAMPLES", events_line=False))
    (without,) = read(path)
    assert without.is_blink == {}


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
    (expected,) = read(asc(tmp_path / "a.asc", "\n".join(plain)))
    (recording,) = read(asc(tmp_path / "b.asc", mixed))
    np.testing.assert_array_equal(recording.gaze_px["right"], expected.gaze_px["right"])


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["unix", "windows", "mac"])
@pytest.mark.parametrize("delimiter", ["\t", " ", "  "], ids=["tab", "space", "spaces"])
def test_line_ends_and_delimiters_do_not_matter(
    tmp_path: Path, newline: str, delimiter: str
) -> None:
    text = (HEADER + right_block()).replace("\t", delimiter).replace("\n", newline)
    (tmp_path / "a.asc").write_bytes(text.encode())
    (recording,) = read(tmp_path / "a.asc")
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
    (recording,) = read(asc(tmp_path / "a.asc", text, header=""))
    assert recording.screen == Screen(1280, 720)


def test_a_given_screen_completes_the_stated_one_and_does_not_replace_it(tmp_path: Path) -> None:
    bare = asc(tmp_path / "a.asc", right_block().replace("GAZE_COORDS", "NOTHING"), header="")
    stated = asc(tmp_path / "b.asc", right_block())
    given, other = Screen(1920, 1080, 53.0, 30.0, 60.0), Screen(800, 600)
    assert read(bare)[0].screen is None
    assert read(stated)[0].screen == Screen(1920, 1080)
    for path in (bare, stated):
        assert read(path, ReadOptions(screen=given))[0].screen == given
    assert read(bare, ReadOptions(screen=other))[0].screen == other
    with pytest.raises(GazeError, match="1920x1080 px, and `screen` is 800x600 px"):
        read(stated, ReadOptions(screen=other))
    assert read(stated, ReadOptions(screen=other, override_screen=True))[0].screen == other


def test_coordinates_around_the_centre_are_moved_to_the_top_left(tmp_path: Path) -> None:
    text = right_block().replace("0.00 0.00 1919.00 1079.00", "-960 -540 959 539")
    (recording,) = read(asc(tmp_path / "a.asc", text))
    assert recording.screen == Screen(1920, 1080)
    expected = (gaze_of(20, 1) + np.array([[960], [540]])).astype(np.float32)
    np.testing.assert_array_equal(recording.gaze_px["right"], expected)


def calibration(eye: str, letters: str, error: float | None) -> str:
    """The messages of a calibration and its validation, as the Host PC writes them."""
    said = f"MSG\t800 !CAL CALIBRATION HV9 {letters} {eye}   GOOD \n"
    if error is None:
        return said + f"MSG\t900 !CAL VALIDATION HV9 {letters} ABORTED\n"
    return said + (
        f"MSG\t900 !CAL VALIDATION HV9 {letters} {eye}  GOOD ERROR {error:.2f} avg. 1.43 max  "
        "OFFSET 0.26 deg. -4.6,-11.0 pix.\n"
        f"MSG\t900 VALIDATE {letters} POINT 0  {eye}  at 960,540  OFFSET 0.39 deg.  -2.2,7.9 pix.\n"
    )


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
    )
    errors = [recording.calibration_error_deg for recording in read(path)]
    assert errors == [{}, {"right": 0.35}, {"right": 0.35}, {}, {"left": 0.7, "right": 0.41}]


def test_an_aborted_validation_leaves_the_one_before_it(tmp_path: Path) -> None:
    aborted = "MSG\t950 !CAL VALIDATION HV9 R ABORTED\n"
    path = asc(tmp_path / "a.asc", calibration("RIGHT", "R", 0.35) + aborted, right_block())
    assert read(path)[0].calibration_error_deg == {"right": 0.35}


def line_of(text: str, expected: str) -> int:
    return 1 + [expected in line for line in text.split("\n")].index(True)


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
    text = HEADER + right_block()
    assert old in text
    damaged = text.replace(old, new, 1)
    line = line_of(damaged, new.split("\n")[0])
    path = asc(tmp_path / "a.asc", damaged, header="")
    with pytest.raises(GazeError, match=rf"a\.asc, line {line}\b.*(?:{problem})"):
        read(path)


def test_samples_without_a_samples_line_are_refused(tmp_path: Path) -> None:
    text = right_block().replace("SAMPLES\tGAZE", "XAMPLES\tGAZE")
    with pytest.raises(GazeError, match="no SAMPLES line"):
        read(asc(tmp_path / "a.asc", text))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "empty"),
        (b"SR_RESEARCH\x00\x01\x02", "binary"),
        (HEADER.encode(), "no START"),
        (b"START 1 RIGHT SAMPLES\nSAMPLES GAZE RIGHT\nEND 2\n", "no samples"),
    ],
)
def test_a_file_without_samples_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "a.asc").write_bytes(content)
    with pytest.raises(GazeError, match=problem):
        read(tmp_path / "a.asc")


def test_a_missing_file_is_a_gaze_error(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match=r"none\.asc"):
        read(tmp_path / "none.asc")


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.asc", HEADER, True),
        ("renamed.txt", HEADER, True),
        ("bare.txt", right_block(), True),
        ("messages.asc", "MSG\t990 hello\n", True),
        ("messages.txt", "MSG 990 hello\n1 2 3 4 5 6 7 0 0 0\n", False),
        ("table.csv", "time,x,y\n1,2,3\n", False),
        ("raw.edf", "** TYPE: EDF_FILE BINARY\n\x00", False),
    ],
)
def test_a_file_is_known_by_its_content(name: str, head: str, expected: bool) -> None:
    assert eyelink.matches(Path(name), head.encode(), ReadOptions()) is expected


VALID = (
    HEADER
    + block(
        ["left", "right"],
        range(1000, 1012),
        [gaze_of(12, 1), gaze_of(12, 2)],
        events=["SBLINK R 1003", "EBLINK R 1003\t1006\t4"],
    )
    + right_block(n=12, start=2000)
).encode()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid file after a few random cuts, insertions and replacements of bytes or lines."""
    cells = [b"", b".", b"inf", b"9" * 400, b"L", b"-1", b"x"]
    return damaged_lines(draw, VALID, b"\t", cells)


@settings(deadline=None, max_examples=80)
@given(damaged())
def test_a_damaged_file_is_read_or_refused_with_a_gaze_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.asc"
        path.write_bytes(content)
        eyelink.matches(path, content, ReadOptions())
        with contextlib.suppress(GazeError):
            recordings = read(path)
            assert recordings
            assert all(np.all(np.diff(recording.time_ms) >= 0) for recording in recordings)
