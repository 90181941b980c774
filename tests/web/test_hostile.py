"""Damaged and hostile uploads to a running server; benchmarks/hostile_uploads.py sends 2,000."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
N = 100


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_uploads_never_take_the_server_down(run_folder: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        hostile = import_module("hostile_uploads")
    finally:
        sys.path.pop(0)
    command = [sys.executable, "-m", "gazediffusion", "serve", "--port", "0", "--no-open"]
    server = subprocess.Popen(
        [*command, "--model", str(run_folder), "--max-memory-mb", "1024", "--max-work-s", "10"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+:\d+", server.stdout.readline())
        assert found is not None
        seen = asyncio.run(hostile.attack(found[0], server.pid, N, hostile.Hostile(tmp_path)))
    finally:
        server.terminate()
        _, log = server.communicate()
    statuses: Counter[int] = sum(seen.statuses.values(), Counter())
    assert sum(statuses.values()) == N
    assert not [status for status in statuses if status >= 500], statuses
    assert {200, 400, 413, 422} <= set(statuses), "many kinds of uploads were sent"
    assert seen.defects == []
    assert seen.memory_mb < 2500, "server and worker together"
    # On a busy machine an answer takes longer, as all uploads do; it waits for none of them.
    assert max(seen.light_s) < max(1, *seen.slowest_s.values()), "others are answered throughout"
    assert "Traceback" not in log
    assert ".csv" not in log
