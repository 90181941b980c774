"""Limits and settings: sizes, queues, idle bodies, addresses that need a token."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import socket
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.types import Message, Receive, Scope, Send

from gazediffusion.errors import GazeError
from gazediffusion.web import security, state
from gazediffusion.web.queue import Job, Steps
from gazediffusion.web.settings import Limits, Settings
from tests.web.conftest import PATIENCE_S, Start, live_server


def error_of(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    line: str = answer.json()["error"]
    assert "\n" not in line
    return line


def test_too_many_windows_are_refused_everywhere(start: Start, study: Path) -> None:
    client = start(limits={"max_windows": 4}, real=study)
    words = "`n` must be 4 or fewer here, not 5; the limit is `max_windows` of the server"
    assert words in error_of(client.get("/api/generate/stream?n=5"), 422)
    assert words in error_of(client.post("/api/generate", json={"n": 5}), 422)
    assert words in error_of(client.post("/api/evaluate", data={"n": "5"}), 422)
    assert client.post("/api/generate", json={"n": 4}).status_code == 200


def test_an_upload_is_refused_by_its_announced_size(start: Start) -> None:
    client = start(limits={"max_upload_mb": 1})
    answer = client.post("/api/real", files={"files": ("a.csv", b"0" * (2 << 20))})
    assert error_of(answer, 413) == "an upload may have 1 MB in total"


def test_an_upload_without_a_size_is_refused_during_the_upload(start: Start) -> None:
    client = start(limits={"max_upload_mb": 1})
    sent = 0

    def endless() -> Any:
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
        while sent < 64 << 20:
            sent += 1 << 16
            yield b"0" * (1 << 16)

    answer = client.post(
        "/api/real",
        content=endless(),
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert error_of(answer, 413) == "an upload may have 1 MB in total"


def test_a_body_without_files_is_small(start: Start) -> None:
    client = start()
    answer = client.post("/api/generate", content=b" " * (1 << 17))
    assert error_of(answer, 413) == "the body of this request may have 64 kB"
    parts = (b" " * (1 << 14) for _ in range(8))
    answer = client.post(
        "/api/generate", content=parts, headers={"Content-Type": "application/json"}
    )
    assert error_of(answer, 413) == "the body of this request may have 64 kB"


def test_small_files_that_expand_to_much_are_refused(start: Start) -> None:
    client = start(limits={"max_upload_mb": 1})
    bomb = gzip.compress(b"0" * (20 << 20))
    answer = client.post("/api/real", files={"files": ("sub-1_recording-eye1_physio.tsv.gz", bomb)})
    assert "expands to more than 4 MB" in error_of(answer, 413)
    table = io.BytesIO()
    pq.write_table(pa.table({name: np.zeros(2 << 20) for name in ("t", "x", "y")}), table)
    assert len(table.getvalue()) < 1 << 20
    answer = client.post("/api/real", files={"files": ("a.parquet", table.getvalue())})
    assert error_of(answer, 413) == "a.parquet: expands to more than 4 MB"


@pytest.fixture
def idle_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "IDLE_S", 0.5)


def begun_upload(url: str, n_sent: int = 10) -> socket.socket:
    """A connection with a form that has begun."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    head = (
        f"POST /api/real HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    connection.sendall(head.encode() + b"--x\r\n"[:n_sent])
    return connection


@pytest.mark.usefixtures("idle_s")
def test_idle_uploads_time_out_and_lock_nobody_out(run_folder: Path) -> None:
    with live_server(Settings(model=str(run_folder), limits=Limits(max_jobs=4))) as url:
        idle = [begun_upload(url) for _ in range(4)]
        answers = [one.recv(200).decode() for one in idle]
        statuses = sorted(answer.split()[1] for answer in answers)
        assert statuses == ["408", "408", "429", "429"], "one client takes half of the places"
        for one in idle:
            one.close()
        answer = httpx2.post(
            f"{url}/api/real", files={"files": ("a.csv", b"no")}, timeout=PATIENCE_S
        )
        assert answer.status_code == 422, "their places are free"


def test_a_body_that_trickles_times_out(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "SLOW_AFTER_S", 0.3)
    with live_server(Settings(model=str(run_folder))) as url:
        connection = begun_upload(url)
        connection.settimeout(0.1)
        for _ in range(100):
            connection.sendall(b"-")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(2000)
                break
        connection.close()
        assert answer.startswith(b"HTTP/1.1 408")


def test_a_client_that_takes_nothing_of_its_response_keeps_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(security, "STALLED_S", 0.05)
    is_released = False

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal is_released
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        finally:
            is_released = True

    async def receive() -> Message:
        return {"type": "http.request"}

    async def never(message: Message) -> None:
        await asyncio.sleep(60)

    middleware = security.SecurityMiddleware(app, Settings())
    scope = {"type": "http", "method": "POST", "path": "/api/real", "client": ("1.2.3.4", 5)}
    asyncio.run(middleware({**scope, "headers": [(b"host", b"localhost")]}, receive, never))
    assert is_released
    assert not middleware.uploads


def nothing(job: Job) -> Steps:
    yield


def test_a_full_queue_states_when_to_try_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(limits={"max_jobs": 1})
    play: state.Playground = client.app.state.playground  # type: ignore[attr-defined]
    job = play.generation.submit(nothing, lambda kind, value: None)
    for answer in (
        client.get("/api/generate/stream?n=1"),
        client.post("/api/generate", json={"n": 1}),
    ):
        assert "the queue is full (1 jobs are running or waiting)" in error_of(answer, 429)
        assert answer.headers["retry-after"] == "2"
    play.generation.release(job)
    assert client.post("/api/generate", json={"n": 1}).status_code == 200


TOKEN = "a secret ü"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "lab.example", ""])
def test_another_address_needs_a_token(host: str) -> None:
    with pytest.raises(
        GazeError, match="can be reached from other machines, and there is no token; give"
    ):
        Settings(host=host)
    assert not Settings(host=host, token="x").is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert Settings(host=host).is_loopback


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"allowed_hosts": ("lab.example",)}, "lab.example can be reached from other machines"),
        ({"allowed_hosts": ("a b",), "token": "x"}, "`allowed_host` must be a name without port"),
        ({"allowed_hosts": ("a:80",), "token": "x"}, "`allowed_host` must be a name without port"),
        ({"token": " "}, "`token` must not be empty"),
        ({"port": 70000}, "`port` must lie between 0 and 65535"),
        ({"real": Path("/no/such/file")}, "there is no such file or folder"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeError, match=words):
        Settings(**settings)


def test_limits_are_positive() -> None:
    with pytest.raises(GazeError, match="`max_upload_mb` must be 1 or more, not 0"):
        Limits(max_upload_mb=0)


def test_a_token_is_not_printed() -> None:
    assert TOKEN not in repr(Settings(token=TOKEN))
