"""Steering over HTTP: length, waypoints, scanpaths, targets and style, as in Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.writers import write_into
from gazediffusion.web import generate as steering
from gazediffusion.web.app import create_app
from gazediffusion.web.generate import BATCH_CPU, GenerationRequest
from gazediffusion.web.queue import Job
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.settings import Limits, Settings
from gazediffusion.web.state import Playground
from gazediffusion.web.worker import TooLargeError
from tests.conftest import MakeRecording, RunCommand
from tests.web.conftest import Start, created
from tests.web.test_generation_routes import events_of
from tests.web.test_limits import error_of, nothing

SCANPATHS = "id,x_px,y_px,duration_ms\na,640,360,1500\na,800,300,\nb,600,360,2500\n"
TARGETS = "t_ms,x_px,y_px\n0,640,360\n1500,900,200\n"
POINTS = {"at": ["2.0:900,200", "3:100.5,50"], "start": "640,360"}


@pytest.fixture(scope="module")
def steerable(steerable_folder: Path) -> Iterator[TestClient]:
    """The application with a steerable model."""
    app = created(Settings(model=str(steerable_folder), limits=Limits(max_windows=20)))
    app.state.playground.reader.start()
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture(scope="module")
def model(steerable_folder: Path) -> gd.Model:
    return gd.load(steerable_folder, device="cpu")


def gaze_of(answer: Any) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.array([[one["x"], one["y"]] for one in answer.json()["windows"]])


def test_models_say_whether_they_are_steerable(steerable: TestClient, client: TestClient) -> None:
    for found, is_steerable, max_seconds in ((steerable, True, 3600), (client, False, 1.984)):
        answer = found.get("/api/models").json()
        assert answer["models"][0]["is_steerable"] is is_steerable
        assert answer["limits"]["max_seconds"] == max_seconds


def test_windows_of_any_length_are_those_of_the_library(
    steerable: TestClient, model: gd.Model
) -> None:
    fields: dict[str, Any] = {"n": 2, "task": "dots", "seconds": 12, "seed": 3}
    expected = model.sample(2, task="dots", seconds=12, seed=3, batch_size=BATCH_CPU).cut()
    assert expected.shape == (2, 2, 240)
    answer = steerable.post("/api/generate", json=fields)
    np.testing.assert_allclose(gaze_of(answer), expected, atol=0.51e-5)
    events = events_of(steerable.get("/api/generate/stream", params=fields).text)
    assert events[-1][0] == "done", events[-1]
    windows = [data for name, data in events if name == "window"]
    np.testing.assert_allclose([[one["x"], one["y"]] for one in windows], expected, atol=0.51e-5)


def test_a_long_window_lets_other_jobs_have_their_turns(
    steerable_folder: Path, steerable: TestClient
) -> None:
    play: Playground = steerable.app.state.playground  # type: ignore[attr-defined]
    fields = GenerationFields(n=2, task="dots", seconds=12)  # type: ignore[call-arg]
    requested = GenerationRequest.of(fields, play.models, play.settings.limits)
    job = Job(requested.pieces, lambda kind, value: None, 0)
    steps = [piece is None for piece in job.steps]
    # Seven windows of the model each, and the whole window after the last.
    assert steps == ([True] * 7 + [False]) * 2


def test_the_command_and_the_program_of_waypoints_write_the_same_bytes(
    steerable: TestClient, run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields: dict[str, Any] = {"n": 2, "task": "dots", "seconds": 5, **POINTS}
    *_, (name, done) = events_of(steerable.get("/api/generate/stream", params=fields).text)
    assert name == "done", done
    sent = steerable.post("/api/generate", json={**fields, "format": "parquet"})
    form = {name: str(value) for name, value in fields.items() if name != "at"}
    again = steerable.post(
        "/api/generate/upload", data={**form, "at": fields["at"], "format": "parquet"}
    )
    assert sent.content == again.content
    monkeypatch.chdir(tmp_path)
    code, _, error = run(*shlex.split(done["command"])[1:])
    assert code == 0, error
    assert (tmp_path / "gaze.parquet").read_bytes() == sent.content
    (tmp_path / "python").mkdir()
    monkeypatch.chdir(tmp_path / "python")
    exec(done["python"], {})
    assert (tmp_path / "python" / "gaze.parquet").read_bytes() == sent.content
    assert done["card"]["sampling"]["constraints"]["fixations"]["entries"] == 1


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(("kind", "table"), [("scanpath", SCANPATHS), ("targets", TARGETS)])
def test_tables_give_the_bytes_of_the_command_line(
    steerable: TestClient,
    run: RunCommand,
    steerable_folder: Path,
    tmp_path: Path,
    kind: str,
    table: str,
) -> None:
    path = tmp_path / f"{kind}.csv"
    path.write_text(table)
    words = [
        "--model",
        steerable_folder,
        "--task",
        "dots",
        "--batch-size",
        BATCH_CPU,
        "--device",
        "cpu",
    ]
    words += [] if kind == "scanpath" else ["-n", 6]
    code, _, error = run("generate", "-o", tmp_path / "gaze.parquet", *words, f"--{kind}", path)
    assert code == 0, error
    fields = {"task": "dots", "format": "parquet", **({} if kind == "scanpath" else {"n": 6})}
    inline = steerable.post("/api/generate", json={**fields, kind: table})
    assert inline.status_code == 200, inline.text
    assert inline.content == (tmp_path / "gaze.parquet").read_bytes()
    upload = steerable.post(
        "/api/generate/upload", data=fields, files={kind: (f"{kind}.csv", table)}
    )
    assert upload.content == inline.content


def test_positions_are_of_the_screen_and_unit_that_the_form_states(
    steerable: TestClient, model: gd.Model
) -> None:
    targets = gd.Targets(
        "a", np.array([0.0, 1500.0]), np.array([0, 0.5], np.float32), np.zeros(2, np.float32)
    )
    expected = model.sample(1, task="dots", targets=[targets], batch_size=BATCH_CPU).cut()
    for table, fields in (
        ("t_ms,x,y\n0,50,25\n1500,75,25", {"screen": "100x50"}),
        ("t_ms,x,y\n0,0.5,0.5\n1500,0.75,0.5", {"unit": "norm"}),
    ):
        files = {"targets": ("t.csv", table)}
        answer = steerable.post(
            "/api/generate/upload", files=files, data={"task": "dots", "n": "1", **fields}
        )
        np.testing.assert_allclose(gaze_of(answer), expected, atol=0.51e-5)


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.slow
def test_windows_like_a_recording_have_the_bytes_of_the_command_line(
    run: RunCommand, tmp_path: Path, make_recording: MakeRecording
) -> None:
    write_into(tmp_path / "in", [(make_recording(n=3000), ())], "parquet")
    files = sorted((tmp_path / "in").glob("recordings.*"))
    words = ["--task", "reading", "-n", 1, "--batch-size", BATCH_CPU]
    words += ["--like", tmp_path / "in", "--candidates", 2, "--device", "cpu"]
    code, _, error = run("generate", "-o", tmp_path / "gaze.parquet", *words)
    assert code == 0, error
    fields = {"task": "reading", "n": "1", "format": "parquet"}
    fields["candidates"] = "2"
    with TestClient(create_app(Settings()), base_url="http://127.0.0.1:8000") as packaged:
        sent = [("like", (path.name, path.read_bytes())) for path in files]
        answer = packaged.post("/api/generate/upload", data=fields, files=sent)
        assert answer.status_code == 200, answer.text
        assert answer.content == (tmp_path / "gaze.parquet").read_bytes()
        windows = gd.style_windows(gd.read(tmp_path / "in"), 250.0, 8.0)
        windows.save(tmp_path / "like.safetensors")
        sent = [("like", ("like.safetensors", (tmp_path / "like.safetensors").read_bytes()))]
        again = packaged.post("/api/generate/upload", data=fields, files=sent)
        assert again.content == answer.content
        short = [("like", ("a.csv", "t_ms,x_px,y_px\n0,1,2\n4,3,4\n8,3,5\n"))]
        answer = packaged.post(
            "/api/generate/upload", data={**fields, "screen": "1280x720"}, files=short
        )
        assert "a.csv: a style needs 8 s of valid gaze in a row" in error_of(answer, 422)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"at": ["2:640"]}, "`at` needs a position in pixels as 640,360, not '640'"),
        ({"at": ["640,360"]}, "`at` must look like 2.0:640,360"),
        ({"at": ["9:640,360"]}, "the waypoint at 9 s lies beyond the 3.2 s"),
        ({"at": ["1e999:640,360"]}, "`at` must look like"),
        ({"start": "6400,360"}, "`start` 6400,360 is off the screen of 1280x720 px"),
        ({"start": [1, 2]}, "`start`: Input should be a valid string"),
        ({"task": "waldo", "start": "1,1"}, "no task 'waldo'"),
        ({"seconds": 4000}, "`seconds` must lie between 1 and 3600, not 4000"),
        ({"n": 3, "seconds": 12}, "3 windows of 12 s are generated as 21 of 3.2 s, and 20 are the"),
        ({"scanpath": "x_px,y_px\n"}, "scanpath.csv: there are no rows"),
        ({"scanpath": ""}, ""),
        (
            {"scanpath": "x_px,y_px\n1,1\n9999,1"},
            "scanpath.csv, line 3: (9999, 1) px from top-left",
        ),
        ({"scanpath": "x,y,onset\n1,1,0\n9,9,600", "start": "1,1"}, "falls into a fixation"),
        ({"scanpath": "x,y,onset\n1,1,0\n9,9,90000"}, "1 windows of 90 s or more are asked for"),
        ({"targets": "t_ms,x,y\n0,1,1\ninf,2,2", "seconds": 3}, "the time is missing, infinite"),
        ({"targets": "x,y\n1,1"}, "targets.csv: no onset column among x, y"),
        ({"targets": "t_ms,x,y\n0,1,1\n1e12,2,2"}, "1 windows of 1000000000 s or more"),
        ({"targets": 7}, "`targets`: Input should be a valid string"),
    ],
)
def test_every_refusal_is_one_line_that_names_the_field_or_the_table(
    steerable: TestClient, fields: dict[str, Any], words: str
) -> None:
    answer = steerable.post("/api/generate", json={"n": 1, "task": "dots", **fields})
    if not words:  # A field left empty is a field not given.
        assert answer.status_code == 200, answer.text
        return
    line = error_of(answer, 422)
    assert words in line
    assert "--" not in line


@pytest.mark.parametrize(
    "fields",
    [POINTS, {"scanpath": SCANPATHS}, {"targets": TARGETS}],
    ids=["points", "scanpath", "targets"],
)
def test_a_model_that_is_not_steerable_says_so(client: TestClient, fields: dict[str, Any]) -> None:
    answer = client.post("/api/generate", json={"n": 1, "task": "reading", **fields})
    line = error_of(answer, 422)
    assert "this model is not steerable" in line
    assert "with `recipe` steerable" in line


def test_positions_in_pixels_need_one_screen(client: TestClient) -> None:
    answer = client.post("/api/generate", json={"n": 1, "start": "1,1"})
    assert "different screens; give `task` (free viewing, reading) or `screen`" in error_of(
        answer, 422
    )


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("kind", "name", "content", "words"),
    [
        ("scanpath", "a.csv", b"\x00\xff", "a.csv"),
        ("scanpath", "a.parquet", b"PAR1no", "a.parquet"),
        ("targets", "a.csv", b"", "a.csv: the file is empty"),
        ("like", "a.csv", b"t_ms,x_px,y_px\n0,1,2\n", "a.csv: the file does not say how large"),
        ("like", "a.safetensors", b"no", "a.safetensors: this is no safetensors file"),
        ("like", "a.xyz", b"no", "a.xyz: no eye-tracking format known here"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_is_left_of_it(
    steerable: TestClient, kind: str, name: str, content: bytes, words: str
) -> None:
    answer = steerable.post(
        "/api/generate/upload", data={"task": "dots"}, files={kind: (name, content)}
    )
    line = error_of(answer, 422)
    assert line.startswith(words)


def test_windows_with_damaged_sources_or_losses_have_no_style(
    steerable: TestClient, tmp_path: Path
) -> None:
    gaze = np.random.default_rng(0).normal(0, 0.1, (3, 2, 64)).astype(np.float32)
    lossy = gaze.copy()
    lossy[0, :, 5] = np.nan
    for number, (given, sources, words) in enumerate(
        [
            (gaze, [{"name": "a"}], "the sources of this windows file are damaged"),
            (gaze, 7, "the sources of this windows file are damaged"),
            (lossy, [], "these windows have losses; cut between them with `prepare`"),
        ]
    ):
        path = tmp_path / f"{number}.safetensors"
        screen, provenance = gd.Screen(1280, 720), {"sources": sources}
        gd.Windows.from_array(given, 20, screen, provenance=provenance).save(path)
        files = {"like": (path.name, path.read_bytes())}
        answer = steerable.post("/api/generate/upload", data={"task": "dots"}, files=files)
        assert words in error_of(answer, 422)


def test_long_tables_and_recordings_are_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "MAX_ROWS", 2)
    monkeypatch.setattr(steering, "MAX_LIKE", 2)
    path, screen = tmp_path / "a.csv", gd.Screen(1280, 720)
    path.write_text("x,y\n1,1\n2,2\n3,3\n")
    with pytest.raises(TooLargeError, match=r"a\.csv: more than 2 rows"):
        steering.read_table("scanpath", path, screen, {}, 1 << 20, lambda progress: None)
    windows = gd.Windows.from_array(np.zeros((3, 2, 64)), 20, screen)
    windows.save(tmp_path / "a.safetensors")
    source, kept = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    with pytest.raises(TooLargeError, match="`like` has 3 windows, and 2 are the most here"):
        steering.read_style(source, {}, 20.0, 3.2, kept, 1 << 20, lambda progress: None)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/generate/upload", "like"),
        *((f"/api/{one}", "files") for one in ("fill", "label", "augment", "score")),
    ],
)
def test_uploads_are_bounded_in_size_and_number(
    start: Start, steerable_folder: Path, path: str, name: str
) -> None:
    client = start(limits={"max_upload_mb": 1, "max_jobs": 1}, model=str(steerable_folder))
    answer = client.post(path, files={name: ("a.csv", b"0" * (2 << 20))})
    assert error_of(answer, 413) == "an upload may have 1 MB in total"
    play: Playground = client.app.state.playground  # type: ignore[attr-defined]
    for queue in (play.comparison, play.recordings):
        queue.submit(nothing, lambda kind, value: None)
    answer = client.post(path, files={name: ("a.csv", b"0")})
    assert "the queue is full (1 jobs are running or waiting)" in error_of(answer, 429)
    assert answer.headers["retry-after"] == "2"
