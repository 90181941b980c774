"""Recordings beside synthetic windows: tasks, floors, routes, and nothing of recordings kept."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.simulation import write_simulation
from gazediffusion.errors import GazeError
from gazediffusion.settings import SimulationConfig
from gazediffusion.web.compare import (
    MIN_WINDOWS,
    evaluated,
    joined,
    model_tasks,
    recorded_counts,
    task_counts,
    with_model_tasks,
)
from gazediffusion.web.generate import BATCH_CPU
from gazediffusion.web.queue import CANCELLED
from gazediffusion.web.settings import Settings
from gazediffusion.web.state import Playground
from tests.conftest import SCREEN, RunCommand
from tests.gaze import simulated_windows
from tests.web.conftest import (
    LENGTH,
    PATIENCE_S,
    Start,
    created,
    error_of,
    events_of,
    live_app,
    read_events,
    sent_files,
    wait_for,
)

JOINT = gd.list_models([])["joint"].tasks
# As the recordings of the packaged models are renamed for training.
TRAINING_NAMES = {
    "natural_movies": "movies",
    "natural_movies_repeated": "movies",
    "hollywood_trailers": "trailers",
    "stop_motion_movies": "stop-motion",
    "static_images": "stills",
    "additional_shuffled_stills": "stills",
    "reading_text": "reading",
    "random_dot_saccades": "dots",
}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (JOINT, TRAINING_NAMES),
        (JOINT, {task: task for task in JOINT}),
        (JOINT, {"Stop Motion": "stop-motion", "MOVIES": "movies"}),
        (["natural_movies"], {"movies": "natural_movies"}),
        (["free viewing"], {"free_viewing": "free viewing"}),
        (JOINT, dict.fromkeys(["unknown", "antisaccade", "synthetic", "viewing"])),
    ],
)
def test_names_of_tasks_are_matched_and_others_not_guessed(
    known: list[str], expected: dict[str, str | None]
) -> None:
    assert model_tasks(expected, known) == expected


def test_synthetic_windows_have_the_recorded_shares_of_tasks() -> None:
    recorded = {"natural_movies": 60, "natural_movies_repeated": 15, "reading_text": 25}
    assert task_counts(recorded, JOINT, None, 32) == {"movies": 24, "reading": 8}
    assert task_counts({"a": 1, "dots": 1}, JOINT, "reading", 25) == {"reading": 13, "dots": 12}
    assert task_counts({"a": 3}, (), None, 30) == {None: 30}, "a model without tasks"


@pytest.mark.parametrize(
    ("recorded", "task", "words"),
    [
        ({"unknown": 3}, None, "has no task 'unknown' of the recording; choose `task`: movies, "),
        ({"reading": 3, "x": 1}, None, "'x'"),
        ({"x": 3}, "swimming", "no `task` 'swimming'"),
        ({"natural_movies": 3}, "reading", "task is 'movies', not reading; leave out `task`"),
    ],
)
def test_an_unknown_task_must_be_chosen_and_a_known_one_is_not_replaced(
    recorded: dict[str, int], task: str | None, words: str
) -> None:
    with pytest.raises(GazeError) as caught:
        task_counts(recorded, JOINT, task, 30)
    assert words in str(caught.value)


def test_windows_get_the_names_of_the_model_and_are_joined_with_them() -> None:
    def windows_of(*tasks: str) -> gd.Windows:
        gaze = np.random.default_rng(0).normal(0, 0.1, (len(tasks), 2, 100))
        return gd.Windows.from_array(gaze, 250, SCREEN, tasks=list(tasks))

    recorded = windows_of("natural_movies", "natural_movies_repeated", "reading_text", "x")
    renamed = with_model_tasks(recorded, JOINT, "dots")
    assert renamed.identity["task"].tolist() == ["movies", "movies", "reading", "dots"]
    assert recorded_counts(renamed) == {"movies": 2, "reading": 1, "dots": 1}
    parts = [windows_of("movies", "movies"), windows_of("reading")]
    both = joined(parts)
    assert both.identity["task"].tolist() == ["movies", "movies", "reading"]
    np.testing.assert_array_equal(both.cut(), np.concatenate([one.cut() for one in parts]))


@pytest.fixture(scope="module")
def recorded() -> gd.Windows:
    """Windows of six participants."""
    return replace(simulated_windows(6, 1.0), validation=frozenset())


def synthetic_like(windows: gd.Windows, n: int = 40, speed: float = 1.0) -> gd.Windows:
    """n windows of other simulated participants, their gaze stretched."""
    gaze = simulated_windows(6, 1.0, seed=5).subsample(n).dequantized(0).cut() * speed
    return gd.Windows.from_array(gaze, windows.rate_hz, windows.screens[0])


def test_the_floor_is_between_participants_or_segments_and_is_named(recorded: gd.Windows) -> None:
    synthetic = synthetic_like(recorded)
    found = evaluated(recorded, None, synthetic)
    about, sets = found.results["about"], found.results["sets"]
    assert about["floor"] == "two groups of participants of the recording"
    assert about["no_ratio"] is None
    low, high = found.results["headline"]["synthetic"]["ratio"]["interval"]
    assert low < found.ratio < high
    assert [sets[name]["n_participants"] for name in ("real", "train")] == [2, 4]
    assert found.results["tests"]["c2st"] == {"not_computable": "left out by `with_tests`"}
    three = recorded.select(recorded.participant < 3)
    about = evaluated(three, None, synthetic).results["about"]
    assert about["floor"] == "two groups of gap-free segments of 3 participants"
    assert f"{len(three)} recorded windows of 3 participants" in about["compared"]
    others = recorded.select(recorded.participant >= 3)
    about = evaluated(three, others, synthetic).results["about"]
    assert about["floor"].startswith("training and held-out participants")


def test_few_windows_do_not_look_better_than_many(recorded: gd.Windows) -> None:
    """With few windows the ratio of very different gaze falls towards 1: it is not stated."""
    other = synthetic_like(recorded, 60, speed=0.3)
    many = evaluated(recorded, None, other)
    few = evaluated(recorded.subsample(36), None, other.subsample(MIN_WINDOWS))
    assert many.results["about"]["no_ratio"] is None
    assert many.ratio > 2
    assert re.search("mostly chance|floor", few.results["about"]["no_ratio"])


def test_windows_of_the_same_kind_are_at_the_floor_whatever_their_number(
    recorded: gd.Windows,
) -> None:
    ratios = []
    for n in (30, 60):
        found = evaluated(recorded, None, synthetic_like(recorded, n))
        low, high = found.results["headline"]["synthetic"]["ratio"]["interval"]
        ratios.append(found.ratio)
        assert low < 1.1
        assert high > 0.9
    assert np.ptp(np.log(ratios)) < 0.25


def prepared(study: Path) -> gd.Windows:
    config = gd.PrepareConfig(rate_hz=250, seconds=LENGTH / 250, validation_fraction=0.0)
    return gd.prepare(gd.read(study), config)


@pytest.mark.usefixtures("temporary_folder")
def test_a_recording_is_described_as_it_is_prepared(client: TestClient, study: Path) -> None:
    expected = prepared(study)
    response = client.post("/api/real", files=sent_files(study))
    assert response.status_code == 200, response.text
    found = response.json()
    assert found["n_windows"] == len(expected)
    assert found["participants"] == list(expected.participants)
    assert (found["n_recordings"], found["tasks"]) == (3, list(expected.tasks))
    assert found["screens"] == [vars(screen) for screen in expected.screens]
    chosen = np.linspace(0, len(expected) - 1, min(40, len(expected))).round().astype(int)
    shown = np.array([[one["x"], one["y"]] for one in found["windows"]])
    np.testing.assert_array_equal(shown, np.round(expected.cut(chosen).astype(float), 5))


def test_the_recording_of_real_equals_one_that_is_sent(start: Start, study: Path) -> None:
    client = start(real=study)
    assert client.get("/api/models").json()["has_real"] is True
    sent = client.post("/api/real", files=sent_files(study)).json()
    assert client.get("/api/real").json() == sent
    short = client.get("/api/real?seconds=1").json()
    assert len(short["windows"][0]["x"]) == 250


def test_the_held_out_participants_of_a_windows_file_are_real(
    start: Start, windows_file: Path
) -> None:
    client = start(real=windows_file)
    held_out = gd.Windows.load(windows_file).held_out
    assert client.get("/api/real").json()["n_windows"] == len(held_out)
    found = client.post("/api/evaluate", data={"n": "25"}).json()
    assert found["n_real"] == len(held_out)
    assert found["floor"] == "training and held-out participants of the windows file"
    assert found["notes"] == []
    assert found["warnings"][-1].startswith("synthetic has 25 windows"), "tasks match"


@pytest.mark.slow
def test_synthetic_windows_are_of_the_recorded_tasks(
    client: TestClient, windows_file: Path, tmp_path: Path
) -> None:
    windows = gd.Windows.load(windows_file)
    number = np.arange(len(windows.segment_starts), dtype=np.int32) % 2

    def sent(*tasks: str) -> dict[str, tuple[str, bytes]]:
        path = tmp_path / "windows.safetensors"
        changed = replace(windows, tasks=tasks, segment_task=number, validation=frozenset())
        changed.save(path, overwrite=True)
        return {"files": (path.name, path.read_bytes())}

    known, other = sent("free_viewing", "Reading"), sent("free_viewing", "searching")
    found = client.post("/api/real", files=known).json()
    assert found["model_tasks"] == {"free_viewing": "free viewing", "Reading": "reading"}
    fields = {"n": "25"}
    found = client.post("/api/evaluate", files=known, data=fields).json()
    assert found["n_synthetic"] == 25
    assert not [one for one in found["warnings"] if "tasks do not match" in one]
    words = "the model has no task 'searching' of the recording; choose `task`: "
    assert words in error_of(client.post("/api/evaluate", files=other, data=fields), 422)
    fields["task"] = "reading"
    assert client.post("/api/evaluate", files=other, data=fields).status_code == 200


def test_recordings_slower_than_the_model_are_compared_at_their_rate(
    client: TestClient, tmp_path: Path
) -> None:
    config = SimulationConfig(n_participants=3, minutes=1.0, rate_hz=60)
    write_simulation(config, tmp_path / "slow", "csv")
    files = sent_files(tmp_path / "slow")
    found = client.post("/api/real", files=files).json()
    assert (found["rate_hz"], found["n_recordings"]) == (60, 6)
    found = client.post("/api/evaluate", files=files, data={"n": "25"}).json()
    assert found["n_synthetic"] == 25
    assert any("60 Hz" in line for line in [found["compared"], *found["notes"]])


ROWS = b"t,x,y\n0,1,2\n4,1,2\n"


@pytest.mark.parametrize(
    ("name", "content", "form", "words"),
    [
        ("a.csv", b"x,y\n1,2\n", {}, "a.csv"),
        ("a.xyz", b"nothing known", {}, "a.xyz: no eye-tracking format known here"),
        ("a.csv", b"", {}, "a.csv: the file is empty"),
        ("a.csv", ROWS, {}, "`screen`"),
        ("a.csv", ROWS, {"screen": "big"}, "`screen` must look like"),
        ("a.csv", ROWS, {"screen_cm": "4x3"}, "need `screen` in pixels"),
        ("a.csv", ROWS, {"screen": "640x480"}, "no window of 1.984 s"),
        ("a.csv", ROWS, {"distance_cm": "far"}, "`distance_cm`: Input should be a valid number"),
        ("a.csv", ROWS, {"unit": "cm"}, "`unit` must be px, deg or norm"),
        ("a.csv", ROWS, {"origin": "left"}, "`origin` must be top-left"),
        ("a.csv", ROWS, {"source_rate": "-5"}, "`source_rate` must be a positive number"),
        ("a.csv", ROWS, {"columns": "x"}, "`columns` must look like x=GazeX"),
        ("a.csv", ROWS, {"override_screen": "perhaps"}, "`override_screen`: Input should be a"),
        ("a.csv", b"A,B,C\n", {"columns": "t=A,x=B,y=C", "screen": "1280x720"}, "a.csv"),
    ],
)
@pytest.mark.parametrize("path", ["/api/real", "/api/evaluate"])
@pytest.mark.usefixtures("temporary_folder")
def test_an_unreadable_file_is_refused_and_nothing_is_left_of_it(
    client: TestClient, path: str, name: str, content: bytes, form: dict[str, str], words: str
) -> None:
    line = error_of(client.post(path, files={"files": (name, content)}, data=form), 422)
    assert words in line
    assert tempfile.gettempdir() not in line


def test_without_windows_or_with_few_nothing_is_generated(client: TestClient, study: Path) -> None:
    assert client.get("/api/real").status_code == 404
    missing = "no recording was given; send `files`, or start the server with `real`"
    for path in ("/api/evaluate", "/api/report"):
        assert error_of(client.post(path), 422) == missing
    assert error_of(client.post("/api/real"), 422) == "`files`: Field required"
    few = client.post("/api/evaluate", files=sent_files(study), data={"n": "6"})
    assert error_of(few, 422) == "`n` must be 25 or more for a comparison, not 6"
    rows = "\n".join((study / "recordings.csv").read_text().splitlines()[:2000])
    form = {"screen": "1280x720"}
    short = client.post("/api/evaluate", files={"files": ("recordings.csv", rows)}, data=form)
    assert "windows, and a comparison needs 25" in error_of(short, 422)
    streamed = client.post("/api/evaluate/stream", files={"files": ("a.csv", b"no gaze")})
    name, failed = events_of(streamed.text)[-1]
    assert (name, failed["error"][:5]) == ("failed", "a.csv")
    answer = client.post("/api/evaluate/stream", files={"files": ("a", b"1")}, data={"n": "0"})
    assert "`n`" in error_of(answer, 422)


@pytest.mark.slow
def test_a_stream_says_the_stages_and_its_report_repeats_nothing(
    client: TestClient, study: Path
) -> None:
    streamed = client.post("/api/evaluate/stream", files=sent_files(study), data={"n": "25"})
    (_, queued), *progress, (last, done) = events_of(streamed.text)
    assert (len(queued["job"]), queued["ahead"]) == (16, 0)
    assert last == "done", done
    stages = list(dict.fromkeys(one["stage"] for _, one in progress))
    assert stages == ["reading", "generating", "comparing"]
    assert max(one["done"] for _, one in progress if one["stage"] == "generating") == 25
    assert max(one["done"] for _, one in progress if one["stage"] == "reading") >= 3
    kept = {"comparison": done["comparison"]}
    answer = client.post("/api/report/stream", data=kept)
    _, *progress, (last, written) = events_of(answer.text)
    assert [one["stage"] for _, one in progress] == ["writing"], "nothing else is done again"
    assert (last, written["comparison"]) == ("done", done["comparison"])
    assert written["page"].startswith("<!doctype html>")
    for path in ("/api/report", "/api/report/stream"):
        lost = client.post(path, data={"comparison": "0" * 32})
        assert error_of(lost, 404) == "the comparison is no longer kept; compare again"


def rounded(value: Any) -> Any:
    """JSON values with ten digits: the worker may sum in another order."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def tables_in(page: str) -> list[str]:
    """The tables of ratios in a report, as they are shown."""
    tables = re.findall(r"<table><caption>Ratio to the floor.*?</table>", page, re.DOTALL)
    return [re.sub(r'data-sort="[^"]*"', "", one) for one in tables]


# One figure of the command; those of the page are drawn by the worker.
@pytest.mark.usefixtures("temporary_folder", "one_figure")
@pytest.mark.slow
def test_evaluate_gives_the_numbers_and_the_report_of_the_command(
    client: TestClient, run: RunCommand, study: Path, run_folder: Path, tmp_path: Path
) -> None:
    form = {"n": "25", "seed": "5", "task": "free viewing"}
    response = client.post("/api/evaluate", files=sent_files(study), data=form)
    assert response.status_code == 200, response.text
    found = response.json()
    model = gd.load(run_folder)
    prepared(study).save(tmp_path / "real.safetensors")
    synthetic = model.sample(25, seed=5, task="free viewing", batch_size=BATCH_CPU)
    synthetic.save(tmp_path / "synthetic.safetensors")
    code, _, error = run(
        "evaluate", "--quick", "--real", tmp_path / "real.safetensors",
        "--synthetic", f"synthetic={tmp_path / 'synthetic.safetensors'}", "-o", tmp_path / "report",
    )  # fmt: skip
    assert code == 0, error
    results = json.loads((tmp_path / "report" / "results.json").read_text())["parts"]["all tasks"]
    # The recorded task has the model's name there.
    warnings = results["about"]["warnings"]
    assert found["warnings"] == [one for one in warnings if "the tasks do not match" not in one]
    for key in ("headline", "ratios", "main_sequence", "scalars"):
        assert rounded(found[key]) == rounded(results[key])
    for ours, theirs in zip(found["quantities"], results["quantities"], strict=True):
        assert rounded(ours) == rounded({key: theirs[key] for key in ours})
    page = client.post("/api/report", files=sent_files(study), data=form)
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src" not in page.headers["content-security-policy"]
    assert page.text.count("<img src=") > 5
    # The first sentence names the groups of the page's floor; the tables are those of the command.
    assert found["compared"] in html.unescape(page.text)
    written = (tmp_path / "report" / "report.html").read_text()
    assert tables_in(page.text) == tables_in(written) != []


@pytest.mark.slow
def test_cancelling_and_leaving_end_the_work_of_the_worker(
    run_folder: Path, study: Path, tmp_path: Path
) -> None:
    """A pipe without a writer: it is read for ever, until the worker is ended."""
    real = tmp_path / "endless.csv"
    os.mkfifo(real)
    settings = Settings(model=str(run_folder), real=real)
    app = created(settings)
    play: Playground = app.state.playground
    with live_app(app, settings) as url, httpx2.Client(base_url=url, timeout=PATIENCE_S) as client:
        for is_cancelled in (True, False):
            with client.stream("POST", "/api/evaluate/stream") as stream:
                events = read_events(stream.iter_lines())
                name, queued = next(events)
                assert name == "queued"
                assert any(one["stage"] == "reading" for _, one in events)
                pid = play.reader.pid
                cancel = f"{url}/api/jobs/{queued['job']}/cancel"
                if is_cancelled:
                    assert httpx2.post(cancel).status_code == 204
                    assert list(events)[-1] == ("failed", {"error": CANCELLED})
                    assert httpx2.post(cancel).status_code == 404
            wait_for(lambda path: not path.exists(), Path(f"/proc/{pid}"))
        wait_for(lambda: play.comparison.n_active == 0 and not play.streams)
        sent = client.post("/api/real", files=sent_files(study))
        assert sent.status_code == 200, "another worker serves others"
