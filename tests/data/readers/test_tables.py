"""Text in blocks of rows, headers and comments; Parquet and Arrow with lists of coordinates."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazediffusion.data.readers import tables
from gazediffusion.data.readers.tables import Table, blocks_of, header_of, open_table, parse_text
from gazediffusion.data.recordings import Eye
from gazediffusion.errors import GazeError
from tests.data.readers.files import ARROW, LOST, SCREEN, arrow_bytes, assert_found, read_one, write

PATH = Path("a.csv")


def cells(table: Table) -> list[tuple[object, ...]]:
    return table.collect(table.names).rows()


@pytest.mark.parametrize(
    "content",
    [
        "# recorded at noon\n% 500 Hz\n// by anna\n; in pixels\nt,x,y\n0,1,2\n4,5,6\n",
        "t,x,y\n# a pause\n0,1,2\n\n% another\n4,5,6\n// the end",
        "\n\nt,x,y\n0,1,2\n; pause\n4,5,6\n",
        "#t,x,y\n0,1,2\n4,5,6\n",
        "# recorded at noon\n# t,x,y\n0,1,2\n4,5,6\n",
        "t x y\n  0   1 2\n4 5    6  \n",
        "t;x;y\n0;1;2\n# pause\n4;5;6\n",
        't,x,y\n"0",1,2\n"4",5,"6"\n',
    ],
)
def test_comments_and_blanks_are_no_rows(content: str) -> None:
    table = parse_text(content, PATH)
    assert table.names == ["t", "x", "y"]
    assert cells(table) == [("0", "1", "2"), ("4", "5", "6")]
    assert table.frame.head(1).collect().rows() == [("0", "1", "2")]


def test_a_first_cell_may_begin_as_a_comment_does() -> None:
    table = parse_text(";x;y\n;1;2\n#7;3;4\n", PATH)
    assert cells(table) == [(None, "1", "2"), ("#7", "3", "4")]
    with pytest.raises(GazeError, match="line 2: 2 cells where there are 3 columns"):
        cells(parse_text(";x;y\n;1\n", PATH))


def test_lines_are_counted_with_comments(tmp_path: Path) -> None:
    path = write(tmp_path, "# one\nt,x,y\n# three\n0,1,2\n\n4,5,six\n")
    with pytest.raises(GazeError, match=r"\.csv, line 6, column 'y': 'six' is no number"):
        open_table(path).samples(["t", "x", "y"])


@pytest.mark.parametrize(
    ("line", "separator", "n_columns"),
    [("0 1.5 2", " ", 3), ("0\t1,5\t2", "\t", 3), ("0 1,5 2,25", " ", 3), ("0, 1, 2", ",", 3)],
)
def test_columns_of_text_without_a_header_are_called_by_position(
    line: str, separator: str, n_columns: int, tmp_path: Path
) -> None:
    path = write(tmp_path, f"% a\n{line}\n{line}\n")
    table = open_table(path, by_position=True)
    assert table.names == [str(n + 1) for n in range(n_columns)]
    assert len(cells(table)) == 2
    assert table.decimal_comma == (separator != ",")
    with pytest.raises(GazeError, match=r"no header, 3 columns of numbers: .* 0.*t=1,x=2"):
        open_table(path)


def test_a_cell_in_quotes_may_hold_ends_of_lines_and_separators() -> None:
    table = parse_text('t,note,x\n0,"one\ntwo, three",1\n4,b,five\n', PATH)
    assert cells(table)[0] == ("0", "one\ntwo, three", "1")
    with pytest.raises(GazeError, match="line 4, column 'x': 'five'"):
        table.samples(["x"])
    with pytest.raises(GazeError, match="line 4: 2 cells"):
        cells(parse_text('t,note,x\n0,"one\ntwo",1\n4,"b"\n', PATH))


def test_names_that_repeat_are_made_different_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert header_of(b"x,y,x,y\n", PATH) == ["x", "y", "x#2", "y#3"]
    path = write(tmp_path, ",".join(f"c{n}" for n in range(200_000)) + "\n1\n")
    with pytest.raises(GazeError, match="200,000 columns; a table may have 10,000"):
        open_table(path)
    assert len(header_of(b",".join([b"x"] * 10_000), PATH)) == 10_000
    monkeypatch.setattr(tables, "_MAX_COLUMNS", 3)
    frame = pl.DataFrame({name: [1] for name in "abcd"})
    with pytest.raises(GazeError, match="4 columns; a table may have 3"):
        open_table(write(tmp_path, arrow_bytes(frame, ".feather"), "a.feather"))


def test_a_row_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MAX_ROW_BYTES", 1000)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 100)
    path = write(tmp_path, 't,x,y\n0,1,"2' + "\n0,1,2" * 500)
    with pytest.raises(GazeError, match=r"longer.*quote may not be closed"):
        list(blocks_of(path))


words = st.text('ab1,.;"\n\r é', max_size=6)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=8), st.integers(2, 40))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_blocks_of_any_size_hold_whole_rows_and_all_text(
    tmp_path_factory: pytest.TempPathFactory, encoding: str, rows: list[tuple[str, str]], size: int
) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\r\n").writerows(rows)
    path = tmp_path_factory.mktemp("blocks") / "a.csv"
    path.write_bytes(stream.getvalue().encode(encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BLOCK_BYTES", size)
        blocks = [block.decode() for block in blocks_of(path)]
    whole = stream.getvalue().replace("\r\n", "\n").replace("\r", "\n")
    assert "".join(blocks) == whole
    assert all(block.endswith("\n") and block.count('"') % 2 == 0 for block in blocks)


def test_blocks_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"p{n // 40},{4 * n},{n / 7:.3f},{n % 3}" for n in range(100)]
    content = "\n".join(["participant,t,x,y", *rows[:50], "# pause", "", *rows[50:]])
    path = write(tmp_path, content)
    expected = open_table(path).samples(["t", "x"], ["y"], ["participant"])
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    found = open_table(path).samples(["t", "x"], ["y"], ["participant"])
    for one in (expected, found):
        whole = one.stretches.group_by("identity", maintain_order=True).agg(pl.col("len").sum())
        assert whole["len"].to_list() == [40, 40, 20]
    assert all((found.values[name] == expected.values[name]).all() for name in "tx")
    assert (found.flags["y"] == expected.flags["y"]).all()
    places = [open_table(path).place(row) for row in (0, 49, 50, 99)]
    assert places == ["line 2", "line 51", "line 54", "line 103"]


@pytest.mark.parametrize("ending", ARROW)
@pytest.mark.parametrize(
    ("n_axes", "eyes"),
    [(2, {"cyclopean": 0}), (4, {"left": 0, "right": 2}), (6, {"left": 0, "right": 2})],
)
def test_lists_of_coordinates_are_eyes(
    tmp_path: Path, ending: str, n_axes: int, eyes: dict[Eye, int]
) -> None:
    """Four samples, 1 ms apart, the third lost; axis k of sample n is 10 n + k."""
    lists = [[10.0 * n + axis for axis in range(n_axes)] for n in range(4)]
    frame = pl.DataFrame({"time": range(4), "pixel": [*lists[:2], None, lists[3]]})
    recording = read_one(write(tmp_path, arrow_bytes(frame, ending), f"a{ending}"), screen=SCREEN)
    assert set(recording.gaze_px) == set(eyes)
    for eye, first in eyes.items():
        x = np.array([first, 10 + first, LOST, 30 + first])
        assert_found(recording, **{"ms": range(4), eye: [x, x + 1], "unit": "px"})


def test_positions_in_lists_are_degrees(tmp_path: Path) -> None:
    frame = pl.DataFrame({"time": [0, 1], "position": [[0.0, 0.1], [1.0, 1.1]]})
    path = write(tmp_path, arrow_bytes(frame, ".feather"), "a.feather")
    expected = SCREEN.from_degrees(np.array([[0.0, 1.0], [0.1, 1.1]]))
    found = read_one(path, screen=SCREEN)
    assert_found(found, cyclopean=expected, unit="deg", origin="center")


READ = """
import re, sys
from gazediffusion.data.reading import read
assert sum(len(recording) for recording in read(sys.argv[1]))
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
def test_memory_grows_with_the_numbers_and_not_with_the_text(tmp_path: Path) -> None:
    sizes, peaks, n = [], [], 10_000
    for n_trials in (80, 160):
        path = tmp_path / f"{n_trials}.csv"
        rng = np.random.default_rng(0)
        frame = pl.DataFrame(
            {
                "participant": ["participant1"] * n_trials * n,
                "task": ["viewing"] * n_trials * n,
                "trial": np.repeat(np.arange(n_trials), n),
                "t_ms": np.tile(np.arange(n), n_trials),
                "x_px": rng.uniform(0, 1280, n_trials * n).round(1),
                "y_px": rng.uniform(0, 720, n_trials * n).round(1),
            }
        )
        frame.write_csv(path)
        command = [sys.executable, "-c", READ, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        sizes.append(path.stat().st_size)
        peaks.append(1024 * int(run.stdout))
    assert sizes[1] - sizes[0] > 30e6
    # Three numbers of 8 bytes in a row of 40, and what is on its way; the text, copied and cut
    # into cells, would take 2.5 times its size.
    assert peaks[1] - peaks[0] < 1.6 * (sizes[1] - sizes[0])
