"""URLs without a server (`memory://`): what is fetched, uploaded and refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import gazediffusion as gd
from gazediffusion import jobs, storage
from gazediffusion.cli.console import kept_place
from gazediffusion.errors import GazeError, shown
from gazediffusion.storage import (
    is_remote,
    origin_of,
    put_in_place,
    read_json,
    require_free,
    sha256_of,
    write_json,
)
from gazediffusion.storage import require_writable as writable
from tests.conftest import RunCommand
from tests.runs import TINY, saved_windows


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The objects by name; empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    yield fs.store
    fs.store.clear()


def write_object(path: Path, content: bytes) -> None:
    with storage.reached(path) as place:
        place.write_bytes(content)


def read_objects(folder: Path) -> dict[str, bytes]:
    with storage.reached(folder) as place:
        return {name: (place / name).read_bytes() for name in storage.names_in(folder)}


def names() -> list[str]:
    return sorted(fsspec.filesystem("memory").store)


def study(folder: str) -> None:
    config = gd.SimulationConfig(n_participants=2, minutes=0.1, trial_seconds=6, rate_hz=250)
    gd.write_simulation(config, folder, "asc")


def test_a_local_path_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "gaze.csv"
    assert storage.fetched(path) == path
    assert storage.work_place(path) == tmp_path
    with storage.working_copy(tmp_path) as folder:
        assert folder == tmp_path
    assert (shown(path), origin_of(path), kept_place(path)) == (str(path), {}, f"beside {path}")
    assert not is_remote("pymovements:Name")
    assert not is_remote(Path("C:/study"))


def test_no_storage_is_imported_before_a_url_is_used() -> None:
    script = "import gazediffusion.cli, gazediffusion.storage, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert not {b"s3fs", b"fsspec", b"upath"} & set(done.stdout.split())


def test_a_folder_is_replaced_whole_and_read_back(tmp_path: Path) -> None:
    url = Path("memory://study")
    for name, text in {"a.txt": "1", "deep/b.txt": "2"}.items():
        (tmp_path / "new" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "new" / name).write_text(text)
    write_object(url / "old.txt", b"0")
    put_in_place(tmp_path / "new", url)
    assert names() == ["/study/a.txt", "/study/deep/b.txt"]
    copy = storage.fetched(url)
    assert (copy / "deep" / "b.txt").read_text() == "2"
    assert shown(copy / "a.txt") == "memory://study/a.txt"
    write_object(url / "a.txt", b"33")
    storage.remove(url / "deep" / "b.txt")
    assert [one.name for one in storage.fetched(url).rglob("*.txt")] == ["a.txt"]
    assert (copy / "a.txt").read_text() == "33"


def test_a_folder_whose_upload_was_cut_is_not_read_and_may_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, put = Path("memory://report"), MemoryFileSystem.put_file
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)

    def cut(self: Any, source: str, target: str, **more: Any) -> None:
        if target.endswith("b.txt"):
            raise ConnectionResetError("Connection reset by peer")
        put(self, source, target, **more)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "put_file", cut)
        with pytest.raises(GazeError, match=r"^memory://report/b.txt: the storage failed \(Conn"):
            storage.put(tmp_path, url)
    assert "/report/a.txt" in names()
    with pytest.raises(GazeError, match=r"^memory://report: this folder is not complete"):
        storage.fetched(url)
    require_free(url, known_by="results.json")
    storage.put(tmp_path, url)
    assert names() == ["/report/a.txt", "/report/b.txt"]
    with pytest.raises(GazeError, match=r"this folder is not empty; name a new one$"):
        require_free(url, overwrite=True, known_by="results.json")
    require_free(url, overwrite=True, known_by="**/a.txt")


def short(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads end early without an error."""
    get = MemoryFileSystem.get_file

    def half(self: Any, name: str, target: str, **more: Any) -> None:
        get(self, name, target, **more)
        content = Path(target).read_bytes()
        Path(target).write_bytes(content[: len(content) // 2])

    monkeypatch.setattr(MemoryFileSystem, "get_file", half)


def test_a_short_download_or_upload_is_refused(
    tmp_path: Path, memory: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_object(Path("memory://a/gaze.csv"), b"0123456789")
    with monkeypatch.context() as patch:
        short(memory, patch)
        with pytest.raises(GazeError, match=r"^memory://a/gaze.csv: 5 of 10 bytes were received"):
            storage.fetched("memory://a/gaze.csv")
    assert storage.fetched("memory://a/gaze.csv").read_bytes() == b"0123456789"
    (tmp_path / "b").write_bytes(b"0123456789")
    with monkeypatch.context() as patch:
        lost = {"size": 4, "type": "file"}
        patch.setattr(MemoryFileSystem, "info", lambda self, path, **more: lost)
        with pytest.raises(GazeError, match="the upload is incomplete: 4 of 10 bytes"):
            storage.put(tmp_path / "b", Path("memory://a/b"))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError("Forbidden"), "access is denied; check AWS_ACCESS_KEY_ID or AWS_PROFILE"),
        (type("NoCredentialsError", (Exception,), {})("x"), "there are no credentials; set AWS_"),
        (TimeoutError(), r"the storage failed \(TimeoutError\); check the connection"),
    ],
)
def test_what_fails_is_one_line(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: Any, **more: Any) -> Any:
        raise error

    fs = fsspec.filesystem("memory")
    monkeypatch.setattr("upath.implementations.cloud.S3Path.fs", fs)
    monkeypatch.setattr(MemoryFileSystem, "info", failing)
    with pytest.raises(GazeError, match=rf"^s3://bucket/study: {line}"):
        gd.read("s3://bucket/study")


def test_without_its_package_a_url_names_the_extra(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    code, _, errors = run("inspect", "gs://bucket/study")
    assert code == 2
    assert errors == (
        "error: gs://bucket/study: gs:// needs gcsfs; pip install 'gazediffusion[cloud]'\n"
    )


def test_credentials_in_a_url_are_refused_and_not_repeated(run: RunCommand) -> None:
    for words in (("inspect", "s3://key:secret@bucket/a"), ("info", "s3://key:secret@bucket/a")):
        code, said, errors = run(*words)
        assert code == 2
        assert "s3://***@bucket/a: credentials do not belong in a URL" in errors
        assert "secret" not in said + errors


def test_a_name_that_leads_out_of_the_copies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    write_object(Path("memory://study/a.csv"), b"x")
    name = "/study/../../../evil.csv"
    found = {"name": name, "size": 1, "type": "file"}
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "info", lambda self, path, **more: found)
        with pytest.raises(GazeError, match="this name cannot be a local file's"):
            storage.fetched(f"memory:/{name}")
    monkeypatch.setattr(MemoryFileSystem, "find", lambda self, path, **more: {name: found})
    with pytest.raises(GazeError, match="there is no such file or folder"):
        storage.fetched("memory://study")


def test_files_are_hashed_probed_and_read_through_urls(tmp_path: Path) -> None:
    url = Path("memory://x/values.json")
    writable(url)
    assert names() == []
    write_json(url, {"a": 1})
    assert read_json(url) == {"a": 1}
    write_json(tmp_path / "values.json", {"a": 1})
    assert sha256_of(url) == sha256_of(tmp_path / "values.json")
    with pytest.raises(GazeError, match=r"^memory://x/values.json: this file exists already"):
        require_free(url)
    with pytest.raises(GazeError, match=r"^memory://x/values.json: a folder is written"):
        require_free(url, known_by="a")
    with pytest.raises(GazeError, match=r"^memory://y: there is no such file or folder"):
        gd.read("memory://y")


def test_recordings_at_urls_are_those_of_a_local_study(tmp_path: Path) -> None:
    study("memory://study")
    study(str(tmp_path / "study"))
    local = [(one.participant, len(one)) for one in gd.read(tmp_path / "study")]
    assert [(one.participant, len(one)) for one in gd.read("memory://study")] == local
    assert len(gd.read("memory://study/*01*.asc").sources) == 1
    pattern = r"memory://study/sub-(?P<participant>\d+)"
    found = [one.participant for one in gd.read("memory://study", participant_pattern=pattern)]
    assert found == [name for name, _ in local]
    with pytest.raises(GazeError, match=r"^memory://study/\*.csv: nothing matches"):
        gd.read("memory://study/*.csv")
    fsspec.filesystem("memory").pipe_file("/study/bad.asc", b"** CONVERTED FROM x\nMSG 1 \n")
    with pytest.raises(GazeError, match=r"^memory://study/bad.asc"):
        list(gd.read("memory://study/bad.asc"))


def test_a_stopped_set_resumes_from_what_is_kept_on_this_machine(
    run: RunCommand, steerable_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["generate", "--model", steerable_folder, "-n", 4, "--batch-size", 2, "--steps", 2]
    given += ["--device", "cpu", "-o", "memory://out/gaze.parquet"]
    once = jobs.Job.once

    def stopped(self: jobs.Job, name: str, make: Any) -> Path:
        once(self, name, make)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs.Job, "once", stopped)
        code, said, _ = run(*given)
    assert code == 130
    assert "windows are generated and kept on this machine" in said
    assert names() == []
    code, said, errors = run(*given)
    assert code == 0, errors
    assert "resuming memory://out/gaze.parquet: 2 of 4 windows are generated" in said
    assert names() == [f"/out/gaze.{ending}" for ending in ("json", "md", "parquet")]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_files_at_urls_are_evaluated() -> None:
    rng = np.random.default_rng(0)
    walks = rng.normal(0, 0.01, (60, 2, 500)).cumsum(axis=2)
    participants = [f"P{k % 6}" for k in range(60)]
    real = gd.Windows.from_array(walks, 250, gd.Screen(1280, 720), participants=participants)
    real.save("memory://day=1/real.safetensors")
    real.save("memory://day=1/copy.csv")
    config = gd.EvaluationConfig(quick=True)
    urls = ["memory://day=1/copy.csv", "same=memory://day=1/real.safetensors"]
    steps: list[str] = []
    found = gd.evaluate_files(
        urls, "memory://day=1/real.safetensors", config=config, progress=steps.append
    )
    assert list(found.ratios) == ["copy", "same"]
    assert "reading memory://day=1/real.safetensors" in steps


def test_recordings_are_labelled_scored_and_described_at_urls(steerable_folder: Path) -> None:
    storage.put(steerable_folder, Path("memory://run"))
    config = gd.SimulationConfig(n_participants=1, minutes=0.1, trial_seconds=6, rate_hz=250)
    gd.write_simulation(config, "memory://study", "csv")
    labelled = gd.label("memory://study", "memory://labelled.csv", "memory://run")
    assert [shown(path) for path in labelled.paths] == [
        f"memory://labelled.{ending}" for ending in ("csv", "json", "md")
    ]
    (source,) = gd.describe("memory://labelled.csv")["sources"]
    assert source["url"] == f"memory://study/{source['name']}"
    gd.score("memory://study", "memory://scores.parquet", "memory://run", has_likelihood=False)
    assert "/scores.parquet" in names()


def test_a_run_at_a_url_is_calibrated_there(steerable_folder: Path) -> None:
    url = Path("memory://run")
    storage.put(steerable_folder, url)
    before = read_objects(url)
    model = gd.load(url, device="cpu").calibrate(n=4, rounds=1)
    assert model.is_calibrated
    changed = {name for name, one in read_objects(url).items() if one != before[name]}
    assert changed == {"conditioning.safetensors"}  # the prior


def test_a_run_is_trained_at_a_url_and_resumed_from_it(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "windows.safetensors")
    there: list[list[str]] = []
    stop = {"after": 1}

    def on_epoch(epoch: Any) -> None:
        there.append(names())

    def train(folder: Path | str, **more: Any) -> gd.Model:
        return gd.train(
            windows, folder, TINY, seed=0, device="cpu", compiled=False, on_epoch=on_epoch, **more
        )

    with pytest.raises(gd.StoppedError, match=r"memory://run is saved"):
        train("memory://run", should_stop=lambda: len(there) >= stop["after"])
    assert "/run/config.json" in there[0]
    copy = storage.fetched("memory://run")
    for path in [one for one in copy.rglob("*") if one.is_file()]:
        path.unlink()  # as on another machine
    train("memory://run")
    train(tmp_path / "run")
    local = {path.name: sha256_of(path) for path in (tmp_path / "run").glob("*.safetensors")}
    assert local
    for name, digest in local.items():
        assert sha256_of(Path("memory://run") / name) == digest
    assert repr(gd.load("memory://run")) == repr(gd.load(tmp_path / "run"))


def test_experiments_at_a_url_are_resumed_from_it(tmp_path: Path) -> None:
    assert gd.reproduce("memory://try", tiny=True, until="windows") is None
    names = storage.names_in(Path("memory://try"))
    assert "data.json" in names
    before = sha256_of(Path("memory://try/data.json"))
    gd.reproduce("memory://try", tiny=True, until="windows")  # it knows its recordings
    assert sha256_of(Path("memory://try/data.json")) == before


def test_a_log_of_tensorboard_is_uploaded_with_its_run(tmp_path: Path, run: RunCommand) -> None:
    saved_windows(tmp_path / "windows.safetensors")
    options = ("--recipe", "position-tiny", "--epochs", "1", "--device", "cpu", "--tensorboard")
    code, _, errors = run("train", tmp_path / "windows.safetensors", "-o", "memory://a", *options)
    assert code == 0, errors
    assert any(name.startswith("/a/tensorboard/events.out.tfevents.") for name in names())
