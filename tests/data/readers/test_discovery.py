"""Which files are read, and by whom."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gazediffusion import storage
from gazediffusion.data.readers import FORMATS, ReadOptions, find_sources, read_recordings
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

TABLE = "t_ms,x_px,y_px\n0,1,2\n4,2,3\n"


def names(sources: list[object]) -> list[str]:
    return [source.path.name for source in sources]  # type: ignore[attr-defined]


def test_a_folder_is_read_as_a_whole_and_other_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.csv", "a.csv", "deep/c.csv", ".hidden.csv"):
        (tmp_path / name).write_text(TABLE)
    (tmp_path / "README.md").write_text("notes")
    (tmp_path / "participants.csv").write_text("name,age\nanna,30\n")
    assert names(list(find_sources([tmp_path]))) == ["a.csv", "b.csv", "c.csv"]


def test_a_glob_reads_what_it_matches(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b.csv"):
        (tmp_path / name).write_text(TABLE)
    assert names(list(find_sources([f"{tmp_path}/a*.csv"]))) == ["a1.csv", "a2.csv"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(TABLE)
    assert len(find_sources([path, tmp_path, str(path)])) == 1


def test_a_folder_without_recordings_says_what_it_has_and_names_the_formats(
    tmp_path: Path,
) -> None:
    with pytest.raises(GazeError, match=r"no recordings in this folder, but no files"):
        find_sources([tmp_path])
    for name in ("notes.md", "a.png", "b.png", "LICENSE"):
        (tmp_path / name).write_text("nothing here")
    found = r"but 2 \.png, 1 without ending, 1 \.md; .*eyelink-asc"
    with pytest.raises(GazeError, match=found):
        find_sources([tmp_path])
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(GazeError, match=r"1 \.csv.*gazediffusion inspect '.*c\.csv\.gz'"):
        find_sources([tmp_path])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.md", b"\n# Notes on gaze\n", r"begins '# Notes on gaze'; .*`format` table.*`columns`"),
        ("a.xyz", b"\x89PNG\x00\x01", "a binary file; export the samples as text"),
        ("a.xyz", b" \n", "empty"),
        ("a.csv", b"n,a,b\n1,2,3\n", "no x and y columns among n, a, b; name them with `columns`"),
        ("a.txt", b"1 2 3\n2 3 4\n", "no header, 3 columns of numbers: .*t=1,x=2,y=3"),
    ],
)
def test_a_refused_file_says_what_it_looks_like_and_what_to_try(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(GazeError, match=message):
        list(read_recordings([path]))


def test_all_columns_of_a_refused_table_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"column{n}" for n in range(60)) + "\n" + "1," * 59 + "1\n")
    with pytest.raises(GazeError, match=r"column0, column1, .*, column58, column59;"):
        list(find_sources([path])[0].read())


PAPER = "688355663 1 2 3 4 5 6 0 1 1\n688355664 1 2 3 4 5 6 0 1 1\n"
NEON = "timestamp [ns],gaze x [px],gaze y [px]\n0,1,2\n5000000,1,2\n"
TOBII = "Recording timestamp\tGaze point X\tGaze point Y\n0\t1\t2\n4000\t1\t2\n"
ASC = """** CONVERTED FROM a.edf
START 1 RIGHT SAMPLES
SAMPLES GAZE RIGHT RATE 250.00
1 1.0 2.0 3.0
5 1.0 2.0 3.0
END 6 SAMPLES
"""
TRANSPOSED = "\n".join(" ".join([value] * 20_000) for value in "0111111111")


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("anna.csv", TABLE, "table"),
        ("anna.csv", TABLE.encode("utf-16"), "table"),
        ("anna.tsv", TOBII, "tobii"),
        ("anna.csv", NEON, "pupil-labs"),
        ("anna.txt", PAPER, "columns"),
        ("anna.txt", TRANSPOSED, "columns"),
        ("anna.asc", ASC, "eyelink-asc"),
    ],
)
def test_compressed_text_is_read_as_it_would_be_without_compression(
    tmp_path: Path, name: str, content: str | bytes, format: str
) -> None:
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(content)
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / f"{name}.gz").write_bytes(gzip.compress(content))
    plain, packed = (find_sources([tmp_path / one]) for one in (name, "packed"))
    for one, other in zip(plain[0].read(), packed[0].read(), strict=True):
        assert (one.format, other.format) == (format, format)
        assert (one.participant, other.participant) == ("anna", "anna")
        assert one.time_ms.tolist() == other.time_ms.tolist()


def test_the_sidecar_of_compressed_text_has_its_name_without_endings(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    (tmp_path / "a.json").write_text(json.dumps(Screen(1280, 720).to_bids()))
    (recording,) = find_sources([tmp_path / "a.csv.gz"])[0].read()
    assert recording.screen == Screen(1280, 720)


def test_damaged_and_oversized_gzip_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv.gz"
    content = gzip.compress(TABLE.encode() + b"8,1,2\n" * 100_000)
    path.write_bytes(content[:-20])
    with pytest.raises(GazeError, match=r"a\.csv\.gz: the gzip file is damaged"):
        list(find_sources([path])[0].read())
    path.write_bytes(content)
    monkeypatch.setattr(storage, "MAX_UNPACKED_BYTES", 100_000)
    with pytest.raises(GazeError, match=r"a\.csv\.gz: unpacks to more than"):
        list(find_sources([path])[0].read())


def test_gaze_columns_that_are_given_go_before_a_known_format(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(PAPER)
    options = ReadOptions(columns={"t": "1", "x": "5", "y": "6"}, screen=Screen(1280, 720))
    (recording,) = find_sources([path], options)[0].read()
    assert recording.format == "table"
    assert recording.gaze_px["cyclopean"][:, 0].tolist() == [4, 5]


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    (source,) = find_sources([tmp_path / "a.csv"], format="tobii")
    assert source.reader is FORMATS["tobii"]
