"""Recordings over HTTP: read, compared, reported, and nothing of them kept."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
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
    fields = {"n": "25", "quality": "fast"}
    found = client.post("/api/evaluate", data=fields).json()
    assert found["n_real"] == len(windows.held_out)
    assert found["floor"] == "training and held-out participants of the windows file"
    assert found["notes"] == []
    assert found["warnings"][-1].startswith("synthetic has 25 windows"), "tasks match"


def test_synthetic_windows_are_of_the_recorded_tasks(
    client: TestClient, windows_file: Path, tmp_path: Path
) -> None:
    windows = Windows.load(windows_file)
    number = np.arange(len(windows.segment_starts), dtype=np.int32) % 2

    def sent(*tasks: str) -> dict[str, tuple[str, bytes]]:
        path = tmp_path / "windows.safetensors"
        replace(windows, tasks=tasks, segment_task=number, validation=frozenset()).save(path)
        return {"files": (path.name, path.read_bytes())}

    fields = {"n": "25", "quality": "fast"}
    known = sent("free_viewing", "Reading")
    found = client.post("/api/real", files=known).json()
    assert found["model_tasks"] == {"free_viewing": "free viewing", "Reading": "reading"}
    found = client.post("/api/evaluate", files=known, data=fields).json()
    assert found["n_synthetic"] == 25
    assert not [one for one in found["warnings"] if "tasks do not match" in one]

    other = sent("free_viewing", "searching")
    response = client.post("/api/evaluate", files=other, data=fields)
    words = "the model has no task 'searching' of the recording; choose `task`: "
    assert (response.status_code, words in response.json()["error"]) == (422, True)
    fields["task"] = "reading"
    assert client.post("/api/evaluate", files=other, data=fields).status_code == 200


def test_few_windows_are_refused_before_any_is_generated(
    client: TestClient, study: Path, tmp_path: Path
) -> None:
    response = client.post("/api/evaluate", files=sent_files(study), data={"n": "6"})
    words = "`n` must be 25 or more for a comparison, not 6"
    assert (response.status_code, response.json()) == (422, {"error": words})
    rows = (study / "recordings.csv").read_text().splitlines()[:2000]
    files = {"files": ("recordings.csv", "\n".join(rows))}
    response = client.post("/api/evaluate", files=files, data={"screen": "1280x720"})
    assert response.status_code == 422
    assert "windows, and a comparison needs 25" in response.json()["error"]


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
