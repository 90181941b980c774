"""Uploads: stored under safe names and deleted; what is large in memory is refused unparsed."""

from __future__ import annotations

import asyncio
import gzip
import io
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gazediffusion.web import uploads
from gazediffusion.web.uploads import Upload, require_bounds, safe_name
from gazediffusion.web.worker import TooLargeError
from tests.web.conftest import serve_process

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MB = 2**20


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


def test_files_are_stored_apart_until_the_upload_is_closed() -> None:
    names = ["../a.csv"] * 300 + ["a.csv/b.csv", "b", "b/c", "b/c", ""]
    upload = Upload([(name, io.BytesIO(b"%d" % k)) for k, name in enumerate(names)], {})
    assert [int(path.read_bytes()) for path in upload.paths] == list(range(len(names)))
    assert all(upload.folder in path.parents for path in upload.paths)
    assert upload.source == upload.folder
    line = f"{upload.paths[0]}: no time; give `source_rate_hz`; {upload.folder} has no other"
    expected = "a.csv: no time; give `source_rate`; the upload has no other"
    assert upload.in_words(line) == expected
    upload.close()
    assert not upload.folder.exists()


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


TABLE = b"t,x,y\n" + b"0,1,2\n" * 1000
GZIPPED = gzip.compress(b"0,1,200000000000000\n" * 20_000, mtime=0)
NAMES = b",".join(b"c%d" % k for k in range(1001))
NUMBERS = b"\t".join([b"-1.5e3"] * 4999 + [b"NaN"])
COLUMNS, EXPANDS = "more than 1,000 columns", "expands to more than 1 MB"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", TABLE, None),
        ("a.csv.gz", gzip.compress(TABLE, mtime=0), None),
        ("a.parquet", parquet(1000, 3), None),
        ("a.npz", archive(3, 1000), None),
        ("a.csv.gz", GZIPPED, None),
        ("a.csv.gz", GZIPPED * 4, EXPANDS),  # members add up
        ("a.gz", gzip.compress(GZIPPED, mtime=0), "this is compressed twice"),
        ("a.csv.gz", GZIPPED[:-20], None),  # a damaged one is for its reader
        ("a.csv", b"1\n" * 100_001, "more than 100,000 rows"),
        ("a.csv.gz", gzip.compress(b"1\n" * 100_001, mtime=0), "more than 100,000 rows"),
        ("a.parquet", parquet(100_001, 1), "more than 100,000 rows"),
        ("a.csv", NAMES + b"\n", COLUMNS),
        ("a.csv", b"# a comment\n" + NAMES + b"\n", COLUMNS),
        ("a.csv", NAMES.replace(b",", b"\0"), None),
        ("a.csv", NUMBERS + b"\n" + NUMBERS, COLUMNS),
        ("a.txt", b"\n".join([NUMBERS] * 10), None),  # a line for every quantity
        ("a.parquet", parquet(1, 1001), COLUMNS),
        ("a.parquet", parquet(90_000, 3), EXPANDS),
        ("a.npz", archive(2, MB), EXPANDS),
        ("a.npz", archive(1001, 1), "more than 1,000 members"),
        ("a.npz", b"PK\x03\x04 nothing", None),
        ("a.safetensors", (2**40).to_bytes(8, "little") + b"{}", "the header may have 32 MB"),
    ],
)
def test_what_is_small_on_the_disk_and_large_in_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, words: str | None
) -> None:
    monkeypatch.setattr(uploads, "MAX_ROWS", 100_000)
    (tmp_path / name).write_bytes(content)
    if words is None:
        require_bounds(tmp_path / name, MB)
        return
    with pytest.raises(TooLargeError) as refused:
        require_bounds(tmp_path / name, MB)
    assert str(refused.value) == f"{name}: {words}"


def benchmark(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return import_module(name)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_hostile_uploads_never_take_the_server_down(run_folder: Path, tmp_path: Path) -> None:
    hostile, n = benchmark("hostile_uploads"), 100
    with serve_process(run_folder, "--max-memory-mb", "1024", "--max-work-s", "10") as (
        server,
        url,
    ):
        seen = asyncio.run(hostile.attack(url, server.pid, n, hostile.Hostile(tmp_path)))
        server.terminate()
        _, log = server.communicate()
    statuses: Counter[int] = sum(seen.statuses.values(), Counter())
    assert sum(statuses.values()) == n
    assert not [status for status in statuses if status >= 500], statuses
    assert {200, 400, 413, 422} <= set(statuses), "many kinds of uploads were sent"
    assert seen.defects == []
    assert seen.memory_mb < 2500, "server and worker together"
    # On a busy machine an answer takes longer, as all uploads do; it waits for none of them.
    assert max(seen.light_s) < max(1, *seen.slowest_s.values()), "others are answered throughout"
    assert "Traceback" not in log
    assert ".csv" not in log


@pytest.mark.slow
def test_fifty_concurrent_clients_get_correct_responses(
    run_folder: Path, tmp_path: Path, url: str
) -> None:
    serve = benchmark("serve")
    expected, tally = serve.Expected(run_folder, tmp_path), serve.Tally()
    asyncio.run(serve.load(url, 50, 0.3, expected, tally))
    assert (tally.wrong, tally.lost) == ([], [])
    assert sum(tally.done.values()) >= 50
    assert set(tally.done) == set(serve.KINDS)
