"""Event labels over HTTP: the same bytes as the library and the command line, and refusals."""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.recordings import Recording
from gazediffusion.data.writers import write_into
from gazediffusion.web.generate import BATCH_CPU, GenerationRequest, windows_with_events_json
from gazediffusion.web.queue import Job
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.settings import Limits, Settings
from gazediffusion.web.state import Playground
from tests.conftest import SCREEN, MakeRecording, RunCommand, wandering_gaze
from tests.generation.test_gaps import lost
from tests.web.conftest import created
from tests.web.test_fill_route import extracted, sent
from tests.web.test_generation_routes import events_of
from tests.web.test_limits import error_of
from tests.web.test_same_bytes import files_of

N = 3
DOTS: dict[str, Any] = {"seed": 2, "task": "dots"}


@pytest.fixture(scope="module")
def labelling(labelling_run: Path) -> Iterator[TestClient]:
    """The application with a model that has labels, and its worker that labels recordings."""
    app = created(Settings(model=str(labelling_run), limits=Limits(max_windows=15)))
    app.state.playground.recorder.start()
    with TestClient(app, base_url="http://127.0.0.1:8000") as found:
        yield found


@pytest.fixture(scope="module")
def labelled(labelling_run: Path) -> gd.Windows:
    windows = gd.load(labelling_run).sample(N, labels=True, batch_size=BATCH_CPU, **DOTS)
    assert all(len(np.unique(one)) > 2 for one in windows.cut_labels())
    return windows


@pytest.fixture
def blinking(make_recording: MakeRecording) -> Recording:
    """20 s at 250 Hz with two losses."""
    return make_recording(gaze=lost(wandering_gaze(5000), (500, 550), (2500, 3000)))


def classes_of(window: dict[str, Any]) -> list[int]:
    """The number of the class of every sample, 0 without a label."""
    numbers = [0] * len(window["x"])
    for name, first, stop in window["labels"]:
        numbers[first:stop] = [1 + gd.EVENT_CLASSES.index(name)] * (stop - first)
    return numbers


def test_labels_of_json_are_those_of_the_library_in_as_few_events_as_possible(
    labelling: TestClient, labelled: gd.Windows
) -> None:
    found = labelling.post("/api/generate", json={"n": N, "labels": True, **DOTS}).json()
    assert found["card"]["labels"]["classes"] == list(gd.EVENT_CLASSES)
    for window, labels in zip(found["windows"], labelled.cut_labels(), strict=True):
        assert classes_of(window) == labels.tolist()
        assert len(window["labels"]) == len(list(groupby(labels)))
    plain = labelling.post("/api/generate", json={"n": N, **DOTS}).json()
    assert "labels" not in plain["card"]
    for window, same in zip(plain["windows"], found["windows"], strict=True):
        assert "labels" not in window
        assert (window["x"], window["y"]) == (same["x"], same["y"])


def test_events_of_a_stream_are_those_of_the_labels(
    labelling: TestClient, labelled: gd.Windows
) -> None:
    text = labelling.get("/api/generate/stream", params={"n": N, "labels": True, **DOTS}).text
    windows = [data for name, data in events_of(text) if name == "window"]
    assert len(windows) == N
    for number, (window, labels) in enumerate(zip(windows, labelled.cut_labels(), strict=True)):
        assert classes_of(window) == labels.tolist()
        expected = labelled.events(number, by_labels=True)
        assert [(one["kind"], one["onset_ms"], one["offset_ms"]) for one in window["events"]] == [
            (one.event, one.onset_ms, one.offset_ms) for one in expected
        ]


def test_an_event_has_its_mean_or_its_end_and_null_where_the_eye_is_lost() -> None:
    gaze = np.zeros((1, 2, 100), dtype=np.float32)
    gaze[0, 0] = np.arange(100) / 100
    gaze[0, :, 70:] = np.nan
    labels = np.repeat([[1, 2, 3, 4, 0]], [40, 10, 10, 35, 5], axis=1)
    windows = gd.Windows.from_array(gaze, 250, SCREEN, labels=labels)
    (window,) = windows_with_events_json(windows)
    json.dumps(window, allow_nan=False)
    assert window["labels"] == [
        ("fixation", 0, 40),
        ("saccade", 40, 50),
        ("pursuit", 50, 60),
        ("noise", 60, 95),
    ]
    found = [(one["kind"], one["x"]) for one in window["events"]]
    expected = [("fixation", 0.195), ("saccade", 0.49), ("pursuit", 0.545), ("noise", None)]
    assert found == expected


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize("format", ["parquet", "csv", "npz", "bids", "asc"])
def test_files_with_labels_are_those_of_the_library_and_the_command(
    labelling: TestClient,
    labelled: gd.Windows,
    run: RunCommand,
    labelling_run: Path,
    tmp_path: Path,
    format: str,
) -> None:
    request = {"n": N, "labels": True, "format": format, **DOTS}
    response = labelling.post("/api/generate", json=request)
    assert response.status_code == 200, response.text
    name = "gaze" if format in ("bids", "asc") else f"gaze.{format}"
    labelled.save(tmp_path / "sample" / name, format)
    (tmp_path / "command").mkdir()
    code, _, error = run(
        "generate", "-o", tmp_path / "command" / name, "--model", labelling_run, "-n", N,
        "--format", format, "--batch-size", BATCH_CPU, "--labels", "--seed", 2, "--task", "dots",
    )  # fmt: skip
    assert code == 0, error
    expected = files_of(tmp_path / "command")
    assert files_of(tmp_path / "sample") == expected
    if format in ("parquet", "npz"):
        assert response.content == expected[name]
    else:
        assert extracted(response.content, tmp_path / "http") == expected
    form = {key: str(value) for key, value in request.items()}
    again = labelling.post("/api/generate/upload", data=form)
    assert again.content == response.content


@pytest.mark.slow
def test_the_command_and_the_program_of_long_windows_write_the_same_labels(
    labelling: TestClient,
    run: RunCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fields: dict[str, Any] = {"n": 2, "seconds": 5, "labels": True, **DOTS}
    *_, (name, done) = events_of(labelling.get("/api/generate/stream", params=fields).text)
    assert name == "done", done
    assert " --labels" in done["command"]
    assert "labels=True" in done["python"]
    response = labelling.post("/api/generate", json={**fields, "format": "parquet"})
    for folder in ("command", "python"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        if folder == "command":
            status, _, error = run(*shlex.split(done["command"])[1:])
            assert status == 0, error
        else:
            exec(done["python"], {})
        assert (tmp_path / folder / "gaze.parquet").read_bytes() == response.content


def test_labelling_of_a_long_window_lets_other_jobs_have_their_turns(labelling: TestClient) -> None:
    play: Playground = labelling.app.state.playground  # type: ignore[attr-defined]
    fields = GenerationFields(n=1, task="dots", seconds=12, labels=True)  # type: ignore[call-arg]
    requested = GenerationRequest.of(fields, play.models, play.settings.limits)
    job = Job(requested.pieces, lambda kind, value: None, 0)
    steps = list(job.steps)
    # Seven windows of the model are generated and as many labelled, then the whole is given.
    assert [step is None for step in steps] == [True] * 14 + [False]
    gaze, labels = steps[-1]
    assert labels.shape == (1, gaze.shape[2]) == (1, 240)


def test_a_model_without_labels_says_so_and_refuses_them(
    client: TestClient, labelling: TestClient
) -> None:
    def described(served: TestClient) -> tuple[bool, Any]:
        schema = served.get("/openapi.json").json()["components"]["schemas"]["GenerateRequest"]
        (model,) = served.get("/api/models").json()["models"]
        return model["has_labels"], schema["properties"]["labels"].get("enum")

    assert described(labelling) == (True, None)
    assert described(client) == (False, [False])
    words = "this model has no labels; take the default model"
    assert words in error_of(client.post("/api/generate", json={"n": 1, "labels": True}), 422)
    streamed = client.get("/api/generate/stream", params={"n": 1, "labels": True})
    assert words in error_of(streamed, 422)
    recording = {"files": ("a.csv", "t,x,y\n0,1,2\n")}
    assert words in error_of(client.post("/api/label", files=recording), 422)


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize("format", ["csv", "asc", "bids"])
def test_recordings_come_back_with_the_labels_of_the_library_and_the_command(
    labelling: TestClient,
    run: RunCommand,
    labelling_run: Path,
    tmp_path: Path,
    blinking: Recording,
    format: str,
) -> None:
    write_into(tmp_path / "in", [(blinking, ())], format)
    answer = labelling.post("/api/label", files=sent(tmp_path / "in"))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="labelled.zip"'
    written = gd.label(tmp_path / "in", tmp_path / "out" / "labelled", labelling_run)
    expected = files_of(tmp_path / "out")
    assert extracted(answer.content, tmp_path / "http") == expected
    about = json.loads(answer.headers["x-gazediffusion-label"])
    assert about == {"n_samples": written.n_samples, "warnings": []}
    assert sum(about["n_samples"].values()) == len(blinking)
    output = tmp_path / "command" / "labelled"
    output.parent.mkdir()
    code, _, error = run("label", tmp_path / "in", "-o", output, "--model", labelling_run)
    assert code == 0, error
    assert files_of(tmp_path / "command") == expected


def test_labelled_parquet_is_one_file_and_settings_reach_the_library(
    labelling: TestClient, labelling_run: Path, tmp_path: Path, blinking: Recording
) -> None:
    write_into(tmp_path / "in", [(blinking, ())], "parquet")
    cleaning = gd.CleaningConfig(blink_before_ms=0.0, blink_after_ms=0.0)
    gd.label(tmp_path / "in", tmp_path / "out.parquet", labelling_run, cleaning=cleaning)
    form = {"blink_before_ms": "0", "blink_after_ms": "0"}
    answer = labelling.post("/api/label", files=sent(tmp_path / "in"), data=form)
    assert answer.status_code == 200, answer.text
    (tmp_path / "http.parquet").write_bytes(answer.content)
    found, expected = (gd.read(tmp_path / f"{name}.parquet") for name in ("http", "out"))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        assert ours.labels is not None
        assert ours.labels.all()
    as_csv = labelling.post("/api/label", files=sent(tmp_path / "in"), data={"format": "csv"})
    with zipfile.ZipFile(io.BytesIO(as_csv.content)) as archive:
        assert set(archive.namelist()) == {"labelled.csv", "labelled.json", "labelled.md"}
        assert b"event" in archive.read("labelled.csv").splitlines()[0]


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("content", "fields", "words"),
    [
        ("no", {}, "a.csv: no x and y columns"),
        ("gaze", {}, "how large the screen was; give `screen`"),
        ("gaze", {"screen": "1280x720"}, "labelled in 23 windows, and 15 are the most here"),
        ("gaze", {"format": "asc"}, "`format` must be csv or parquet, not 'asc'"),
        ("gaze", {"eye": "third"}, "`eye` must be right, left or best"),
        ("gaze", {"model": "other"}, "no `model` 'other'"),
    ],
)
def test_every_refusal_of_a_recording_is_one_line(
    labelling: TestClient, content: str, fields: dict[str, str], words: str
) -> None:
    if content == "gaze":
        x, y = wandering_gaze(10_000)
        lines = (f"{4 * k},{x[k]},{y[k]}" for k in range(10_000))
        content = "\n".join(["t_ms,x_px,y_px", *lines])
    answer = labelling.post("/api/label", files={"files": ("a.csv", content)}, data=fields)
    line = error_of(answer, 422)
    assert words in line
    assert "--" not in line
