"""Training on several processes: each takes rows of every batch, and gradients are summed.

Processes are started by torchrun, which sets RANK, LOCAL_RANK and WORLD_SIZE. A batch is a function
of (seed, step), so every process draws all of it and takes its rows; the weights stay equal without
being sent. The first process alone writes the run folder.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.training.batches import Batch

T = TypeVar("T")
_STEP_LIMIT = timedelta(minutes=30)  # a first step includes compilation
_WORK_LIMIT = timedelta(days=7)  # the first process calibrates, on a CPU for hours
_END_LIMIT = timedelta(seconds=10)
_POLL_S = 0.01
_NEEDED = ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def joined(device: str) -> Processes | None:
    """The processes that torchrun has started, this one among them; None without torchrun.

    device: auto, cpu or cuda, which is the GPU of this process's number on its machine.
    """
    if "WORLD_SIZE" not in os.environ:
        return None
    missing = [name for name in _NEEDED if name not in os.environ]
    if missing:
        raise GazeError(
            f"the environment has WORLD_SIZE without {', '.join(missing)}",
            remedy="start several processes with torchrun, or unset WORLD_SIZE",
        )
    return Processes(_own_device(device))


def is_first() -> bool:
    """Whether this process writes: the first one that torchrun has started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def wait_for_all() -> None:
    """Return when every process has come here; at once without torchrun."""
    if dist.is_initialized():
        dist.barrier()


def by_first(processes: Processes | None, work: Callable[[], T]) -> T:
    """What `work` returns in the first process; in a single process, a plain call."""
    return work() if processes is None else processes.by_first(work)


class Processes:
    """The process group, this process's place in it, and what the processes do together.

    Collectives on tensors of the device are those of NCCL, or of Gloo on CPUs and where processes
    share a GPU; small messages use Gloo, so that they do not wait for a GPU. can_be_captured:
    whether the collectives can be part of a CUDA graph.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._is_lost = False
        if device.type == "cuda":
            torch.cuda.set_device(device)
        with self._together():
            if not dist.is_initialized():
                has_gpu = device.type == "cuda" and not _shares_gpu()
                found = rendezvous("env://", timeout=_STEP_LIMIT)
                store, rank, n = next(iter(found))
                store = dist.PrefixStore(_meeting(store, rank, n), store)  # type: ignore[attr-defined]
                dist.init_process_group(
                    "nccl" if has_gpu else "gloo",
                    store=store,
                    rank=rank,
                    world_size=n,
                    timeout=_STEP_LIMIT,
                )
                atexit.register(self._leave)
            self._messages = dist.new_group(backend="gloo", timeout=_STEP_LIMIT)
            self._work = dist.new_group(backend="gloo", timeout=_WORK_LIMIT)
            self._end = dist.new_group(backend="gloo", timeout=_END_LIMIT)
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.can_be_captured = dist.get_backend() == "nccl"

    @property
    def is_first(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def require_rows(self, batch_size: int) -> None:
        """Refuse a batch of which some process would have no row."""
        if batch_size < self.n:
            raise GazeError(
                f"a batch of {batch_size} windows cannot be shared by {self.n} processes",
                remedy="start fewer processes, or raise `batch_size`",
            )

    def rows(self, batch: Batch) -> Batch:
        """This process's rows of a batch; the processes' numbers of rows differ by one at most."""
        return tuple(torch.tensor_split(tensor, self.n)[self.rank] for tensor in batch)

    def has(self, number: int) -> bool:
        """Whether piece `number` of a work is this process's."""
        return number % self.n == self.rank

    def sum_(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors of one dtype over the processes, in place, as one message."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with self._together():
            dist.all_reduce(flat)
        parts: Any = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def agreed(self, *claims: bool) -> tuple[bool, ...]:
        """Each claim, true in every process if it is so in one."""
        message = torch.tensor(claims, dtype=torch.uint8)
        with self._together():
            dist.all_reduce(message, dist.ReduceOp.MAX, self._messages)
        return tuple(bool(claim) for claim in message)

    def by_first(self, work: Callable[[], T]) -> T:
        """What `work` returns in the first process, once every process has come here.

        The others wait for it. What it returns or raises, every process returns or raises.
        """
        with self._together():
            dist.barrier(self._work)
        answer: list[Any] = [None, None]
        if self.is_first:
            try:
                answer[0] = work()
            except (GazeError, StoppedError) as error:
                answer[1] = error
        with self._together():
            dist.broadcast_object_list(answer, 0, self._work)
        if answer[1] is not None:
            raise answer[1]
        result: T = answer[0]
        return result

    @contextmanager
    def _together(self) -> Iterator[None]:
        """A collective fails where another process has ended."""
        try:
            yield
        except (RuntimeError, ValueError) as error:
            self._is_lost = True
            # As "[file:line] Connection closed by peer. This is typically ...".
            reason = re.sub(r"^\[\S*\] ", "", str(error)).split(". ")[0]
            raise GazeError(
                f"the processes of this training have lost each other ({reason})",
                remedy="what was saved is kept; the same command resumes",
            ) from error

    def _leave(self) -> None:
        """Leave the group at the end of this process, and of the others unless one failed."""
        if self._is_lost:
            return
        gc.collect()  # a communicator is closed after the graphs that were captured with it
        try:
            dist.barrier(self._end)
        except RuntimeError:
            return
        dist.destroy_process_group()


def _meeting(store: Any, rank: int, n: int) -> str:
    """A name of this start of the processes, the same in all of them.

    torchrun keeps the store over restarts, and processes would read the addresses of those that
    have ended. Each says a new name; the first answers with its own until each acknowledges.
    """
    own = uuid.uuid4().hex
    if rank > 0:
        store.set(f"hello/{rank}", own)
        first = str(store.get(f"answer/{own}").decode())
        store.set(f"acknowledged/{first}/{rank}", "")
        return first
    end = time.monotonic() + _STEP_LIMIT.total_seconds()
    missing = list(range(1, n))
    while missing:
        if time.monotonic() > end:
            raise RuntimeError(f"process {missing[0]} has not come")
        for other in missing:
            if store.check([f"hello/{other}"]):
                store.set(f"answer/{store.get(f'hello/{other}').decode()}", own)
        missing = [other for other in missing if not store.check([f"acknowledged/{own}/{other}"])]
        time.sleep(_POLL_S)
    return own


def _own_device(name: str) -> torch.device:
    """cuda is the GPU of this process's number on its machine, again the first after the last."""
    kind = choose_device(name) if name == "auto" else torch.device(name.split(":")[0])
    if ":" in name or kind.type not in ("cpu", "cuda"):
        raise GazeError(f"`device` must be auto, cpu or cuda for several processes, not {name}")
    if kind.type == "cpu":
        return kind
    return choose_device(
        f"cuda:{int(os.environ['LOCAL_RANK']) % max(1, torch.cuda.device_count())}"
    )


def _shares_gpu() -> bool:
    """Whether this machine has more processes than GPUs, which NCCL does not allow."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > torch.cuda.device_count()
