from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazediffusion.data.preparing import prepare
from gazediffusion.data.reading import read
from gazediffusion.data.scanpaths import RecordedTargets, read_targets
from gazediffusion.errors import GazeError
from gazediffusion.settings import PrepareConfig
from tests.conftest import SCREEN, MakeRecording, RunCommand, wandering_gaze


def written(folder: Path, text: str) -> Path:
    path = folder / "dots.csv"
    path.write_text(text)
    return path


# As of the real table: the trial is one of several columns that tell recordings apart.
TABLE = "participant,trial,t_ms,x_px,y_px\np0,7,1000,640,360\np0,7,2500,960,180\np9,7,0,1,1\n"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two participants with a session and a trial, 2,500 samples at 250 Hz each."""
    rows = ["participant,session,trial,t_ms,x_px,y_px,label"]
    for k in range(2):
        gaze = wandering_gaze(2500, seed=k).T.tolist()
        rows += [
            f"p{k},1,{7 + k},{4 * n},{x:.1f},{y:.1f},{'FSPB'[n // 100 % 4]}"
            for n, (x, y) in enumerate(gaze)
        ]
    path = tmp_path / "study.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_targets_are_read_by_name_with_their_times(tmp_path: Path) -> None:
    first, second = read_targets(written(tmp_path, TABLE), SCREEN)
    assert (first.name, second.name) == ("p0-7", "p9-7")
    assert first.time_ms.tolist() == [1000, 2500]
    assert (first.x.tolist(), first.y.tolist()) == ([0.0, 0.5], [0.0, -0.5])
    path = written(tmp_path, "time_s,x,y\n0,0,0\n1.5,5,2\n")
    (moved,) = read_targets(path, SCREEN, unit="deg", origin="center-up")
    assert moved.time_ms.tolist() == [0, 1500]
    assert moved.x[1] > 0
    assert moved.y[1] < 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t_ms,x,y\n0,1,1\n1000,5000,1\n", r"line 3: \(5000, 1\) px from top-left is off the"),
        (
            "t_ms,x,y\n0,1,1\n2000,1,1\n1000,1,1\n",
            "line 4: the time is missing, infinite, or not after",
        ),
        ("t_ms,x,y\n0,1,1\n0,9,9\n", "line 3: the time is missing, infinite, or not after"),
        ("t_ms,x,y\n0,1,1\ninf,9,9\n", "line 3: the time is missing, infinite"),
        ("t_ms,x,y\n0,1,1\n,9,9\n", "line 3: the time is missing, infinite, or not after"),
        ("t_ms,x,y\n0,1,nan\n", "line 2: the position is missing"),
        ("t_ms,x,y\n0,1,here\n", "line 2, column 'y': 'here' is no number"),
        ("t,x,y\n0,1,1\n1,9,9\n", "'t' does not tell its unit .*name it t_s or t_ms"),
        ("x,y\n1,1\n", "no onset column among x, y"),
        ("t_ms,x,y\n", "there are no rows"),
        ("", "the file is empty"),
    ],
)
def test_bad_targets_are_refused_in_one_line_with_their_row(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(GazeError, match=f"dots.csv.*{words}"):
        read_targets(written(tmp_path, text), SCREEN)


def test_a_recording_gets_the_target_of_the_last_jump_and_none_before_the_first(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    targets = RecordedTargets(written(tmp_path, TABLE))
    recording = make_recording(participant="p0", trial="1-7")
    number = targets.number_of(recording)
    assert number is not None
    found = targets.given_to(recording, number).targets_px
    assert found is not None
    assert np.isnan(found[:, :250]).all()
    np.testing.assert_array_equal(found[:, 250:625], np.repeat([[640], [360]], 375, axis=1))
    np.testing.assert_array_equal(found[:, 625:], np.repeat([[960], [180]], 1875, axis=1))
    for participant, trial in (("p1", "7"), ("p0", "17"), ("p0", "7-1")):
        recording = make_recording(participant=participant, trial=trial)
        assert targets.number_of(recording) is None
    assert targets.described({number})["rows_without_gaze"] == 1


def test_targets_without_a_trial_are_of_all_trials(
    make_recording: MakeRecording, tmp_path: Path
) -> None:
    targets = RecordedTargets(written(tmp_path, "t_ms,x_px,y_px\n0,640,360\n"))
    assert targets.number_of(make_recording(trial="3")) is not None


def test_windows_have_labels_and_targets_from_files_to_files(
    run: RunCommand, study: Path, tmp_path: Path
) -> None:
    output = tmp_path / "w.safetensors"
    given = ("--targets", written(tmp_path, TABLE), "--screen", "1280x720", "--val-fraction", 0)
    code, said, _ = run("prepare", study, "-o", output, "--seconds", 2, *given)
    assert code == 0
    assert "labels: 0.0% no label, 28.0% fixation, 24.0% saccade" in said
    assert "targets: known for 45.0% of the samples; 1 rows without gaze" in said
    from gazediffusion.data.windows import Windows

    windows = Windows.load(output)
    expected = np.tile(np.arange(2500) // 100 % 4 + 1, 2)
    assert windows.labels is not None
    np.testing.assert_array_equal(windows.labels, expected)
    np.testing.assert_array_equal(windows.cut_labels()[1], expected[250:750])
    targets = windows.cut_targets()
    assert targets.shape == (18, 2, 500)
    np.testing.assert_array_equal(targets[2, :, 0], [0, 0])
    np.testing.assert_array_equal(targets[2, :, 200], [0.5, -0.5])
    assert np.isnan(targets[0, :, :250]).all()
    assert np.isnan(targets[9:]).all()  # the participant without targets
    assert windows.provenance["targets"]["name"] == "dots.csv"


def test_targets_of_no_recording_are_refused_with_their_number_and_the_first(
    study: Path, tmp_path: Path
) -> None:
    path = written(tmp_path, TABLE.replace("p0,7", "p0,8"))
    with pytest.raises(
        GazeError, match=r"dots.csv: 3 rows of targets, and none is of a recording.*p0, trial 8"
    ):
        prepare(read(study, screen=SCREEN), PrepareConfig(seconds=2), targets=path)


def test_targets_off_the_screen_are_refused_with_file_and_row(study: Path, tmp_path: Path) -> None:
    path = written(tmp_path, TABLE.replace("960,180", "9600,180"))
    with pytest.raises(GazeError, match=r"dots.csv, line 3: \(9600, 180\) px"):
        prepare(read(study, screen=SCREEN), PrepareConfig(seconds=2), targets=path)
