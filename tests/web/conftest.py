"""A trained tiny joint model of two tasks on two screens, recordings, and clients of the app."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from gazediffusion.data.simulation import write_simulation
from gazediffusion.network import pretrained
from gazediffusion.network.recipes import RECIPES
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig
from gazediffusion.training.training import train_epochs
from gazediffusion.web.app import create_app, listen
from gazediffusion.web.queue import Job, Steps
from gazediffusion.web.settings import Limits, Settings
from tests.conftest import SCREEN
from tests.gaze import simulated_windows

LENGTH = 496  # 1.984 s at 250 Hz
PATIENCE_S = 300  # of a busy machine
SCREENS = {"free viewing": SCREEN, "reading": Screen(1680, 1050, 47.4, 29.7, 55.0)}
Start = Callable[..., TestClient]


def trained(folder: Path) -> Path:
    """A joint run on windows of two seconds; every second segment is reading, on its own screen."""
    windows = simulated_windows(4, 1.0)
    number = np.arange(len(windows.segment_starts), dtype=np.int32) % 2
    windows = replace(
        windows,
        length=LENGTH,
        tasks=tuple(SCREENS),
        segment_task=number,
        screens=tuple(SCREENS.values()),
        segment_screen=number,
        grid_px=None,
    )
    recipe = replace(RECIPES["joint-tiny"], epochs=1, sampling_steps=6)
    list(train_epochs([windows], folder, recipe, seed=0, device="cpu"))
    return folder


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("web") / "tiny run")


@pytest.fixture(scope="session")
def lossy_run(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run with tables of losses: those of reading of the packaged model."""
    folder = tmp_path_factory.mktemp("lossy") / "lossy"
    shutil.copytree(run_folder, folder)
    packaged = json.loads((pretrained.find_model("joint") / "losses.json").read_text())
    packaged["tasks"]["free viewing"] = packaged["tasks"]["reading"]
    (folder / "losses.json").write_text(json.dumps(packaged))
    return folder


@pytest.fixture(scope="session")
def windows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows of training and held-out participants, of the length of the model's."""
    path = tmp_path_factory.mktemp("windows") / "windows.safetensors"
    replace(simulated_windows(4, 1.0), length=LENGTH).save(path)
    return path


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated recordings of three participants as CSV, with the screen in a sidecar."""
    folder = tmp_path_factory.mktemp("study") / "study"
    config = SimulationConfig(
        n_participants=3, minutes=0.5, rate_hz=250, seed=9, screen=SCREEN, binocular=False
    )
    write_simulation(config, folder, "csv")
    return folder


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The temporary folder of the server; nothing may be left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def created(settings: Settings) -> FastAPI:
    """The application without the packaged models, so that tests know what is served."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "pretrained_folder", lambda: Path("no models"))
        return create_app(settings)


@pytest.fixture(scope="session")
def client(run_folder: Path) -> Iterator[TestClient]:
    """The application with its default limits."""
    app = created(Settings(model=str(run_folder)))
    app.state.playground.reader.start()
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture(scope="session")
def steerable(steerable_folder: Path) -> Iterator[TestClient]:
    """The application with a steerable model, and both workers."""
    yield from small_client(steerable_folder)


@pytest.fixture(scope="session")
def labelling(labelling_run: Path) -> Iterator[TestClient]:
    """The application with a steerable model whose labels change."""
    yield from small_client(labelling_run)


def small_client(folder: Path) -> Iterator[TestClient]:
    app = created(Settings(model=str(folder), limits=Limits(max_windows=20)))
    for worker in (app.state.playground.reader, app.state.playground.recorder):
        worker.start()
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture
def start(run_folder: Path) -> Iterator[Start]:
    """Start the application with other settings; its requests come from this machine."""
    with ExitStack() as stack:

        def begin(limits: dict[str, int] | None = None, **settings: Any) -> TestClient:
            given = {"model": str(run_folder), "limits": Limits(**(limits or {})), **settings}
            app = created(Settings(**given))
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1:8000"))

        yield begin


@contextmanager
def live_app(app: FastAPI, settings: Settings) -> Iterator[str]:
    """An application on a free port of this machine; yields its address."""
    with listen(replace(settings, port=0)) as bound:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE_S)


def live_server(settings: Settings) -> AbstractContextManager[str]:
    """A server on a free port of this machine; gives its address."""
    return live_app(created(settings), settings)


@pytest.fixture(scope="session")
def url(run_folder: Path) -> Iterator[str]:
    """A server with its default limits, but many windows in one request."""
    limits = Limits(max_windows=4000)
    with live_server(Settings(model=str(run_folder), limits=limits)) as address:
        yield address


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their paths."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def sent_files(folder: Path) -> list[tuple[str, tuple[str, bytes]]]:
    """The files of a folder with their paths, as a form sends them."""
    return [("files", (name, content)) for name, content in files_of(folder).items()]


def extracted(content: bytes, folder: Path) -> dict[str, bytes]:
    """The files of a zip, extracted into a folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
    return files_of(folder)


def read_events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Server-sent events as (name, data)."""
    name = ""
    for line in lines:
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield name, json.loads(value)


def events_of(text: str) -> list[tuple[str, Any]]:
    """All events of a response."""
    return list(read_events(text.splitlines()))


def nothing(job: Job) -> Steps:
    """Work without a result."""
    yield


def wait_for(is_so: Callable[..., bool], *arguments: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so(*arguments):
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def serve_process(model: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command `serve` on a free port, and its address."""
    command = [sys.executable, "-m", "gazediffusion", "serve", "--port", "0", "--no-open"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--model", str(model), *flags], text=True, env=environment, **pipes
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield process, found[0]
        finally:
            process.kill()


def error_of(answer: Any, status: int) -> str:
    """The line of a refusal with that status."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    line: str = answer.json()["error"]
    assert "\n" not in line
    return line
