"""Participant, task and trial from paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from gazediffusion.data.readers import find_sources
from gazediffusion.data.readers.options import (
    BY_BIDS,
    BY_FOLDER,
    BY_PATTERN,
    Identity,
    ReadOptions,
    identify,
    identities_by_folder,
)
from gazediffusion.errors import GazeError


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
    pattern = r"(?P<task>\w+)/p(?P<participant>\d+)-(?P<trial>\d)"
    expected = Identity("12", "dots", "3", BY_PATTERN)
    assert identify(Path("dots/p12-3.csv"), ReadOptions(participant_pattern=pattern)) == expected


def test_a_pattern_that_matches_nothing_names_the_file() -> None:
    with pytest.raises(GazeError, match=r"a\.csv: `participant_pattern` .* does not match"):
        identify(Path("a.csv"), ReadOptions(participant_pattern=r"p(\d+)"))


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
    paths: list[str], participants: list[str], trials: list[str]
) -> None:
    given = [Path("study") / path for path in paths]
    by_folder = identities_by_folder(given)
    found = [identify(path, ReadOptions(by_folder=by_folder)) for path in given]
    assert [one.participant for one in found] == participants
    assert [one.trial for one in found] == trials
    assert {one.source for one in found} == {BY_FOLDER}


def test_names_of_participants_are_stronger_than_folders_of_tasks() -> None:
    paths = [Path(f"extracted_{task}/participant_01.txt") for task in ("waldo", "pixel")]
    found = [identify(path, ReadOptions(by_folder=identities_by_folder(paths))) for path in paths]
    assert found == [Identity("01", "waldo"), Identity("01", "pixel")]


def test_two_folders_are_two_participants(tmp_path: Path) -> None:
    for name in ("p1", "p2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gaze.csv").write_text("t_ms,x_px,y_px\n0,1,2\n4,2,3\n")
    recordings = [one for source in find_sources([tmp_path]) for one in source.read()]
    assert [one.participant for one in recordings] == ["p1", "p2"]
    assert recordings[0].facts["participant"].source == BY_FOLDER
