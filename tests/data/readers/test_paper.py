from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gazediffusion.data.readers import ReadOptions, paper
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import PAPER, assert_found, paper_samples
from tests.data.readers.files import matched as taken
from tests.data.readers.files import read as read_as
from tests.data.readers.files import write as written


def read(path: Path, **options: Screen) -> list[Recording]:
    return read_as(path, "columns", **options)


def matches(path: Path) -> bool:
    return taken(path, "columns")


def test_the_public_rows_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "extracted_waldo").mkdir()
    path = written(tmp_path / "extracted_waldo", PAPER, "participant_01.txt")
    assert matches(path)
    (recording,) = read(path)
    assert_found(
        recording,
        who=("01", "waldo", "0"),
        ms=[688355663, 688355664],
        left=[[685.4, 683.3], [606.2, 605.3]],
        right=[[662.8, 661.2], [583.2, 581.6]],
        screen=Screen(1920, 1080),
        rate_hz=None,
    )


@pytest.mark.parametrize("transposed", [False, True], ids=["upright", "transposed"])
@pytest.mark.parametrize("delimiter", [" ", "\t", "   "], ids=["space", "tab", "spaces"])
@pytest.mark.parametrize("n_columns", [7, 10])
def test_savetxt_round_trips_in_both_orientations(
    tmp_path: Path, transposed: bool, delimiter: str, n_columns: int
) -> None:
    values = paper_samples(2000, n_columns)
    values[5:8, 1:7] = np.nan
    values[5:8, -3:] = [0, 1, 1]
    path = tmp_path / "a.txt"
    np.savetxt(path, values.T if transposed else values, delimiter=delimiter)
    assert matches(path)
    (recording,) = read(path)
    np.testing.assert_array_equal(recording.time_ms, values[:, 0])
    right = [4, 5] if n_columns == 10 else [1, 2]
    np.testing.assert_array_equal(recording.gaze_px["right"], values[:, right].T.astype("f4"))
    assert list(recording.gaze_px) == (["left", "right"] if n_columns == 10 else ["right"])
    if n_columns == 10:
        np.testing.assert_array_equal(recording.gaze_px["left"], values[:, [1, 2]].T.astype("f4"))


@pytest.mark.parametrize("missing", [".", "nan", "NaN"])
def test_missing_gaze_is_nan(tmp_path: Path, missing: str) -> None:
    path = written(tmp_path, PAPER.replace("683.3", missing).replace("581.6", missing), "a.txt")
    assert matches(path)
    (recording,) = read(path)
    assert np.isnan(recording.gaze_px["left"]).tolist() == [[False, True], [False, False]]
    assert np.isnan(recording.gaze_px["right"]).tolist() == [[False, False], [False, True]]


def test_messages_and_blank_lines_are_skipped_anywhere(tmp_path: Path) -> None:
    first, second, _ = PAPER.split("\n")
    text = f"MSG 1 start\n\n{first}\r\nMSG\t688355664 TRIAL 2\n{second}\nMSG end"
    path = written(tmp_path, text, "a.txt")
    assert matches(path)
    (recording,) = read(path)
    np.testing.assert_array_equal(
        recording.gaze_px["left"],
        read(written(tmp_path, PAPER, "b.txt"))[0].gaze_px["left"],
    )


def test_zeros_before_the_first_event_of_an_eye_are_no_blinks(tmp_path: Path) -> None:
    values = paper_samples(8)
    values[:, 8] = [0, 0, 1, 0, 0, 2, np.nan, 0]
    values[:, 9] = [0, 0, 0, 0, 0, 0, 0, 0]
    np.savetxt(tmp_path / "a.txt", values)
    (recording,) = read(tmp_path / "a.txt")
    assert np.flatnonzero(recording.is_blink["left"]).tolist() == [3, 4, 7]
    assert not recording.is_blink["right"].any()


def test_a_jump_of_the_clock_starts_a_trial_and_the_label_is_held_across_it(tmp_path: Path) -> None:
    values = paper_samples(30)
    values[12:, 0] += 5000
    values[20:, 0] += 5000
    values[12:15, 9] = 0
    np.savetxt(tmp_path / "a.txt", values)
    trials = read(tmp_path / "a.txt")
    assert [trial.trial for trial in trials] == ["0", "1", "2"]
    np.testing.assert_array_equal(np.concatenate([t.time_ms for t in trials]), values[:, 0])
    # The event that makes these zeros blinks lies in the first trial.
    assert np.flatnonzero(trials[1].is_blink["right"]).tolist() == [0, 1, 2]
    gaze = np.concatenate([t.gaze_px["right"] for t in trials], axis=1)
    np.testing.assert_array_equal(gaze, values[:, [4, 5]].T.astype(np.float32))


def test_the_last_category_belongs_to_a_monocular_file(tmp_path: Path) -> None:
    values = paper_samples(6, 7)
    values[:, 5] = [1, 0, 0, 0, 0, 0]
    values[:, 6] = [1, 1, 0, 0, 1, 1]
    np.savetxt(tmp_path / "a.txt", values)
    (recording,) = read(tmp_path / "a.txt")
    assert np.flatnonzero(recording.is_blink["right"]).tolist() == [2, 3]


def test_a_given_screen_overrides_the_inferred_one(tmp_path: Path) -> None:
    given = Screen(1280, 720, 50.0, 30.0, 60.0)
    (recording,) = read(written(tmp_path, PAPER, "a.txt"), screen=given)
    assert recording.screen == given


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MSG 1\n1 2 3 4\n", r"line 2: 4 columns; expected 10 .* or 7"),
        (PAPER + "\n688355665 1 2 3\n", r"line 4: 4 columns, but 10 in line 1"),
        (PAPER.replace("605.3", "6o5.3"), r"line 2, column 3: '6o5\.3' is not a number"),
        (PAPER.replace("605.3", "1e99"), r"line 2, column 3: '1e99' is not a number"),
        (PAPER.replace("688355664", "688355662"), r"line 2, column 1: time runs backwards"),
        (PAPER.replace("688355664", "."), r"line 2, column 1: the time is missing"),
        ("time x y\n" + PAPER, r"line 1: 3 columns"),
        ("MSG 1 nothing else\n", "no samples"),
        ("", "empty"),
        ("a\x00b", "binary"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text, "a.txt")
    with pytest.raises(GazeError, match=rf"a\.txt.*{problem}"):
        read(path)


@pytest.mark.parametrize(
    ("row", "sample", "cell", "problem"),
    [(3, 4, "x", "line 4, column 5: 'x'"), (0, 4, "1", "line 1, column 5: time runs backwards")],
)
def test_a_bad_cell_of_a_transposed_file_is_named(
    tmp_path: Path, row: int, sample: int, cell: str, problem: str
) -> None:
    cells = paper_samples(20).T.astype(str)
    cells[row, sample] = cell
    path = written(tmp_path, "\n".join(" ".join(line) for line in cells), "a.txt")
    with pytest.raises(GazeError, match=problem):
        read(path)


def test_a_transposed_file_cut_short_is_refused(tmp_path: Path) -> None:
    lines = [" ".join(line) for line in paper_samples(20).T.astype(str)]
    lines[-1] = lines[-1].rsplit(" ", 3)[0]
    with pytest.raises(GazeError, match="line 10: 17 columns, but 20 in line 1"):
        read(written(tmp_path, "\n".join(lines), "a.txt"))


@pytest.mark.parametrize(
    "text",
    [
        PAPER.replace(" ", ","),
        "t xl yl pl xr yr pr u cl cr\n" + PAPER,
        "1 2 3 4\n5 6 7 8\n",
        "MSG 1 nothing else\n",
        "seven plain words stand in this line\n" * 3,
        " ".join(["1.5"] * 50),
        "1 2 3 4\n" * 10,
        "1 2 3 4 5 6 label\n" * 3,
        PAPER + "\0",
        "",
    ],
)
def test_other_text_is_not_taken(tmp_path: Path, text: str) -> None:
    assert not matches(written(tmp_path, text, "a.txt"))


def test_a_long_transposed_file_is_known_although_its_head_ends_within_a_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    np.savetxt(path, paper_samples(6000).T)
    assert b"\n" not in path.read_bytes()[: 1 << 16]
    assert matches(path)
    path.write_bytes(b"MSG 1 start\n" + path.read_bytes())
    assert matches(path)
    np.savetxt(path, paper_samples(6000).T[:6])
    assert not matches(path)


def test_other_endings_and_missing_files_are_not_taken(tmp_path: Path) -> None:
    assert not matches(written(tmp_path, PAPER, "a.json"))
    long_line = b"1.5 " * 50
    assert not paper.matches(tmp_path / "none.txt", long_line, ReadOptions())
