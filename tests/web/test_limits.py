"""Limits and access: size, token, host name, pages of other sites, settings."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gazediffusion.errors import GazeError
from gazediffusion.web import playground
from gazediffusion.web.jobs import Job, Steps
from gazediffusion.web.settings import Limits, Settings
from tests.web.conftest import Start


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


def nothing(job: Job) -> Steps:
    yield


def test_a_full_queue_states_when_to_try_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start(limits={"max_jobs": 1})
    play: playground.Playground = client.app.state.playground  # type: ignore[attr-defined]
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


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, {}, 401),
        ({"Authorization": "Bearer wrong"}, {}, 401),
        ({"Authorization": "Bearer "}, {}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, {}, 401),
        ({}, {"token": "wrong"}, 401),
        ({}, {"token": TOKEN}, 200),
        ({"Authorization": f"Bearer {TOKEN}"}, {}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, {"token": "wrong"}, 200),
    ],
)
def test_the_api_requires_the_token(
    start: Start, headers: dict[str, str], query: dict[str, str], status: int
) -> None:
    sent = {name.encode(): value.encode() for name, value in headers.items()}
    answer = start(token=TOKEN).get("/api/models", headers=sent, params=query)
    assert answer.status_code == status
    if status == 401:
        assert "token" in error_of(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_every_path_of_the_api_requires_the_token_and_the_page_does_not(start: Start) -> None:
    client = start(token=TOKEN)
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            assert client.request(method, path).status_code == 401, path
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "0.0.0.0"])
def test_on_loopback_only_loopback_names_are_accepted(start: Start, host: str) -> None:
    client = start()
    for path in ("/", "/api/models"):
        error_of(client.get(path, headers={"Host": host}), 421)


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000"])
def test_names_of_this_machine_are_accepted(start: Start, host: str) -> None:
    assert start().get("/api/models", headers={"Host": host}).status_code == 200


def test_with_a_token_the_server_may_have_any_name(start: Start) -> None:
    client = start(host="0.0.0.0", token=TOKEN)
    answer = client.get("/api/models", params={"token": TOKEN}, headers={"Host": "lab.example"})
    assert answer.status_code == 200


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
    start: Start, headers: dict[str, str], status: int
) -> None:
    answer = start().post("/api/generate", json={"n": 1}, headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


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
