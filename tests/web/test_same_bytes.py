"""Every verb gives the same over HTTP, on the command line and in Python, byte for byte."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.writers.card import read_card
from gazediffusion.web.generate import BATCH_CPU
from tests.conftest import RunCommand
from tests.web.conftest import LENGTH, SCREENS, sent_files
from tests.web.test_generation_routes import events_of

N = 5
KEYS = ("headline", "ratios", "main_sequence", "scalars")
MIXTURE: dict[str, Any] = {"seed": 1}
READING: dict[str, Any] = {"seed": 3, "task": "reading", "seconds": 1.5,
                           "rate_hz": 60.0}  # fmt: skip


@pytest.fixture(scope="module")
def model(run_folder: Path) -> gd.Model:
    return gd.load(run_folder)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def command_options(settings: dict[str, Any]) -> list[str]:
    flags = {name: f"--{name.removesuffix('_hz')}" for name in settings}
    return [word for name, value in settings.items() for word in (flags[name], str(value))]


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("format", "settings"),
    [(format, MIXTURE) for format in ("parquet", "csv", "npz", "bids", "asc")]
    + [(format, READING) for format in ("parquet", "bids")],
)
def test_generate_gives_the_same_bytes(
    client: TestClient,
    run: RunCommand,
    model: gd.Model,
    run_folder: Path,
    tmp_path: Path,
    format: str,
    settings: dict[str, Any],
) -> None:
    response = client.post("/api/generate", json={"n": N, "format": format, **settings})
    assert response.status_code == 200, response.text
    name = "gaze" if format in ("bids", "asc") else f"gaze.{format}"
    windows = model.sample(N, batch_size=BATCH_CPU, **settings)
    windows.save(tmp_path / "sample" / name, format)
    model.sample_to(
        tmp_path / "sample_to" / name, N, format=format, batch_size=BATCH_CPU, **settings
    )
    options = ["--format", format, "--batch-size", str(BATCH_CPU), *command_options(settings)]
    output = tmp_path / "command" / name
    output.parent.mkdir()
    code, _, error = run("generate", "-o", output, "--model", run_folder, "-n", N, *options)
    assert code == 0, error
    expected = files_of(tmp_path / "command")
    assert files_of(tmp_path / "sample") == expected
    assert files_of(tmp_path / "sample_to") == expected
    if format in ("csv", "bids", "asc"):
        assert response.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
            archive.extractall(tmp_path / "http")
        assert files_of(tmp_path / "http") == expected
    else:
        assert response.content == expected[name]


@pytest.mark.parametrize("settings", [MIXTURE, READING], ids=["mixture", "reading"])
@pytest.mark.slow
def test_the_command_and_the_program_of_a_stream_write_its_bytes_and_card(
    client: TestClient,
    run: RunCommand,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
) -> None:
    fields = {"n": N, **settings}
    *_, (_, done) = events_of(client.get("/api/generate/stream", params=fields).text)
    sent = client.post("/api/generate", json={**fields, "format": "parquet"})
    program, *arguments = shlex.split(done["command"])
    assert program == "gazediffusion"
    for name in ("command", "python"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "command")
    code, _, error = run(*arguments)
    assert code == 0, error
    monkeypatch.chdir(tmp_path / "python")
    exec(done["python"], {})
    as_json = client.post("/api/generate", json=fields).json()
    for name in ("command", "python"):
        path = tmp_path / name / "gaze.parquet"
        assert path.read_bytes() == sent.content
        card = read_card(path)
        assert card is not None
        # A file adds the resolution of its windows, which is known when all are generated.
        card.pop("resolution_px", None)
        assert card == done["card"] == as_json["card"]


def prepared(study: Path) -> gd.Windows:
    config = gd.PrepareConfig(rate_hz=250, seconds=LENGTH / 250, validation_fraction=0.0)
    return gd.prepare(gd.read(study), config)


@pytest.mark.usefixtures("temporary_folder")
def test_prepare_gives_the_same_windows(
    client: TestClient, run: RunCommand, study: Path, tmp_path: Path
) -> None:
    path = tmp_path / "windows.safetensors"
    options = ["--rate", 250, "--seconds", LENGTH / 250, "--val-fraction", 0]
    code, _, error = run("prepare", study, "-o", path, *options)
    assert code == 0, error
    expected = prepared(study)
    np.testing.assert_array_equal(gd.Windows.load(path).cut(), expected.cut())
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


def tables_in(page: str) -> list[str]:
    """The tables of ratios in a report, as they are shown."""
    tables = re.findall(r"<table><caption>Ratio to the floor.*?</table>", page, re.DOTALL)
    return [re.sub(r'data-sort="[^"]*"', "", one) for one in tables]


def rounded(value: Any) -> Any:
    """JSON values with ten digits: the worker may sum in another order."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


# One figure of the command; those of the page are drawn by the worker.
@pytest.mark.usefixtures("temporary_folder", "one_figure")
@pytest.mark.slow
def test_evaluate_gives_the_same_numbers_and_report(
    client: TestClient, run: RunCommand, study: Path, model: gd.Model, tmp_path: Path
) -> None:
    fields = {"n": "25", "seed": "5", "task": "free viewing"}
    response = client.post("/api/evaluate", files=sent_files(study), data=fields)
    assert response.status_code == 200, response.text
    found = response.json()
    synthetic = model.sample(25, seed=5, task="free viewing", batch_size=BATCH_CPU)
    real = prepared(study)
    assert (found["n_real"], found["n_synthetic"]) == (len(real), 25)
    assert found["compared"].startswith(f"{len(real)} recorded windows of 3 participants and 25")
    real.save(tmp_path / "real.safetensors")
    synthetic.save(tmp_path / "synthetic.safetensors")
    # That the command gives what the function gives, tests/cli/test_same_bytes.py shows.
    code, _, error = run(
        "evaluate", "--quick", "--real", tmp_path / "real.safetensors",
        "--synthetic", f"synthetic={tmp_path / 'synthetic.safetensors'}", "-o", tmp_path / "report",
    )  # fmt: skip
    assert code == 0, error
    results = json.loads((tmp_path / "report" / "results.json").read_text())["parts"]["all tasks"]
    # The recorded task has the model's name there.
    warnings = results["about"]["warnings"]
    assert found["warnings"] == [one for one in warnings if "the tasks do not match" not in one]
    for key in KEYS:
        assert rounded(found[key]) == rounded(results[key])
    assert len(found["quantities"]) == len(results["quantities"])
    for ours, theirs in zip(found["quantities"], results["quantities"], strict=True):
        assert rounded(ours) == rounded({key: theirs[key] for key in ours})
    page = client.post("/api/report", files=sent_files(study), data=fields)
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src" not in page.headers["content-security-policy"]
    assert page.text.count("<img src=") > 5
    # The first sentence names the groups of the page's floor; the tables are those of the command.
    assert found["compared"] in html.unescape(page.text)
    written = (tmp_path / "report" / "report.html").read_text()
    assert tables_in(page.text) == tables_in(written) != []


def test_every_window_of_a_mixture_is_exported_on_its_own_screen(
    client: TestClient, tmp_path: Path
) -> None:
    found = client.post("/api/generate", json={"n": N, "seed": 1}).json()["windows"]
    assert {one["task"] for one in found} == set(SCREENS), "a mixture of both tasks"
    sent = client.post("/api/generate", json={"n": N, "seed": 1, "format": "npz"})
    with np.load(io.BytesIO(sent.content)) as arrays:
        pixels, degrees = arrays["gaze_px"], arrays["gaze_deg"]
    for window, gaze_px, gaze_deg in zip(found, pixels, degrees, strict=True):
        screen = SCREENS[window["task"]]
        assert window["screen"] == vars(screen)
        expected = screen.to_pixels(np.array([window["x"], window["y"]]))
        np.testing.assert_allclose(gaze_px, expected, atol=0.02)
        np.testing.assert_allclose(gaze_deg, screen.to_degrees(gaze_px), atol=1e-4)
