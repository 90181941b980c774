"""The API against the library: the same data, the same words, files that our readers open."""

from __future__ import annotations

import io
import json
import re
import shlex
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from gazediffusion.cli import app as command_line
from gazediffusion.data.events import detect_events
from gazediffusion.data.preparing import PrepareConfig, prepare
from gazediffusion.data.readers import ReadOptions, find_sources, read_recordings
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.features import kinematic_features
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.sets import SetConfig, make_card, write_set
from gazediffusion.models.pretrained import load_model
from gazediffusion.version import __version__
from gazediffusion.web.models import BATCH_CPU
from tests.conftest import SCREEN
from tests.web.conftest import LENGTH, Start

N = 5


def events_of(text: str) -> list[tuple[str, Any]]:
    """Server-sent events as (name, data)."""
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in found]


def generator_of(run_folder: Path, quality: str = "default", **settings: Any) -> DiffusionGenerator:
    run = load_model(run_folder)
    return DiffusionGenerator.of_quality(run, quality, batch_size=BATCH_CPU, **settings)


def test_the_models_are_described_as_their_runs_are(start: Start, run_folder: Path) -> None:
    found = start(limits={"max_windows": 7}).get("/api/models").json()
    config = load_model(run_folder).config
    (model,) = found["models"]
    assert found["default"] == model["name"] == run_folder.name
    assert model["tasks"] == list(config.tasks)
    assert model["screen"] == vars(config.screen)
    assert model["task_screens"] == {task: vars(config.screen) for task in config.tasks}
    assert (model["seconds"], model["rate_hz"]) == (LENGTH / 250, 250)
    assert model["trained_on"] == config.data
    assert found["limits"] == {
        "max_windows": 7, "max_jobs": 16, "max_upload_mb": 100, "max_seconds": LENGTH / 250,
    }  # fmt: skip
    assert (found["has_real"], found["version"]) == (False, __version__)


def test_the_stream_gives_the_windows_of_the_library(start: Start, run_folder: Path) -> None:
    query = f"n={N}&seed=4&quality=fast&task=reading"
    answer = start().get(f"/api/generate/stream?{query}")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    names = [name for name, _ in events]
    assert names[:2] == ["queued", "started"]
    assert names[-1] == "done"
    assert "progress" in names
    generator = generator_of(run_folder, "fast", task="reading")
    expected = np.concatenate(list(generator.pieces(0, N, 4)))
    windows = [data for name, data in events if name == "window"]
    assert [one["index"] for one in windows] == list(range(N))
    assert {one["task"] for one in windows} == {"reading"}
    found = np.array([[one["x"], one["y"]] for one in windows])
    np.testing.assert_allclose(found, expected, atol=0.51e-5)


def test_the_events_of_a_window_are_those_of_the_library(start: Start, run_folder: Path) -> None:
    answer = start().get("/api/generate/stream?n=1&seed=2&seconds=1.5")
    (window,) = [data for name, data in events_of(answer.text) if name == "window"]
    (piece,) = generator_of(run_folder).pieces(0, 1, 2)
    gaze = piece[0, :, :375]
    assert len(window["x"]) == 375
    time_ms = np.arange(375, dtype=np.float64) * 4.0
    expected = detect_events(SCREEN.to_pixels(gaze).astype(np.float32), time_ms, SCREEN)
    assert len(window["events"]) == len(expected) > 0
    for found, event in zip(window["events"], expected, strict=True):
        assert found["kind"] == event.event
        assert (found["onset_ms"], found["offset_ms"]) == (event.onset_ms, event.offset_ms)
        first, last = round(event.onset_ms / 4), round(event.offset_ms / 4)
        if event.event == "saccade":
            assert found["peak_deg_s"] == pytest.approx(event.peak_velocity_deg_s, abs=1e-3)
            place = gaze[:, last]
        else:
            assert found["amplitude_deg"] is None
            place = gaze[:, first : last + 1].mean(axis=1)
        np.testing.assert_allclose([found["x"], found["y"]], place, atol=1e-5)


@pytest.mark.parametrize("more", [{}, {"task": "reading", "quality": "fast", "seconds": 1.5}])
def test_the_command_and_the_python_lines_give_the_same_bytes(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    client = start()
    asked = {"n": N, "seed": 3, **more}
    *_, (_, done) = events_of(client.get("/api/generate/stream", params=asked).text)
    sent = client.post("/api/generate", json={**asked, "format": "parquet"})
    assert sent.status_code == 200
    program, *arguments = shlex.split(done["command"])
    assert program == "gazediffusion"
    for name in ("command", "python"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "command")
    ran = CliRunner().invoke(command_line, arguments)
    assert ran.exit_code == 0, ran.output
    monkeypatch.chdir(tmp_path / "python")
    exec(done["python"], {})
    for name in ("command", "python"):
        assert (tmp_path / name / "gaze.parquet").read_bytes() == sent.content
        sidecar = json.loads((tmp_path / name / "gaze.json").read_text())
        assert sidecar["GazediffusionCard"] == done["card"]


def test_steps_and_sampler_of_the_command_line_go_before_quality(
    run_folder: Path, tmp_path: Path
) -> None:
    def sampling(*more: str) -> dict[str, Any]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        words = ["generate", "-o", str(path), "--model", str(run_folder), "-n", "1", *more]
        ran = CliRunner().invoke(command_line, words)
        assert ran.exit_code == 0, ran.output
        card = json.loads(path.with_suffix(".json").read_text())["GazediffusionCard"]
        return {name: card["sampling"][name] for name in ("sampler", "steps")}

    assert sampling() == {"sampler": "unipc", "steps": 6}
    assert sampling("--quality", "best") == {"sampler": "unipc", "steps": 40}
    assert sampling("--quality", "best", "--steps", "3") == {"sampler": "unipc", "steps": 3}
    given = ("--quality", "fast", "--sampler", "heun")
    assert sampling(*given) == {"sampler": "heun", "steps": 10}


def test_json_has_the_card_and_the_windows(start: Start, run_folder: Path) -> None:
    found = start().post("/api/generate", json={"n": N, "seed": 8, "seconds": 1}).json()
    generator = generator_of(run_folder)
    expected = np.concatenate(list(generator.pieces(0, N, 8)))[:, :, :250]
    gaze = np.array([[one["x"], one["y"]] for one in found["windows"]])
    np.testing.assert_allclose(gaze, expected, atol=0.51e-5)
    tasks = [one["task"] for one in found["windows"]]
    assert tasks == generator.tasks(0, N, 8)
    assert found["card"] == make_card(generator, SetConfig(N, seed=8, seconds=1.0))


@pytest.mark.parametrize("format", ["parquet", "csv", "npz", "bids", "asc"])
def test_every_download_has_the_bytes_of_the_library_and_is_read_back(
    start: Start, run_folder: Path, tmp_path: Path, format: str
) -> None:
    client = start()
    sent = client.post("/api/generate", json={"n": N, "seed": 1, "format": format})
    assert sent.status_code == 200, sent.text
    assert re.search(
        r'filename="gaze-tiny-run-seed1\.[a-z.]+"', sent.headers["content-disposition"]
    )
    generator = generator_of(run_folder)
    expected_px = SCREEN.to_pixels(np.concatenate(list(generator.pieces(0, N, 1))))
    config = SetConfig(N, seed=1, format=format)
    if format in ("bids", "asc"):
        write_set(generator, config, tmp_path / "expected" / "gaze")
        with zipfile.ZipFile(io.BytesIO(sent.content)) as archive:
            archive.extractall(tmp_path / "sent")
        assert files_of(tmp_path / "sent") == files_of(tmp_path / "expected")
        assert json.loads((tmp_path / "sent/gaze/card.json").read_text())["synthetic"] is True
    else:
        path = tmp_path / "sent" / f"gaze.{format}"
        path.parent.mkdir()
        path.write_bytes(sent.content)
        written = write_set(generator, config, tmp_path / "expected" / f"gaze.{format}")
        assert written[0].read_bytes() == sent.content
    if format == "npz":
        with np.load(path) as arrays:
            np.testing.assert_allclose(arrays["gaze_px"], expected_px, atol=1e-2)
        return
    recordings = list(read_recordings([tmp_path / "sent"], ReadOptions(screen=SCREEN)))
    by_task = {task: list[np.ndarray]() for task in ("free viewing", "reading")}
    for task, window in zip(generator.tasks(0, N, 1), expected_px, strict=True):
        by_task[str(task)].append(window)
    assert len(recordings) == N
    assert all(by_task.values()), "a mixture of both tasks"
    for recording in recordings:
        name = "reading" if "reading" in recording.task else "free viewing"
        (gaze,) = recording.gaze_px.values()
        np.testing.assert_allclose(gaze, by_task[name].pop(0), atol=0.051)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_window_that_is_cut_is_cut_in_files_too(start: Start, tmp_path: Path) -> None:
    asked = {"n": 2, "seconds": 1.2, "format": "csv"}
    (tmp_path / "gaze.csv").write_bytes(start().post("/api/generate", json=asked).content)
    recordings = read_recordings([tmp_path / "gaze.csv"], ReadOptions(screen=SCREEN))
    assert [len(recording) for recording in recordings] == [300, 300]


def windows_like_the_models(study: Path) -> Windows:
    config = PrepareConfig(rate_hz=250, seconds=LENGTH / 250, validation_fraction=0.0)
    return prepare(find_sources([study]), config)


def sent_files(study: Path) -> list[tuple[str, tuple[str, bytes]]]:
    found = sorted(path for path in study.rglob("*") if path.is_file())
    return [("files", (path.name, path.read_bytes())) for path in found]


def test_a_recording_is_cut_as_prepare_cuts_it(start: Start, study: Path) -> None:
    sent = start().post("/api/real", files=sent_files(study))
    assert sent.status_code == 200, sent.text
    found, expected = sent.json(), windows_like_the_models(study)
    assert found["n_windows"] == len(expected)
    assert found["participants"] == list(expected.participants)
    assert (found["n_recordings"], found["tasks"]) == (3, list(expected.tasks))
    assert found["screen"] == vars(SCREEN)
    assert len(found["windows"]) == min(40, len(expected))
    every = expected.cut()
    for shown in (found["windows"][0], found["windows"][-1]):
        gaze = np.array([shown["x"], shown["y"]])
        assert np.abs(every - gaze).max(axis=(1, 2)).min() < 1e-5
    features = kinematic_features(every)
    for name, feature in found["features"].items():
        assert feature["mean"] == pytest.approx(float(features[name].mean()))


def test_the_recording_of_real_is_the_same_as_one_that_is_sent(start: Start, study: Path) -> None:
    client = start(real=study)
    assert client.get("/api/models").json()["has_real"] is True
    sent = client.post("/api/real", files=sent_files(study)).json()
    assert client.get("/api/real").json() == sent
    short = client.get("/api/real?seconds=1").json()
    assert len(short["windows"][0]["x"]) == 250


def test_without_a_recording_there_is_none(start: Start) -> None:
    client = start()
    assert client.get("/api/real").status_code == 404
    for path, words in (
        ("/api/evaluate", "no recording was given; send one, or start serve with --real"),
        ("/api/report", "no recording was given; send one, or start serve with --real"),
        ("/api/real", "files: Field required"),
    ):
        answer = client.post(path)
        assert (answer.status_code, answer.json()) == (422, {"error": words})


def test_an_evaluation_is_that_of_the_library(start: Start, study: Path, run_folder: Path) -> None:
    fields = {"n": "24", "seed": "5", "quality": "fast"}
    sent = start().post("/api/evaluate", files=sent_files(study), data=fields)
    assert sent.status_code == 200, sent.text
    generator = generator_of(run_folder, "fast")
    made = generator.as_windows(np.concatenate(list(generator.pieces(0, 24, 5))), 5)
    people = windows_like_the_models(study)
    expected = evaluate(people, {"synthetic": made}, None, EvaluationConfig(quick=True))
    found = sent.json()
    assert (found["n_real"], found["n_synthetic"]) == (len(people), 24)
    assert found["ratios"] == json.loads(json.dumps(expected["ratios"]))
    assert found["main_sequence"] == json.loads(json.dumps(expected["main_sequence"]))
    assert len(found["quantities"]) == len(expected["quantities"])
    for ours, theirs in zip(found["quantities"], expected["quantities"], strict=True):
        assert ours == {key: json.loads(json.dumps(theirs[key])) for key in ours}
        assert set(ours["mean"]) == {"real", "synthetic"}
        assert {"edges", "real", "synthetic"} >= set(ours["histogram"])


def test_the_held_out_people_of_a_windows_file_are_real(start: Start, run_folder: Path) -> None:
    path = run_folder.with_suffix(".safetensors")
    client = start(real=path)
    windows = Windows.load(path)
    assert client.get("/api/real").json()["n_windows"] == len(windows.held_out)
    found = client.post("/api/evaluate", data={"n": "20", "quality": "fast"}).json()
    assert found["n_real"] == len(windows.held_out)
    assert found["notes"] == [], "the floor is between people: the file has training people"


def test_the_report_is_one_page_with_its_figures(start: Start, study: Path) -> None:
    fields = {"n": "20", "quality": "fast"}
    sent = start().post("/api/report", files=sent_files(study), data=fields)
    assert sent.status_code == 200, sent.text
    assert sent.headers["content-type"].startswith("text/html")
    assert "Ratio to the floor" in sent.text
    assert sent.text.count("<img src=") > 5
    assert "script-src" not in sent.headers["content-security-policy"]


BAD = [
    ({"n": 0}, lambda: SetConfig(0)),
    ({"n": 1, "seed": -1}, lambda: SetConfig(1, seed=-1)),
    ({"n": 1, "format": "edf"}, lambda: SetConfig(1, format="edf")),
]


@pytest.mark.parametrize(("body", "library"), BAD)
def test_bad_input_is_refused_in_the_words_of_the_library(
    start: Start, body: dict[str, Any], library: Any
) -> None:
    with pytest.raises(GazeError) as refused:
        library()
    answer = start().post("/api/generate", json=body)
    assert (answer.status_code, answer.json()) == (422, {"error": str(refused.value)})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"task": "readin"}, "the model knows no task 'readin'; did you mean 'reading'?"),
        ({"quality": "bst"}, "no quality 'bst'; did you mean 'best'?"),
        ({"model": "tiny"}, "no model 'tiny'; did you mean 'tiny run'?"),
        ({"seconds": 9}, "`seconds` must lie between 1 and 1.984 for this model, not 9"),
        ({"seconds": 0.5}, "`seconds` must lie between 1 and 1.984 for this model, not 0.5"),
        ({"n": "many"}, "n: Input should be a valid integer"),
        ({"m": 3}, "m: Extra inputs are not permitted"),
    ],
)
def test_every_refusal_is_one_line(start: Start, body: dict[str, Any], words: str) -> None:
    answer = start().post("/api/generate", json=body)
    assert (answer.status_code, answer.json()) == (422, {"error": words})


@pytest.mark.parametrize(
    ("name", "content", "fields", "words"),
    [
        ("a.csv", b"x,y\n1,2\n", {}, "a.csv"),
        ("a.xyz", b"nothing known", {}, "a.xyz: this is no eye-tracking format known here"),
        ("a.csv", b"", {}, "a.csv: the file is empty"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {}, "give `screen`"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen": "big"}, "`screen` must look like"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen_cm": "4x3"}, "need `screen` in pixels"),
        ("a.csv", b"t,x,y\n0,1,2\n4,1,2\n", {"screen": "640x480"}, "no window of 1.984 s"),
        (
            "a.csv",
            b"t,x,y\n0,1,2\n",
            {"distance_cm": "far"},
            "distance_cm: Input should be a valid number",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/api/real", "/api/evaluate"])
def test_a_file_that_cannot_be_read_is_refused_without_our_folders(
    start: Start, path: str, name: str, content: bytes, fields: dict[str, str], words: str
) -> None:
    answer = start().post(path, files={"files": (name, content)}, data=fields)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]
    assert tempfile.gettempdir() not in answer.json()["error"]


def test_nothing_is_left_in_the_temporary_folder(
    start: Start, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    client = start()
    for format in ("json", "parquet", "bids"):
        assert client.post("/api/generate", json={"n": 2, "format": format}).status_code == 200
    assert client.post("/api/real", files=sent_files(study)).status_code == 200
    assert client.post("/api/real", files={"files": ("a.csv", b"no")}).status_code == 422
    fields = {"n": "8", "quality": "fast"}
    assert client.post("/api/report", files=sent_files(study), data=fields).status_code == 200
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_page_and_its_files_come_from_here(start: Start) -> None:
    client = start()
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    plotly = client.get("/static/plotly.js")
    assert plotly.headers["content-type"].startswith("text/javascript")
    assert len(plotly.content) > 1_000_000
    assert client.get("/static/../app.py").status_code == 404


def test_the_description_names_models_and_tasks(start: Start, run_folder: Path) -> None:
    client = start()
    schema = client.get("/openapi.json").json()
    body = schema["components"]["schemas"]["AskedFile"]["properties"]
    assert body["model"]["enum"] == [run_folder.name, None]
    assert body["task"]["enum"] == ["free viewing", "reading", None]
    docs = client.get("/docs").text
    for path in schema["paths"]:
        assert path in docs
    assert "<script" not in docs


def test_what_is_not_there_is_a_line_too(start: Start) -> None:
    client: TestClient = start()
    for method, path, status in (("GET", "/api/nothing", 404), ("PUT", "/api/models", 405)):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert isinstance(answer.json()["error"], str)
