"""The worker process: within its limits, ended when it passes them, and started again."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gazediffusion.errors import GazeError
from gazediffusion.web.queue import InternalError, Job, JobCancelledError
from gazediffusion.web.settings import Limits
from gazediffusion.web.worker import TooLargeError, Worker
from tests.web.conftest import nothing

FUNCTIONS = """
import os, tempfile, time
from gazediffusion.errors import GazeError

def double(text, report):
    report({"stage": "reading", "done": 1, "n": None})
    return text.encode() * 2

def sleep(seconds, report):
    report({"pid": os.getpid()})
    tempfile.mkdtemp()
    time.sleep(seconds)
    return b""

def generate(n, seconds, report):
    for done in range(n):
        report({"stage": "generating", "done": done, "n": n})
        time.sleep(seconds)
    return b""

def fill(megabytes, report):
    kept = []
    for _ in range(0, megabytes, 8):
        kept.append(b"x" * 2**23)
        time.sleep(0.1)  # the server looks twice meanwhile, also on a busy machine
    return b""

KEPT = []

def keep(megabytes, report):
    KEPT.append(b"x" * (megabytes * 2**20))
    return b""

def allocate(megabytes, report):
    return bytes(len(bytearray(megabytes * 2**20)) * 0)

def refuse(words, report):
    raise GazeError(words, path="a.csv")

def fail(words, report):
    raise ValueError(words)

def crash(report):
    os.abort()
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Functions that the worker can import."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "called_by_worker.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        patch.setenv("PYTHONPATH", path)
        module: ModuleType = __import__("called_by_worker")
        yield module
        del sys.modules["called_by_worker"]


@pytest.fixture(scope="module")
def worker(functions: Any) -> Iterator[Worker]:
    found = Worker(Limits(max_memory_mb=300, max_work_s=60), modules=())
    yield found
    pid = found.pid
    found.close()
    assert not is_running(pid)
    with pytest.raises(JobCancelledError):
        found.start()


def job_of(listener: Callable[[str, Any], None] = lambda kind, value: None) -> Job:
    return Job(nothing, listener, 0)


def is_running(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_gives_results_and_progress(worker: Worker, functions: Any) -> None:
    said: list[Any] = []
    job = job_of(lambda kind, value: said.append((kind, value)))
    assert worker.call(job, True, functions.double, "ab") == b"abab"
    assert said == [("progress", {"stage": "reading", "done": 1, "n": None})]
    pid = worker.pid
    with pytest.raises(GazeError, match=r"a\.csv: no gaze"):
        worker.call(job, True, functions.refuse, "no gaze")
    worker.call(job, True, functions.double, "ab")
    assert worker.pid == pid, "one process for all"


@pytest.mark.slow
def test_it_is_ended_when_it_takes_too_long(
    worker: Worker, functions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "limits", Limits(max_work_s=1))
    began = time.monotonic()
    with pytest.raises(TooLargeError, match="reading and comparing took longer than 1 s"):
        worker.call(job_of(), True, functions.sleep, 600)
    assert time.monotonic() - began < 300
    assert worker.call(job_of(), False, functions.double, "ab") == b"abab", "another was started"
    assert worker.call(job_of(), False, functions.sleep, 1.2) == b"", "without limits"
    assert worker.call(job_of(), True, functions.generate, 4, 0.4) == b"", "windows are counted"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_it_is_ended_when_it_needs_too_much_memory(worker: Worker, functions: Any) -> None:
    words = "the upload needs more than 300 MB of memory"
    worker.call(job_of(), True, functions.double, "a")
    pid = worker.pid
    with pytest.raises(TooLargeError, match=words):
        worker.call(job_of(), True, functions.fill, 10_000)
    assert not is_running(pid)
    # At once: the system refuses it, and the process goes on.
    with pytest.raises(TooLargeError, match=words):
        worker.call(job_of(), True, functions.allocate, 10_000)
    assert worker.call(job_of(), True, functions.double, "ab") == b"abab"
    pid = worker.pid
    worker.call(job_of(), True, functions.keep, 200)
    assert worker.pid != pid, "what it has freed is not given back otherwise"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_what_its_modules_need_is_not_counted_as_the_upload_s(functions: Any) -> None:
    larger = Worker(Limits(max_memory_mb=100), modules=(), own_mb=300)
    try:
        larger.call(job_of(), True, functions.double, "a")
        pid = larger.pid
        larger.call(job_of(), True, functions.keep, 60)
        assert larger.pid == pid, "more than half of the limit, and no other was started"
    finally:
        larger.close()


def test_a_cancelled_call_ends_it_and_its_temporary_files(worker: Worker, functions: Any) -> None:
    said: list[Any] = []
    job = job_of(lambda kind, value: said.append(value["pid"]))
    worker.start()
    folder = Path(worker._folder.name)  # type: ignore[union-attr]

    def cancel() -> None:
        while not said:
            time.sleep(0.01)
        job.is_cancelled = True

    threading.Thread(target=cancel).start()
    with pytest.raises(JobCancelledError):
        worker.call(job, False, functions.sleep, 60)
    assert not is_running(said[0])
    assert not folder.exists()


def test_a_process_that_dies_is_one_line_and_is_replaced(worker: Worker, functions: Any) -> None:
    with pytest.raises(GazeError, match="the process that read this ended; the file is damaged"):
        worker.call(job_of(), True, functions.crash)
    assert worker.call(job_of(), True, functions.double, "ab") == b"abab"


def test_a_defect_is_logged_without_the_words_of_its_error(
    worker: Worker, functions: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(GazeError, match="cannot be read") as raised:
        worker.call(job_of(), True, functions.fail, "secret-name.csv")
    assert "ValueError" in str(raised.value)
    assert "ValueError at" in caplog.text
    assert "called_by_worker.py" in caplog.text
    assert "secret-name" not in caplog.text + str(raised.value)
    with pytest.raises(InternalError):
        worker.call(job_of(), False, functions.fail, "of the server's own recording")
