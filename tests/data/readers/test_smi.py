from __future__ import annotations

import contextlib
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from gazediffusion.data.readers import find_sources, smi
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.test_table import damage, edits, fuzz

COMMENTS = """\
## [iView]
## Converted from:\tC:\\study\\anna.idf
## Date:\t08.03.2023 09:25:20
## Version:\tIDF Converter 3.0.20
## Sample Rate:\t500
## [Run]
## Subject:\tP07
## Description:\tRun1
## [Calibration]
## Calibration Type:\t13-point
## Calibration Area:\t1680\t1050
## Calibration Point 0:\tPosition(840;525)
## [Geometry]
## Stimulus Dimension [mm]:\t474\t297
## Head Distance [mm]:\t700
## [Hardware Setup]
## Operating System :\t6.1
## [Presentation]
## Number of Samples:\t4
## Reversed:\tnone
## Format:\tLEFT, RIGHT, RAW, POR, MSG
##
"""
HEADER = (
    "Time\tType\tTrial\tL Raw X [px]\tL Raw Y [px]\tR Raw X [px]\tR Raw Y [px]\t"
    "L POR X [px]\tL POR Y [px]\tR POR X [px]\tR POR Y [px]\tTiming\tPupil Confidence\n"
)
ROWS = (
    "7441672000\tSMP\t1\t97.1\t84.5\t90.1\t80.5\t840.50\t525.25\t841.00\t526.00\t0\t1\n"
    "7441673500\tMSG\t1\t# Message: picture.jpg\n"
    "7441674000\tSMP\t1\t97.1\t84.5\t0.00\t0.00\t842.50\t527.25\t0.00\t0.00\t0\t1\n"
    "7441676000\tSMP\t1\t97.1\t84.5\t90.1\t80.5\t0.00\t300.00\t845.00\t0.00\t0\t1\n"
    "7441900000\tSMP\t2\t97.1\t84.5\t90.1\t80.5\t840.50\t525.25\t841.00\t526.00\t0\t1\n"
)
SAMPLES = COMMENTS + HEADER + ROWS
BEGAZE = """\
RecordingTime [ms],Trial,Stimulus,Participant,Category Right,Category Left,\
Point of Regard Right X [px],Point of Regard Right Y [px],\
Point of Regard Left X [px],Point of Regard Left Y [px]
1000.0,Trial001,a.jpg,P01,Separator,Separator,-,-,-,-
1000.2,Trial001,a.jpg,P01,Fixation,Fixation,10.5,20.5,11.5,21.5
1016.9,Trial001,a.jpg,P01,Blink,Blink,-,-,0.0,0.0
1033.6,Trial001,a.jpg,P01,Saccade,Saccade,12.5,22.5,13.5,23.5
"""


def write(folder: Path, text: str = SAMPLES, name: str = "anna Samples.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(path: Path, options: ReadOptions | None = None) -> list[Recording]:
    return list(smi.read(path, options or ReadOptions()))


def is_matched(path: Path) -> bool:
    return smi.matches(path, path.read_bytes(), ReadOptions())


def test_samples_have_the_rate_eyes_and_screen_of_the_comment_lines(tmp_path: Path) -> None:
    path = write(tmp_path)
    (source,) = find_sources([path])
    assert source.reader.NAME == "smi"
    first, second = source.read()
    assert (first.participant, first.trial, second.trial) == ("P07", "1", "2")
    assert first.rate_hz == 500
    assert first.screen == Screen(1680, 1050, 47.4, 29.7, 70.0)
    np.testing.assert_allclose(first.time_ms - first.time_ms[0], [0, 2, 4])
    np.testing.assert_array_equal(first.gaze_px["left"][:, 0], [840.5, 525.25])
    np.testing.assert_array_equal(first.gaze_px["right"][:, 0], [841, 526])
    assert first.facts["unit"].value == "px"
    assert first.facts["origin"].value == "top-left"
    assert first.facts["screen"].source == "stated by the file"


def test_messages_are_no_lost_samples_and_an_eye_at_zero_is_lost(tmp_path: Path) -> None:
    recording = read(write(tmp_path))[0]
    assert len(recording) == 3
    np.testing.assert_array_equal(np.isnan(recording.gaze_px["right"][0]), [False, True, False])
    # Only one axis at 0 is a place on the edge of the screen.
    np.testing.assert_array_equal(recording.gaze_px["left"][0], [840.5, 842.5, 0])


def test_one_eye_is_read_alone(tmp_path: Path) -> None:
    text = COMMENTS + (
        "Time\tType\tTrial\tR POR X [px]\tR POR Y [px]\n1000\tSMP\t1\t5.0\t6.0\n"
        "3000\tSMP\t1\t7.0\t8.0\n"
    )
    (recording,) = read(write(tmp_path, text))
    assert list(recording.gaze_px) == ["right"]


def test_pymovements_reads_the_same_gaze(tmp_path: Path) -> None:
    import pymovements

    names = "L POR X [px]\tL POR Y [px]\tL Pupil Diameter [mm]\tTiming\tPupil Confidence\tL Plane"
    header = f"Time\tType\tTrial\t{names}\tInfo\tL Event Info\tStimulus\n"
    rows = "".join(
        f"{1_000_000 + 2000 * i}\tSMP\t1\t{800 + i}.50\t{500 - i}.20\t4.0\t0\t1\t1\tFixation\t"
        "Fixation\ttest.bmp\n"
        for i in range(5)
    )
    path = write(tmp_path, COMMENTS.replace("[iView]", "[BeGaze]") + header + rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="pymovements")
        theirs = pymovements.gaze.from_begaze(path).samples
    (ours,) = read(path)
    np.testing.assert_allclose(theirs["time"].to_numpy(), ours.time_ms)
    expected = np.array(theirs["pixel"].to_list(), dtype=np.float32).T
    np.testing.assert_array_equal(ours.gaze_px["left"], expected)


def test_participant_and_screen_may_be_unstated(tmp_path: Path) -> None:
    text = SAMPLES.replace("P07", "").replace("1680\t1050", "0\t0")
    recording = read(write(tmp_path, text))[0]
    assert recording.participant == "anna"
    assert recording.screen is None


def test_begaze_columns_named_in_full_are_in_milliseconds(tmp_path: Path) -> None:
    path = write(tmp_path, BEGAZE, "raw.csv")
    assert is_matched(path)
    (recording,) = read(path)
    np.testing.assert_allclose(recording.time_ms, [1000.2, 1016.9, 1033.6])
    np.testing.assert_array_equal(recording.gaze_px["left"][0], [11.5, np.nan, 13.5])
    np.testing.assert_array_equal(recording.gaze_px["right"][1], [20.5, np.nan, 22.5])
    assert (recording.participant, recording.trial) == ("P01", "Trial001")


def test_errors_name_the_lines_of_the_file(tmp_path: Path) -> None:
    text = SAMPLES.replace("845.00", "oops")
    line = 1 + text[: text.index("oops")].count("\n")
    with pytest.raises(GazeError, match=rf"line {line}, column 'R POR X \[px\]': 'oops'"):
        read(write(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        COMMENTS + "Table Header for Fixations:\nEvent Type\tTrial\tNumber\tStart\tEnd\n",
        COMMENTS + HEADER.replace(" POR ", " CR1 "),
        "Time\tType\tTrial\tx\ty\n",
    ],
)
def test_events_and_other_tables_are_not_matched(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert not is_matched(path)
    with pytest.raises(GazeError):
        read(path)


@fuzz
@given(edits)
def test_damaged_export_is_read_or_refused(
    tmp_path: Path, changes: list[tuple[float, str, bytes]]
) -> None:
    path = write(tmp_path)
    path.write_bytes(damage(SAMPLES.encode(), changes))
    with contextlib.suppress(GazeError):
        is_matched(path)
        read(path)
