"""The application: its page and files, its description, its errors."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient


def test_the_page_and_its_files_come_from_this_server(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
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
