"""Generation over HTTP: the windows, events, labels, files and errors of the library."""

from __future__ import annotations

import json
import shlex
import threading
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion import __version__
from gazediffusion.data.events import detect_events
from gazediffusion.data.writers import write_into
from gazediffusion.data.writers.card import read_card
from gazediffusion.web import generate
from gazediffusion.web.app import create_app
from gazediffusion.web.generate import BATCH_CPU, GenerationRequest, windows_with_events_json
from gazediffusion.web.queue import Job
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.settings import Settings
from gazediffusion.web.state import Playground
from gazediffusion.web.worker import TooLargeError
from tests.conftest import SCREEN, MakeRecording, RunCommand
from tests.web.conftest import (
    LENGTH,
    SCREENS,
    Start,
    error_of,
    events_of,
    extracted,
    files_of,
)

N = 5
MIXTURE: dict[str, Any] = {"n": N, "seed": 1}
READING: dict[str, Any] = {"n": N, "seed": 3, "task": "reading", "seconds": 1.5, "rate_hz": 60.0}
DOTS: dict[str, Any] = {"n": 3, "seed": 2, "task": "dots", "labels": True}
SCANPATHS = "id,x_px,y_px,duration_ms\na,640,360,1500\na,800,300,\nb,600,360,2500\n"
TARGETS = "t_ms,x_px,y_px\n0,640,360\n1500,900,200\n"
POINTS = {"at": ["2.0:900,200", "3:100.5,50"], "start": "640,360"}


def sampled(folder: Path, **settings: Any) -> gd.Windows:
    return gd.load(folder, device="cpu").sample(batch_size=BATCH_CPU, **settings)


def gaze_of(windows: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    return np.array([[one["x"], one["y"]] for one in windows])


def streamed(client: TestClient, **fields: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The windows of a stream, and what its end says."""
    events = events_of(client.get("/api/generate/stream", params=fields).text)
    assert [name for name, _ in events[:2]] == ["queued", "started"]
    assert events[-1][0] == "done", events[-1]
    assert "progress" in [name for name, _ in events]
    return [data for name, data in events if name == "window"], events[-1][1]


def test_the_models_are_described_as_their_runs_are(
    start: Start, steerable: TestClient, labelling: TestClient, run_folder: Path
) -> None:
    client = start(limits={"max_windows": 7})
    found = client.get("/api/models").json()
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
    for one, steers, labels in ((client, 0, 0), (steerable, 1, 1), (labelling, 1, 1)):
        (served,) = one.get("/api/models").json()["models"]
        assert (served["is_steerable"], served["has_labels"]) == (steers, labels)
        schema = one.get("/openapi.json").json()["components"]["schemas"]["GenerateRequest"]
        assert schema["properties"]["labels"].get("enum") == (None if labels else [False])


@pytest.mark.parametrize("settings", [MIXTURE, READING], ids=["mixture", "reading"])
def test_json_and_stream_have_the_windows_of_the_library(
    client: TestClient, run_folder: Path, settings: dict[str, Any]
) -> None:
    expected = sampled(run_folder, **settings)
    answer = client.post("/api/generate", json=settings).json()
    windows, done = streamed(client, **settings)
    assert answer["card"] == done["card"] == expected.provenance["card"]
    for found in (answer["windows"], windows):
        np.testing.assert_allclose(gaze_of(found), expected.cut(), atol=0.51e-5)
        assert [one["index"] for one in found] == list(range(N))
        assert [one["task"] for one in found] == [expected.tasks[k] for k in expected.task]
        assert all(one["screen"] == vars(SCREENS[one["task"]]) for one in found)
    assert ({one["task"] for one in windows} == set(SCREENS)) == (settings is MIXTURE)


def test_requests_at_the_same_time_share_batches_and_get_their_own_windows(
    client: TestClient, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play: Playground = client.app.state.playground  # type: ignore[attr-defined]
    requests: list[dict[str, Any]]
    requests = [{"n": 2, "seed": 1}, {"n": 4, "seed": 2, "task": "reading"}, {"n": 1, "seed": 3}]
    n_together: list[int] = []
    compute, gate = generate._Share.compute, threading.Event()

    def watched(self: Any, shares: Any) -> None:
        n_together.append(len(shares))
        compute(self, shares)

    def waiting(job: Job) -> Any:
        gate.wait()
        yield

    monkeypatch.setattr(generate._Share, "compute", watched)
    play.generation.submit(waiting, lambda kind, value: None)
    found: dict[int, bytes] = {}

    def ask(number: int) -> None:
        sent = {**requests[number], "format": "parquet"}
        found[number] = client.post("/api/generate", json=sent).content

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(len(requests))]
    for thread in threads:
        thread.start()
    while play.generation.n_active < 1 + len(requests):
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert n_together == [3, 2, 1, 1]
    for number, request in enumerate(requests):
        path = run_folder.parent / f"alone{number}.parquet"
        sampled(run_folder, **request).save(path, overwrite=True)
        assert found[number] == path.read_bytes()


def test_the_events_of_a_window_are_in_degrees_of_its_own_screen(
    client: TestClient, run_folder: Path
) -> None:
    fields = {**MIXTURE, "seconds": 1.5}
    expected = sampled(run_folder, **fields)
    time_ms = np.arange(375, dtype=np.float64) * 4.0
    for number, window in enumerate(streamed(client, **fields)[0]):
        screen, gaze = SCREENS[window["task"]], expected[number]
        events = detect_events(screen.to_pixels(gaze).astype(np.float32), time_ms, screen)
        assert len(window["events"]) == len(events) > 0
        for found, event in zip(window["events"], events, strict=True):
            assert found["kind"] == event.event
            assert (found["onset_ms"], found["offset_ms"]) == (event.onset_ms, event.offset_ms)
            first, last = round(event.onset_ms / 4), round(event.offset_ms / 4)
            place = gaze[:, first : last + 1].mean(axis=1)
            if event.event == "saccade":
                assert found["peak_deg_s"] == pytest.approx(event.peak_velocity_deg_s, abs=1e-3)
                assert found["amplitude_deg"] == pytest.approx(event.amplitude_deg, abs=1e-3)
                place = gaze[:, last]
            np.testing.assert_allclose([found["x"], found["y"]], place, atol=1e-5)


def classes_of(window: dict[str, Any]) -> list[int]:
    """The number of the class of every sample, 0 without a label."""
    numbers = [0] * len(window["x"])
    for name, first, stop in window["labels"]:
        numbers[first:stop] = [1 + gd.EVENT_CLASSES.index(name)] * (stop - first)
    return numbers


def test_labels_are_those_of_the_library_in_as_few_events_as_possible(
    labelling: TestClient, labelling_run: Path
) -> None:
    labelled = sampled(labelling_run, **DOTS)
    answer = labelling.post("/api/generate", json=DOTS).json()
    assert answer["card"]["labels"]["classes"] == list(gd.EVENT_CLASSES)
    windows, _ = streamed(labelling, **DOTS)
    plain = labelling.post("/api/generate", json={**DOTS, "labels": False}).json()
    for number, labels in enumerate(labelled.cut_labels()):
        found = answer["windows"][number]
        assert classes_of(found) == classes_of(windows[number]) == labels.tolist()
        assert len(found["labels"]) == len(list(groupby(labels)))
        events = [(one["kind"], one["onset_ms"]) for one in windows[number]["events"]]
        expected = labelled.events(number, by_labels=True)
        assert events == [(one.event, one.onset_ms) for one in expected]
        assert "labels" not in plain["windows"][number]
        assert plain["windows"][number]["x"] == found["x"]


def test_an_event_has_its_mean_or_its_end_and_null_where_the_eye_is_lost() -> None:
    gaze = np.zeros((1, 2, 100), dtype=np.float32)
    gaze[0, 0] = np.arange(100) / 100
    gaze[0, :, 70:] = np.nan
    labels = np.repeat([[1, 2, 3, 4, 0]], [40, 10, 10, 35, 5], axis=1)
    (window,) = windows_with_events_json(gd.Windows.from_array(gaze, 250, SCREEN, labels=labels))
    json.dumps(window, allow_nan=False)
    spans = [("fixation", 0, 40), ("saccade", 40, 50), ("pursuit", 50, 60), ("noise", 60, 95)]
    assert window["labels"] == spans
    found = [(one["kind"], one["x"]) for one in window["events"]]
    expected = [("fixation", 0.195), ("saccade", 0.49), ("pursuit", 0.545), ("noise", None)]
    assert found == expected


def test_losses_are_null_in_json_and_stated_by_command_and_program(
    start: Start, lossy_run: Path
) -> None:
    client = start(model=str(lossy_run))
    assert client.get("/api/models").json()["models"][0]["has_losses"] is True
    fields: dict[str, Any] = {"n": 6, "seed": 4, "track_loss": True}
    is_lost = sampled(lossy_run, **fields).is_lost
    assert is_lost.any()
    windows, done = streamed(client, **fields)
    for found in (windows, client.post("/api/generate", json=fields).json()["windows"]):
        assert [[x is None for x in one["x"]] for one in found] == is_lost.tolist()
    assert " --track-loss" in done["command"]
    assert "track_loss=True" in done["python"]
    fitted_on = json.loads((lossy_run / "losses.json").read_text())["fitted_on"]
    assert done["card"]["losses"]["n_losses"] == fitted_on["n_losses"]


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("served", "format", "settings"),
    [("client", format, MIXTURE) for format in ("parquet", "csv", "npz", "bids", "asc")]
    + [("client", "bids", READING)]
    + [("labelling", format, DOTS) for format in ("parquet", "csv", "bids", "asc")],
)
def test_files_are_those_of_the_library_and_the_command(
    request: pytest.FixtureRequest,
    run: RunCommand,
    tmp_path: Path,
    served: str,
    format: str,
    settings: dict[str, Any],
) -> None:
    client: TestClient = request.getfixturevalue(served)
    folder = request.getfixturevalue("run_folder" if served == "client" else "labelling_run")
    response = client.post("/api/generate", json={**settings, "format": format})
    assert response.status_code == 200, response.text
    name = "gaze" if format in ("bids", "asc") else f"gaze.{format}"
    sampled(folder, **settings).save(tmp_path / "sample" / name, format)
    flags = {"n": "-n", "rate_hz": "--rate"}
    words = [
        word
        for key, value in settings.items()
        for word in [flags.get(key, f"--{key}"), *([] if value is True else [value])]
    ]
    (tmp_path / "command").mkdir()
    words += ["--model", folder, "--format", format, "--batch-size", BATCH_CPU]
    code, _, error = run("generate", "-o", tmp_path / "command" / name, *words)
    assert code == 0, error
    expected = files_of(tmp_path / "command")
    assert files_of(tmp_path / "sample") == expected
    assert f"seed{settings['seed']}." in response.headers["content-disposition"]
    if format in ("parquet", "npz"):
        assert response.content == expected[name]
    else:
        assert response.headers["content-type"] == "application/zip"
        assert extracted(response.content, tmp_path / "http") == expected
    form = {key: str(value) for key, value in settings.items()}
    again = client.post("/api/generate/upload", data={**form, "format": format})
    assert again.content == response.content


@pytest.mark.parametrize(
    ("served", "fields"),
    [
        ("client", READING),
        ("steerable", {"n": 2, "task": "dots", "seconds": 5, **POINTS}),
        pytest.param("labelling", {**DOTS, "n": 2, "seconds": 5}, marks=pytest.mark.slow),
    ],
)
def test_the_command_and_the_program_of_a_stream_write_its_bytes_and_card(
    request: pytest.FixtureRequest,
    run: RunCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    served: str,
    fields: dict[str, Any],
) -> None:
    client: TestClient = request.getfixturevalue(served)
    _, done = streamed(client, **fields)
    sent = client.post("/api/generate", json={**fields, "format": "parquet"})
    for name in ("command", "python"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name == "command":
            code, _, error = run(*shlex.split(done["command"])[1:])
            assert code == 0, error
        else:
            exec(done["python"], {})
        path = tmp_path / name / "gaze.parquet"
        assert path.read_bytes() == sent.content
        card = read_card(path)
        assert card is not None
        # A file adds its format, and the resolution of its windows, known when all are generated.
        added = ("resolution_px", "format_written")
        assert {key: card[key] for key in card if key not in added} == done["card"]


def test_long_windows_are_those_of_the_library_and_let_other_jobs_have_their_turns(
    steerable: TestClient, steerable_folder: Path
) -> None:
    fields: dict[str, Any] = {"n": 2, "task": "dots", "seconds": 12, "seed": 3}
    expected = sampled(steerable_folder, **fields).cut()
    assert expected.shape == (2, 2, 240)
    answer = steerable.post("/api/generate", json=fields).json()["windows"]
    for windows in (answer, streamed(steerable, **fields)[0]):
        np.testing.assert_allclose(gaze_of(windows), expected, atol=0.51e-5)
    play: Playground = steerable.app.state.playground  # type: ignore[attr-defined]
    for labels in (False, True):
        asked = GenerationFields.model_validate({**fields, "n": 1, "labels": labels})
        requested = GenerationRequest.of(asked, play.models, play.settings.limits)
        steps = list(Job(requested.pieces, lambda kind, value: None, 0).steps)
        # Seven windows of the model are generated, and as many labelled; then the whole is given.
        assert [step is None for step in steps] == [True] * 7 * (1 + labels) + [False]


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("kind", "table", "more"), [("scanpath", SCANPATHS, {}), ("targets", TARGETS, {"n": 6})]
)
def test_tables_give_the_bytes_of_the_command_line(
    steerable: TestClient, run: RunCommand, steerable_folder: Path, tmp_path: Path,
    kind: str, table: str, more: dict[str, int],
) -> None:  # fmt: skip
    (tmp_path / f"{kind}.csv").write_text(table)
    words = ["--model", steerable_folder, "--task", "dots", "--batch-size", BATCH_CPU]
    words += [
        "--device",
        "cpu",
        *(("-n", 6) if more else ()),
        f"--{kind}",
        tmp_path / f"{kind}.csv",
    ]
    code, _, error = run("generate", "-o", tmp_path / "gaze.parquet", *words)
    assert code == 0, error
    fields = {"task": "dots", "format": "parquet", **more}
    inline = steerable.post("/api/generate", json={**fields, kind: table})
    assert inline.status_code == 200, inline.text
    assert inline.content == (tmp_path / "gaze.parquet").read_bytes()
    files = {kind: (f"{kind}.csv", table)}
    assert (
        steerable.post("/api/generate/upload", data=fields, files=files).content == inline.content
    )


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("t_ms,x,y\n0,50,25\n1500,75,25", {"screen": "100x50"}),
        ("t_ms,x,y\n0,0.5,0.5\n1500,0.75,0.5", {"unit": "norm"}),
    ],
)
def test_positions_are_of_the_screen_and_unit_that_the_form_states(
    steerable: TestClient, steerable_folder: Path, table: str, fields: dict[str, str]
) -> None:
    x = np.array([0, 0.5], np.float32)
    targets = [gd.Targets("a", np.array([0.0, 1500.0]), x, np.zeros(2, np.float32))]
    expected = sampled(steerable_folder, n=1, task="dots", targets=targets).cut()
    form = {"task": "dots", "n": "1", **fields}
    files = {"targets": ("t.csv", table)}
    answer = steerable.post("/api/generate/upload", files=files, data=form)
    np.testing.assert_allclose(gaze_of(answer.json()["windows"]), expected, atol=0.51e-5)


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.slow
def test_windows_like_a_recording_have_the_bytes_of_the_command_line(
    run: RunCommand, tmp_path: Path, make_recording: MakeRecording
) -> None:
    write_into(tmp_path / "in", [(make_recording(n=3000), ())], "parquet")
    words = ["--task", "reading", "-n", 1, "--batch-size", BATCH_CPU]
    words += ["--like", tmp_path / "in", "--set", "candidates=2", "--device", "cpu"]
    code, _, error = run("generate", "-o", tmp_path / "gaze.parquet", *words)
    assert code == 0, error
    gd.style_windows(gd.read(tmp_path / "in"), 250.0, 8.0).save(tmp_path / "like.safetensors")
    fields = {"task": "reading", "n": "1", "format": "parquet", "candidates": "2"}
    with TestClient(create_app(Settings()), base_url="http://127.0.0.1:8000") as packaged:
        for paths in ((tmp_path / "in").glob("recordings.*"), [tmp_path / "like.safetensors"]):
            sent = [("like", (path.name, path.read_bytes())) for path in sorted(paths)]
            answer = packaged.post("/api/generate/upload", data=fields, files=sent)
            assert answer.status_code == 200, answer.text
            assert answer.content == (tmp_path / "gaze.parquet").read_bytes()
        short = {"like": ("a.csv", "t_ms,x_px,y_px\n0,1,2\n4,3,4\n8,3,5\n")}
        form = {**fields, "screen": "1280x720"}
        answer = packaged.post("/api/generate/upload", data=form, files=short)
        assert "a.csv: a style needs 8 s of valid gaze in a row" in error_of(answer, 422)


@pytest.mark.parametrize(
    ("served", "fields", "words"),
    [
        ("client", {"n": 0}, "`n` must be 1 or more, not 0"),
        ("client", {"seed": -1}, "`seed` must be 0 or more, not -1"),
        ("client", {"format": "edf"}, "edf"),
        ("client", {"task": "readin"}, "task 'readin'; did you mean 'reading'?"),
        ("client", {"quality": "bst"}, "`quality`"),
        ("client", {"model": "tiny"}, "no `model` 'tiny'; did you mean 'tiny run'?"),
        ("client", {"seconds": 9}, "`seconds` must lie between 1 and 1.984"),
        ("client", {"seconds": 0.5}, "`seconds` must lie between 1 and 1.984"),
        ("client", {"rate_hz": 500}, "`rate_hz` must lie between 10 and 250 Hz"),
        ("client", {"n": "many"}, "`n`: Input should be a valid integer"),
        ("client", {"m": 3}, "`m`: Extra inputs are not permitted"),
        ("client", {"track_loss": True}, "has no table of losses"),
        ("client", {"labels": True}, "this model has no labels; take the default model"),
        ("client", {"start": "1,1"}, "screens; give `task` (free viewing, reading) or `screen`"),
        ("client", {"task": "reading", **POINTS}, "this model is not steerable"),
        ("client", {"task": "reading", "scanpath": SCANPATHS}, "this model is not steerable"),
        ("client", {"task": "reading", "targets": TARGETS}, "this model is not steerable"),
        ("steerable", {"at": ["2:640"]}, "`at` needs a position in pixels as 640,360, not '640'"),
        ("steerable", {"at": ["640,360"]}, "`at` must look like 2.0:640,360"),
        ("steerable", {"at": ["9:640,360"]}, "the waypoint at 9 s lies beyond the 3.2 s"),
        ("steerable", {"at": ["1e999:640,360"]}, "`at` must look like"),
        ("steerable", {"start": "6400,360"}, "6400,360 is off the screen of 1280x720 px"),
        ("steerable", {"start": [1, 2]}, "`start`: Input should be a valid string"),
        ("steerable", {"task": "waldo", "start": "1,1"}, "no task 'waldo'"),
        ("steerable", {"seconds": 4000}, "`seconds` must lie between 1 and 3600, not 4000"),
        ("steerable", {"n": 3, "seconds": 12}, "3 windows of 12 s are generated as 21 of 3.2 s"),
        ("steerable", {"scanpath": "x_px,y_px\n"}, "scanpath.csv: there are no rows"),
        ("steerable", {"scanpath": "x_px,y_px\n1,1\n9999,1"}, "scanpath.csv, line 3: (9999, 1) px"),
        ("steerable", {"scanpath": "x,y,onset\n1,1,0\n9,9,600", "start": "1,1"},
         "falls into a fixation"),
        ("steerable", {"scanpath": "x,y,onset\n1,1,0\n9,9,90000"}, "windows of 90 s or more are"),
        ("steerable", {"targets": "t_ms,x,y\n0,1,1\ninf,2,2", "seconds": 3}, "missing, infinite"),
        ("steerable", {"targets": "x,y\n1,1"}, "targets.csv: no onset column among x, y"),
        ("steerable", {"targets": "t_ms,x,y\n0,1,1\n1e12,2,2"}, "windows of 1000000000 s or more"),
        ("steerable", {"targets": 7}, "`targets`: Input should be a valid string"),
    ],
)  # fmt: skip
def test_every_refusal_is_one_line_that_names_the_field_or_the_table(
    request: pytest.FixtureRequest, served: str, fields: dict[str, Any], words: str
) -> None:
    client: TestClient = request.getfixturevalue(served)
    more = {"n": 1, "task": "dots"} if served == "steerable" else {"n": 1}
    line = error_of(client.post("/api/generate", json={**more, **fields}), 422)
    assert words in line
    assert "--" not in line


def test_a_field_left_empty_is_a_field_not_given(steerable: TestClient) -> None:
    plain = steerable.post("/api/generate", json={"n": 1, "task": "dots"}).json()
    empty = dict.fromkeys(("model", "seconds", "rate_hz", "start", "candidates", "screen"), "")
    form = {**empty, "n": "1", "task": "dots", "track_loss": "", "at": ""}
    assert steerable.post("/api/generate/upload", data=form).json() == plain


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
    files = {kind: (name, content)}
    answer = steerable.post("/api/generate/upload", data={"task": "dots"}, files=files)
    assert error_of(answer, 422).startswith(words)


@pytest.mark.parametrize(
    ("is_lossy", "sources", "words"),
    [
        (False, [{"name": "a"}], "the sources of this windows file are damaged"),
        (False, 7, "the sources of this windows file are damaged"),
        (True, [], "these windows have losses; cut between them with `prepare`"),
    ],
)
def test_windows_with_damaged_sources_or_losses_have_no_style(
    steerable: TestClient, tmp_path: Path, is_lossy: bool, sources: Any, words: str
) -> None:
    gaze = np.random.default_rng(0).normal(0, 0.1, (3, 2, 64)).astype(np.float32)
    gaze[0, :, 5] = np.nan if is_lossy else 0
    path, provenance = tmp_path / "a.safetensors", {"sources": sources}
    gd.Windows.from_array(gaze, 20, gd.Screen(1280, 720), provenance=provenance).save(path)
    files = {"like": (path.name, path.read_bytes())}
    answer = steerable.post("/api/generate/upload", data={"task": "dots"}, files=files)
    assert words in error_of(answer, 422)


def test_long_tables_and_recordings_are_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "MAX_ROWS", 2)
    monkeypatch.setattr(generate, "MAX_LIKE", 2)
    path, screen = tmp_path / "a.csv", gd.Screen(1280, 720)
    path.write_text("x,y\n1,1\n2,2\n3,3\n")
    with pytest.raises(TooLargeError, match=r"a\.csv: more than 2 rows"):
        generate.read_table("scanpath", path, screen, {}, 1 << 20, lambda progress: None)
    source, kept = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    gd.Windows.from_array(np.zeros((3, 2, 64)), 20, screen).save(source)
    with pytest.raises(TooLargeError, match="`like` has 3 windows, and 2 are the most here"):
        generate.read_style(source, {}, 20.0, 3.2, kept, 1 << 20, lambda progress: None)
