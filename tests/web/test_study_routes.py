"""Augmenting and scoring over HTTP: the files of the library, and refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import gazediffusion as gd
from gazediffusion.data.writers import write_into
from tests.generation.test_augmented_sets import STUDY
from tests.web.test_fill_route import extracted, sent
from tests.web.test_limits import error_of
from tests.web.test_same_bytes import files_of

AUGMENT: dict[str, Any] = {"times": 1, "seed": 3}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One recording of 4 s, two windows of the model, of each of three participants."""
    write_into(tmp_path / "in", [(one, ()) for one in STUDY[::2]], "csv")
    return tmp_path / "in"


@pytest.mark.usefixtures("temporary_folder")
def test_a_study_is_augmented_as_by_the_library(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path, source: Path
) -> None:
    form = {name: str(value) for name, value in AUGMENT.items()}
    answer = steerable.post("/api/augment", files=sent(source), data=form)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="augmented-seed3.zip"'
    gd.augment(source, tmp_path / "out" / "augmented", steerable_folder, **AUGMENT)
    assert extracted(answer.content, tmp_path / "http") == files_of(tmp_path / "out")
    about = json.loads(answer.headers["x-gazediffusion-augment"])
    numbers = {"n_recordings": 2, "n_participants": 2, "n_held_out": 1}
    assert about == {**numbers, "warnings": about["warnings"]}


def test_settings_of_augmenting_reach_the_library(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path, source: Path
) -> None:
    gd.augment(
        source,
        tmp_path / "out.parquet",
        steerable_folder,
        held_out=["P1", "P3"],
        labels=True,
        task="movies",
        cleaning=gd.CleaningConfig(blink_before_ms=0.0),
        **AUGMENT,
    )
    form: dict[str, Any] = {name: str(value) for name, value in AUGMENT.items()}
    form |= {"held_out": ["P1", "P3"], "labels": "true", "task": "movies", "blink_before_ms": "0"}
    answer = steerable.post("/api/augment", files=sent(source), data={**form, "format": "parquet"})
    assert answer.status_code == 200, answer.text
    assert answer.content == (tmp_path / "out.parquet").read_bytes()


@pytest.mark.usefixtures("temporary_folder")
def test_windows_are_scored_as_by_the_library(
    steerable: TestClient, steerable_folder: Path, tmp_path: Path
) -> None:
    source = tmp_path / "in"
    write_into(source, [(one, ()) for one in STUDY[:2]], "csv")
    settings: dict[str, Any] = {"has_likelihood": False, "seed": 2, "task": "dots", "stride_s": 3.0}
    form = {"seed": "2", "task": "dots", "stride_s": "3.0"}
    scores = gd.score(source, tmp_path / "out.parquet", steerable_folder, **settings)
    answer = steerable.post("/api/score", files=sent(source), data=form)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="scores-seed2.parquet"'
    assert answer.content == (tmp_path / "out.parquet").read_bytes()
    about = json.loads(answer.headers["x-gazediffusion-score"])
    assert about["n_windows"] == len(scores) == 4
    assert about["coverage"]["scored_s"] == pytest.approx(scores.coverage.scored_s)
    assert about["warnings"] == list(scores.notes)
    (tmp_path / "csv").mkdir()
    settings |= {"cleaning": gd.CleaningConfig(max_speed_deg_s=500.0), "has_likelihood": True}
    gd.score(source, tmp_path / "csv" / "scores.csv", steerable_folder, **settings)
    form |= {"format": "csv", "likelihood": "true", "max_speed_deg_s": "500"}
    answer = steerable.post("/api/score", files=sent(source), data=form)
    assert extracted(answer.content, tmp_path / "http") == files_of(tmp_path / "csv")


@pytest.mark.usefixtures("temporary_folder")
@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("augment", {"times": "0"}, "`times` must lie between 1 and 1000, not 0"),
        ("augment", {"times": "2"}, "generated in 8 windows, and 5 are the most here"),
        ("augment", {"held_out": "P9"}, "P9"),
        ("augment", {"losses": "true"}, "no table of losses"),
        ("augment", {"format": "bids"}, "`format` must be csv or parquet, not 'bids'"),
        ("score", {"stride_s": "0.5"}, "scored in 9 windows, and 5 are the most here"),
        ("score", {"task": "waldo"}, "no task 'waldo'"),
        ("score", {"seed": "-1"}, "`seed` must be 0 or more"),
        ("score", {"eye": "third"}, "`eye` must be right, left or best"),
    ],
)
def test_every_refusal_is_one_line(
    steerable: TestClient, source: Path, path: str, fields: dict[str, str], words: str
) -> None:
    line = error_of(steerable.post(f"/api/{path}", files=sent(source), data=fields), 422)
    assert words in line
    assert "--" not in line
    assert str(source.parent) not in line
