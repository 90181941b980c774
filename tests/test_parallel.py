"""One function of many items: here, by processes, and by a real Ray cluster of this machine."""

from __future__ import annotations

import os
import pickle
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import gazediffusion as gd
from gazediffusion import parallel
from gazediffusion.errors import GazeError
from gazediffusion.parallel import in_order
from tests.conftest import RunCommand


@dataclass(frozen=True)
class Scaled:
    """Later items are done sooner."""

    factor: int

    def __call__(self, item: int) -> tuple[int, int]:
        time.sleep(0.02 * (3 - item % 4))
        return self.factor * item, os.getpid()


@dataclass(frozen=True)
class Noted:
    """Leave a file, then take long."""

    folder: Path

    def __call__(self, item: int) -> int:
        (self.folder / str(item)).write_text(str(os.getpid()))
        time.sleep(600 if item else 0)
        return item


def failing(item: int) -> int:
    if item == 2:
        raise GazeError("this one is bad", path="7.txt")
    return item


def killed(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_of_several_processes_come_in_the_order_of_the_items() -> None:
    here = list(in_order(Scaled(3), range(9)))
    there = list(in_order(Scaled(3), range(9), n_workers=2))
    assert [one for one, _ in here] == [one for one, _ in there] == [3 * k for k in range(9)]
    assert {process for _, process in here} == {os.getpid()}
    assert len({process for _, process in there} - {os.getpid()}) in (1, 2)


def test_an_error_of_a_worker_is_the_line_that_it_raised_and_results_before_it_come() -> None:
    found = in_order(failing, range(4), n_workers=2)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(GazeError, match=r"^7\.txt: this one is bad$"):
        next(found)


def test_a_worker_that_is_killed_is_one_line() -> None:
    with pytest.raises(GazeError, match="a worker was killed; try fewer with `n_workers`"):
        list(in_order(killed, range(3), n_workers=2))


def test_workers_end_when_the_caller_stops(tmp_path: Path) -> None:
    found = in_order(Noted(tmp_path), range(9), n_workers=2)
    assert next(found) == 0
    while len(list(tmp_path.iterdir())) < 3:
        time.sleep(0.01)
    with pytest.raises(KeyboardInterrupt):
        found.throw(KeyboardInterrupt)
    texts = [path.read_text() for path in tmp_path.iterdir()]
    workers = {int(text) for text in texts if text}  # one may have been ended before it wrote
    end = time.monotonic() + 60
    while any(map(is_alive, workers)):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert len(list(tmp_path.iterdir())) <= 5  # two at work and two waiting, after the first


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"engine": "spark"}, "`engine` must be local or ray, not 'spark'"),
        ({"n_workers": 0}, "`n_workers` must be 1 or more, not 0"),
        ({"address": "auto"}, "`address` needs `engine` ray"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(GazeError, match=problem):
        in_order(failing, [1], **given)


def test_a_worker_of_another_version_says_so() -> None:
    found = pickle.loads(parallel._OnCluster("0.0.0", b"", False)({"item": 0})["packed"])
    assert isinstance(found, GazeError)
    assert re.match(r"a worker has gazediffusion .*, this machine 0\.0\.0", str(found))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Ray
@pytest.mark.parametrize("kind", ["closed", "silent", "nowhere"])
def test_a_wrong_address_is_one_line_within_20_seconds(kind: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1] if kind == "silent" else 9
        address = "nowhere" if kind == "nowhere" else f"127.0.0.1:{port}"
        begun = time.monotonic()
        with pytest.raises(GazeError, match=rf"^no Ray cluster at `address` {address} .*ray start"):
            list(in_order(failing, [0], "ray", address=address))
        assert time.monotonic() - begun < 20


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of this process with two cores."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
    )
    yield ray
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Ray
def test_a_cluster_gives_the_same_results_and_names_a_damaged_file(
    tmp_path: Path, ray: Any, run: RunCommand
) -> None:
    assert [one for one, _ in in_order(Scaled(3), range(9), "ray")] == [3 * k for k in range(9)]
    with pytest.raises(GazeError, match=r"^7\.txt: this one is bad$"):
        list(in_order(failing, range(4), "ray"))
    study = gd.SimulationConfig(n_participants=4, minutes=0.2, rate_hz=250)
    gd.write_simulation(study, tmp_path / "study", "asc")
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    words = ["prepare", tmp_path / "study", "--seconds", 2]
    assert run(*words, "-o", here)[0] == 0
    code, said, errors = run(*words, "-o", there, "--engine", "ray")
    assert code == 0, errors
    assert "windows, " in said
    assert there.read_bytes() == here.read_bytes()
    damaged = sorted((tmp_path / "study").rglob("*.asc"))[2]
    damaged.write_bytes(damaged.read_bytes()[:200])
    code, _, errors = run(*words, "-o", tmp_path / "new.safetensors", "--engine", "ray")
    assert code == 2
    assert damaged.name in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "new.safetensors").exists()
