"""Uploads: stored under safe names, deleted at the end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gazediffusion.web.uploads import Upload, safe_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("p1/gaze.csv", "p1/gaze.csv"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\study\\p 1.asc", "C_/study/p_1.asc"),
        ("/", "recording3"),
        ("..", "recording3"),
        (".hidden.csv", "hidden.csv"),
        ("a\x00\nb.csv", "a__b.csv"),
        ("x" * 300 + ".csv", "x" * 96 + ".csv"),
        ("a/" * 60 + "b.csv", "a/a/a/a/b.csv"),
    ],
)
def test_a_name_keeps_its_letters_and_folders_and_leaves_its_own_folder_never(
    given: str, name: str
) -> None:
    assert safe_name(given, 3) == Path(name)


def test_files_exist_until_the_upload_is_closed() -> None:
    upload = Upload([("../a.csv", io.BytesIO(b"one")), ("b/a.csv", io.BytesIO(b"two"))], {})
    assert [path.read_bytes() for path in upload.paths] == [b"one", b"two"]
    assert all(upload.folder in path.parents for path in upload.paths)
    assert upload.source == upload.folder
    upload.close()
    assert not upload.folder.exists()


def test_names_that_collide_are_stored_apart() -> None:
    names = ["a.csv"] * 300 + ["a.csv/b.csv", "b", "b/c", "b/c", ""]
    upload = Upload([(name, io.BytesIO(b"%d" % k)) for k, name in enumerate(names)], {})
    assert [int(path.read_bytes()) for path in upload.paths] == list(range(len(names)))
    assert all(upload.folder in path.parents for path in upload.paths)
    upload.close()


def test_an_error_names_the_file_and_the_field_as_the_sender_does() -> None:
    upload = Upload([("a.csv", io.BytesIO(b"1"))], {})
    line = f"{upload.paths[0]}: no time; give `source_rate_hz`; {upload.folder} has no other"
    expected = "a.csv: no time; give `source_rate`; the upload has no other"
    assert upload.in_words(line) == expected
    upload.close()
