"""Sets in parts: what is in them, what is kept of them, what is refused; here and by Ray."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation import dataset
from gazediffusion.generation.dataset import Parts, WritePart
from gazediffusion.storage import INCOMPLETE, read_parquet_header
from tests.conftest import RunCommand

N = 7
HOW: dict[str, Any] = {"batch_size": 2, "steps": 2}
NAMES = [f"part-{k:06d}.parquet" for k in range(3)]


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, model: gd.Model) -> dict[str, bytes]:
    """The files of a set in three parts."""
    folder = tmp_path_factory.mktemp("expected") / "parts"
    written(model, folder)
    return files(folder)


def written(model: gd.Model, folder: Path | str, n: int = N, size: int = 3, **more: Any) -> Any:
    parts = Parts(
        part_size=size, **{key: more.pop(key) for key in ("engine", "address") if key in more}
    )
    return model.sample_to(folder, n, parts=parts, **{**HOW, **more})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stop_at(n: int) -> Any:
    def progress(phase: str, done: float, total: float, note: str) -> None:
        if done >= n:
            raise KeyboardInterrupt

    return progress


def test_parts_have_the_windows_of_the_set_in_order(tmp_path: Path, model: gd.Model) -> None:
    folder, done = tmp_path / "parts", list[float]()
    paths = written(model, folder, labels=True, progress=lambda *shown: done.append(shown[1]))
    assert paths == [folder, folder / "card.json", folder / "README.md"]
    assert done == sorted(done)
    assert {0, 3, 6, 7} <= set(done)
    assert sorted(files(folder)) == sorted([*NAMES, "README.md", "card.json"])
    expected = model.sample(N, **HOW)
    frame = pl.read_parquet(folder / "part-*.parquet")
    assert frame["trial"].unique(maintain_order=True).to_list() == [str(k) for k in range(N)]
    gaze = frame.select("x_px", "y_px").to_numpy().reshape(N, -1, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(gaze, expected.to_numpy("px"), rtol=1e-5, atol=2e-2)
    assert frame["task"].to_list()[:: expected.length] == list(expected.identity["task"])
    header = read_parquet_header(folder / NAMES[1])
    assert header is not None
    assert header["part"] == {"first_window": 3, "of_windows": N}

    # The card, readers and the columns are those of the set in one file.
    model.sample_to(tmp_path / "set", N, labels=True, **HOW)
    of_parts, of_set = (
        json.loads((tmp_path / one / "card.json").read_text()) for one in ("parts", "set")
    )
    assert of_parts == {**of_set, "parts": {"part_size": 3, "batch_size": 2}}
    assert frame.columns == pl.read_parquet(tmp_path / "set" / "recordings.parquet").columns
    assert [one.trial for one in gd.read(folder)] == [str(k) for k in range(N)]
    described = gd.describe(folder)
    assert (described["kind"], described["n_windows"], described["seed"]) == ("set", N, 0)


@pytest.mark.parametrize("url", [False, True])
def test_a_stopped_call_resumes_from_whole_parts_and_cleans_what_was_killed(
    tmp_path: Path, model: gd.Model, expected: dict[str, bytes], url: bool, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = Path("memory://resumed/parts") if url else tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        written(model, folder, progress=stop_at(4))
    store = fsspec.filesystem("memory").store
    there = [one for one in store if one.startswith("/resumed/")] if url else [*files(folder)]
    assert sorted(Path(one).name for one in there) == [INCOMPLETE, NAMES[0]]
    half = f".{NAMES[1]}.1-0123abcd.part"
    if not url:
        (folder / half).write_bytes(b"half")
        (tmp_path / ".parts.lock").touch()  # of a killed process
    lines: list[str] = []
    written(model, folder, say=lines.append)
    assert [one.partition(": ")[2] for one in lines] == [f"3 of {N} windows are there"]
    if url:
        found = {Path(name).name: bytes(one.getbuffer()) for name, one in store.items()}
        assert {name: found[name] for name in expected} == expected
        assert INCOMPLETE not in found
        return
    assert files(folder) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]

    # A complete set of the same settings is left alone, one of others is named.
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    written(model, folder)
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    for n, more, change in [
        (N, {"seed": 1}, "seed 0, not 1"),
        (8, {}, "n_windows 7, not 8"),
        (N, {"size": 4}, "parts part_size 3, not 4"),
        (N, {"batch_size": 1}, "parts batch_size 2, not 1"),
    ]:
        with pytest.raises(GazeError, match=rf"other settings or inputs \({change}.*`overwrite`"):
            written(model, folder, n, **more)
    assert files(folder) == expected
    written(model, folder, 2, overwrite=True)
    assert sorted(files(folder)) == ["README.md", "card.json", NAMES[0]]


@pytest.mark.parametrize("name", ["notes.txt", "card.json", "recordings.parquet"])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, model: gd.Model, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(GazeError, match="not empty"):
        written(model, tmp_path)
    assert list(files(tmp_path)) == [name]


def test_without_a_size_a_part_has_256_windows_or_a_batch(
    tmp_path: Path, model: gd.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def note(self: WritePart, number: int) -> int:
        sizes.append(self.part_size)
        raise KeyboardInterrupt

    monkeypatch.setattr(WritePart, "__call__", note)
    for batch_size in (2, 600):
        with pytest.raises(KeyboardInterrupt):
            model.sample_to(tmp_path / f"{batch_size}", 1000, parts=Parts(), batch_size=batch_size)
    assert sizes == [256, 600]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"engine": "dask"}, "`engine` must be local or ray, not 'dask'"),
        ({"engine": "ray", "device": "tpu"}, "`device` must be auto, cpu or cuda"),
        ({"engine": "ray", "n_workers": 0}, "`n_workers` must be 1 or more"),
        ({"n_workers": 2}, "`n_workers` needs `engine` ray"),
        ({"address": "auto"}, "`address` needs `engine` ray"),
        ({"part_size": 0}, "`part_size` must be 1 or more"),
    ],
)
def test_bad_settings_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(GazeError, match=problem):
        Parts(**given)


def test_the_command_writes_the_same_parts_and_resumes(
    tmp_path: Path, run: RunCommand, steerable_folder: Path, model: gd.Model, monkeypatch: Any
) -> None:
    words = ["generate", "--model", steerable_folder, "-n", N, "--batch-size", 2, "--steps", 2]
    words += ["--device", "cpu", "-o", tmp_path / "p", "--engine", "local", "--set", "part_size=3"]
    write = WritePart.__call__

    def stopped(self: WritePart, number: int) -> int:
        if number == 2:
            raise KeyboardInterrupt
        return write(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(WritePart, "__call__", stopped)
        code, said, _ = run(*words)
    assert code == 130
    kept = f"stopped; 6 of {N} windows are generated and kept in {tmp_path / 'p'}"
    assert f"{kept}; the same command resumes" in said
    code, said, errors = run(*words)
    assert code == 0, errors
    assert f"resuming {tmp_path / 'p'}: 6 of {N} windows are there" in said
    written(model, tmp_path / "q")
    assert files(tmp_path / "p") == files(tmp_path / "q")
    code, _, errors = run(*words, "--format", "bids")
    assert code == 2
    assert "a set in parts is parquet, not bids" in errors


def test_without_ray_the_remedy_is_named(
    tmp_path: Path, model: gd.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(GazeError, match="Ray is not installed; pip install"):
        written(model, tmp_path / "p", engine="ray")
    assert not (tmp_path / "p").exists()


class KilledOnce(WritePart):
    """Its process is killed at the second part, the first time."""

    def __call__(self, number: int) -> int:
        killed = self.folder.parent / "killed"
        if number == 1 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(number)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of this process with two cores."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    path = os.pathsep.join(sys.path)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield ray
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Ray
@pytest.mark.parametrize("is_killed", [False, True])
def test_ray_writes_the_same_parts_also_where_a_worker_is_killed(
    tmp_path: Path,
    model: gd.Model,
    expected: dict[str, bytes],
    ray: Any,
    is_killed: bool,
    monkeypatch: Any,
) -> None:
    if is_killed:
        monkeypatch.setattr(dataset, "WritePart", KilledOnce)
    written(model, tmp_path / "p", engine="ray")
    assert files(tmp_path / "p") == expected
    assert (tmp_path / "killed").exists() == is_killed
    (tmp_path / "p" / INCOMPLETE).touch()
    with pytest.raises(GazeError, match="not empty"):
        written(model, tmp_path / "p", engine="ray")
    work = WritePart(model.sampling(1), tmp_path / "other", 1)
    with pytest.raises(GazeError, match=r"a worker does not see this folder; .* share"):
        work(0)
