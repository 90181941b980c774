"""Access: names of the server, the token, and pages of other sites."""

from __future__ import annotations

import base64
import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gazediffusion.web import security as access
from gazediffusion.web.settings import Settings, host_name
from tests.web.conftest import Start, live_server
from tests.web.test_limits import error_of

TOKEN = "a secret ü"
WORD = "a-secret"
BEARER = {"Authorization": f"Bearer {WORD}"}


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({}, {}, 401),
        ({"Authorization": "Bearer wrong"}, {}, 401),
        ({"Authorization": "Bearer "}, {}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, {}, 401),
        ({}, {"token": "wrong"}, 401),
        ({}, {"token": TOKEN}, 401),
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
    client = start(token=WORD)
    described = client.get("/openapi.json", headers=BEARER).json()
    for path, methods in described["paths"].items():
        for method in methods:
            expected = 200 if path == "/health" else 401
            assert client.request(method, path).status_code == expected, path
    assert client.get("/").status_code == 200
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    assert described["security"] == [{"HTTPBearer": []}]
    assert described["paths"]["/health"]["get"]["security"] == []


def test_on_loopback_only_loopback_names_are_accepted(start: Start) -> None:
    client = start()
    hosts = ["evil.example", "127.0.0.1.evil.example", "", "[", "0.0.0.0", "user@localhost"]
    hosts += ["localhost:99999", "localhost:80x", "localhost:", "localhost/", "localhost."]
    hosts += ["localhost localhost", "[::1", "[::1]x", "localhost\t", "127.0.0.1#"]
    for host in hosts:
        for path in ("/", "/api/models"):
            error_of(client.get(path, headers={"Host": host}), 421)
    for host in ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000", "LOCALHOST"]:
        assert client.get("/api/models", headers={"Host": host}).status_code == 200, host


def test_with_a_token_the_server_may_have_any_name(start: Start) -> None:
    client = start(host="0.0.0.0", token=WORD)
    answer = client.get("/api/models", headers={**BEARER, "Host": "lab.example"})
    assert answer.status_code == 200
    assert client.get("/", headers={"Host": "lab.example:x"}).status_code == 421


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


def test_several_host_names_are_refused(run_folder: Path) -> None:
    with live_server(Settings(model=str(run_folder))) as url:
        name = url.removeprefix("http://")
        for names, status in (([name], 200), ([name, name], 421), ([name, "evil.example"], 421)):
            connection = http.client.HTTPConnection(name)
            connection.putrequest("GET", "/health", skip_host=True)
            for one in names:
                connection.putheader("Host", one)
            connection.endheaders()
            answer = connection.getresponse()
            # A parser of HTTP/1.1 may refuse several names itself.
            assert answer.status in (status, 400 if len(names) > 1 else status)
            connection.close()


def test_an_allowed_name_is_accepted_and_no_other(start: Start) -> None:
    client = start(token=WORD, allowed_hosts=("lab.example", "Other.example"))
    for host, status in (
        ("lab.example", 200),
        ("LAB.example:8443", 200),
        ("other.example", 200),
        ("127.0.0.1:8000", 200),
        ("evil.example", 421),
        ("lab.example.evil", 421),
    ):
        assert client.get("/health", headers={"Host": host}).status_code == status, host
        answer = client.get("/api/models", headers={**BEARER, "Host": host})
        assert answer.status_code == status, host
    elsewhere = start(host="0.0.0.0", token=WORD, allowed_hosts=("lab.example",))
    assert elsewhere.get("/", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("Lab.Example:443", "lab.example"),
        ("[::1]:65535", "[::1]"),
        ("a:65536", None),
        ("a:-1", None),
        ("a_b-c.d", "a_b-c.d"),
        ("-a", None),
        ("a..", None),
        ("lab.example:\u0661", None),
    ],
)
def test_a_host_header_is_a_name_and_a_port(header: str, name: str | None) -> None:
    assert host_name(header) == name


def test_the_description_asks_for_the_token_as_a_browser_can_give_it(start: Start) -> None:
    client = start(token=WORD)
    basic = base64.b64encode(f"anybody:{WORD}".encode()).decode()
    for path in ("/docs", "/openapi.json"):
        refused = client.get(path)
        assert error_of(refused, 401)
        assert refused.headers["www-authenticate"].startswith("Basic realm=")
        assert client.get(path, headers=BEARER).status_code == 200
        assert client.get(path, headers={"Authorization": f"Basic {basic}"}).status_code == 200
        assert client.get(path, headers={"Authorization": "Basic !"}).status_code == 401
    answer = client.get("/api/models", headers={"Authorization": f"Basic {basic}"})
    assert answer.status_code == 401


@pytest.mark.slow
def test_wrong_tokens_wait_longer_each_time_and_others_do_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access.WrongTokens, "first_s", 0.05)
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
        statuses = {answer.status_code for answer in answers}
    assert statuses == {401, 429}, "few wait at a time"
    delayed: list[str] = []

    async def delay(_: access.WrongTokens, address: str) -> None:
        delayed.append(address)

    monkeypatch.setattr(access.WrongTokens, "delay", delay)
    assert client.get("/api/models", headers=BEARER).status_code == 200
    assert client.get("/api/models").status_code == 401
    assert delayed == [], "neither the right token nor none at all waits"
    assert client.get("/api/models", headers=wrong).status_code == 401
    assert len(delayed) == 1


def test_addresses_that_sent_wrong_tokens_are_forgotten() -> None:
    import asyncio

    wrong = access.WrongTokens()
    wrong.first_s, wrong.max_addresses = 0.0, 3

    async def send() -> None:
        for k in range(10):
            await wrong.delay(str(k))

    asyncio.run(send())
    assert len(wrong._wrong) == 3
    assert not wrong._waiting
