from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.errors import GazeError
from tests.data.readers.test_table import long_frame, read_all, read_one, write

WORDS = ["F", "s", "P", "B", "N", "fixation", "Saccade", "PURSUIT", "smooth pursuit", "blink"]
CLASSES = [1, 2, 3, 4, 4, 1, 2, 3, 3, 4]


def labelled(words: list[str], name: str = "label") -> str:
    rows = [f"{4 * k},{k},1,{word}" for k, word in enumerate(words)]
    return "\n".join([f"t_ms,x_px,y_px,{name}", *rows]) + "\n"


def test_classes_are_numbered_from_one() -> None:
    assert EVENT_CLASSES == ("fixation", "saccade", "pursuit", "noise")


@pytest.mark.parametrize(
    "name",
    ["label", "labels", "Label", "event", "event_label", "EventType", "hand_labeller_final"],
)
def test_a_column_of_labels_is_recognised_and_a_fact(tmp_path: Path, name: str) -> None:
    recording = read_one(write(tmp_path, labelled(WORDS, name)))
    assert recording.labels is not None
    assert recording.labels.dtype == np.uint8
    assert recording.labels.tolist() == CLASSES
    assert recording.facts["labels"] == (f"column {name}", "column names")


def test_empty_and_unknown_cells_are_no_label(tmp_path: Path) -> None:
    words = ["F", "", "unassigned", "-", "nan", "trigger", "S"]
    labels = read_one(write(tmp_path, labelled(words))).labels
    assert labels is not None
    assert labels.tolist() == [1, 0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    "words", [["left", "right", "F"], ["1", "2", "1"], ["N", "N", "y"], ["", "", ""]]
)
def test_a_column_of_something_else_is_passed_over(tmp_path: Path, words: list[str]) -> None:
    recording = read_one(write(tmp_path, labelled(words)))
    assert recording.labels is None
    assert "labels" not in recording.facts


def test_the_column_that_holds_labels_is_found_among_several(tmp_path: Path) -> None:
    text = "t_ms,x_px,y_px,event,label\n0,1,1,5,F\n4,2,2,6,S\n8,3,3,7,S\n"
    recording = read_one(write(tmp_path, text))
    assert recording.labels is not None
    assert recording.labels.tolist() == [1, 2, 2]
    assert recording.facts["labels"].value == "column label"


def test_parquet_recordings_keep_their_own_labels_and_some_have_none(tmp_path: Path) -> None:
    labels = ["F", "S", None, "P", "B", "F", *[None] * 6]
    frame = long_frame().with_columns(pl.Series("label", labels))
    frame.write_parquet(tmp_path / "long.parquet")
    found = [one.labels for one in read_all(tmp_path / "long.parquet")]
    assert [None if one is None else one.tolist() for one in found] == [
        [1, 2, 0], [3, 4, 1], None, None,
    ]  # fmt: skip


def test_labels_under_another_name_are_named_by_the_user(tmp_path: Path) -> None:
    path = write(tmp_path, labelled(["F", "S", "S"], "mine"))
    assert read_one(path).labels is None
    labels = read_one(path, columns={"label": "mine"}).labels
    assert labels is not None
    assert labels.tolist() == [1, 2, 2]
    with pytest.raises(GazeError, match="column 'x_px' holds no event labels"):
        read_one(path, columns={"label": "x_px"})
