"""Recordings over HTTP: filled, labelled, augmented and scored as by the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.writers import write_into
from gazediffusion.data.writers.card import read_card
from gazediffusion.web.state import Playground
from tests.conftest import MakeRecording, wandering_gaze
from tests.generation.test_augmented_sets import STUDY
from tests.generation.test_gaps import lost
from tests.web.conftest import Start, error_of, extracted, files_of, nothing, sent_files

OWN = gd.CleaningConfig(blink_before_ms=0.0, blink_after_ms=0.0)
OWN_FORM = {"blink_before_ms": "0", "blink_after_ms": "0"}
# Which function, in which format recordings are sent, its settings, and the form that states them.
WORKS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    *(("fill", format, {"seed": 4}, {"seed": "4"}) for format in ("csv", "asc", "bids")),
    ("fill", "parquet", {}, {}),
    (
        "fill",
        "csv",
        {"draws": 2, "max_gap_s": 0.5, "task": "dots", "cleaning": OWN},
        {"draws": "2", "max_gap_s": "0.5", "task": "dots", **OWN_FORM},
    ),
    *(("label", format, {}, {}) for format in ("csv", "asc", "bids")),
    ("label", "parquet", {"cleaning": OWN}, OWN_FORM),
    ("augment", "csv", {"times": 1, "seed": 3}, {"times": "1", "seed": "3"}),
    (
        "augment",
        "parquet",
        {"times": 1, "held_out": ["P1", "P3"], "labels": True, "task": "movies", "cleaning": OWN},
        {"times": "1", "held_out": ["P1", "P3"], "labels": "true", "task": "movies", **OWN_FORM},
    ),
    (
        "score",
        "csv",
        {"has_likelihood": False, "seed": 2, "task": "dots", "stride_s": 3.0},
        {"seed": "2", "task": "dots", "stride_s": "3.0"},
    ),
    (
        "score",
        "csv",
        {"cleaning": gd.CleaningConfig(max_speed_deg_s=500.0), "has_likelihood": True},
        {"format": "csv", "likelihood": "true", "max_speed_deg_s": "500"},
    ),
]
DONE = {"fill": "filled", "label": "labelled", "augment": "augmented", "score": "scores"}


@pytest.fixture
def blinking(make_recording: MakeRecording) -> gd.Recording:
    """20 s at 250 Hz with losses of 0.2, 0.8 and 2 s."""
    gaze = lost(wandering_gaze(5000), (500, 550), (1500, 1700), (2500, 3000))
    return make_recording(gaze=gaze)


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(("kind", "format", "settings", "form"), WORKS)
def test_the_file_is_that_of_the_library(
    labelling: TestClient, labelling_run: Path, tmp_path: Path, blinking: gd.Recording,
    kind: str, format: str, settings: dict[str, Any], form: dict[str, Any],
) -> None:  # fmt: skip
    recordings = [blinking] if kind in ("fill", "label") else STUDY[::2]
    write_into(tmp_path / "in", [(one, ()) for one in recordings], format)
    answer = labelling.post(f"/api/{kind}", files=sent_files(tmp_path / "in"), data=form)
    assert answer.status_code == 200, answer.text
    ending = "csv" if "format" in form else "parquet" if kind == "score" else ""
    output = (tmp_path / "out" / DONE[kind]).with_suffix(ending and f".{ending}")
    output.parent.mkdir()
    written: Any = getattr(gd, kind)(tmp_path / "in", output, labelling_run, **settings)
    expected = files_of(tmp_path / "out")
    is_one = format == "parquet" or ending == "parquet"
    seed = "" if kind == "label" else f"-seed{settings.get('seed', 0)}"
    name = f"{DONE[kind]}{seed}.{'parquet' if is_one else 'zip'}"
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    if is_one:
        found = [content for path, content in expected.items() if path.endswith(".parquet")]
        assert [answer.content] == found
    else:
        assert extracted(answer.content, tmp_path / "http") == expected
    about = json.loads(answer.headers[f"x-gazediffusion-{kind}"])
    if kind == "fill":
        n = (1, 2) if "max_gap_s" in settings else (2, 1)
        assert (about["counts"]["filled"], about["counts"]["too_long"]) == n
    elif kind == "label":
        assert about == {"n_samples": written.n_samples, "warnings": []}
        assert sum(about["n_samples"].values()) == len(blinking)
    elif kind == "augment":
        n_held_out = 2 if "held_out" in settings else 1
        assert about["n_held_out"] == n_held_out
        assert about["n_recordings"] == about["n_participants"] == 3 - n_held_out
    else:
        assert about["n_windows"] == len(written)
        assert about["coverage"]["scored_s"] == pytest.approx(written.coverage.scored_s)
        assert about["warnings"] == list(written.notes)


@pytest.mark.parametrize("kind", ["fill", "label"])
def test_parquet_has_its_card_and_is_csv_where_that_is_asked_for(
    labelling: TestClient, tmp_path: Path, make_recording: MakeRecording, kind: str
) -> None:
    recording = make_recording()  # of known gaze only: it comes back as it is
    write_into(tmp_path / "in", [(recording, ())], "parquet")
    answer = labelling.post(f"/api/{kind}", files=sent_files(tmp_path / "in"))
    path = tmp_path / "found.parquet"
    path.write_bytes(answer.content)
    assert read_card(path) is not None
    (found,) = gd.read(path)
    assert found.screen == recording.screen
    (gaze_px,) = found.gaze_px.values()
    np.testing.assert_array_equal(gaze_px, recording.gaze_px["right"])
    form = {"format": "csv"}
    answer = labelling.post(f"/api/{kind}", files=sent_files(tmp_path / "in"), data=form)
    names = {f"{DONE[kind]}.{ending}" for ending in ("csv", "json", "md")}
    assert set(extracted(answer.content, tmp_path / "http")) == names


def gaze_table(n: int) -> str:
    x, y = lost(wandering_gaze(n), (500, 550))
    lines = (f"{4 * k},{x[k]},{y[k]}".replace("nan", "") for k in range(n))
    return "\n".join(["t_ms,x_px,y_px", *lines])


SHORT = "t_ms,x_px,y_px\n0,1,2\n4,3,4\n"
SCREEN_FORM = {"screen": "1280x720"}


# The workers of the clients, with their own folders, are started before.
@pytest.mark.usefixtures("client", "steerable", "labelling", "temporary_folder")
@pytest.mark.parametrize(
    ("served", "kind", "content", "form", "words"),
    [
        ("steerable", "fill", "no", {}, "a.csv: no x and y columns"),
        ("steerable", "fill", "", {}, "a.csv: the file is empty"),
        ("steerable", "fill", SHORT, {}, "a.csv"),
        ("steerable", "fill", 2000, {}, "how large the screen was; give `screen`"),
        ("steerable", "fill", 2000, {**SCREEN_FORM, "draws": "21"}, "21 windows, and 20 are the"),
        ("steerable", "fill", 2000, {"draws": "0"}, "`draws` must lie between 1 and 1000, not 0"),
        ("steerable", "fill", 2000, {"draws": "2", "format": "csv"}, "leave out `format`"),
        ("steerable", "fill", 2000, {"format": "asc"}, "`format` must be csv or parquet, not 'asc"),
        ("steerable", "fill", 2000, {"max_gap_s": "2"}, "`max_gap_s` must be at most 1.6"),
        ("steerable", "fill", 2000, {"max_gap_s": "long"}, "`max_gap_s`: Input should be a valid"),
        ("steerable", "fill", 2000, {"task": "waldo"}, "no task 'waldo'"),
        ("steerable", "fill", 2000, {"eye": "third"}, "`eye` must be right, left or best"),
        ("steerable", "fill", 2000, {"quality": "bst"}, "`quality`"),
        ("steerable", "fill", 2000, {"seed": "-1"}, "`seed` must be 0 or more"),
        ("steerable", "fill", 2000, {"model": "other"}, "no `model` 'other'"),
        ("labelling", "label", 10_000, SCREEN_FORM, "labelled in 23 windows, and 20 are the most"),
        ("labelling", "label", 2000, {"format": "asc"}, "`format` must be csv or parquet"),
        ("steerable", "augment", 2000, {"times": "0"}, "`times` must lie between 1 and 1000"),
        ("steerable", "augment", 2000, {"track_loss": "true"}, "no table of losses"),
        (
            "steerable",
            "augment",
            "study",
            {"times": "9"},
            "in 36 windows, and 20 are the most here",
        ),
        ("steerable", "augment", "study", {"held_out": "P9"}, "P9"),
        ("steerable", "score", "study", {"stride_s": "0.1"}, "windows, and 20 are the most here"),
        ("steerable", "score", 2000, {"task": "waldo", **SCREEN_FORM}, "no task 'waldo'"),
        ("steerable", "score", 2000, {"seed": "-1", **SCREEN_FORM}, "`seed` must be 0 or more"),
        ("client", "fill", SHORT, {}, "this model is not steerable"),
        ("client", "label", SHORT, {}, "this model has no labels; take the default model"),
        ("client", "fill", None, {}, "`files`: Field required"),
    ],
)
def test_every_refusal_is_one_line(
    request: pytest.FixtureRequest, tmp_path: Path,
    served: str, kind: str, content: str | int | None, form: dict[str, str], words: str,
) -> None:  # fmt: skip
    client: TestClient = request.getfixturevalue(served)
    if content == "study":
        write_into(tmp_path / "in", [(one, ()) for one in STUDY[::2]], "csv")
        files: Any = sent_files(tmp_path / "in")
    else:
        text = gaze_table(content) if isinstance(content, int) else content
        files = None if text is None else {"files": ("a.csv", text)}
    line = error_of(client.post(f"/api/{kind}", files=files, data=form), 422)
    assert words in line
    assert "--" not in line
    assert str(tmp_path) not in line


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("generate/upload", "like"),
        *((one, "files") for one in ("fill", "label", "augment", "score")),
    ],
)
def test_uploads_are_bounded_in_size_and_number(
    start: Start, steerable_folder: Path, path: str, name: str
) -> None:
    client = start(limits={"max_upload_mb": 1, "max_jobs": 1}, model=str(steerable_folder))
    answer = client.post(f"/api/{path}", files={name: ("a.csv", b"0" * (2 << 20))})
    assert error_of(answer, 413) == "an upload may have 1 MB in total"
    play: Playground = client.app.state.playground  # type: ignore[attr-defined]
    for queue in (play.comparison, play.recordings):
        queue.submit(nothing, lambda kind, value: None)
    answer = client.post(f"/api/{path}", files={name: ("a.csv", b"0")})
    assert "the queue is full (1 jobs are running or waiting)" in error_of(answer, 429)
    assert answer.headers["retry-after"] == "2"
