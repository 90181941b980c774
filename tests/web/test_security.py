"""Who may use the server, and how much one request may carry: names, tokens, origins, bodies."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import http.client
import io
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web import security
from gazediffusion.web.settings import Limits, Settings
from gazediffusion.web.state import Playground
from tests.web.conftest import PATIENCE_S, Start, error_of, live_server, nothing

TOKEN = "a secret ü"
WORD = "a-secret"
BEARER = {"Authorization": f"Bearer {WORD}"}
BASIC = "Basic " + base64.b64encode(f"anybody:{WORD}".encode()).decode()


@pytest.mark.parametrize(
    ("path", "authorization", "query", "status"),
    [
        ("/api/models", None, {}, 401),
        ("/api/models", "Bearer wrong", {}, 401),
        ("/api/models", "Bearer ", {}, 401),
        ("/api/models", f"Basic {TOKEN}", {}, 401),
        ("/api/models", None, {"token": TOKEN}, 401),
        ("/api/models", f"Bearer {TOKEN}", {}, 200),
        ("/api/models", f"bearer {TOKEN}", {"token": "wrong"}, 200),
        ("/docs", None, {}, 401),
        ("/docs", f"Bearer {TOKEN}", {}, 200),
        ("/docs", "Basic !", {}, 401),
        ("/health", None, {}, 200),
        ("/", None, {}, 200),
    ],
)
def test_the_api_requires_the_token_and_the_page_does_not(
    start: Start, path: str, authorization: str | None, query: dict[str, str], status: int
) -> None:
    sent = {} if authorization is None else {b"Authorization": authorization.encode()}
    answer = start(token=TOKEN).get(path, headers=sent, params=query)
    assert answer.status_code == status
    if status == 401:
        assert "token" in error_of(answer, 401)
        kind = "Basic realm=" if path == "/docs" else "Bearer"
        assert answer.headers["www-authenticate"].startswith(kind)


def test_every_path_of_the_api_requires_the_token(start: Start) -> None:
    client = start(token=WORD)
    described = client.get("/openapi.json", headers={"Authorization": BASIC}).json()
    for path, methods in described["paths"].items():
        for method in methods:
            expected = 200 if path == "/health" else 401
            assert client.request(method, path).status_code == expected, path
    answer = client.get("/api/models", headers={"Authorization": BASIC})
    assert answer.status_code == 401, "a browser would send it on its own"
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["security"] == [{"HTTPBearer": []}]
    assert described["paths"]["/health"]["get"]["security"] == []


LOOPBACK: dict[str, Any] = {}
NAMED = {"token": WORD, "allowed_hosts": ("lab.example", "Other.example")}
ELSEWHERE = {"host": "0.0.0.0", "token": WORD}


@pytest.mark.parametrize(
    ("settings", "hosts", "status"),
    [
        (LOOPBACK, ["evil.example", "127.0.0.1.evil.example", "", "[", "0.0.0.0", "user@localhost",
                    "localhost:99999", "localhost:80x", "localhost:", "localhost/", "localhost.",
                    "localhost localhost", "[::1", "[::1]x", "localhost\t", "127.0.0.1#"], 421),
        (LOOPBACK, ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000", "LOCALHOST"], 200),
        (NAMED, ["lab.example", "LAB.example:8443", "other.example", "127.0.0.1:8000"], 200),
        (NAMED, ["evil.example", "lab.example.evil"], 421),
        (ELSEWHERE, ["lab.example", "127.0.0.1"], 200),
        (ELSEWHERE, ["lab.example:x"], 421),
        ({**ELSEWHERE, "allowed_hosts": ("lab.example",)}, ["evil.example"], 421),
    ],
)  # fmt: skip
def test_only_names_of_the_server_are_accepted(
    start: Start, settings: dict[str, Any], hosts: list[str], status: int
) -> None:
    client = start(**settings)
    for host in hosts:
        for path in ("/", "/health", "/api/models"):
            answer = client.get(path, headers={**BEARER, "Host": host})
            assert answer.status_code == status, (host, path)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/api/generate", json={"n": 1}, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_several_host_names_are_refused(url: str) -> None:
    name = url.removeprefix("http://")
    for names, status in (([name], 200), ([name, name], 421), ([name, "evil.example"], 421)):
        connection = http.client.HTTPConnection(name)
        connection.putrequest("GET", "/health", skip_host=True)
        for one in names:
            connection.putheader("Host", one)
        connection.endheaders()
        # A parser of HTTP/1.1 may refuse several names itself.
        assert connection.getresponse().status in (status, 400 if len(names) > 1 else status)
        connection.close()


@pytest.mark.slow
def test_wrong_tokens_wait_longer_each_time_and_others_do_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security.WrongTokens, "first_s", 0.05)
    client = start(token=WORD)
    wrong = {"Authorization": "Bearer wrong"}
    taken = []
    for _ in range(4):
        began = time.monotonic()
        assert client.get("/api/models", headers=wrong).status_code == 401
        taken.append(time.monotonic() - began)
    # Lower bounds alone: a loaded machine may take longer.
    assert all(one > 0.05 * 2**k for k, one in enumerate(taken))
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: client.get("/api/models", headers=wrong), range(20)))
    assert {answer.status_code for answer in answers} == {401, 429}, "few wait at a time"
    delayed: list[str] = []

    async def delay(_: security.WrongTokens, address: str) -> None:
        delayed.append(address)

    monkeypatch.setattr(security.WrongTokens, "delay", delay)
    assert client.get("/api/models", headers=BEARER).status_code == 200
    assert client.get("/api/models").status_code == 401
    assert delayed == [], "neither the right token nor none at all waits"
    assert client.get("/api/models", headers=wrong).status_code == 401
    assert len(delayed) == 1


def test_addresses_that_sent_wrong_tokens_are_forgotten() -> None:
    wrong = security.WrongTokens()
    wrong.first_s, wrong.max_addresses = 0.0, 3

    async def send() -> None:
        for k in range(10):
            await wrong.delay(str(k))

    asyncio.run(send())
    assert len(wrong._wrong) == 3
    assert not wrong._waiting


def test_limits_hold_everywhere_and_a_full_queue_states_when_to_try_again(
    start: Start, study: Path
) -> None:
    client = start(limits={"max_windows": 4, "max_jobs": 1}, real=study)
    words = "`n` must be 4 or fewer here, not 5; the limit is `max_windows` of the server"
    assert words in error_of(client.get("/api/generate/stream?n=5"), 422)
    assert words in error_of(client.post("/api/generate", json={"n": 5}), 422)
    assert words in error_of(client.post("/api/evaluate", data={"n": "5"}), 422)
    play: Playground = client.app.state.playground  # type: ignore[attr-defined]
    job = play.generation.submit(nothing, lambda kind, value: None)
    for answer in (
        client.get("/api/generate/stream?n=1"),
        client.post("/api/generate", json={"n": 1}),
    ):
        assert "the queue is full (1 jobs are running or waiting)" in error_of(answer, 429)
        assert answer.headers["retry-after"] == "2"
    play.generation.release(job)
    assert client.post("/api/generate", json={"n": 1}).status_code == 200


FORM = {"Content-Type": "multipart/form-data; boundary=x"}
JSON = {"Content-Type": "application/json"}


def test_bodies_are_refused_by_their_announced_size_and_during_the_upload(start: Start) -> None:
    client = start(limits={"max_upload_mb": 1})
    n_taken = 0

    def endless() -> Any:
        nonlocal n_taken
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
        while n_taken < 1024:
            n_taken += 1
            yield b"0" * (1 << 16)

    upload, small = "an upload may have 1 MB in total", "the body of this request may have 64 kB"
    answer = client.post("/api/real", files={"files": ("a.csv", b"0" * (2 << 20))})
    assert error_of(answer, 413) == upload
    assert error_of(client.post("/api/real", content=endless(), headers=FORM), 413) == upload
    assert error_of(client.post("/api/generate", content=b" " * (1 << 17)), 413) == small
    parts = (b" " * (1 << 14) for _ in range(8))
    assert error_of(client.post("/api/generate", content=parts, headers=JSON), 413) == small
    # Small files that expand to much are refused when they are read.
    bomb = gzip.compress(b"0" * (20 << 20))
    answer = client.post("/api/real", files={"files": ("sub-1_recording-eye1_physio.tsv.gz", bomb)})
    assert "expands to more than 4 MB" in error_of(answer, 413)
    table = io.BytesIO()
    pq.write_table(pa.table({name: np.zeros(2 << 20) for name in ("t", "x", "y")}), table)
    answer = client.post("/api/real", files={"files": ("a.parquet", table.getvalue())})
    assert error_of(answer, 413) == "a.parquet: expands to more than 4 MB"


def begun_upload(url: str) -> socket.socket:
    """A connection with a form that has begun."""
    host, _, port = url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    head = (
        f"POST /api/real HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    connection.sendall(head.encode() + b"--x\r\n")
    return connection


def test_bodies_that_idle_or_trickle_time_out_and_lock_nobody_out(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "IDLE_S", 0.5)
    with live_server(Settings(model=str(run_folder), limits=Limits(max_jobs=4))) as url:
        idle = [begun_upload(url) for _ in range(4)]
        statuses = sorted(one.recv(200).decode().split()[1] for one in idle)
        assert statuses == ["408", "408", "429", "429"], "one client takes half of the places"
        for one in idle:
            one.close()
        files = {"files": ("a.csv", b"no")}
        answer = httpx2.post(f"{url}/api/real", files=files, timeout=PATIENCE_S)
        assert answer.status_code == 422, "their places are free"

        monkeypatch.setattr(security, "SLOW_AFTER_S", 0.3)
        slow = begun_upload(url)
        slow.settimeout(0.1)
        refusal = b""
        for _ in range(100):
            slow.sendall(b"-")
            with contextlib.suppress(TimeoutError):
                refusal = slow.recv(2000)
                break
        slow.close()
        assert refusal.startswith(b"HTTP/1.1 408")


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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "lab.example", ""])
def test_only_loopback_needs_no_token(host: str) -> None:
    with pytest.raises(GazeError, match="can be reached from other machines, and there is no tok"):
        Settings(host=host)
    assert not Settings(host=host, token="x").is_loopback
    for own in ("127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost"):
        assert Settings(host=own).is_loopback


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"allowed_hosts": ("lab.example",)}, "lab.example can be reached from other machines"),
        ({"allowed_hosts": ("a b",), "token": "x"}, "`allowed_hosts` must be a name without port"),
        ({"allowed_hosts": ("a:80",), "token": "x"}, "`allowed_hosts` must be a name without port"),
        ({"token": " "}, "`token` must not be empty"),
        ({"port": 70000}, "`port` must lie between 0 and 65535"),
        ({"real": Path("/no/such/file")}, "there is no such file or folder"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(GazeError, match=words):
        Settings(**settings)
    with pytest.raises(GazeError, match="`max_upload_mb` must be 1 or more, not 0"):
        Limits(max_upload_mb=0)
    assert TOKEN not in repr(Settings(token=TOKEN))


def test_the_page_and_its_files_come_from_this_server(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self' 'sha256-" in policy
    assert "http" not in policy
    assert client.get("/api/models").headers["content-security-policy"] == (
        "default-src 'none'; frame-ancestors 'none'"
    )
    plotly = client.get("/static/plotly.js")
    assert plotly.headers["content-type"].startswith("text/javascript")
    assert len(plotly.content) > 1_000_000
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/health").json() == {"status": "ok", "version": gd.__version__}


def test_head_is_answered_as_get_without_the_body(client: TestClient) -> None:
    for path in ("/", "/health", "/docs", "/openapi.json", "/static/main.js", "/api/models"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-length"] == str(len(get.content))
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/nothing").status_code == 404
    assert client.head("/api/generate/stream").status_code == 405, "it would generate"


NINES = b"9" * 5000


@pytest.mark.parametrize(
    "body",
    [
        *(b"[" * 30_000, b"{" * 30_000, b'{"n": NaN}', b'{"n": Infinity}', b"\xff\xfe", b"null"),
        *(b'{"seed": -1e300}', b'{"seed": %s}' % NINES, b'{"n": -%s}' % NINES[:400]),
        *(b'{"seed": 0.5}', b'{"seconds": NaN}', b'{"seconds": 1e308}', b'{"n": true}'),
        *(b'{"task": "\\ud800"}', b'{"model": "\\u0000"}', b'{"\\ud800": 1}'),
        *(b"?n=9%s" % NINES[:400], b"?seed=-%s" % NINES[:400], b"?seconds=nan", b"?n=1e400"),
        b"?task=%00",
    ],
    ids=lambda body: body[:12],
)
def test_odd_json_and_addresses_are_refused_with_one_line(client: TestClient, body: bytes) -> None:
    if body.startswith(b"?"):
        error_of(client.get(f"/api/generate/stream{body.decode()}"), 422)
        return
    answer = client.post("/api/generate", content=body, headers=JSON)
    assert answer.status_code in (400, 422), answer.text
    error_of(answer, answer.status_code)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/api/nothing", 404), ("PUT", "/api/models", 405)]
)
def test_unknown_paths_and_methods_are_refused_with_one_line(
    client: TestClient, method: str, path: str, status: int
) -> None:
    error_of(client.request(method, path), status)
