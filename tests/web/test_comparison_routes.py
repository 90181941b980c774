"""Recordings over HTTP: read, compared, reported, and nothing of them kept."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2
import numpy as np
import pytest
from fastapi.testclient import TestClient

from gazediffusion.data.simulation import write_simulation
from gazediffusion.data.windows import Windows
from gazediffusion.settings import SimulationConfig
from gazediffusion.web.settings import Settings
from gazediffusion.web.state import Playground
from tests.web.conftest import PATIENCE_S, Start, created, live_app, sent_files
from tests.web.test_generation_routes import events_of


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
    fields = {"n": "25"}
    found = client.post("/api/evaluate", data=fields).json()
    assert found["n_real"] == len(windows.held_out)
    assert found["floor"] == "training and held-out participants of the windows file"
    assert found["notes"] == []
    assert found["warnings"][-1].startswith("synthetic has 25 windows"), "tasks match"


@pytest.mark.slow
def test_synthetic_windows_are_of_the_recorded_tasks(
    client: TestClient, windows_file: Path, tmp_path: Path
) -> None:
    windows = Windows.load(windows_file)
    number = np.arange(len(windows.segment_starts), dtype=np.int32) % 2

    def sent(*tasks: str) -> dict[str, tuple[str, bytes]]:
        path = tmp_path / "windows.safetensors"
        replace(windows, tasks=tasks, segment_task=number, validation=frozenset()).save(
            path, overwrite=True
        )
        return {"files": (path.name, path.read_bytes())}

    fields = {"n": "25"}
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


def test_recordings_slower_than_the_model_are_compared_at_their_rate(
    client: TestClient, tmp_path: Path
) -> None:
    config = SimulationConfig(n_participants=3, minutes=1.0, rate_hz=60)
    write_simulation(config, tmp_path / "slow", "csv")
    files = sent_files(tmp_path / "slow")
    found = client.post("/api/real", files=files).json()
    assert found["rate_hz"] == 60
    assert found["n_recordings"] == 6
    fields = {"n": "25"}
    found = client.post("/api/evaluate", files=files, data=fields).json()
    assert found["n_synthetic"] == 25
    assert any("60 Hz" in line for line in [found["compared"], *found["notes"]])


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
        ("a.xyz", b"nothing known", {}, "a.xyz: no eye-tracking format known here"),
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


@pytest.mark.slow
def test_a_stream_tells_the_stages_and_its_report_repeats_nothing(
    client: TestClient, study: Path
) -> None:
    fields = {"n": "25"}
    streamed = client.post("/api/evaluate/stream", files=sent_files(study), data=fields)
    (_, queued), *progress, (last, done) = events_of(streamed.text)
    assert len(queued["job"]) == 16
    assert queued["ahead"] == 0
    assert last == "done", done
    assert {name for name, _ in progress} == {"progress"}
    stages = list(dict.fromkeys(one["stage"] for _, one in progress))
    assert stages == ["reading", "generating", "comparing"]
    assert max(one["done"] for _, one in progress if one["stage"] == "generating") == 25
    assert max(one["done"] for _, one in progress if one["stage"] == "reading") >= 3
    assert done["n_synthetic"] == 25

    kept = {"comparison": done["comparison"]}
    (_, queued), *progress, (last, written) = events_of(
        client.post("/api/report/stream", data=kept).text
    )
    assert [one["stage"] for _, one in progress] == ["writing"], "nothing else is done again"
    assert (last, written["comparison"]) == ("done", done["comparison"])
    assert written["page"].startswith("<!doctype html>")
    assert "unsafe-inline" not in written["page"]
    for path in ("/api/report", "/api/report/stream"):
        lost = client.post(path, data={"comparison": "0" * 32})
        assert lost.status_code == 404
        assert lost.json() == {"error": "the comparison is no longer kept; compare again"}


def test_a_stream_fails_with_one_line_and_invalid_fields_before_it_begins(
    client: TestClient,
) -> None:
    answer = client.post("/api/evaluate/stream", files={"files": ("a.csv", b"no gaze")})
    assert answer.status_code == 200
    name, failed = events_of(answer.text)[-1]
    assert name == "failed"
    assert failed["error"].startswith("a.csv")
    answer = client.post("/api/evaluate/stream", files={"files": ("a", b"1")}, data={"n": "0"})
    assert (answer.status_code, "`n`" in answer.json()["error"]) == (422, True)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"unit": "cm"}, "`unit` must be one of px, deg, norm"),
        ({"origin": "left"}, "`origin` must be one of top-left"),
        ({"source_rate": "-5"}, "`source_rate` must be a positive number"),
        ({"columns": "x"}, "`columns` must look like x=GazeX"),
        ({"override_screen": "perhaps"}, "`override_screen`: Input should be a valid boolean"),
    ],
)
def test_what_is_said_of_the_files_reaches_the_reader(
    client: TestClient, field: dict[str, str], words: str
) -> None:
    answer = client.post("/api/real", files={"files": ("a.csv", b"t,x,y\n0,1,2\n")}, data=field)
    assert answer.status_code == 422
    assert words in answer.json()["error"]


def test_columns_are_named_in_the_form(client: TestClient) -> None:
    rows = b"".join(b"%d,%d,%d\n" % (4 * k, 600 + k % 7, 300 + k % 5) for k in range(1000))
    fields = {"columns": "t=A,x=B,y=C", "screen": "1280x720"}
    upload = {"files": ("p1/gaze.csv", b"A,B,C\n" + rows)}
    answer = client.post("/api/real", files=upload, data=fields)
    # Without a unit the clock is measured; a file that a reader refuses is refused for its content.
    assert "`columns`" not in answer.text
    assert answer.status_code in (200, 422)


@pytest.mark.slow
def test_cancelling_and_leaving_end_the_work_of_the_worker(
    run_folder: Path, study: Path, tmp_path: Path
) -> None:
    """A pipe without a writer: it is read for ever, until the worker is ended."""
    real = tmp_path / "endless.csv"
    os.mkfifo(real)
    settings = Settings(model=str(run_folder), real=real)
    app = created(settings)
    with live_app(app, settings) as url:
        play: Playground = app.state.playground
        with httpx2.stream("POST", f"{url}/api/evaluate/stream", timeout=PATIENCE_S) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: queued"
            job = json.loads(next(lines).removeprefix("data: "))["job"]
            assert any("reading" in line for line in lines)
            pid = play.reader.pid
            assert (
                httpx2.post(f"{url}/api/jobs/{job}/cancel", timeout=PATIENCE_S).status_code == 204
            )
            rest = "".join(lines)
        assert rest.endswith('event: faileddata: {"error": "the job was cancelled"}')
        assert httpx2.post(f"{url}/api/jobs/{job}/cancel", timeout=PATIENCE_S).status_code == 404
        wait_for(lambda: not Path(f"/proc/{pid}").exists())

        with httpx2.stream("POST", f"{url}/api/evaluate/stream", timeout=PATIENCE_S) as stream:
            assert any("reading" in line for line in stream.iter_lines())
            pid = play.reader.pid
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
        wait_for(lambda: play.comparison.n_active == 0 and not play.streams)
        sent = httpx2.post(f"{url}/api/real", files=sent_files(study), timeout=PATIENCE_S)
        assert sent.status_code == 200, "another worker serves others"


def wait_for(is_so: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
