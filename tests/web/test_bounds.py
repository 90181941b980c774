"""Bounds of files: what is small on the disk and large in memory is refused before it is parsed."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gazediffusion.web import uploads as bounds
from gazediffusion.web.uploads import require_bounds
from gazediffusion.web.worker import TooLargeError

MB = 2**20


def refusal(path: Path, content: bytes, max_bytes: int = MB) -> str | None:
    path.write_bytes(content)
    try:
        require_bounds(path, max_bytes)
    except TooLargeError as error:
        return str(error)
    return None


def parquet(n_rows: int, n_columns: int) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({f"c{k}": np.zeros(n_rows) for k in range(n_columns)}), stream)
    return stream.getvalue()


def archive(n_members: int, size: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as opened:
        for k in range(n_members):
            opened.writestr(f"{k}.npy", b"0" * size)
    return stream.getvalue()


def test_ordinary_files_pass(tmp_path: Path) -> None:
    table = b"t,x,y\n" + b"0,1,2\n" * 1000
    assert refusal(tmp_path / "a.csv", table) is None
    assert refusal(tmp_path / "a.csv.gz", gzip.compress(table)) is None
    assert refusal(tmp_path / "a.parquet", parquet(1000, 3)) is None
    assert refusal(tmp_path / "a.npz", archive(3, 1000)) is None


def test_a_gzip_file_is_unpacked_no_further_than_the_limit(tmp_path: Path) -> None:
    one = gzip.compress(b"0,1,2\n" * 50_000)
    words = "a.csv.gz: expands to more than 1 MB"
    assert refusal(tmp_path / "a.csv.gz", one) is None
    assert refusal(tmp_path / "a.csv.gz", one * 1000) == words, "members add up"
    assert refusal(tmp_path / "a.gz", gzip.compress(one)) == "a.gz: this is compressed twice"
    assert refusal(tmp_path / "a.csv.gz", one[:-20]) is None, "a damaged one is for its reader"


def test_rows_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_ROWS", 100)
    for name, content in (
        ("a.csv", b"1\n" * 101),
        ("a.csv.gz", gzip.compress(b"1\n" * 101)),
        ("a.parquet", parquet(101, 1)),
    ):
        assert refusal(tmp_path / name, content) == f"{name}: more than 100 rows"


def test_a_table_of_very_many_columns_is_refused(tmp_path: Path) -> None:
    words = "a.csv: more than 1,000 columns"
    names = b",".join(b"c%d" % k for k in range(1001))
    numbers = b"\t".join([b"-1.5e3"] * 5000)
    assert refusal(tmp_path / "a.csv", names + b"\n") == words
    assert refusal(tmp_path / "a.csv", b"# a comment\n" + names + b"\n") == words
    assert refusal(tmp_path / "a.csv", b"\0".join(names.split(b","))) is None
    assert refusal(tmp_path / "a.csv", numbers + b"\n" + numbers) == words
    assert refusal(tmp_path / "a.parquet", parquet(1, 1001)) is not None


def test_numbers_may_lie_in_a_few_long_lines(tmp_path: Path) -> None:
    line = b"\t".join([b"-1.5e3"] * 4999 + [b"NaN"])
    assert refusal(tmp_path / "a.txt", b"\n".join([line] * 10)) is None


def test_archives_are_bounded_by_what_they_state(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a.npz", archive(2, MB)) == "a.npz: expands to more than 1 MB"
    assert refusal(tmp_path / "a.npz", archive(1001, 1)) == "a.npz: more than 1,000 members"
    assert refusal(tmp_path / "a.npz", b"PK\x03\x04 nothing") is None


def test_a_table_in_parquet_is_bounded_by_its_cells(tmp_path: Path) -> None:
    content = parquet(100_000, 3)
    assert len(content) < 10_000
    assert refusal(tmp_path / "a.parquet", content) == "a.parquet: expands to more than 1 MB"


def test_the_header_of_a_windows_file_is_bounded(tmp_path: Path) -> None:
    content = (2**40).to_bytes(8, "little") + b"{}"
    assert refusal(tmp_path / "a.safetensors", content) == (
        "a.safetensors: the header may have 32 MB"
    )
