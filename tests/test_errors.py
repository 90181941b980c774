from __future__ import annotations

from pathlib import Path

from gazediffusion.errors import GazeError, suggestion


def test_error_names_path_place_problem_and_remedy_in_one_line() -> None:
    error = GazeError("no\nnumber", path=Path("a.csv"), place="line 3", remedy="fix it")
    assert str(error) == "a.csv, line 3: no number; fix it"


def test_error_without_place_is_the_problem_alone() -> None:
    assert str(GazeError("too few participants")) == "too few participants"


def test_suggestion_finds_the_nearest_name_whatever_its_case() -> None:
    assert suggestion("gazex", ["Time", "GazeX", "GazeY"]) == "did you mean 'GazeX'?"


def test_suggestion_lists_what_is_known_when_nothing_is_near() -> None:
    assert suggestion("zzz", ["reading", "dots"]) == "known are: reading, dots"
