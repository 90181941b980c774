from __future__ import annotations

import gzip
import hashlib
import tempfile
from pathlib import Path

import pytest

from gazediffusion import storage
from gazediffusion.errors import GazeError
from gazediffusion.storage import (
    content_hash,
    decode_text,
    open_unpacked,
    put_in_place,
    read_bytes,
    require_free,
    require_writable,
    sha256_of,
    unpacked,
    written_whole,
)


@pytest.mark.parametrize("is_folder", [False, True])
def test_an_output_appears_whole_and_a_failure_leaves_the_old_one(
    tmp_path: Path, is_folder: bool
) -> None:
    target = tmp_path / "new" / "a"

    def write(text: str, error: BaseException | None = None) -> None:
        with written_whole(target, known_by="part" if is_folder else None) as temporary:
            if is_folder:
                temporary.mkdir()
            (temporary / "part" if is_folder else temporary).write_text(text)
            if error is not None:
                raise error

    for error in (RuntimeError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write("half", error)
        assert list((tmp_path / "new").iterdir()) == []
    write("old")
    with pytest.raises(RuntimeError):
        write("half", RuntimeError())
    assert (target / "part" if is_folder else target).read_text() == "old"
    assert [path.name for path in target.parent.iterdir()] == ["a"]


def test_a_folder_that_holds_something_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "precious").write_text("keep")
    with pytest.raises(GazeError, match="not empty"), written_whole(tmp_path / "set") as temporary:
        temporary.mkdir()
    assert (tmp_path / "set" / "precious").read_text() == "keep"


def test_a_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    require_free(path)
    path.write_text("old")
    with pytest.raises(GazeError, match=r"a\.txt: this file exists already.*`overwrite`"):
        require_free(path)
    require_free(path, overwrite=True)
    with pytest.raises(GazeError, match="exists already"), written_whole(path, overwrite=False):
        raise AssertionError
    assert path.read_text() == "old"


def test_a_folder_is_replaced_only_on_request_and_only_if_it_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    require_free(folder, known_by="card.json")  # an empty folder is free
    (folder / "other").write_text("mine")
    with pytest.raises(GazeError, match=r"not empty; name a new one$"):
        require_free(folder, overwrite=True, known_by="card.json")
    (folder / "card.json").write_text("{}")
    with pytest.raises(GazeError, match="or give `overwrite`"):
        require_free(folder, known_by="card.json")
    with written_whole(folder, overwrite=True, known_by="card.json") as temporary:
        temporary.mkdir()
        (temporary / "card.json").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert [path.name for path in folder.iterdir()] == ["card.json"]


def test_a_folder_that_cannot_be_replaced_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "card.json").write_text("old")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        if Path(elsewhere).stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is one file system")
        with pytest.raises(OSError, match="cross-device"):
            put_in_place(Path(elsewhere), folder)
    assert (folder / "card.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_folder_is_not_named_like_a_file(tmp_path: Path) -> None:
    for name in ("report.html", "sim.asc"):
        with pytest.raises(GazeError, match=f"without an ending, as {name[:3]}"):
            require_free(tmp_path / name, known_by="x")
    require_free(tmp_path / "noise-0.5", known_by="x")
    (tmp_path / "file").write_text("")
    with pytest.raises(GazeError, match="name a folder"):
        require_free(tmp_path / "file", overwrite=True, known_by="x")


def test_an_output_that_cannot_be_written_is_refused_and_a_probe_leaves_nothing(
    tmp_path: Path,
) -> None:
    require_writable(tmp_path / "out.txt")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(GazeError, match="cannot be written"):
        require_writable(tmp_path / "file" / "out.txt")


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(GazeError, match=r"a\.csv: the file is empty"):
        read_bytes(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_text_is_decoded_whatever_windows_wrote(encoding: str) -> None:
    assert decode_text("Zeit µs".encode(encoding), Path("a.tsv")) == "Zeit µs"
    with pytest.raises(GazeError, match="binary"):
        decode_text(b"EDF\x00\x01", Path("a.edf"))


def test_hashes_are_those_of_the_content_and_a_folder_has_one_of_all_its_files(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").write_bytes(b"gaze")
    assert sha256_of(tmp_path / "a") == hashlib.sha256(b"gaze").hexdigest()
    assert content_hash(tmp_path / "a") == sha256_of(tmp_path / "a")
    assert content_hash("joint") == "joint"  # a packaged model
    before = content_hash(tmp_path)
    (tmp_path / "b").write_bytes(b"gaze")
    assert content_hash(tmp_path) != before


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
    monkeypatch.setattr(storage, "MAX_UNPACKED_BYTES", 1000)
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
