"""One function of many items, by this process, by several, or by the tasks of a Ray cluster.

The function must depend on its arguments alone. Results come in the order of the items, and few are
in flight, so that memory holds few of them. What all items share is sent to each worker once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from gazediffusion.errors import GazeError
from gazediffusion.version import __version__

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

ENGINES = ("local", "ray")
_PER_WORKER = 2  # items in flight: one at work, the next one waiting


def is_in_this_process(engine: str, n_workers: int | None, address: str | None) -> bool:
    """Whether no other process is asked for; settings that do not fit together are refused."""
    if engine not in ENGINES:
        raise GazeError(f"`engine` must be local or ray, not {engine!r}")
    if n_workers is not None and n_workers < 1:
        raise GazeError(f"`n_workers` must be 1 or more, not {n_workers}")
    if engine == "local" and address is not None:
        raise GazeError("`address` needs `engine` ray")
    return engine == "local" and n_workers in (None, 1)


def in_order(
    function: Callable[[Shared, Item], Result],
    shared: Shared,
    items: Iterable[Item],
    engine: str = "local",
    n_workers: int | None = None,
    address: str | None = None,
) -> Generator[Result, None, None]:
    """function(shared, item) for each item, in their order.

    function: of a module, so that workers can import it. n_workers: of `local` one by default, of
    `ray` one for each core of the cluster. When the caller stops, for whatever reason, so do the
    workers.
    """
    if is_in_this_process(engine, n_workers, address):
        return (function(shared, item) for item in items)
    if engine == "local":
        return _by_processes(function, shared, items, n_workers or 1)
    return _by_ray(function, shared, items, n_workers, address)


_shared: dict[str, Any] = {}  # of a worker, by the name of the work


def _by_processes(
    function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item], n: int
) -> Generator[Result, None, None]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # Started afresh: threads of libraries that are loaded here do not survive a fork.
    pool = ProcessPoolExecutor(n, get_context("spawn"), _begin, (pickle.dumps(shared),))
    waiting: deque[Any] = deque()
    is_done = False
    try:
        for item in items:
            if len(waiting) == n * _PER_WORKER:
                yield waiting.popleft().result()
            with _held_interrupts():
                waiting.append(pool.submit(_call, function, "", item))
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
    """Start a worker."""
    _shared[""] = pickle.loads(packed)


def _call(function: Callable[[Any, Item], Result], name: str, item: Item) -> Result:
    return function(_shared[name], item)


def _by_ray(
    function: Callable[[Shared, Item], Result],
    shared: Shared,
    items: Iterable[Item],
    n_workers: int | None,
    address: str | None,
) -> Generator[Result, None, None]:
    with ray_connection(address) as ray:
        packed = ray.put(pickle.dumps((__version__, shared)))
        remote = ray.remote(_remote_call).options(num_cpus=1)
        waiting: deque[Any] = deque()
        rest = iter(items)
        try:
            while True:
                # Looked up each time: nodes come and go.
                n = n_workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
                for item in itertools.islice(rest, max(0, n * _PER_WORKER - len(waiting))):
                    waiting.append(remote.remote(function, [packed], item))
                if not waiting:
                    return
                yield ray.get(waiting.popleft())
        except ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, GazeError) else error) from None
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())
            raise GazeError(f"workers of the cluster were lost: {reason}") from error
        finally:
            for reference in waiting:
                with contextlib.suppress(Exception):
                    ray.cancel(reference, force=True)


def _remote_call(function: Callable[[Any, Item], Result], packed: list[Any], item: Item) -> Result:
    """Call a function in a worker, which unpacks what is shared once."""
    name = packed[0].hex()
    if name not in _shared:
        import ray

        version, shared = pickle.loads(ray.get(packed[0]))
        if version != __version__:
            raise GazeError(
                f"a worker has gazediffusion {__version__}, this machine {version}",
                remedy="install the same version on all machines of the cluster",
            )
        _shared.clear()
        _shared[name] = shared
    return _call(function, name, item)


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
    try:
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise GazeError(
            f"no Ray cluster at `address` {address} ({problem})",
            remedy="start one with `ray start --head`, or leave `address` out",
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
