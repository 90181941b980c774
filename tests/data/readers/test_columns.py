from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gazediffusion.data.readers import paper
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.damage import damaged_lines

# The first rows of a public file of the dataset.
SEEN = """\
688355663 685.4 606.2 652.0 662.8 583.2 689.0 0.0 0 0
688355664 683.3 605.3 653.0 661.2 581.6 690.0 0.0 0 0
"""


def samples(n: int = 30, n_columns: int = 10, start: float = 688355663) -> NDArray[np.float64]:
    """Random samples (n, n_columns) on a 1000 Hz clock, all of them labelled fixation."""
    values = np.random.default_rng(0).uniform(100, 900, (n, n_columns))
    values[:, 0] = start + np.arange(n)
    values[:, -3:] = [0, 1, 1]
    return values


def read(path: Path, options: ReadOptions | None = None) -> list[Recording]:
    return list(paper.read(path, options or ReadOptions()))


def matches(path: Path) -> bool:
    return paper.matches(path, path.read_bytes()[: 1 << 16], ReadOptions())


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_public_rows_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "extracted_waldo").mkdir()
    path = written(tmp_path / "extracted_waldo" / "participant_01.txt", SEEN)
    assert matches(path)
    (recording,) = read(path)
    assert (recording.participant, recording.task, recording.trial) == ("01", "waldo", "0")
    assert recording.time_ms.tolist() == [688355663, 688355664]
    left = np.array([[685.4, 683.3], [606.2, 605.3]], dtype=np.float32)
    right = np.array([[662.8, 661.2], [583.2, 581.6]], dtype=np.float32)
    np.testing.assert_array_equal(recording.gaze_px["left"], left)
    np.testing.assert_array_equal(recording.gaze_px["right"], right)
    assert recording.screen == Screen(1920, 1080)
    assert recording.rate_hz is None


@pytest.mark.parametrize("transposed", [False, True], ids=["upright", "transposed"])
@pytest.mark.parametrize("delimiter", [" ", "\t", "   "], ids=["space", "tab", "spaces"])
@pytest.mark.parametrize("n_columns", [7, 10])
def test_savetxt_round_trips_in_both_orientations(
    tmp_path: Path, transposed: bool, delimiter: str, n_columns: int
) -> None:
    values = samples(2000, n_columns)
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
    path = written(tmp_path / "a.txt", SEEN.replace("683.3", missing).replace("581.6", missing))
    assert matches(path)
    (recording,) = read(path)
    assert np.isnan(recording.gaze_px["left"]).tolist() == [[False, True], [False, False]]
    assert np.isnan(recording.gaze_px["right"]).tolist() == [[False, False], [False, True]]


def test_messages_and_blank_lines_are_skipped_anywhere(tmp_path: Path) -> None:
    first, second, _ = SEEN.split("\n")
    text = f"MSG 1 start\n\n{first}\r\nMSG\t688355664 TRIAL 2\n{second}\nMSG end"
    path = written(tmp_path / "a.txt", text)
    assert matches(path)
    (recording,) = read(path)
    np.testing.assert_array_equal(
        recording.gaze_px["left"],
        read(written(tmp_path / "b.txt", SEEN))[0].gaze_px["left"],
    )


def test_zeros_before_the_first_event_of_an_eye_are_no_blinks(tmp_path: Path) -> None:
    values = samples(8)
    values[:, 8] = [0, 0, 1, 0, 0, 2, np.nan, 0]
    values[:, 9] = [0, 0, 0, 0, 0, 0, 0, 0]
    np.savetxt(tmp_path / "a.txt", values)
    (recording,) = read(tmp_path / "a.txt")
    assert np.flatnonzero(recording.is_blink["left"]).tolist() == [3, 4, 7]
    assert not recording.is_blink["right"].any()


def test_a_jump_of_the_clock_starts_a_trial_and_the_label_is_held_across_it(tmp_path: Path) -> None:
    values = samples(30)
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
    values = samples(6, 7)
    values[:, 5] = [1, 0, 0, 0, 0, 0]
    values[:, 6] = [1, 1, 0, 0, 1, 1]
    np.savetxt(tmp_path / "a.txt", values)
    (recording,) = read(tmp_path / "a.txt")
    assert np.flatnonzero(recording.is_blink["right"]).tolist() == [2, 3]


def test_a_given_screen_overrides_the_inferred_one(tmp_path: Path) -> None:
    given = Screen(1280, 720, 50.0, 30.0, 60.0)
    (recording,) = read(written(tmp_path / "a.txt", SEEN), ReadOptions(screen=given))
    assert recording.screen == given


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MSG 1\n1 2 3 4\n", r"line 2: 4 columns; expected 10 .* or 7"),
        (SEEN + "\n688355665 1 2 3\n", r"line 4: 4 columns, but 10 in line 1"),
        (SEEN.replace("605.3", "6o5.3"), r"line 2, column 3: '6o5\.3' is not a number"),
        (SEEN.replace("605.3", "1e99"), r"line 2, column 3: '1e99' is not a number"),
        (SEEN.replace("688355664", "688355662"), r"line 2, column 1: time runs backwards"),
        (SEEN.replace("688355664", "."), r"line 2, column 1: the time is missing"),
        ("time x y\n" + SEEN, r"line 1: 3 columns"),
        ("MSG 1 nothing else\n", "no samples"),
        ("", "empty"),
        ("a\x00b", "binary"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path / "a.txt", text)
    with pytest.raises(GazeError, match=rf"a\.txt.*{problem}"):
        read(path)


@pytest.mark.parametrize(
    ("row", "sample", "cell", "problem"),
    [(3, 4, "x", "line 4, column 5: 'x'"), (0, 4, "1", "line 1, column 5: time runs backwards")],
)
def test_a_bad_cell_of_a_transposed_file_is_named(
    tmp_path: Path, row: int, sample: int, cell: str, problem: str
) -> None:
    cells = samples(20).T.astype(str)
    cells[row, sample] = cell
    path = written(tmp_path / "a.txt", "\n".join(" ".join(line) for line in cells))
    with pytest.raises(GazeError, match=problem):
        read(path)


def test_a_transposed_file_cut_short_is_refused(tmp_path: Path) -> None:
    lines = [" ".join(line) for line in samples(20).T.astype(str)]
    lines[-1] = lines[-1].rsplit(" ", 3)[0]
    with pytest.raises(GazeError, match="line 10: 17 columns, but 20 in line 1"):
        read(written(tmp_path / "a.txt", "\n".join(lines)))


@pytest.mark.parametrize(
    "text",
    [
        SEEN.replace(" ", ","),
        "t xl yl pl xr yr pr u cl cr\n" + SEEN,
        "1 2 3 4\n5 6 7 8\n",
        "MSG 1 nothing else\n",
        "seven plain words stand in this line\n" * 3,
        " ".join(["1.5"] * 50),
        "1 2 3 4\n" * 10,
        "1 2 3 4 5 6 label\n" * 3,
        SEEN + "\0",
        "",
    ],
    ids=[
        "commas",
        "header",
        "four columns",
        "messages",
        "words",
        "lone line",
        "ten short lines",
        "last column of words",
        "binary",
        "empty",
    ],
)
def test_other_text_is_not_taken(tmp_path: Path, text: str) -> None:
    assert not matches(written(tmp_path / "a.txt", text))


def test_a_long_transposed_file_is_known_although_its_head_ends_within_a_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    np.savetxt(path, samples(6000).T)
    assert b"\n" not in path.read_bytes()[: 1 << 16]
    assert matches(path)
    path.write_bytes(b"MSG 1 start\n" + path.read_bytes())
    assert matches(path)
    np.savetxt(path, samples(6000).T[:6])
    assert not matches(path)


def test_other_endings_and_missing_files_are_not_taken(tmp_path: Path) -> None:
    assert not matches(written(tmp_path / "a.json", SEEN))
    long_line = b"1.5 " * 50
    assert not paper.matches(tmp_path / "none.txt", long_line, ReadOptions())


@pytest.mark.slow
def test_a_whole_session_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    np.savetxt(path, samples(405_000), fmt="%.1f")
    (recording,) = read(path)
    assert len(recording) == 405_000


def as_text(values: NDArray[np.float64]) -> bytes:
    return "\n".join(" ".join(f"{v:.1f}" for v in line) for line in values).encode()


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid file after a few random cuts, insertions and replacements of bytes or lines."""
    values = samples(12, draw(st.sampled_from([7, 10])))
    content = as_text(values.T if draw(st.booleans()) else values)
    cells = [b"", b".", b"inf", b"9" * 400, b"-1", b"MSG"]
    return damaged_lines(draw, content, b" ", cells)


@settings(deadline=None, max_examples=80)
@given(damaged())
def test_a_damaged_file_is_read_or_refused_with_a_gaze_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.txt"
        path.write_bytes(content)
        paper.matches(path, content, ReadOptions())
        with contextlib.suppress(GazeError):
            recordings = read(path)
            assert recordings
            assert all(np.all(np.diff(recording.time_ms) >= 0) for recording in recordings)
