from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gazediffusion.data.readers import tables
from gazediffusion.data.readers.tables import Table, blocks_of, header_of, open_table, parse_text
from gazediffusion.errors import GazeError

PATH = Path("a.csv")


def written(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


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


def test_a_first_cell_may_begin_as_a_comment_does() -> None:
    table = parse_text(";x;y\n;1;2\n#7;3;4\n", PATH)
    assert cells(table) == [(None, "1", "2"), ("#7", "3", "4")]
    with pytest.raises(GazeError, match="line 2: 2 cells where there are 3 columns"):
        cells(parse_text(";x;y\n;1\n", PATH))


def test_lines_are_counted_with_comments(tmp_path: Path) -> None:
    path = written(tmp_path, "# one\nt,x,y\n# three\n0,1,2\n\n4,5,six\n")
    with pytest.raises(GazeError, match=r"a\.csv, line 6, column 'y': 'six' is no number"):
        open_table(path).samples(["t", "x", "y"])


@pytest.mark.parametrize(
    ("line", "separator", "n_columns"),
    [("0 1.5 2", " ", 3), ("0\t1,5\t2", "\t", 3), ("0 1,5 2,25", " ", 3), ("0, 1, 2", ",", 3)],
)
def test_columns_of_text_without_a_header_are_called_by_position(
    line: str, separator: str, n_columns: int, tmp_path: Path
) -> None:
    table = open_table(written(tmp_path, f"{line}\n{line}\n"), by_position=True)
    assert table.names == [str(n + 1) for n in range(n_columns)]
    assert len(cells(table)) == 2
    assert table.decimal_comma == (separator != ",")


def test_text_without_a_header_is_refused_with_its_first_row(tmp_path: Path) -> None:
    path = written(tmp_path, "% a\n12 3.5 nan 7\n16 3.5 1 7\n")
    with pytest.raises(GazeError, match=r"no header, 4 columns of numbers.*12 3\.5 nan 7.*t=1,x=2"):
        open_table(path)


def test_a_cell_in_quotes_may_hold_ends_of_lines_and_separators() -> None:
    table = parse_text('t,note,x\n0,"one\ntwo, three",1\n4,b,five\n', PATH)
    assert cells(table)[0] == ("0", "one\ntwo, three", "1")
    with pytest.raises(GazeError, match="line 4, column 'x': 'five'"):
        table.samples(["x"])
    with pytest.raises(GazeError, match="line 4: 2 cells"):
        cells(parse_text('t,note,x\n0,"one\ntwo",1\n4,"b"\n', PATH))


def test_repeated_names_are_made_different_by_their_position() -> None:
    assert header_of(b"x,y,x,y\n", PATH) == ["x", "y", "x#2", "y#3"]


def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, ",".join(f"c{n}" for n in range(200_000)) + "\n1\n")
    with pytest.raises(GazeError, match="200,000 columns; a table may have 10,000"):
        open_table(path)
    assert len(header_of(b",".join([b"x"] * 10_000), PATH)) == 10_000


def test_a_row_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MAX_ROW_BYTES", 1000)
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 100)
    path = written(tmp_path, 't,x,y\n0,1,"2' + "\n0,1,2" * 500)
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
    path = written(tmp_path, content)
    expected = open_table(path).samples(["t", "x"], ["y"], ["participant"])
    monkeypatch.setattr(tables, "_BLOCK_BYTES", 64)
    found = open_table(path).samples(["t", "x"], ["y"], ["participant"])
    for one in (expected, found):
        whole = one.stretches.group_by("identity", maintain_order=True).agg(pl.col("len").sum())
        assert whole["len"].to_list() == [40, 40, 20]
    assert all((found.values[name] == expected.values[name]).all() for name in "tx")
    assert (found.flags["y"] == expected.flags["y"]).all()
    assert [open_table(path).place(row) for row in (0, 49, 50, 99)] == [
        "line 2",
        "line 51",
        "line 54",
        "line 103",
    ]


def test_rows_in_front_and_rows_that_are_asked_for_are_the_same(tmp_path: Path) -> None:
    frame = open_table(written(tmp_path, "t,x\n0,1\n4,2\n8,3\n")).frame
    assert frame.head(2).collect().rows() == [("0", "1"), ("4", "2")]
