"""Which files are read, and by whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from gazediffusion.data.readers import FORMATS, find_sources
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
