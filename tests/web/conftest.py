"""A really trained tiny joint model, recordings to compare with, and clients of the real app."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi.testclient import TestClient

from gazediffusion.data.simulation import SimulationConfig, write_simulation
from gazediffusion.data.windows import Windows
from gazediffusion.models import pretrained as shipped
from gazediffusion.models.recipes import RECIPES
from gazediffusion.training.loop import train
from gazediffusion.web.app import create_app
from gazediffusion.web.server import listen
from gazediffusion.web.settings import Limits, Settings
from tests.conftest import SCREEN
from tests.gaze import simulated_windows

LENGTH = 496  # 1.984 s at 250 Hz
Start = Callable[..., TestClient]


def trained(folder: Path) -> Path:
    """A joint run of two tasks on windows of two seconds."""
    windows = simulated_windows(4, 1.0)
    tasks = np.arange(len(windows.segment_starts), dtype=np.int32) % 2
    names = ("free viewing", "reading")
    path = folder.with_suffix(".safetensors")
    replace(windows, length=LENGTH, tasks=names, segment_task=tasks).save(path)
    recipe = replace(RECIPES["joint-tiny"], epochs=3, sampling_steps=6)
    list(train([Windows.load(path)], folder, recipe, seed=0, device="cpu"))
    return folder


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("web") / "tiny run")


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated recordings of three people as CSV, with the screen in a sidecar."""
    folder = tmp_path_factory.mktemp("study") / "study"
    config = SimulationConfig(
        n_participants=3, minutes=0.5, rate_hz=250, seed=9, screen=SCREEN, binocular=False
    )
    write_simulation(config, folder, "csv")
    return folder


@pytest.fixture(autouse=True, scope="module")
def _no_shipped_models() -> Iterator[None]:
    """The models of the package come and go: tests offer their own only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped, "models_folder", lambda: Path("no models"))
        yield


@pytest.fixture
def start(run_folder: Path) -> Iterator[Start]:
    """Start the application with some settings; its requests come from this machine."""
    with ExitStack() as stack:

        def begin(limits: dict[str, int] | None = None, **settings: Any) -> TestClient:
            app = create_app(
                Settings(
                    **{"model": str(run_folder), "limits": Limits(**(limits or {})), **settings}
                )
            )
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1:8000"))

        yield begin


@contextmanager
def live_server(settings: Settings) -> Iterator[str]:
    """A real server on a free port of this machine; yields its address."""
    with listen(replace(settings, port=0)) as bound:
        config = uvicorn.Config(create_app(settings), log_level="warning", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=20)
