"""URLs against a real server of the S3 protocol: same bytes, resuming, connections that are cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gazediffusion as gd
from gazediffusion import storage
from gazediffusion.errors import GazeError
from gazediffusion.generation.dataset import Parts, WritePart
from gazediffusion.storage import sha256_of
from tests.conftest import RunCommand
from tests.runs import saved_windows
from tests.s3_server import KEYS, Proxy, s3_server

for package in ("s3fs", "moto"):
    pytest.importorskip(package, reason=f"{package} is not installed")

N = 6
HOW: dict[str, Any] = {"parts": Parts(part_size=2), "batch_size": 2, "steps": 2}


@pytest.fixture(scope="module")
def server() -> Iterator[Proxy]:
    with s3_server("bucket") as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Proxy) -> Path:
    """The folder of unfinished work on outputs."""
    import s3fs

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 2)
    server.rule = None
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, model: gd.Model) -> dict[str, bytes]:
    """The files of the set in a local folder."""
    folder = tmp_path_factory.mktemp("local") / "parts"
    model.sample_to(folder, N, **HOW)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def objects(url: str) -> dict[str, bytes]:
    with storage.reached(url) as place:
        return {name: (place / name).read_bytes() for name in storage.names_in(Path(url))}


def generated(model: gd.Model, url: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Write the set; the numbers of the parts that were generated."""
    numbers, write = list[int](), WritePart.__call__

    def noting(self: WritePart, number: int) -> int:
        numbers.append(number)
        return write(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(WritePart, "__call__", noting)
        model.sample_to(url, N, **HOW)
    return numbers


def left(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_a_set_in_parts_has_the_bytes_of_a_local_one(
    model: gd.Model, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    url = "s3://bucket/whole/gaze"
    assert generated(model, url, monkeypatch) == [0, 1, 2]
    assert objects(url) == expected
    assert generated(model, url, monkeypatch) == []
    assert [one.trial for one in gd.read(url)] == [str(k) for k in range(N)]
    assert gd.describe(url)["n_windows"] == N
    assert not left(cache)


def test_a_cut_upload_is_tried_again_and_one_that_fails_is_not_taken_for_whole(
    model: gd.Model,
    expected: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    server: Proxy,
    cache: Path,
) -> None:
    url = "s3://bucket/cut/gaze"
    server.cut("PUT", "part-000000.parquet", after=4000)
    model.sample_to(url, N, **HOW)
    assert server.n_cut == 1
    assert objects(url) == expected

    url = "s3://bucket/cut/again"
    server.cut("PUT", "part-000001.parquet", after=4000, times=100)
    with pytest.raises(GazeError, match=r"^s3://bucket/cut/again/part-000001\.parquet: the stor"):
        model.sample_to(url, N, **HOW)
    assert server.n_cut > 1
    server.rule = None
    assert sorted(objects(url)) == [storage.INCOMPLETE, "part-000000.parquet"]
    with pytest.raises(GazeError, match="this folder is not complete"):
        gd.read(url)
    assert generated(model, url, monkeypatch) == [1, 2]
    assert objects(url) == expected
    assert not left(cache)


def test_an_upload_in_pieces_that_is_cut_leaves_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Proxy
) -> None:
    import s3fs

    # The least that S3 allows; s3fs takes pieces of 50 MB.
    monkeypatch.setattr(s3fs.core, "calculate_chunksize", lambda size, chunksize=None: 5 << 20)
    (tmp_path / "large").write_bytes(bytes(11 << 20))
    url = Path("s3://bucket/pieces/large")
    server.cut("PUT", "partNumber=2", after=1 << 20, times=100)
    with pytest.raises(GazeError, match=r"^s3://bucket/pieces/large: the storage failed"):
        storage.put(tmp_path / "large", url)
    assert server.n_cut > 1
    server.cut("PUT", "partNumber=2", after=1 << 20)
    assert not storage.is_file(url)
    storage.put(tmp_path / "large", url)
    assert server.n_cut == 1
    assert sha256_of(url) == sha256_of(tmp_path / "large")


def test_a_cut_download_is_tried_again_and_half_a_file_is_never_read(
    model: gd.Model, server: Proxy
) -> None:
    windows = model.sample(4, steps=2)
    url = "s3://bucket/windows.safetensors"
    assert windows.save(url) == [Path(url)]
    server.cut("GET", "windows.safetensors", after=3000)
    assert len(gd.Windows.load(url)) == 4
    assert server.n_cut == 1
    model.sample(5, steps=2).save(url, overwrite=True)
    server.cut("GET", "windows.safetensors", after=3000, times=100)
    with pytest.raises(GazeError, match=r"^s3://bucket/windows.safetensors: the storage failed"):
        gd.Windows.load(url)
    server.rule = None
    assert len(gd.Windows.load(url)) == 5


def test_commands_take_urls_and_provenance_names_them(
    tmp_path: Path, run: RunCommand, steerable_folder: Path, cache: Path
) -> None:
    storage.put(steerable_folder, Path("s3://bucket/run"))
    given = ["generate", "--model", "s3://bucket/run", "-n", 3, "--steps", 2, "--device", "cpu"]
    code, said, errors = run(*given, "-o", "s3://bucket/out/gaze.csv")
    assert code == 0, errors
    assert "wrote s3://bucket/out/gaze.csv: 3 synthetic windows" in said
    assert "card: s3://bucket/out/gaze.json, in words: s3://bucket/out/gaze.md" in said
    assert run(*given, "-o", tmp_path / "gaze.csv")[0] == 0
    for name, content in objects("s3://bucket/out").items():
        assert content == (tmp_path / name).read_bytes()
    code, said, _ = run(*given, "-o", "s3://bucket/out/gaze.csv")
    assert (code, "(it was complete already)" in said) == (0, True)
    code, _, errors = run(*given, "--seed", 1, "-o", "s3://bucket/out/gaze.csv")
    assert code == 2
    assert errors.splitlines()[-1].startswith("error: s3://bucket/out/gaze.csv: this was made with")
    assert run("info", "s3://bucket/out/gaze.csv")[0] == 0
    assert not left(cache)

    study = "s3://bucket/study"
    code, said, errors = run(
        "simulate", "-o", study, "--participants", 2, "--minutes", 0.2, "--format", "asc",
        "--rate", 250,
    )  # fmt: skip
    assert code == 0, errors
    windows = "s3://bucket/out/windows.safetensors"
    code, said, errors = run("prepare", f"{study}/*.asc", "-o", windows, "--seconds", 2)
    assert code == 0, errors
    assert f"wrote {windows}: " in said
    provenance = gd.Windows.load(windows).provenance
    assert [one["url"] for one in provenance["sources"]] == [
        f"{study}/{one['name']}" for one in provenance["sources"]
    ]
    texts = json.dumps(provenance) + said + errors
    assert not any(word in texts for word in (*KEYS.values(), "/tmp"))


@pytest.mark.parametrize("words", [("inspect", "s3://nothing/study"), ("info", "s3://nothing/x")])
def test_a_bucket_that_is_not_there_is_one_line(run: RunCommand, words: tuple[str, ...]) -> None:
    code, _, errors = run(*words)
    assert (code, errors) == (2, f"error: {words[1]}: there is no such bucket\n")


def test_a_bucket_that_is_not_there_is_found_before_the_work(
    run: RunCommand, steerable_folder: Path
) -> None:
    words = ["generate", "--model", steerable_folder, "-n", 2, "--device", "cpu"]
    code, _, errors = run(*words, "-o", "s3://nothing/gaze.parquet")
    assert code == 2
    assert errors.endswith("\nerror: s3://nothing/gaze.parquet: there is no such bucket\n")


@pytest.mark.slow
def test_several_processes_train_a_run_at_a_url(tmp_path: Path) -> None:
    """The first process of two uploads the run, and its weights are those of a local folder."""
    saved_windows(tmp_path / "windows.safetensors")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    options = ["--recipe", "position-tiny", "--epochs", "1", "--batch-size", "4", "--device", "cpu"]
    program = [
        "-m",
        "gazediffusion",
        "train",
        str(tmp_path / "windows.safetensors"),
        *options,
        "-o",
    ]
    for output in ("s3://bucket/several", str(tmp_path / "local")):
        command = [*torchrun, "--nproc-per-node=2", *program, output]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=180)
        assert done.returncode == 0, done.stderr
    there = objects("s3://bucket/several")
    assert there["last.safetensors"] == (tmp_path / "local" / "last.safetensors").read_bytes()
    assert gd.load("s3://bucket/several").config.recipe.name == "position-tiny"
