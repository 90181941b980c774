"""Filling over HTTP: the files of the library, refusals in one line, and nothing kept."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.recordings import Recording
from gazediffusion.data.writers import write_into
from gazediffusion.data.writers.card import read_card
from tests.conftest import MakeRecording, wandering_gaze
from tests.generation.test_gaps import lost
from tests.web.test_limits import error_of
from tests.web.test_same_bytes import files_of


@pytest.fixture
def blinking(make_recording: MakeRecording) -> Recording:
    """20 s at 250 Hz with losses of 0.2, 0.8 and 2 s."""
    gaze = lost(wandering_gaze(5000), (500, 550), (1500, 1700), (2500, 3000))
    return make_recording(gaze=gaze)


def sent(folder: Path) -> list[tuple[str, tuple[str, bytes]]]:
    """The files of a folder with their paths, as a form sends them."""
    return [("files", (name, content)) for name, content in sorted(files_of(folder).items())]


def extracted(content: bytes, folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(folder)
    return files_of(folder)


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize("format", ["csv", "asc", "bids"])
def test_the_zip_has_the_files_of_the_library(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path, blinking: Recording, format: str
) -> None:
    write_into(tmp_path / "in", [(blinking, ())], format)
    gd.fill(tmp_path / "in", tmp_path / "out" / "filled", steerable_folder, seed=4)
    answer = steerable.post("/api/fill", files=sent(tmp_path / "in"), data={"seed": "4"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="filled-seed4.zip"'
    assert extracted(answer.content, tmp_path / "http") == files_of(tmp_path / "out")
    about = json.loads(answer.headers["x-gazediffusion-fill"])
    assert (about["counts"]["filled"], about["counts"]["too_long"]) == (2, 1)
    assert about["warnings"] == []


@pytest.mark.usefixtures("temporary_folder")
def test_parquet_is_one_file_with_its_card(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    write_into(tmp_path / "in", [(blinking, ())], "parquet")
    gd.fill(tmp_path / "in", tmp_path / "out", steerable_folder)
    own = steerable.post("/api/fill", files=sent(tmp_path / "in"))
    assert own.status_code == 200, own.text
    assert own.content == (tmp_path / "out" / "recordings.parquet").read_bytes()
    path = tmp_path / "filled.parquet"
    path.write_bytes(own.content)
    card = read_card(path)
    assert card is not None
    assert card["counts"]["filled"] == 2
    (found,) = gd.read(path)
    assert found.screen == blinking.screen
    # The same as CSV, where it is asked for.
    other = steerable.post("/api/fill", files=sent(tmp_path / "in"), data={"format": "csv"})
    assert {"filled.csv", "filled.json", "filled.md"} == set(
        extracted(other.content, tmp_path / "http")
    )


def test_settings_reach_the_library(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path, blinking: Recording
) -> None:
    write_into(tmp_path / "in", [(blinking, ())], "csv")
    cleaning = gd.CleaningConfig(blink_before_ms=0.0, blink_after_ms=0.0)
    settings: dict[str, Any] = {"draws": 2, "max_gap_s": 0.5, "task": "dots"}
    gd.fill(
        tmp_path / "in",
        tmp_path / "out" / "filled",
        steerable_folder,
        cleaning=cleaning,
        **settings,
    )
    fields = {**settings, "blink_before_ms": 0, "blink_after_ms": 0}
    form = {name: str(value) for name, value in fields.items()}
    answer = steerable.post("/api/fill", files=sent(tmp_path / "in"), data=form)
    assert answer.status_code == 200, answer.text
    found = extracted(answer.content, tmp_path / "http")
    assert found == files_of(tmp_path / "out")
    assert "filled/draw-2/recordings.csv" in found
    assert json.loads(answer.headers["x-gazediffusion-fill"])["counts"]["filled"] == 1


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("content", "fields", "words"),
    [
        ("no", {}, "a.csv: no x and y columns"),
        ("", {}, "a.csv: the file is empty"),
        ("t_ms,x_px,y_px\n0,1,2\n4,3,4\n", {}, "a.csv"),
        ("gaze", {}, "how large the screen was; give `screen`"),
        ("gaze", {"screen": "1280x720", "draws": "6"}, "6 windows, and 5 are the most here"),
        ("gaze", {"draws": "0"}, "`draws` must lie between 1 and 1000, not 0"),
        ("gaze", {"draws": "2", "format": "csv"}, "leave out `format`"),
        ("gaze", {"format": "asc"}, "`format` must be csv or parquet, not 'asc'"),
        ("gaze", {"max_gap_s": "2"}, "`max_gap_s` must be at most 1.6 for this model"),
        ("gaze", {"max_gap_s": "long"}, "`max_gap_s`: Input should be a valid number"),
        ("gaze", {"task": "waldo"}, "no task 'waldo'"),
        ("gaze", {"eye": "third"}, "`eye` must be right, left or best"),
        ("gaze", {"quality": "bst"}, "no `quality` 'bst'; did you mean 'best'?"),
        ("gaze", {"seed": "-1"}, "`seed` must be 0 or more"),
        ("gaze", {"model": "other"}, "no `model` 'other'"),
    ],
)
def test_every_refusal_is_one_line(
    steerable: TestClient, content: str, fields: dict[str, str], words: str
) -> None:
    if content == "gaze":
        x, y = lost(wandering_gaze(2000), (500, 550))
        lines = (f"{4 * k},{x[k]},{y[k]}".replace("nan", "") for k in range(2000))
        content = "\n".join(["t_ms,x_px,y_px", *lines])
    answer = steerable.post("/api/fill", files={"files": ("a.csv", content)}, data=fields)
    line = error_of(answer, 422)
    assert words in line
    assert "--" not in line


def test_a_model_that_is_not_steerable_is_refused(client: TestClient) -> None:
    answer = client.post("/api/fill", files={"files": ("a.csv", "t,x,y\n0,1,2\n")})
    assert "this model is not steerable" in error_of(answer, 422)
    assert error_of(client.post("/api/fill"), 422) == "`files`: Field required"


def test_a_recording_of_known_gaze_only_comes_back_as_it_is(
    steerable: TestClient, tmp_path: Path, make_recording: MakeRecording
) -> None:
    recording = make_recording()
    write_into(tmp_path / "in", [(recording, ())], "parquet")
    answer = steerable.post("/api/fill", files=sent(tmp_path / "in"))
    assert answer.status_code == 200, answer.text
    (tmp_path / "filled.parquet").write_bytes(answer.content)
    (found,) = gd.read(tmp_path / "filled.parquet")
    (gaze_px,) = found.gaze_px.values()
    np.testing.assert_array_equal(gaze_px, recording.gaze_px["right"])
