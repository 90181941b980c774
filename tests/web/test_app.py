"""The application: its page and files, its description, its errors."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

import gazediffusion as gd
from tests.web.conftest import Start


def test_the_page_and_its_files_come_from_this_server(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self' 'sha256-" in policy
    assert client.get("/api/models").headers["content-security-policy"] == (
        "default-src 'none'; frame-ancestors 'none'"
    )
    assert "http" not in policy
    plotly = client.get("/static/plotly.js")
    assert plotly.headers["content-type"].startswith("text/javascript")
    assert len(plotly.content) > 1_000_000
    assert client.get("/static/../app.py").status_code == 404


def test_the_description_names_models_and_tasks(client: TestClient, run_folder: Path) -> None:
    schema = client.get("/openapi.json").json()
    body = schema["components"]["schemas"]["GenerateRequest"]["properties"]
    assert body["model"]["enum"] == [run_folder.name, None]
    assert body["task"]["enum"] == ["free viewing", "reading", None]
    docs = client.get("/docs").text
    for path in schema["paths"]:
        assert path in docs
    assert "<script" not in docs


def test_unknown_paths_and_methods_are_refused_with_one_line(client: TestClient) -> None:
    for method, path, status in (("GET", "/api/nothing", 404), ("PUT", "/api/models", 405)):
        response = client.request(method, path)
        assert response.status_code == status
        assert isinstance(response.json()["error"], str)


def test_health_is_a_cheap_answer_without_a_token(start: Start) -> None:
    client = start(token="a-secret")
    assert client.get("/health").json() == {"status": "ok", "version": gd.__version__}


def test_head_is_answered_as_get_without_the_body(client: TestClient) -> None:
    for path in ("/", "/health", "/docs", "/openapi.json", "/static/main.js", "/api/models"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-length"] == str(len(get.content))
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/nothing").status_code == 404
    assert client.head("/api/generate/stream").status_code == 405, "it would generate"


def test_odd_json_is_refused_with_one_line(client: TestClient) -> None:
    bodies = [b"[" * 30_000, b"{" * 30_000, b'{"n": NaN}', b'{"n": Infinity}', b"\xff\xfe"]
    bodies += [b'{"seed": -1e300}', b'{"seed": %s}' % (b"9" * 5000), b'{"n": -%s}' % (b"9" * 400)]
    bodies += [
        b'{"seed": 0.5}',
        b'{"seconds": NaN}',
        b'{"seconds": 1e308}',
        b"null",
        b'{"n": true}',
    ]
    bodies += [b'{"task": "\\ud800"}', b'{"model": "\\u0000"}', b'{"\\ud800": 1}']
    for body in bodies:
        answer = client.post(
            "/api/generate", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (400, 422), (body[:50], answer.text)
        assert "\n" not in answer.json()["error"]
    for query in ("n=9" + "9" * 400, "seed=-" + "9" * 400, "seconds=nan", "task=%00", "n=1e400"):
        answer = client.get(f"/api/generate/stream?{query}")
        assert answer.status_code == 422, (query[:50], answer.text)
