"""One function of many items, by this process, by several, or by the workers of a Ray cluster.

The function must depend on its arguments alone. Results come in the order of the items, and few are
in flight, so that memory holds few of them. What all items share is sent to each worker once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

from gazediffusion import __version__
from gazediffusion.errors import GazeError

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Item], Result]

ENGINES = ("local", "ray")
_PER_WORKER = 2  # items in flight: one at work, the next one waiting
_CONNECTION_S = 15  # until a cluster must have answered


def is_in_this_process(engine: str, n_workers: int | None, address: str | None) -> bool:
    """Whether no other process is requested; settings that do not fit together are refused."""
    if engine not in ENGINES:
        raise GazeError(f"`engine` must be local or ray, not {engine!r}")
    if n_workers is not None and n_workers < 1:
        raise GazeError(f"`n_workers` must be 1 or more, not {n_workers}")
    if engine == "local" and address is not None:
        raise GazeError("`address` needs `engine` ray")
    return engine == "local" and n_workers in (None, 1)


def in_order(
    work: Work[Item, Result],
    items: Sequence[Item],
    engine: str = "local",
    n_workers: int | None = None,
    address: str | None = None,
) -> Generator[Result, None, None]:
    """work(item) for each item, in their order.

    work: an instance of a class of a module, which is pickled and sent to each worker once. Where
    it `may_use_gpu`, each worker of a cluster with GPUs has one, and `work.on_device("cuda")` works
    there. n_workers: of `local` one by default, of `ray` one for each core or GPU of the cluster.
    When the caller stops, for whatever reason, so do the workers.
    """
    if is_in_this_process(engine, n_workers, address):
        return (work(item) for item in items)
    if engine == "local":
        return _by_processes(work, items, n_workers or 1)
    return _by_ray(work, items, n_workers, address)


_of_worker: list[Any] = []  # what a process of the pool does


def _by_processes(
    work: Work[Item, Result], items: Sequence[Item], n: int
) -> Generator[Result, None, None]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Started afresh: threads of libraries that are loaded here do not survive a fork.
    pool = ProcessPoolExecutor(n, get_context("spawn"), _begin, (pickle.dumps(work),))
    waiting: deque[Any] = deque()
    is_done = False
    try:
        for item in items:
            if len(waiting) == n * _PER_WORKER:
                yield waiting.popleft().result()
            with _held_interrupts():
                waiting.append(pool.submit(_call, item))
        while waiting:
            yield waiting.popleft().result()
        is_done = True
    except BrokenProcessPool as error:
        raise GazeError("a worker was killed", remedy="try fewer with `n_workers`") from error
    finally:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=is_done, cancel_futures=True)
        for worker in [] if is_done else workers:
            worker.terminate()


@contextlib.contextmanager
def _held_interrupts() -> Iterator[None]:
    """Ctrl-C waits; a process that is started meanwhile never sees it, from its first line on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(packed: bytes) -> None:
    _of_worker.append(pickle.loads(packed))


def _call(item: Any) -> Any:
    return _of_worker[0](item)


class _OnCluster:
    """What a worker of Ray Data does with each row: {"item": ITEM} gives {"packed": RESULT}.

    An error of ours is a result too, since Ray would wrap it.
    """

    def __init__(self, version: str, packed: bytes, on_gpu: bool) -> None:
        self.version, self.packed, self.on_gpu = version, packed, on_gpu
        self.work: Any = None

    def __call__(self, row: dict[str, Any]) -> dict[str, bytes]:
        try:
            found: Any = self.started()(row["item"])
        except GazeError as error:
            found = error
        return {"packed": pickle.dumps(found)}

    def started(self) -> Any:
        """The work, on the GPU of this worker where it has one."""
        if self.version != __version__:
            raise GazeError(
                f"a worker has gazediffusion {__version__}, this machine {self.version}",
                remedy="install the same version on all machines of the cluster",
            )
        if self.work is None:
            work = pickle.loads(self.packed)
            self.work = work.on_device("cuda") if self.on_gpu else work
        return self.work


def _by_ray(
    work: Work[Item, Result], items: Sequence[Item], n_workers: int | None, address: str | None
) -> Generator[Result, None, None]:
    """By Ray Data, which starts workers, retries what a lost one did, and keeps the order."""
    if not items:
        return
    with ray_connection(address) as ray:
        from ray.data import ActorPoolStrategy, DataContext

        context = DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # we say what went wrong
        context.execution_options.preserve_order = True
        resources = ray.cluster_resources()
        on_gpu = bool(getattr(work, "may_use_gpu", False) and resources.get("GPU"))
        n_places = max(1, int(resources.get("GPU" if on_gpu else "CPU", 1)))
        most = min(n_workers or n_places, len(items))
        rows = ray.data.from_items([{"item": one} for one in items], override_num_blocks=len(items))
        rows = rows.map(
            _OnCluster,
            fn_constructor_args=(__version__, pickle.dumps(work), on_gpu),
            compute=ActorPoolStrategy(min_size=1, max_size=most),
            **({"num_gpus": 1} if on_gpu else {"num_cpus": 1}),
        )
        try:
            for row in rows.iter_rows():
                found = pickle.loads(row["packed"])
                if isinstance(found, GazeError):
                    raise found
                yield found
        except ray.exceptions.RayTaskError:
            raise  # a bug
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())
            raise GazeError(f"workers of the cluster were lost: {reason[-300:]}") from error


@contextlib.contextmanager
def ray_connection(address: str | None = None) -> Iterator[Any]:
    """The module ray, connected; a connection made here is closed at the end.

    address: of the cluster, `auto` for the one that this machine is part of; None is Ray's own
    choice: RAY_ADDRESS, a cluster on this machine, or else the cores of this machine.
    """
    try:
        import ray
    except ImportError as error:
        raise GazeError(
            "Ray is not installed", remedy="pip install 'gazediffusion[cluster]'"
        ) from error
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent elsewhere
    given = address or os.environ.get("RAY_ADDRESS")
    if given and "://" not in given and given not in ("auto", "local"):
        _require_answer(given)
    try:
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(address, " ".join(str(error).split())) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Refuse an address where no cluster answers; Ray itself tries for two minutes."""
    check = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    try:
        done = subprocess.run(check, capture_output=True, timeout=_CONNECTION_S, check=False)
    except subprocess.TimeoutExpired:
        raise _no_cluster(address, f"no answer within {_CONNECTION_S} s") from None
    if done.returncode:
        raise _no_cluster(address, "no cluster answers")


def _no_cluster(address: str | None, problem: str) -> GazeError:
    return GazeError(
        f"no Ray cluster at `address` {address} ({problem})",
        remedy="start one with `ray start --head`, or leave `address` out",
    )
