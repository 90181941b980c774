"""Fifty concurrent clients of a server: no response lost, none wrong. benchmarks/serve.py runs a
full minute."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

import pytest

from gazediffusion.web.settings import Settings
from tests.web.conftest import live_server

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_fifty_concurrent_clients_get_correct_responses(run_folder: Path, tmp_path: Path) -> None:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        serve = import_module("serve")
    finally:
        sys.path.pop(0)
    expected = serve.Expected(run_folder, tmp_path)
    with live_server(Settings(model=str(run_folder))) as url:
        tally = serve.Tally()
        asyncio.run(serve.load(url, 50, 0.3, expected, tally))
    assert tally.wrong == []
    assert tally.lost == []
    assert sum(tally.done.values()) >= 50
    assert set(tally.done) == set(serve.KINDS)
