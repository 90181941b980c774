from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from gazediffusion import files
from gazediffusion.errors import GazeError
from gazediffusion.files import (
    decode_text,
    open_unpacked,
    read_bytes,
    require_writable,
    sha256_of,
    unpacked,
    written_whole,
)


def test_written_whole_puts_the_file_in_place(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.txt"
    with written_whole(target) as temporary:
        temporary.write_text("done")
        assert not target.exists()
    assert target.read_text() == "done"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_no_trace(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with written_whole(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupted_folder_leaves_no_trace(tmp_path: Path) -> None:
    def interrupt() -> None:
        with written_whole(tmp_path / "set") as temporary:
            temporary.mkdir()
            (temporary / "part").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "precious").write_text("keep")
    with pytest.raises(GazeError, match="not empty"), written_whole(tmp_path / "set") as temporary:
        temporary.mkdir()
    assert (tmp_path / "set" / "precious").read_text() == "keep"


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GazeError, match="cannot be written"):
        require_writable(tmp_path / "file" / "out.txt")


def test_require_writable_leaves_nothing_behind(tmp_path: Path) -> None:
    require_writable(tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(GazeError, match=r"a\.csv: the file is empty"):
        read_bytes(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_text_is_decoded_whatever_windows_wrote(encoding: str) -> None:
    assert decode_text("Zeit µs".encode(encoding), Path("a.tsv")) == "Zeit µs"


def test_binary_content_is_not_taken_for_text() -> None:
    with pytest.raises(GazeError, match="binary"):
        decode_text(b"EDF\x00\x01", Path("a.edf"))


def test_sha256_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"gaze")
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"gaze").hexdigest()


def test_gzip_is_unpacked_whatever_the_file_is_called(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "a.csv"):
        (tmp_path / name).write_bytes(gzip.compress(b"gaze"))
        assert read_bytes(tmp_path / name) == b"gaze"
    (tmp_path / "plain.csv.gz").write_bytes(b"gaze")
    assert read_bytes(tmp_path / "plain.csv.gz") == b"gaze"
    assert unpacked(Path("a/b.csv.gz")) == Path("a/b.csv")
    assert unpacked(Path("a/b.csv")) == Path("a/b.csv")


@pytest.mark.parametrize("size", [-1, 1001])
def test_gzip_unpacks_no_further_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED_BYTES", 1000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"0" * 1000))
    assert read_bytes(path) == b"0" * 1000
    path.write_bytes(gzip.compress(b"0" * 1001))
    with open_unpacked(path) as stream, pytest.raises(GazeError, match=r"a\.csv\.gz: unpacks to"):
        stream.read(size)


@pytest.mark.parametrize("damaged", [slice(-6), slice(12), slice(2)])
def test_damaged_gzip_is_one_line(tmp_path: Path, damaged: slice) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"gaze" * 100)[damaged])
    with pytest.raises(GazeError, match=r"a\.csv\.gz: the gzip file is damaged"):
        read_bytes(path)
