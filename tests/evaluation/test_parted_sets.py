from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import synthetic_sets
from gazediffusion.evaluation.parted_sets import Engine, PartedSet, PartReader, is_in_parts
from gazediffusion.evaluation.set_loading import load_set
from gazediffusion.geometry import Screen
from tests.conftest import SCREEN
from tests.parts import walks, write_parts

OTHER = Screen(1680, 1050, 47.4, 29.7, 55.0)
LIKE = Windows.from_array(walks(30, 250), 250.0, SCREEN)


def two_tasks(n: int = 41, length: int = 250) -> Windows:
    is_reading = np.random.default_rng(3).random(n) < 0.3
    return Windows.from_array(
        walks(n, length),
        250.0,
        [OTHER if one else SCREEN for one in is_reading],
        tasks=["reading" if one else "movies" for one in is_reading],
    )


def opened(folder: Path, like: Windows = LIKE) -> PartedSet:
    reader = PartReader.of(folder, like, list(like.tasks), None)
    return PartedSet.open("ours", reader, Engine())


def lost_windows() -> Windows:
    windows = two_tasks()
    gaze = windows.gaze.copy()
    gaze[:, [300, 301, 2600]] = np.nan  # in windows 1 and 10
    return replace(windows, gaze=gaze)


SETS: dict[str, tuple[Windows, dict[str, Any]]] = {
    "two tasks": (two_tasks(), {}),
    "with losses": (lost_windows(), {"losses": {}}),
    "longer than a window": (two_tasks(13, 600), {}),
    "on a grid": (two_tasks(), {"grid_px": 0.1}),
}


@pytest.mark.parametrize("name", SETS)
def test_windows_of_parts_are_those_of_the_folder_read_at_once(name: str, tmp_path: Path) -> None:
    windows, card = SETS[name]
    folder = write_parts(tmp_path / "parts", windows, 5, **card)
    assert is_in_parts(folder)
    at_once = load_set(folder, "synthetic", LIKE)
    found = opened(folder)
    read = found.windows(found.order, Engine())
    assert np.array_equal(read.cut(), at_once.cut())
    assert read.grid_px == at_once.grid_px
    assert list(read.identity["task"]) == list(at_once.identity["task"])
    assert [read.screens[k] for k in read.screen_index] == [
        at_once.screens[k] for k in at_once.screen_index
    ]
    assert read.provenance.get("left_out") == at_once.provenance.get("left_out")
    assert ("left_out" in read.provenance) == (name in ("with losses",))


def test_windows_of_a_higher_rate_are_low_passed_as_those_of_the_folder(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "parts", two_tasks(), 6)
    like = Windows.from_array(walks(30, 60), 60.0, SCREEN)
    found, at_once = opened(folder, like), load_set(folder, "synthetic", like)
    read = found.windows(found.order, Engine())
    assert np.array_equal(read.cut(), at_once.cut())
    assert read.provenance["resampled"] == at_once.provenance["resampled"]
    with pytest.raises(GazeError, match="parts is at 250 Hz and the real gaze at 500 Hz"):
        opened(folder, Windows.from_array(walks(3, 500), 500.0, SCREEN))


def test_the_drawn_windows_are_those_that_an_evaluation_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_parts(tmp_path / "parts", two_tasks(), 8)
    monkeypatch.setattr("gazediffusion.evaluation.gaze_sets.MAX_WINDOWS", 12)
    found, at_once = opened(folder), load_set(folder, "synthetic", LIKE)
    (expected,) = synthetic_sets({"ours": at_once}, 5, None)
    drawn = found.windows(found.drawn(5, 12), Engine())
    assert np.array_equal(drawn.cut(), expected.gaze)
    (of_task,) = synthetic_sets({"ours": at_once.of_task("reading")}, 5, None)
    reading = found.of_tasks(["reading"])
    assert np.array_equal(reading.windows(reading.drawn(5, 12), Engine()).cut(), of_task.gaze)


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "parts", two_tasks(), 20)
    (folder / "part-000001.parquet").unlink()
    with pytest.raises(GazeError, match=r"part-000001.parquet: a part of the set is missing"):
        opened(folder)
    assert not is_in_parts(tmp_path)
