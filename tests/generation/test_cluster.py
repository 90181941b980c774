"""Parts by the workers of a real Ray cluster: nodes are processes of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation import cluster as engine
from gazediffusion.generation.journal import JOURNAL, MANIFEST
from tests.conftest import SCREEN, RunCommand
from tests.parts import walks, write_parts

N, PART = 40, 2
NODE = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
HOW: dict[str, Any] = {"part_size": PART, "batch_size": 2, "steps": 5}
# Of Ray and of what it starts, not of this package.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, model: gd.Model) -> dict[str, bytes]:
    """The files that this process writes."""
    folder = tmp_path_factory.mktemp("local") / "parts"
    gd.generate_dataset(model, folder, N, **HOW)
    return files(folder)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of one node with one core."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'gazediffusion[cluster]'")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    yield cluster
    cluster.shutdown()


Watch = Callable[[Any], None]
Watched = Callable[[Watch], list[list[int]]]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Call a function with the engine whenever it has given parts; the parts of lost workers.

    No part is given before two workers are ready.
    """

    def watch(on_feed: Watch) -> list[list[int]]:
        lost: list[list[int]] = []
        feed, lose = engine._Engine.feed, engine._Engine.lose
        has_begun = False

        def fed(self: Any) -> None:
            nonlocal has_begun
            has_begun = has_begun or sum(worker.is_ready for worker in self.workers) == 2
            if has_begun:
                feed(self)
                on_feed(self)

        def losing(self: Any, worker: Any, error: Exception) -> None:
            lost.append(list(worker.given))
            lose(self, worker, error)

        monkeypatch.setattr(engine._Engine, "feed", fed)
        monkeypatch.setattr(engine._Engine, "lose", losing)
        return lost

    return watch


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, nodes: Any, model: gd.Model) -> Path:
    """A folder of which one worker wrote half, when Ctrl-C came."""
    folder = tmp_path_factory.mktemp("stopped") / "parts"

    def stop(done: float) -> None:
        if done >= N // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gd.generate_dataset(
            model, folder, N, engine="ray", address=nodes.address, progress=stop, **HOW
        )
    return folder


def test_one_worker_writes_the_bytes_of_one_process_until_it_is_stopped(
    stopped: Path, expected: dict[str, bytes]
) -> None:
    import ray

    assert not ray.is_initialized()
    there = files(stopped)
    lines = [json.loads(line) for line in there.pop(JOURNAL).splitlines()]
    noted = [f"part-{one['number']:06d}.parquet" for one in lines[1:]]
    assert len(noted) == N // PART // 2
    for name in noted:
        assert there[name] == expected[name]
    assert not {MANIFEST, "card.json"} & set(there)


def test_two_nodes_write_the_bytes_of_one_process(
    tmp_path: Path,
    stopped: Path,  # by the only node until then
    nodes: Any,
    steerable_folder: Path,
    expected: dict[str, bytes],
    run: RunCommand,
    watched: Watched,
) -> None:
    nodes.add_node(**NODE)
    at_work: set[str] = set()
    n_in_flight: set[int] = set()

    def look(running: Any) -> None:
        at_work.update(worker.node for worker in running.workers if worker.given)
        n_in_flight.update(len(worker.given) for worker in running.workers)

    watched(look)
    code, said, errors = run(
        *("generate", "--model", steerable_folder, "-n", N, "--steps", 5, "--batch-size", 2),
        *("--engine", "ray", "--address", nodes.address, "--part-size", PART, "--device", "cpu"),
        *("-o", tmp_path / "parts"),
    )
    assert code == 0, errors
    assert f"{N} synthetic windows" in said
    assert files(tmp_path / "parts") == expected
    assert len(at_work) == 2
    assert max(n_in_flight) == 2


def test_a_node_killed_and_one_added_lose_and_double_nothing(
    stopped: Path, nodes: Any, model: gd.Model, expected: dict[str, bytes], watched: Watched
) -> None:
    (second,) = nodes.worker_nodes
    killed: list[str] = []

    def kill(running: Any) -> None:
        at_work = [worker.node for worker in running.workers if worker.given]
        if not killed and second.node_id in at_work:
            killed.append(second.node_id)
            nodes.remove_node(second, allow_graceful=False)
            nodes.add_node(**NODE)

    lost, lines = watched(kill), list[str]()
    gd.generate_dataset(
        model, stopped, N, engine="ray", address=nodes.address, say=lines.append, **HOW
    )
    assert lines == [f"resuming {stopped}: {N // 2} of {N} windows are there"]
    assert killed
    assert any(lost), "the worker of the killed node had parts"
    assert files(stopped) == expected


@pytest.mark.slow
def test_a_cluster_prepares_the_bytes_of_one_process_and_names_a_damaged_file(
    tmp_path: Path, nodes: Any, run: RunCommand
) -> None:
    study = gd.SimulationConfig(n_participants=4, minutes=0.2, rate_hz=250)
    gd.write_simulation(study, tmp_path / "study", "asc")
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    words = ["prepare", tmp_path / "study", "--seconds", 2]
    by_ray = ["--engine", "ray", "--address", nodes.address]
    assert run(*words, "-o", here)[0] == 0
    code, said, errors = run(*words, "-o", there, *by_ray)
    assert code == 0, errors
    assert "windows, " in said
    assert there.read_bytes() == here.read_bytes()
    damaged = sorted((tmp_path / "study").rglob("*.asc"))[2]
    damaged.write_bytes(damaged.read_bytes()[:200])
    code, _, errors = run(*words, "-o", tmp_path / "new.safetensors", *by_ray)
    assert code == 2
    assert damaged.name in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "new.safetensors").exists()


@pytest.mark.slow
def test_a_cluster_counts_a_set_in_parts_as_one_process_does(tmp_path: Path, nodes: Any) -> None:
    windows = gd.Windows.from_array(walks(60, 2000), 250.0, SCREEN)
    folder = write_parts(tmp_path / "parts", windows, 8)
    how: dict[str, Any] = {"config": gd.EvaluationConfig(quick=True), "summary": "gazecom"}
    here = gd.evaluate_files([folder], **how, n_sample=25)
    there = gd.evaluate_files(
        [folder], **how, n_sample=25, engine="ray", address=nodes.address, n_workers=2
    )
    assert json.loads(there.to_json()) == json.loads(here.to_json())
    assert there.results["whole"]["synthetic"]["parts"]["n_windows"] == 60


def test_a_worker_of_another_version_or_without_the_folder_says_so(tmp_path: Path) -> None:
    worker = engine.Worker()
    with pytest.raises(GazeError, match=r"a worker has gazediffusion .*, this machine 0\.0\.0"):
        worker.start("0.0.0", b"", str(tmp_path), "", "cpu")
    with pytest.raises(GazeError, match=r"does not see this folder; .* share"):
        worker.start(gd.__version__, b"", str(tmp_path), "", "cuda")


def test_an_error_of_a_worker_is_the_one_line_that_it_raised() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'gazediffusion[cluster]'")
    from ray.exceptions import RayTaskError

    error, bug = GazeError("the disk is full"), ValueError("bug")
    assert engine._own(RayTaskError("write", "Traceback", error)) is error
    of_bug = RayTaskError("write", "Traceback", bug)
    assert engine._own(of_bug) is of_bug


def test_a_cluster_that_is_not_there_is_named(tmp_path: Path, model: gd.Model) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'gazediffusion[cluster]'")
    with pytest.raises(GazeError, match=r"no Ray cluster at `address` nowhere .*ray start"):
        gd.generate_dataset(model, tmp_path / "p", N, engine="ray", address="nowhere", **HOW)
    assert not (tmp_path / "p").exists()


def test_without_ray_the_remedy_is_named(
    tmp_path: Path, run: RunCommand, steerable_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, errors = run(
        *("generate", "--model", steerable_folder, "--engine", "ray", "-o", tmp_path / "p")
    )
    assert code == 2
    assert "Ray is not installed; pip install 'gazediffusion[cluster]'" in errors
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"device": "tpu"}, "`device` must be auto, cpu or cuda"),
        ({"n_workers": 0}, "`n_workers` must be 1 or more"),
    ],
)
def test_bad_settings_are_refused_before_a_connection(given: Any, problem: str) -> None:
    with pytest.raises(GazeError, match=problem), engine.connected(**given):
        pass


# Places of workers


class Nodes:
    """Stands for Ray: a list of nodes."""

    def __init__(self, *resources: dict[str, float], is_alive: bool = True) -> None:
        self.listed = [
            {"NodeID": str(k), "Alive": is_alive, "Resources": one}
            for k, one in enumerate(resources)
        ]

    def nodes(self) -> list[dict[str, Any]]:
        return self.listed


@pytest.mark.parametrize(
    ("device", "places"),
    [
        ("auto", {"0": ("cuda", 4), "1": ("cpu", 8)}),
        ("cpu", {"0": ("cpu", 16), "1": ("cpu", 8)}),
        ("cuda", {"0": ("cuda", 4)}),
    ],
)
def test_workers_take_the_gpus_of_a_node_or_else_its_cores(device: str, places: Any) -> None:
    one = object.__new__(engine._Engine)
    one.ray, one.device = Nodes({"CPU": 16, "GPU": 4}, {"CPU": 8}, {"memory": 1e9}), device
    assert dict(one.places()) == places
    one.ray = Nodes({"CPU": 16}, is_alive=False)
    assert dict(one.places()) == {}
