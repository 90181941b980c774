"""Participant, task and trial from paths; the experiment that pymovements saves beside samples."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gazediffusion.data.readers import ReadOptions, read_recordings
from gazediffusion.data.readers.options import (
    BY_BIDS,
    BY_FOLDER,
    BY_PATTERN,
    Identity,
    identify,
    identities_by_folder,
)
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import TABLE, assert_found


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("extracted_waldo/participant_01.txt", Identity("01", "waldo")),
        ("Waldo_Ruj12.txt", Identity("Ruj12", "Waldo")),
        ("sub-07_task-reading_run-2.asc", Identity("07", "reading", "2", BY_BIDS)),
        ("sub-07_ses-1_task-dots_run-2_physio.tsv.gz", Identity("07", "dots", "1-2", BY_BIDS)),
        ("data/anna.csv", Identity("anna")),
        ("data/anna.csv.gz", Identity("anna")),
        ("P01_reading.csv", Identity("01", "reading")),
        ("P01_reading_2.csv", Identity("01", "reading", "2")),
        ("subject3_trial12.asc", Identity("3", trial="trial12")),
    ],
)
def test_participants_and_tasks_are_found_in_file_names(path: str, expected: Identity) -> None:
    assert identify(Path(path), ReadOptions()) == expected


def test_a_pattern_finds_participant_task_and_trial() -> None:
    options = ReadOptions(participant_pattern=r"(?P<task>\w+)/p(?P<participant>\d+)-(?P<trial>\d)")
    assert identify(Path("dots/p12-3.csv"), options) == Identity("12", "dots", "3", BY_PATTERN)
    with pytest.raises(GazeError, match=r"a\.csv: `participant_pattern` .* does not match"):
        identify(Path("a.csv"), options)


@pytest.mark.parametrize(
    ("paths", "participants", "trials"),
    [
        (["p1/gaze.csv", "p2/gaze.csv"], ["p1", "p2"], ["gaze", "gaze"]),
        (["anna/gaze.csv", "bert/gaze.csv"], ["anna", "bert"], ["gaze", "gaze"]),
        (["p1/one.csv", "p1/two.csv"], ["p1", "p1"], ["one", "two"]),
        (
            ["anna/000/exports/gaze.csv", "anna/001/exports/gaze.csv", "bert/000/exports/gaze.csv"],
            ["anna", "anna", "bert"],
            ["000-gaze", "001-gaze", "000-gaze"],
        ),
    ],
)
def test_files_of_one_name_are_separated_by_their_folders(
    tmp_path: Path, paths: list[str], participants: list[str], trials: list[str]
) -> None:
    given = [tmp_path / "study" / path for path in paths]
    for path in given:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TABLE)
    found = list(read_recordings([tmp_path / "study"]))
    assert [one.participant for one in found] == participants
    assert [one.trial for one in found] == trials
    assert {one.facts["participant"].source for one in found} == {BY_FOLDER}


def test_names_of_participants_are_stronger_than_folders_of_tasks() -> None:
    paths = [Path(f"extracted_{task}/participant_01.txt") for task in ("waldo", "pixel")]
    options = ReadOptions(by_folder=identities_by_folder(paths))
    found = [identify(path, options) for path in paths]
    assert found == [Identity("01", "waldo"), Identity("01", "pixel")]


@pytest.mark.parametrize("extension", ["feather", "csv"])
@pytest.mark.parametrize(("origin", "first"), [("upper left", (1, 4)), ("center", (640.5, 515.5))])
def test_a_folder_saved_by_pymovements_is_read_with_its_screen_rate_and_origin(
    tmp_path: Path, extension: str, origin: str, first: tuple[float, float]
) -> None:
    pm = pytest.importorskip("pymovements")
    samples = {"time": [0, 2], "xl": [1.0, 2], "yl": [4.0, 5], "xr": [7.0, 8], "yr": [10.0, 11]}
    pm.Gaze(
        pl.DataFrame(samples),
        experiment=pm.Experiment(1280, 1024, 38, 30, 68, origin, 500),
        pixel_columns=["xl", "yl", "xr", "yr"],
    ).save(tmp_path / "p1", extension=extension, verbose=0)
    (recording,) = read_recordings([tmp_path / "p1"])
    left = [[first[0], first[0] + 1], [first[1], first[1] + 1]]
    right = [[one + 6 for one in axis] for axis in left]
    screen = Screen(1280, 1024, 38, 30, 68)
    assert_found(recording, screen=screen, rate_hz=500, left=left, right=right)
    for content in ("[1, 2", "just words", "screen: {width_px: a, height_px: b}"):
        (tmp_path / "p1" / "experiment.yaml").write_text(content)
        said = r"experiment\.yaml: this is no experiment of pymovements"
        with pytest.raises(GazeError, match=said):
            list(read_recordings([tmp_path / "p1"]))
