"""Scheduling: in which order, and by which threads, the batches of a sampler are computed.

A GPU begins the next batch before one is fetched from it. Threads draw the noise of the batches to
come: one thread takes about as long for it as a fast GPU takes for the windows. A CPU computes a
batch in parts of a few windows, several at a time, each with its share of the threads. Such threads
wait for each other at the end of a batch instead of in every layer. So another busy process slows
down one of them, which then computes fewer parts, and not all.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import numpy as np
import torch

from gazediffusion.screen import Floats

Span = tuple[int, int]  # windows first, stop
Progress = Callable[[float], None]
Drawn = TypeVar("Drawn")
PART_SIZE = 4  # windows at most
_DRAWING = min(8, os.cpu_count() or 1)  # threads that draw noise ahead of a GPU
_POLL_S = 0.05  # how often progress is passed on


def spans_of(first: int, stop: int, size: int) -> list[Span]:
    """Windows first..stop-1 in spans of a size; the last may be shorter.

    >>> spans_of(3, 10, 4)
    [(3, 7), (7, 10)]
    """
    return [(start, min(start + size, stop)) for start in range(first, stop, size)]


def parts_of(span: Span) -> list[Span]:
    """A batch in parts of about the same size; they depend on the batch alone.

    >>> parts_of((0, 4)), parts_of((3, 9))
    ([(0, 4)], [(3, 6), (6, 9)])
    """
    first, stop = span
    n_parts = -(-(stop - first) // PART_SIZE)
    return spans_of(first, stop, -(-(stop - first) // n_parts))


def after(done: float, progress: Progress) -> Progress:
    """Progress of a part, before which so much was done."""
    return lambda n: progress(done + n)


def drawn_ahead(
    spans: Sequence[Span],
    draw: Callable[[Span], Drawn],
    begin: Callable[[Span, Drawn, Progress], Callable[[], Floats]],
    progress: Progress,
) -> Iterator[Floats]:
    """Batches by a GPU, in order; `progress` is called with the windows begun.

    draw: draws noise and conditions of a batch; several threads do so for the batches to come.
    begin: starts a batch with them, calls its `progress` with the windows of the batch, and gives
    what waits for it.
    """
    pool = _pool(_DRAWING, 1)
    coming = deque(pool.submit(draw, span) for span in spans[:_DRAWING])
    begun = deque[Callable[[], Floats]]()
    for number, span in enumerate(spans, start=_DRAWING):
        drawn = coming.popleft().result()
        coming.extend(pool.submit(draw, one) for one in spans[number : number + 1])
        begun.append(begin(span, drawn, after(span[0], progress)))
        if len(begun) > 1:
            yield begun.popleft()()
    yield from (one() for one in begun)


def in_parts(
    spans: Sequence[Span],
    compute: Callable[[Span, Progress], Floats],
    progress: Progress,
) -> Iterator[Floats]:
    """Batches by a CPU, in order; `progress` is called in this thread, with the windows done.

    compute: the windows of a part; it calls its `progress` with the windows of the part done.
    """
    n_threads = torch.get_num_threads()
    of_span = [parts_of(span) for span in spans]
    at_a_time = min(n_threads, sum(len(parts) for parts in of_span))
    if at_a_time < 2:
        for parts in of_span:
            yield np.concatenate([compute(one, after(one[0], progress)) for one in parts])
        return
    pool = _pool(at_a_time, n_threads // at_a_time)
    work = [[_Part(compute, one) for one in parts] for parts in of_span]
    begun: list[list[Future[Floats]]] = []
    try:
        for number, (first, _) in enumerate(spans):
            # The parts of next batches too, so that no thread waits at the end of this one.
            while len(begun) < len(work) and sum(map(len, begun[number + 1 :])) < at_a_time:
                begun.append([pool.submit(part) for part in work[len(begun)]])
            left = set(begun[number])
            while left:
                left = wait(left, _POLL_S).not_done
                progress(first + sum(part.done for part in work[number]))
            yield np.concatenate([one.result() for one in begun[number]])
            begun[number], work[number] = [], []
    finally:
        for part in (part for batch in work for part in batch):
            part.is_stopped = True
        wait([future for batch in begun for future in batch])


def by_threads(parts: Sequence[Span], compute: Callable[[Span], Floats]) -> Floats:
    """A batch by a CPU, all parts at the same time, each computed by one thread."""
    pool = _pool(torch.get_num_threads(), 1)
    begun = [pool.submit(compute, part) for part in parts]
    wait(begun)
    return np.concatenate([one.result() for one in begun])


class _Part:
    """A part of a batch, which can be stopped at every step. done: windows of it."""

    def __init__(self, compute: Callable[[Span, Progress], Floats], span: Span) -> None:
        self.compute, self.span = compute, span
        self.done, self.is_stopped = 0.0, False

    def __call__(self) -> Floats:
        self._count(0.0)
        return self.compute(self.span, self._count)

    def _count(self, done: float) -> None:
        if self.is_stopped:
            raise InterruptedError("stopped")
        self.done = done


@cache
def _pool(n: int, n_each: int) -> ThreadPoolExecutor:
    """n threads whose tensors are computed by n_each threads."""
    before, all_there = torch.get_num_threads(), threading.Barrier(n)
    pool = ThreadPoolExecutor(n, "generation")

    def begin() -> None:
        torch.get_num_threads()  # a thread that has not asked takes the number of others later
        torch.set_num_threads(n_each)  # of this thread, and of threads that are yet to come
        all_there.wait()

    wait([pool.submit(begin) for _ in range(n)])
    torch.set_num_threads(before)
    return pool


os.register_at_fork(after_in_child=_pool.cache_clear)
