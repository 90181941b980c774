"""Recordings over HTTP: read, compared, reported, and nothing of them kept."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from gazediffusion.data.windows import Windows
from tests.web.conftest import Start, sent_files


def test_the_recording_of_real_equals_one_that_is_sent(start: Start, study: Path) -> None:
    client = start(real=study)
    assert client.get("/api/models").json()["has_real"] is True
    sent = client.post("/api/real", files=sent_files(study)).json()
    assert client.get("/api/real").json() == sent
    short = client.get("/api/real?seconds=1").json()
    assert len(short["windows"][0]["x"]) == 250


def test_without_a_recording_there_is_nothing_to_compare(client: TestClient) -> None:
    assert client.get("/api/real").status_code == 404
    missing = "no recording was given; send `files`, or start the server with `real`"
    for path, words in (
        ("/api/evaluate", missing),
        ("/api/report", missing),
        ("/api/real", "`files`: Field required"),
    ):
        response = client.post(path)
        assert (response.status_code, response.json()) == (422, {"error": words})


def test_the_held_out_participants_of_a_windows_file_are_real(
    start: Start, windows_file: Path
) -> None:
    client = start(real=windows_file)
    windows = Windows.load(windows_file)
    assert client.get("/api/real").json()["n_windows"] == len(windows.held_out)
    fields = {"n": "25", "quality": "fast", "task": "free viewing"}
    found = client.post("/api/evaluate", data=fields).json()
    assert found["n_real"] == len(windows.held_out)
    assert found["notes"] == [], "the floor is that of the training participants"


@pytest.mark.parametrize(
    ("name", "content", "fields", "words"),
    [
        ("a.csv", b"x,y\n1,2\n", {}, "a.csv"),
        ("a.xyz", b"nothing known", {}, "a.xyz: this is no eye-tracking format known here"),
        ("a.csv", b"", {}, "a.csv: the file is empty"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {}, "`screen`"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen": "big"}, "`screen` must look like"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen_cm": "4x3"}, "need `screen` in pixels"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen": "640x480"}, "no window of 1.984 s"),
        (
            "a.csv",
            b"t,x,y\n0,1,2\n",
            {"distance_cm": "far"},
            "`distance_cm`: Input should be a valid number",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/api/real", "/api/evaluate"])
def test_an_unreadable_file_is_refused_without_naming_the_temporary_folder(
    client: TestClient, path: str, name: str, content: bytes, fields: dict[str, str], words: str
) -> None:
    response = client.post(path, files={"files": (name, content)}, data=fields)
    assert response.status_code == 422, response.text
    assert words in response.json()["error"]
    assert tempfile.gettempdir() not in response.json()["error"]


@pytest.mark.usefixtures("temporary_folder")
def test_nothing_is_left_of_an_unreadable_file(client: TestClient) -> None:
    assert client.post("/api/real", files={"files": ("a.csv", b"no")}).status_code == 422
