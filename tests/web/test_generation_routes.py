"""Generation over HTTP: the windows of the library, their events, files, errors."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion import __version__
from gazediffusion.data.events import detect_events
from gazediffusion.data.readers import read_recordings
from gazediffusion.data.writers.card import read_card
from gazediffusion.errors import GazeError
from gazediffusion.generation.sets import SetConfig
from gazediffusion.web.generate import BATCH_CPU
from tests.conftest import SCREEN, RunCommand
from tests.web.conftest import LENGTH, SCREENS, Start

N = 5


def events_of(text: str) -> list[tuple[str, Any]]:
    """Server-sent events as (name, data)."""
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in found]


def sampled(run_folder: Path, n: int, **settings: Any) -> gd.Windows:
    return gd.load(run_folder).sample(n, batch_size=BATCH_CPU, **settings)


def test_the_models_are_described_as_their_runs_are(start: Start, run_folder: Path) -> None:
    found = start(limits={"max_windows": 7}).get("/api/models").json()
    model = gd.load(run_folder)
    (served,) = found["models"]
    assert found["default"] == served["name"] == run_folder.name
    assert served["tasks"] == list(model.tasks)
    assert served["screen"] == vars(SCREEN)
    assert served["task_screens"] == {task: vars(screen) for task, screen in SCREENS.items()}
    assert (served["seconds"], served["rate_hz"]) == (LENGTH / 250, 250)
    assert served["trained_on"] == model.config.data
    assert found["limits"] == {
        "max_windows": 7, "max_jobs": 16, "max_upload_mb": 100, "max_seconds": LENGTH / 250,
        "max_memory_mb": 2048, "max_work_s": 120,
    }  # fmt: skip
    assert (found["has_real"], found["version"]) == (False, __version__)


def test_the_stream_gives_the_windows_of_the_library(client: TestClient, run_folder: Path) -> None:
    query = f"n={N}&seed=4&task=reading"
    response = client.get(f"/api/generate/stream?{query}")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    names = [name for name, _ in events]
    assert names[:2] == ["queued", "started"]
    assert names[-1] == "done"
    assert "progress" in names
    expected = sampled(run_folder, N, seed=4, task="reading")
    windows = [data for name, data in events if name == "window"]
    assert [one["index"] for one in windows] == list(range(N))
    assert {one["task"] for one in windows} == {"reading"}
    found = np.array([[one["x"], one["y"]] for one in windows])
    np.testing.assert_allclose(found, expected.to_numpy(), atol=0.51e-5)


def test_the_events_of_a_window_are_in_degrees_of_its_own_screen(
    client: TestClient, run_folder: Path
) -> None:
    response = client.get(f"/api/generate/stream?n={N}&seed=1&seconds=1.5")
    windows = [data for name, data in events_of(response.text) if name == "window"]
    expected = sampled(run_folder, N, seed=1, seconds=1.5)
    assert {one["task"] for one in windows} == set(SCREENS), "a mixture of both tasks"
    time_ms = np.arange(375, dtype=np.float64) * 4.0
    for number, window in enumerate(windows):
        screen = SCREENS[window["task"]]
        assert window["screen"] == vars(screen)
        gaze = expected[number]
        assert len(window["x"]) == gaze.shape[1] == 375
        pixels = screen.to_pixels(gaze).astype(np.float32)
        events = detect_events(pixels, time_ms, screen)
        assert len(window["events"]) == len(events) > 0
        for found, event in zip(window["events"], events, strict=True):
            assert found["kind"] == event.event
            assert (found["onset_ms"], found["offset_ms"]) == (event.onset_ms, event.offset_ms)
            first, last = round(event.onset_ms / 4), round(event.offset_ms / 4)
            if event.event == "saccade":
                assert found["peak_deg_s"] == pytest.approx(event.peak_velocity_deg_s, abs=1e-3)
                assert found["amplitude_deg"] == pytest.approx(event.amplitude_deg, abs=1e-3)
                place = gaze[:, last]
            else:
                assert found["amplitude_deg"] is None
                place = gaze[:, first : last + 1].mean(axis=1)
            np.testing.assert_allclose([found["x"], found["y"]], place, atol=1e-5)


def test_json_has_the_card_and_the_windows(client: TestClient, run_folder: Path) -> None:
    found = client.post("/api/generate", json={"n": N, "seed": 8, "seconds": 1}).json()
    expected = sampled(run_folder, N, seed=8, seconds=1.0)
    gaze = np.array([[one["x"], one["y"]] for one in found["windows"]])
    np.testing.assert_allclose(gaze, expected.to_numpy(), atol=0.51e-5)
    tasks = [expected.tasks[k] for k in expected.task]
    assert [one["task"] for one in found["windows"]] == tasks
    assert found["card"] == expected.provenance["card"]


def test_steps_and_sampler_of_the_command_line_override_quality(
    run: RunCommand, run_folder: Path, tmp_path: Path
) -> None:
    def sampling(*more: str) -> dict[str, Any]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        code, _, error = run("generate", "-o", path, "--model", run_folder, "-n", 1, *more)
        assert code == 0, error
        card = json.loads(path.with_suffix(".json").read_text())["GazediffusionCard"]
        return {name: card["sampling"][name] for name in ("sampler", "steps")}

    assert sampling() == {"sampler": "unipc", "steps": 6}
    assert sampling("--quality", "best") == {"sampler": "unipc", "steps": 40}
    assert sampling("--quality", "best", "--steps", "3") == {"sampler": "unipc", "steps": 3}


@pytest.mark.parametrize("format", ["parquet", "csv", "bids", "asc"])
def test_every_download_is_read_back_on_the_screens_of_its_tasks(
    client: TestClient, run_folder: Path, tmp_path: Path, format: str
) -> None:
    sent = client.post("/api/generate", json={"n": N, "seed": 1, "format": format})
    assert sent.status_code == 200, sent.text
    assert re.search(
        r'filename="gaze-tiny-run-seed1\.[a-z.]+"', sent.headers["content-disposition"]
    )
    windows = sampled(run_folder, N, seed=1)
    expected = {task: list(windows.of_task(task).to_numpy("px")) for task in SCREENS}
    assert all(expected.values()), "a mixture of both tasks"
    name = "gaze" if format in ("bids", "asc") else f"gaze.{format}"
    if format == "parquet":
        (tmp_path / name).write_bytes(sent.content)
    else:
        with zipfile.ZipFile(io.BytesIO(sent.content)) as archive:
            archive.extractall(tmp_path)
    card = read_card(tmp_path / name)
    assert card is not None
    assert (card["synthetic"], card["seed"]) == (True, 1)
    recordings = list(read_recordings([tmp_path]))
    assert len(recordings) == N
    for recording in recordings:
        task = "reading" if "reading" in recording.task else "free viewing"
        assert recording.screen is not None
        assert recording.screen.has_pixels_of(SCREENS[task])
        (gaze,) = recording.gaze_px.values()
        np.testing.assert_allclose(gaze, expected[task].pop(0), atol=0.051)


def test_seconds_cut_the_windows_of_files(client: TestClient, tmp_path: Path) -> None:
    fields = {"n": 2, "seconds": 1.2, "format": "parquet"}
    (tmp_path / "gaze.parquet").write_bytes(client.post("/api/generate", json=fields).content)
    recordings = read_recordings([tmp_path / "gaze.parquet"])
    assert [len(recording) for recording in recordings] == [300, 300]


INVALID = [
    ({"n": 0}, lambda: SetConfig(0)),
    ({"n": 1, "seed": -1}, lambda: SetConfig(1, seed=-1)),
    ({"n": 1, "format": "edf"}, lambda: SetConfig(1, format="edf")),
]


@pytest.mark.parametrize(("body", "library"), INVALID)
def test_invalid_values_are_refused_with_the_text_of_the_library(
    client: TestClient, body: dict[str, Any], library: Any
) -> None:
    with pytest.raises(GazeError) as refused:
        library()
    response = client.post("/api/generate", json=body)
    assert (response.status_code, response.json()) == (422, {"error": str(refused.value)})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"task": "readin"}, "task 'readin'; did you mean 'reading'?"),
        ({"quality": "bst"}, "no `quality` 'bst'; did you mean 'best'?"),
        ({"model": "tiny"}, "no `model` 'tiny'; did you mean 'tiny run'?"),
        ({"seconds": 9}, "`seconds` must lie between 1 and 1.984 for this model, not 9"),
        ({"seconds": 0.5}, "`seconds` must lie between 1 and 1.984 for this model, not 0.5"),
        ({"n": "many"}, "`n`: Input should be a valid integer"),
        ({"m": 3}, "`m`: Extra inputs are not permitted"),
    ],
)
def test_every_refusal_is_one_line_that_names_the_field(
    client: TestClient, body: dict[str, Any], words: str
) -> None:
    response = client.post("/api/generate", json=body)
    assert response.status_code == 422
    assert words in response.json()["error"]
    assert "--" not in response.json()["error"]


def test_windows_at_a_lower_rate_are_those_of_the_library(
    client: TestClient, run_folder: Path
) -> None:
    request = {"n": 2, "seed": 4, "rate_hz": 60}
    found = client.post("/api/generate", json=request).json()
    expected = sampled(run_folder, 2, seed=4, rate_hz=60).cut()
    assert (found["card"]["rate_hz"], found["card"]["window_samples"]) == (60, expected.shape[2])
    for window, gaze in zip(found["windows"], expected, strict=True):
        np.testing.assert_allclose([window["x"], window["y"]], gaze, atol=1e-5)
    refused = client.post("/api/generate", json={**request, "rate_hz": 500})
    assert refused.status_code == 422
    assert "`rate_hz` must lie between 10 and 250 Hz" in refused.json()["error"]


def test_losses_are_null_in_json_and_stated_by_command_and_program(
    start: Start, lossy_run: Path
) -> None:
    client = start(model=str(lossy_run))
    assert client.get("/api/models").json()["models"][0]["has_losses"] is True
    fields: dict[str, Any] = {"n": 6, "seed": 4, "losses": True}
    windows = sampled(lossy_run, 6, seed=4, losses=True)
    sent = client.post("/api/generate", json=fields).json()["windows"]
    assert [[x is None for x in one["x"]] for one in sent] == windows.is_lost.tolist()
    assert windows.is_lost.any()
    streamed = client.get("/api/generate/stream", params=fields).text
    assert "NaN" not in streamed
    *_, (_, done) = events_of(streamed)
    assert " --losses" in done["command"]
    assert "losses=True" in done["python"]
    fitted_on = json.loads((lossy_run / "losses.json").read_text())["fitted_on"]
    assert done["card"]["losses"]["n_losses"] == fitted_on["n_losses"]


def test_losses_of_a_model_without_tables_are_refused(client: TestClient) -> None:
    response = client.post("/api/generate", json={"n": 1, "losses": True})
    assert response.status_code == 422
    assert "has no table of losses" in response.json()["error"]
