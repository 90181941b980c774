"""The command `serve`: starts at once, ends with Ctrl-C, and every response is as described."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from typer.testing import CliRunner

from gazediffusion.cli import app
from gazediffusion.cli.console import in_flags
from gazediffusion.errors import GazeError
from gazediffusion.network import pretrained
from gazediffusion.network.checkpoint import load_run
from gazediffusion.web.app import address
from gazediffusion.web.settings import Limits, Settings
from gazediffusion.web.state import Models
from tests.test_architecture import loaded_by
from tests.web.conftest import PATIENCE_S, live_server, serve_process, wait_for

# Half of the requests are invalid on purpose; the others must be small to be fast.
LIMITS = Limits(max_windows=6)
PATHS = [
    ("/api/models", "GET"),
    ("/api/generate/stream", "GET"),
    ("/api/generate", "POST"),
    ("/api/jobs/{job}/cancel", "POST"),
    ("/api/real", "GET"),
    ("/health", "GET"),
]
COMPARING = ("/api/evaluate", "/api/evaluate/stream", "/api/report")
STEERING = ("/api/generate/upload", "/api/fill", "/api/label", "/api/augment", "/api/score")
WITH_FILES = [(path, "POST") for path in ("/api/real", *COMPARING, *STEERING)]
ELSEWHERE = [("/api/report/stream", "POST")]  # A report takes long; test_compare.py.


@pytest.fixture(scope="module")
def schema(run_folder: Path, study: Path) -> Any:
    with live_server(Settings(model=str(run_folder), real=study, limits=LIMITS)) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize(("path", "method"), PATHS + WITH_FILES, ids=lambda one: str(one))
def test_every_response_is_as_described(schema: Any, path: str, method: str) -> None:
    few = {"/api/evaluate": 3, "/api/score": 3, **dict.fromkeys(COMPARING[1:], 1)}

    @settings(
        max_examples=few.get(path, 8),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy())
    def check(case: Any) -> None:
        # No schema describes a recording: files of random bytes are refused, as they should be.
        loose = [positive_data_acceptance] if (path, method) in WITH_FILES else []
        case.call_and_validate(excluded_checks=loose, timeout=PATIENCE_S)

    check()


def test_every_path_is_tested_and_the_page_of_the_description_names_it(
    schema: Any, run_folder: Path
) -> None:
    described = {
        (path, method.upper())
        for path in schema
        for method in schema[path]
        if method != "parameters"
    }
    assert described == set(PATHS + WITH_FILES + ELSEWHERE)
    found = schema.raw_schema
    docs = httpx2.get(schema.get_base_url().rstrip("/") + "/docs", timeout=PATIENCE_S).text
    assert all(path in docs for path in found["paths"])
    assert "<script" not in docs
    body = found["components"]["schemas"]["GenerateRequest"]["properties"]
    assert body["model"]["enum"] == [run_folder.name, None]
    assert body["task"]["enum"] == ["free viewing", "reading", None]
    assert found["components"]["schemas"]["ComparisonForm"]["properties"]["n"]["maximum"] == 6


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["serve", "--no-open", *arguments])
    assert isinstance(result.exception, GazeError), result.output
    return in_flags(str(result.exception))


def children(pid: int) -> list[Path]:
    """The processes that a process has started, as their folders of /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int((path / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(path)
    return found


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_the_server_answers_and_ends_with_its_processes(
    run_folder: Path, ending: signal.Signals
) -> None:
    with serve_process(run_folder) as (process, url):
        assert httpx2.get(url, timeout=PATIENCE_S).status_code == 200
        models = httpx2.get(f"{url}/api/models", timeout=PATIENCE_S).json()
        assert models["default"] == run_folder.name
        long = f"{url}/api/generate/stream?n=500&quality=best"
        with httpx2.stream("GET", long, timeout=PATIENCE_S) as stream:
            assert next(stream.iter_lines()) == "event: queued"
            started = children(process.pid)
            assert len(started) == 1, "the worker that reads recordings"
            process.send_signal(ending)
            process.wait(timeout=PATIENCE_S)
        wait_for(lambda: not any(path.exists() for path in started))


def test_what_cannot_be_served_is_one_line(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal("--host", "0.0.0.0", "--model", str(run_folder)) == (
        "0.0.0.0 can be reached from other machines, and there is no token; "
        "give --token, or listen on 127.0.0.1"
    )
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        line = refusal("--port", port, "--model", str(run_folder))
    assert line.startswith(f"cannot listen on 127.0.0.1 port {port}")
    assert "--port" in line
    assert "this is no run folder" in refusal("--model", str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    assert "the configuration is damaged" in refusal("--model", str(tmp_path))
    assert "no --model 'nothing'" in refusal("--model", "nothing")
    monkeypatch.setattr(pretrained, "pretrained_folder", lambda: Path("no models"))
    assert refusal() == (
        "there is no model to serve; train one, and give its run folder as --model"
    )


def test_without_the_extra_the_command_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name)
    )
    assert refusal() == "the playground needs uvicorn; pip install 'gazediffusion[web]'"


def test_the_command_line_loads_no_server_and_the_server_no_torch(run_folder: Path) -> None:
    assert not {"fastapi", "uvicorn", "pydantic"} & loaded_by("import gazediffusion.cli")
    # Loading torch takes longer than the second in which the page is to open.
    start = "from gazediffusion.web.app import create_app\n"
    start += "from gazediffusion.web.settings import Settings\n"
    found = loaded_by(f"{start}create_app(Settings(model={str(run_folder)!r})).openapi()")
    assert not {"torch", "polars", "pymovements", "matplotlib", "plotly"} & found


def test_packaged_models_and_a_run_folder_are_served_together(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrained, "pretrained_folder", lambda: tmp_path / "models")
    for name in ("joint", "another"):
        pretrained.save_pretrained(load_run(run_folder), tmp_path / "models" / name, 31)
    assert Models().default == "joint"
    both = Models(str(run_folder))
    assert list(both.served) == ["joint", "another", run_folder.name]
    assert both.default == run_folder.name
    assert both.find(None).about.source == str(run_folder.resolve())
    assert Models("another").default == "another"
    assert Models("another").find("joint").about.source == "joint"
    shutil.rmtree(tmp_path / "models" / "joint")
    assert Models().default == "another"


def test_the_address_carries_the_token() -> None:
    assert address(Settings(), 8000) == "http://127.0.0.1:8000/"
    assert address(Settings(host="::1", token="a b/c"), 9) == "http://[::1]:9/?token=a%20b%2Fc"
