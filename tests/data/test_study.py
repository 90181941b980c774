"""study.yaml: how recordings are read, stated once for all commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gazediffusion as gd
from tests.conftest import RunCommand

OURS = (
    "screen: 1280x720\nscreen_cm: 40x22.5\ndistance_cm: 45\neye: left\ncolumns: {x: Quer, y: Hoch}"
)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Three participants whose files need names of columns, a screen and a pattern."""
    rng, folder = np.random.default_rng(0), tmp_path / "study"
    folder.mkdir()
    for name in ("anna_dots", "bert_dots", "carl_dots"):
        walk = 300 + np.cumsum(rng.normal(0, 0.5, (2, 1100)), axis=1)
        frame = pl.DataFrame({"t_ms": np.arange(1100) * 4.0, "Quer": walk[0], "Hoch": walk[1]})
        frame.write_csv(folder / f"{name}.csv")
    return folder


def test_it_is_used_by_python_and_by_commands_and_options_override_it(
    study: Path, tmp_path: Path, run: RunCommand
) -> None:
    pattern = r"participant_pattern: (?P<participant>\w+)_(?P<task>\w+)\.csv"
    (study / "study.yaml").write_text(f"{OURS}\n{pattern}\n")
    for paths in (study, study / "anna_dots.csv", str(study / "*_dots.csv")):
        recordings = gd.read(paths)
        assert recordings.study == study / "study.yaml"
        first = next(iter(recordings))
        assert first.screen is not None
        assert (first.participant[-4:], first.task) == ("anna", "dots")
        assert first.screen.in_words() == "1280x720 px, 40x22.5 cm at 45 cm"
    assert recordings.reading.cleaning.eye == "left"
    assert gd.read(study, eye="right").reading.eye == "right"  # though that is the default
    windows = gd.prepare(gd.read(study), gd.PrepareConfig(seconds=2))
    assert windows.provenance["config"]["cleaning"]["eye"] == "left"
    code, said, error = run(
        "prepare", study, "-o", tmp_path / "w.safetensors", "--seconds", 2, "--distance-cm", 60
    )
    assert code == 0, error
    assert f"by {study / 'study.yaml'}: screen 1280x720" in said
    assert "distance_cm 60" in said
    written = gd.Windows.load(tmp_path / "w.safetensors")
    assert (written.tasks, written.screen.distance_cm) == (("dots",), 60)
    assert written.provenance["config"]["cleaning"]["eye"] == "left"


def test_inspect_writes_it(study: Path, run: RunCommand) -> None:
    words = ("inspect", study, "--screen", "1280x720", "--columns", "x=Quer,y=Hoch", "--seconds", 2)
    code, said, error = run(*words, "--write-study")
    assert code == 0, error
    assert f"wrote {study / 'study.yaml'}" in said
    lines = (study / "study.yaml").read_text().splitlines()
    assert "screen: 1280x720" in lines
    assert "# eye: right" in lines  # what may be stated, with its default
    assert gd.read(study).reading.columns == {"x": "Quer", "y": "Hoch"}
    assert run("inspect", study, "--seconds", 2)[0] == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eye: third", "study.yaml: eye in study.yaml must be right, left or best"),
        ("eyes: left", "did you mean 'eye'"),
        ("screen: [1, 2", "this is no YAML"),
        ("- a\n- b", "this needs lines as screen: 1280x720"),
        ("source_rate_hz: fast", "must be a positive number"),
        ("participant_pattern: (", "is no regular expression"),
    ],
)
def test_what_is_wrong_in_it_is_one_line(
    study: Path, run: RunCommand, text: str, problem: str
) -> None:
    (study / "study.yaml").write_text(text)
    code, _, error = run("inspect", study)
    assert code == 2
    assert problem in error
    assert error.count("\n") == 1


def test_folders_that_state_different_things_are_read_one_by_one(study: Path) -> None:
    other = study.parent / "other"
    other.mkdir()
    (other / "dora.csv").write_bytes((study / "anna_dots.csv").read_bytes())
    (study / "study.yaml").write_text(OURS)
    (other / "study.yaml").write_text(OURS.replace("left", "best"))
    with pytest.raises(gd.GazeError, match="states something else; read the folders one by one"):
        gd.read([study, other])
    (other / "study.yaml").write_text(OURS)
    assert len(gd.read([study, other]).sources) == 4
