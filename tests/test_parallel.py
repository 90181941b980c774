from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.parallel import in_order


def scaled(shared: int, item: int) -> tuple[int, int]:
    """Later items are done sooner."""
    time.sleep(0.02 * (3 - item % 4))
    return shared * item, os.getpid()


def noted(folder: Path, item: int) -> int:
    """Leave a file, then take long."""
    (folder / str(item)).write_text(str(os.getpid()))
    time.sleep(600 if item else 0)
    return item


def failing(shared: int, item: int) -> int:
    if item == 2:
        raise GazeError("this one is bad", path=f"{shared}.txt")
    return item


def killed(shared: int, item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_of_several_processes_come_in_the_order_of_the_items() -> None:
    here = list(in_order(scaled, 3, range(9)))
    there = list(in_order(scaled, 3, range(9), n_workers=2))
    assert [one for one, _ in here] == [one for one, _ in there] == [3 * k for k in range(9)]
    assert {process for _, process in here} == {os.getpid()}
    assert len({process for _, process in there} - {os.getpid()}) in (1, 2)


def test_an_error_of_a_worker_is_the_line_that_it_raised_and_results_before_it_come() -> None:
    found = in_order(failing, 7, range(4), n_workers=2)
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(GazeError, match=r"^7\.txt: this one is bad$"):
        next(found)


def test_a_worker_that_is_killed_is_one_line() -> None:
    with pytest.raises(GazeError, match="a worker was killed; try fewer with `n_workers`"):
        list(in_order(killed, 0, range(3), n_workers=2))


def test_workers_end_when_the_caller_stops(tmp_path: Path) -> None:
    found = in_order(noted, tmp_path, range(9), n_workers=2)
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
        in_order(scaled, 1, [1], **given)
