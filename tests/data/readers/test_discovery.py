"""Which files are read, and by whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from gazediffusion.data.readers import FORMATS, ReadOptions, find_sources
from gazediffusion.data.readers.options import Identity, identify
from gazediffusion.errors import GazeError

TABLE = "t_ms,x_px,y_px\n0,1,2\n4,2,3\n"


def names(sources: list[object]) -> list[str]:
    return [source.path.name for source in sources]  # type: ignore[attr-defined]


def test_a_folder_is_read_as_a_whole_and_other_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.csv", "a.csv", "deep/c.csv", ".hidden.csv"):
        (tmp_path / name).write_text(TABLE)
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / "participants.csv").write_text("name,age\nanna,30\n")
    assert names(list(find_sources([tmp_path]))) == ["a.csv", "b.csv", "c.csv"]


def test_a_glob_reads_what_it_matches(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b.csv"):
        (tmp_path / name).write_text(TABLE)
    assert names(list(find_sources([f"{tmp_path}/a*.csv"]))) == ["a1.csv", "a2.csv"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TABLE)
    assert len(find_sources([path, tmp_path, str(path)])) == 1


def test_a_folder_without_recordings_names_the_formats(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing here")
    with pytest.raises(GazeError, match=r"no recordings in this folder.*eyelink-asc"):
        find_sources([tmp_path])


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    (source,) = find_sources([tmp_path / "a.csv"], format="tobii")
    assert source.reader is FORMATS["tobii"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("extracted_waldo/participant_01.txt", Identity("01", "waldo")),
        ("Waldo_Ruj12.txt", Identity("Ruj12", "Waldo")),
        ("sub-07_task-reading_run-2.asc", Identity("07", "reading", "2")),
        ("sub-07_ses-1_task-dots_run-2_physio.tsv.gz", Identity("07", "dots", "1-2")),
        ("data/anna.csv", Identity("anna")),
    ],
)
def test_participants_and_tasks_are_found_in_file_names(path: str, expected: Identity) -> None:
    assert identify(Path(path), ReadOptions()) == expected


def test_a_pattern_finds_participant_task_and_trial() -> None:
    options = ReadOptions(participant_pattern=r"(?P<task>\w+)/p(?P<participant>\d+)-(?P<trial>\d)")
    assert identify(Path("dots/p12-3.csv"), options) == Identity("12", "dots", "3")


def test_a_pattern_that_matches_nothing_names_the_file() -> None:
    with pytest.raises(GazeError, match=r"a\.csv: `participant_pattern` .* does not match"):
        identify(Path("a.csv"), ReadOptions(participant_pattern=r"p(\d+)"))
