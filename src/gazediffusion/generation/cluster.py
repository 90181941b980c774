"""Parts of a set by the workers of a Ray cluster (Moritz et al. 2018).

A worker is an actor: one for each GPU of a node, or for each core of a node without. It receives
the model once and writes parts into a folder that all nodes share. This process decides which part
is written by whom, keeps two in flight for each worker, and gives the parts of a lost worker to
others. Nodes may come and go.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gazediffusion.errors import GazeError
from gazediffusion.generation.journal import Part
from gazediffusion.generation.partitions import PartFolder, Plan, require_plan
from gazediffusion.parallel import ray_connection
from gazediffusion.storage import is_remote, url_of
from gazediffusion.version import __version__

DEVICES = ("auto", "cpu", "cuda")
_IN_FLIGHT = 2  # parts of a worker: one at work, the next one waiting
_MOST_LOSSES = 5  # workers that one part, or the start on one node, may cost
_LOOK_S = 1.0  # seconds between looks at the nodes


class Worker:
    """What runs on a node: a plan on its device."""

    def start(self, version: str, packed: bytes, folder: str, digest: str, device: str) -> None:
        """Take the plan, which this process pickled; another version of the package is refused."""
        if version != __version__:
            raise GazeError(
                f"a worker has gazediffusion {__version__}, this machine {version}",
                remedy="install the same version on all machines of the cluster",
            )
        import torch

        if device == "cpu":
            torch.set_num_threads(1)
        require_plan(Path(folder), digest)
        plan: Plan = pickle.loads(packed)
        self.plan, self.folder = plan.on_device(device), Path(folder)

    def write(self, number: int) -> Part:
        """Write a part."""
        return self.plan.write(self.folder, number)


@contextlib.contextmanager
def connected(
    address: str | None = None, device: str = "auto", n_workers: int | None = None
) -> Iterator[Cluster]:
    """A Ray cluster; a connection made here is closed at the end, one of the caller stays.

    address: of the cluster, `auto` for the one that this machine is part of; None is Ray's own
    choice: RAY_ADDRESS, a cluster on this machine, or else the cores of this machine. device: auto
    (GPUs on nodes that have some, cores on others), cpu or cuda. n_workers: at most so many.
    """
    if device not in DEVICES:
        raise GazeError(f"`device` must be auto, cpu or cuda on a cluster, not {device!r}")
    if n_workers is not None and n_workers < 1:
        raise GazeError(f"`n_workers` must be 1 or more, not {n_workers}")
    with ray_connection(address) as ray:
        yield Cluster(ray, device, n_workers)


@dataclass(frozen=True)
class Cluster:
    """A cluster that `connected` gives: Ray itself, and which workers it may have."""

    ray: Any
    device: str
    n_workers: int | None

    def write(
        self,
        found: PartFolder,
        on_part: Callable[[Part], None],
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Write the missing parts of a folder; on_part: called with each."""
        _Engine(self, found, on_part, say).run()


@dataclass(eq=False)
class _Hired:
    """A worker as this process knows it: its node, and the parts it was given, oldest first."""

    node: str
    actor: Any
    is_ready: bool = False
    given: list[int] = field(default_factory=list)


class _Engine:
    """Gives parts to workers until all are written."""

    def __init__(
        self,
        cluster: Cluster,
        found: PartFolder,
        on_part: Callable[[Part], None],
        say: Callable[[str], None],
    ) -> None:
        self.ray, self.device, self.n_workers = cluster.ray, cluster.device, cluster.n_workers
        self.found, self.on_part, self.say = found, on_part, say
        self.waiting = deque(found.missing)
        self.workers: list[_Hired] = []
        self.pending: dict[Any, tuple[_Hired, int | None]] = {}  # None: the worker starts
        self.losses: Counter[int | str] = Counter()  # by part, and by node for starts
        self.looked_s = -_LOOK_S
        self.has_said = False
        self.packed = self.ray.put(pickle.dumps(found.plan.on_device("cpu")))

    def run(self) -> None:
        """Write all parts; workers end with it, whatever happens."""
        try:
            while self.waiting or any(worker.given for worker in self.workers):
                if time.monotonic() - self.looked_s >= _LOOK_S:
                    self.hire()
                    self.looked_s = time.monotonic()
                self.receive()
                self.feed()
        finally:
            for worker in self.workers:
                self.end(worker)

    def hire(self) -> None:
        """A worker for each GPU, or core, of the nodes there are that has none."""
        n_parts = len(self.waiting) + sum(len(worker.given) for worker in self.workers)
        most = min(n_parts, self.n_workers or n_parts)
        places = {node: place for node, place in self.places() if self.losses[node] < _MOST_LOSSES}
        at_node = Counter(worker.node for worker in self.workers)
        for node, (device, n_places) in places.items():
            n_new = min(n_places - at_node[node], most - len(self.workers))
            for _ in range(n_new):
                self.workers.append(self.hired(node, device))
        if not self.workers and not self.has_said:
            kind = {"auto": "a core or GPU", "cpu": "a core", "cuda": "a GPU"}[self.device]
            self.say(f"waiting for a node with {kind}")
            self.has_said = True

    def places(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Each node with the device of its workers and how many it has room for."""
        for node in self.ray.nodes():
            if not node["Alive"]:
                continue
            n_gpus, n_cpus = (int(node["Resources"].get(name, 0)) for name in ("GPU", "CPU"))
            if n_gpus and self.device != "cpu":
                yield node["NodeID"], ("cuda", n_gpus)
            elif n_cpus and self.device != "cuda":
                yield node["NodeID"], ("cpu", n_cpus)

    def hired(self, node: str, device: str) -> _Hired:
        """A new worker on a node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        needs = {"num_gpus": 1, "num_cpus": 0} if device == "cuda" else {"num_cpus": 1}
        where = NodeAffinitySchedulingStrategy(node, soft=False)
        actor = self.ray.remote(Worker).options(**needs, scheduling_strategy=where).remote()
        worker = _Hired(node, actor)
        given, digest = self.found.folder, self.found.plan.digest
        folder = url_of(given) if is_remote(given) else str(given.resolve())
        started = actor.start.remote(__version__, self.packed, folder, digest, device)
        self.pending[started] = worker, None
        return worker

    def feed(self) -> None:
        """Give waiting parts to workers; near the end one at a time, so that none waits long."""
        for n_given in range(_IN_FLIGHT):
            for worker in self.workers:
                is_near_end = n_given > 0 and len(self.waiting) <= len(self.workers)
                if worker.is_ready and len(worker.given) == n_given and not is_near_end:
                    if not self.waiting:
                        return
                    number = self.waiting.popleft()
                    worker.given.append(number)
                    self.pending[worker.actor.write.remote(number)] = worker, number

    def receive(self) -> None:
        """Take what workers have done, and notice those that are lost."""
        if not self.pending:
            time.sleep(_LOOK_S / 5)
            return
        done, _ = self.ray.wait([*self.pending], num_returns=1, timeout=_LOOK_S)
        for reference in done:
            worker, number = self.pending.pop(reference)
            try:
                part = self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as error:
                raise _own(error) from None
            except self.ray.exceptions.RayError as error:
                self.lose(worker, error)
                continue
            if number is None:
                worker.is_ready = True
            else:
                worker.given.remove(number)
                self.on_part(part)

    def lose(self, worker: _Hired, error: Exception) -> None:
        """A worker, or its node, is gone: others write its parts."""
        self.end(worker)
        self.workers.remove(worker)
        self.pending = {one: to for one, to in self.pending.items() if to[0] is not worker}
        cause: int | str = worker.given[0] if worker.given else worker.node
        self.losses[cause] += 1
        self.waiting.extendleft(reversed(worker.given))
        is_alive = any(node["Alive"] for node in self.ray.nodes() if node["NodeID"] == worker.node)
        if self.losses[cause] >= _MOST_LOSSES and (worker.given or (is_alive and not self.workers)):
            what = f"writing part {cause}" if worker.given else "starting"
            reason = " ".join(str(error).split())
            raise GazeError(f"{_MOST_LOSSES} workers were lost while {what}: {reason}")

    def end(self, worker: _Hired) -> None:
        """End the process of a worker."""
        with contextlib.suppress(Exception):
            self.ray.kill(worker.actor)


def _own(error: Any) -> Exception:
    """What went wrong in a worker: our error, or Ray's with the worker's traceback."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, GazeError) else error
