"""Which files are read, by whom, and what is said of the others."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gazediffusion import storage
from gazediffusion.data.readers import FORMATS, ReadOptions, find_sources
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.data.readers.files import (
    FILES,
    PAPER,
    SCREEN,
    TABLE,
    paper_samples,
    paper_text,
    read,
    write,
)


def test_a_folder_or_a_glob_is_read_as_a_whole_and_other_files_are_passed_over(
    tmp_path: Path,
) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.csv", "a.csv", "deep/c.csv", ".hidden.csv"):
        write(tmp_path, TABLE, name)
    write(tmp_path, "notes", "README.md")
    write(tmp_path, "name,age\nanna,30\n", "participants.csv")
    cases: list[tuple[list[Any], list[str]]] = [
        ([tmp_path], ["a.csv", "b.csv", "c.csv"]),
        ([f"{tmp_path}/a*.csv"], ["a.csv"]),
        ([tmp_path / "a.csv", f"{tmp_path}/[ab].csv"], ["a.csv", "b.csv"]),  # each once
    ]
    for given, names in cases:
        assert [source.path.name for source in find_sources(given)] == names


def test_a_folder_without_recordings_says_what_it_has_and_names_the_formats(
    tmp_path: Path,
) -> None:
    with pytest.raises(GazeError, match=r"no recordings in this folder, but no files"):
        find_sources([tmp_path])
    for name in ("notes.md", "a.png", "b.png", "LICENSE"):
        write(tmp_path, "nothing here", name)
    found = r"but 2 \.png, 1 without ending, 1 \.md; .*eyelink-asc"
    with pytest.raises(GazeError, match=found):
        find_sources([tmp_path])
    write(tmp_path, gzip.compress(b"a,b\n1,2\n"), "c.csv.gz")
    with pytest.raises(GazeError, match=r"1 \.csv.*gazediffusion inspect '.*c\.csv\.gz'"):
        find_sources([tmp_path])


WIDE = ",".join(f"column{n}" for n in range(60)) + "\n" + "1," * 59 + "1\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", b"\n# Notes on gaze\n", r"begins '# Notes on gaze'; .*`format` table.*`columns`"),
        ("a.xyz", b"\x89PNG\x00\x01", "a binary file; export the samples as text"),
        ("a.xyz", b" \n", "empty"),
        ("a.csv", b"n,a,b\n1,2,3\n", "no x and y columns among n, a, b; name them with `columns`"),
        ("a.csv", WIDE.encode(), "column0, column1, .*, column58, column59;"),
        ("a.txt", b"1 2 3\n2 3 4\n", "no header, 3 columns of numbers: .*t=1,x=2,y=3"),
    ],
)
def test_a_refused_file_says_what_it_looks_like_and_what_to_try(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(GazeError, match=message):
        read(write(tmp_path, content, name))
    with pytest.raises(GazeError, match=r"gone\.csv: there is no such file"):
        read(tmp_path / "gone.csv")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("P01.edf", r"P01\.edf: this is an EyeLink file.*\(edf2asc P01\.edf\) and read P01\.asc"),
        ("P01.EDF", r"edf2asc P01\.EDF"),
        ("P01.idf", r"an SMI file.*IDF Converter.*'P01 Samples\.txt'"),
        ("P01.ttgp", r"a Tobii recording.*Tobii Pro Lab"),
        ("P01.mat", r"a MATLAB file.*export the samples as text"),
        ("P01.xlsx", r"an Excel file.*export"),
        ("P01.hdf5", r"an HDF5 file.*export"),
    ],
)
def test_a_file_of_another_program_names_the_way_to_text(
    tmp_path: Path, name: str, said: str
) -> None:
    path = write(tmp_path, b"SR_RESEARCH\x00\x01", name)
    for given in (path, tmp_path):
        with pytest.raises(GazeError, match=said):
            find_sources([given])
    # Beside its conversion the original is passed over.
    write(tmp_path, "START 1 RIGHT SAMPLES\n", "P01.asc")
    assert [source.path.name for source in find_sources([tmp_path])] == ["P01.asc"]


LONG = ("anna.txt", paper_text(paper_samples(20_000).T), "columns")


@pytest.mark.parametrize("case", [*FILES, "paper, long and transposed"])
def test_compressed_text_is_read_as_it_would_be_without_compression(
    tmp_path: Path, case: str
) -> None:
    name, content, format = FILES.get(case, LONG)
    if name.endswith((".parquet", ".feather", ".arrow", ".ipc")):
        return  # is compressed inside
    path = write(tmp_path, content, name)
    (tmp_path / "packed").mkdir()
    packed = write(tmp_path / "packed", gzip.compress(path.read_bytes()), f"{name}.gz")
    options: dict[str, Any] = {"screen": SCREEN, "override_screen": True}
    for one, other in zip(read(path, **options), read(packed, **options), strict=True):
        assert (one.format, other.format) == (format, format)
        assert (one.participant, one.trial) == (other.participant, other.trial)
        assert one.time_ms.tolist() == other.time_ms.tolist()


def test_the_sidecar_of_compressed_text_has_its_name_without_endings(tmp_path: Path) -> None:
    write(tmp_path, json.dumps(Screen(1280, 720).to_bids()), "a.json")
    (recording,) = read(write(tmp_path, gzip.compress(TABLE.encode()), "a.csv.gz"))
    assert recording.screen == Screen(1280, 720)


def test_damaged_and_oversized_gzip_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = gzip.compress(TABLE.encode() + b"8,1,2\n" * 100_000)
    with pytest.raises(GazeError, match=r"a\.csv\.gz: the gzip file is damaged"):
        read(write(tmp_path, content[:-20], "a.csv.gz"))
    monkeypatch.setattr(storage, "MAX_UNPACKED_BYTES", 100_000)
    with pytest.raises(GazeError, match=r"a\.csv\.gz: unpacks to more than"):
        read(write(tmp_path, content, "a.csv.gz"))


def test_given_columns_and_a_forced_format_go_before_a_known_format(tmp_path: Path) -> None:
    path = write(tmp_path, PAPER, "a.txt")
    (recording,) = read(path, columns={"t": "1", "x": "5", "y": "6"}, screen=SCREEN)
    assert recording.format == "table"
    assert recording.gaze_px["cyclopean"][0, 0] == pytest.approx(662.8)
    (source,) = find_sources([path], ReadOptions(), "tobii")
    assert source.reader is FORMATS["tobii"]
