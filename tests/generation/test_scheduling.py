"""Batches by a GPU and by the threads of a CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from gazediffusion.generation.scheduling import PART_SIZE, Progress, Span, drawn_ahead, in_parts

SPANS = [(3, 13), (13, 23), (23, 24)]


@pytest.fixture(params=[1, 2, 5])
def n_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def numbers(span: Span, progress: Progress) -> np.ndarray:
    for share in (0.5, 1.0):
        progress(share * (span[1] - span[0]))
    return np.arange(*span, dtype=np.float32)


def test_parts_come_as_batches_in_order(n_threads: int) -> None:
    seen: list[float] = []
    threads: set[int] = set()
    sizes: list[int] = []

    def compute(span: Span, progress: Progress) -> np.ndarray:
        sizes.append(span[1] - span[0])
        return numbers(span, progress)

    def progress(done: float) -> None:
        seen.append(done)
        threads.add(threading.get_ident())

    found = list(in_parts(SPANS, compute, progress))
    assert [one.tolist() for one in found] == [list(range(*span)) for span in SPANS]
    assert sorted(sizes) == [1, 2, 2, 4, 4, 4, 4]
    assert max(sizes) == PART_SIZE
    assert seen == sorted(seen)
    assert seen[-1] == 24
    # Users are called in their own thread.
    assert threads == {threading.get_ident()}


def test_several_parts_share_the_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        together = threading.Barrier(2, timeout=30)
        found: list[int] = []

        def compute(span: Span, progress: Progress) -> np.ndarray:
            together.wait()  # passes only if two parts are computed at a time
            found.append(torch.get_num_threads())
            return numbers(span, progress)

        list(in_parts([(0, 8)], compute, lambda done: None))
        assert found == [2, 2]
        assert torch.get_num_threads() == 4
        # Threads that begin later are not affected.
        late: list[int] = []
        thread = threading.Thread(target=lambda: late.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert late == [4]
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("spans", "n_together"), [([(0, 6)], 2), ([(k, k + 1) for k in range(9)], 4)]
)
def test_small_batches_leave_no_thread_idle(spans: list[Span], n_together: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(n_together)
    together = threading.Barrier(n_together, timeout=30)
    n_each: list[int] = []

    def compute(span: Span, progress: Progress) -> np.ndarray:
        n_each.append(torch.get_num_threads())
        if len(n_each) <= n_together:
            together.wait()  # passes only if so many parts are computed at a time
        return numbers(span, progress)

    try:
        found = list(in_parts(spans, compute, lambda done: None))
    finally:
        torch.set_num_threads(before)
    assert np.concatenate(found).tolist() == list(range(spans[-1][1]))
    assert set(n_each) == {1}


def test_parts_do_not_depend_on_the_number_of_threads(n_threads: int) -> None:
    found: set[Span] = set()

    def compute(span: Span, progress: Progress) -> np.ndarray:
        found.add(span)
        return numbers(span, progress)

    list(in_parts([(0, 16), (16, 22), (22, 26)], compute, lambda done: None))
    assert sorted(found) == [(0, 4), (4, 8), (8, 12), (12, 16), (16, 19), (19, 22), (22, 26)]


def test_an_error_of_a_part_is_raised_and_stops_the_others(n_threads: int) -> None:
    computed: list[Span] = []

    def compute(span: Span, progress: Progress) -> np.ndarray:
        if span[0] == 3:
            raise ValueError("the first part")
        computed.append(span)
        return numbers(span, progress)

    with pytest.raises(ValueError, match="the first part"):
        list(in_parts([(3, 1003)], compute, lambda done: None))
    if n_threads == 1:
        assert computed == []


@pytest.mark.parametrize("how", ["closed", "progress"])
def test_what_is_stopped_ends_at_the_next_step(how: str) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    running, n_steps = threading.Semaphore(0), []

    def compute(span: Span, progress: Progress) -> np.ndarray:
        running.release()
        for _ in range(2000 if span[0] >= 8 else 1):
            progress(0.0)
            n_steps.append(span)
            threading.Event().wait(0.005)
        return numbers(span, lambda done: None)

    def progress(done: float) -> None:
        if how == "progress" and done > 8:
            raise KeyboardInterrupt

    try:
        pieces = in_parts([(0, 8), (8, 16), (16, 24)], compute, progress)
        assert next(pieces).tolist() == list(range(8))
        for _ in range(4):
            running.acquire()
        if how == "closed":
            pieces.close()  # type: ignore[attr-defined]
        else:
            pieces = in_parts([(0, 8), (8, 16)], compute, lambda done: progress(9))
            with pytest.raises(KeyboardInterrupt):
                next(pieces)
        n = len(n_steps)
        threading.Event().wait(0.1)
        if how == "closed":
            assert len(n_steps) == n
            assert n < 1000
    finally:
        torch.set_num_threads(before)


def test_a_gpu_is_given_the_next_batch_before_one_is_fetched() -> None:
    order: list[str] = []

    def draw(span: Span) -> str:
        return f"noise of {span[0]}"

    def begin(span: Span, drawn: str, progress: Progress) -> Callable[[], np.ndarray]:
        assert drawn == f"noise of {span[0]}"
        order.append(f"begin {span[0]}")
        progress(span[1] - span[0])

        def fetched() -> np.ndarray:
            order.append(f"fetch {span[0]}")
            return np.arange(*span, dtype=np.float32)

        return fetched

    seen: list[float] = []
    found = list(drawn_ahead(SPANS, draw, begin, seen.append))
    assert [one.tolist() for one in found] == [list(range(*span)) for span in SPANS]
    assert order == ["begin 3", "begin 13", "fetch 3", "begin 23", "fetch 13", "fetch 23"]
    assert seen == [13, 23, 24]
