"""The whole way by the command itself, on a faithful tree of the paper's 10-column files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gazediffusion.cli import app
from gazediffusion.data.simulation import SimulationConfig, write_simulation
from gazediffusion.errors import GazeError
from gazediffusion.reproduction.page import render
from gazediffusion.reproduction.plan import PAPER, TINY, Plan
from gazediffusion.reproduction.tables import TABLES

pytestmark = pytest.mark.slow  # the whole way takes most of a minute


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, words), "--device", "cpu"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings at 1,000 Hz as the paper's dataset has them, one file for each trial."""
    folder = tmp_path_factory.mktemp("tree") / "waldo"
    write_simulation(SimulationConfig(n_participants=7, minutes=1.2, seed=1), folder, "columns")
    return folder


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "reproduction"
    words = ["--data", tree, "--screen", "1920x1080", "--screen-cm", "53.1x29.9"]
    result = run(*words, "--distance-cm", "70", "--tiny", "-o", folder)
    assert result.exit_code == 0, result.output
    return folder


def results_of(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "results" / "results.json").read_text())
    return values


def parts(folder: Path) -> dict[Path, int]:
    kinds = ("windows", "runs", "sets", "features", "histories", "levels", "evaluations")
    return {
        path: path.stat().st_mtime_ns
        for kind in kinds
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file()
    }


def test_every_run_set_table_and_figure_is_there(made: Path) -> None:
    assert {path.name for path in (made / "runs").iterdir()} == set(TINY.runs)
    assert {path.stem for path in (made / "sets").iterdir()} == set(TINY.sets)
    results = results_of(made)
    assert list(results["tables"]) == list(TABLES)
    assert len(results["figures"]) == 10
    for name in results["figures"]:
        assert (made / "results" / "figures" / f"{name}.png").stat().st_size > 10_000
    assert results["about"]["tiny"] is True


def test_the_page_is_what_the_results_say(made: Path) -> None:
    page = (made / "results" / "README.md").read_text()
    assert page == render(results_of(made))
    assert "gazediffusion reproduce --data" in page


def test_what_is_there_is_not_made_again(made: Path) -> None:
    before, page = parts(made), (made / "results" / "README.md").read_bytes()
    assert run("--tiny", "-o", made).exit_code == 0
    assert parts(made) == before
    assert (made / "results" / "README.md").read_bytes() == page


def test_a_lost_set_is_made_again_the_same_and_nothing_else(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    lost = folder / "sets" / f"{TINY.with_eta(0.5)}.safetensors"
    content = lost.read_bytes()
    lost.unlink()
    before = parts(folder)
    assert run("--tiny", "-o", folder).exit_code == 0
    after = parts(folder)
    assert lost.read_bytes() == content
    assert {path for path in after if after[path] != before.get(path)} == {lost}


def test_sets_without_their_runs_are_enough(made: Path, tmp_path: Path) -> None:
    """What a GPU machine made is carried home without its weights."""
    folder = tmp_path / "copy"
    shutil.copytree(made, folder, ignore=shutil.ignore_patterns("runs", "evaluations", "results"))
    assert run("--tiny", "-o", folder, "--only", "features", "--only", "levels").exit_code == 0
    assert not (folder / "runs").exists()
    assert list(results_of(folder)["tables"]) == ["features", "levels"]
    of_all = results_of(made)["tables"]
    assert results_of(folder)["tables"]["features"] == of_all["features"]


def test_stages_stop_where_they_say(tree: Path, tmp_path: Path) -> None:
    words = ["--data", tree, "--screen", "1920x1080", "--tiny", "-o", tmp_path / "r"]
    assert run(*words, "--until", "windows").exit_code == 0
    assert {path.name for path in (tmp_path / "r").iterdir()} == {
        "plan.json",
        "data.json",
        "windows",
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "feature"], "did you mean 'features'"),
        (["--until", "tomorrow"], "--until must be"),
    ],
)
def test_bad_words_are_refused(tmp_path: Path, words: list[str], says: str) -> None:
    result = run("--tiny", "-o", tmp_path / "r", *words)
    assert isinstance(result.exception, GazeError)
    assert says in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_no_recordings_is_said(tmp_path: Path) -> None:
    result = run("-o", tmp_path / "r")
    assert isinstance(result.exception, GazeError)
    assert "--data" in str(result.exception)


def test_another_plan_in_the_folder_is_refused(made: Path) -> None:
    result = run("-o", made)
    assert isinstance(result.exception, GazeError)
    assert "another plan" in str(result.exception)


@pytest.mark.parametrize("plan", [PAPER, TINY], ids=["paper", "tiny"])
def test_a_plan_names_nothing_that_it_does_not_make(plan: Plan) -> None:
    for names in plan.evaluations.values():
        assert set(names) <= set(plan.sets)
    for one in plan.sets.values():
        assert (one.run is None) != (one.baseline is None)
        assert one.run is None or one.run in plan.runs
    assert {run.seed for run in plan.runs.values()} >= {42, 123, 2024, 0, 1, 2}


def test_the_papers_plan_is_the_papers_protocol() -> None:
    assert [PAPER.runs[name].recipe.epochs for name in PAPER.runs] == [500] * 7
    assert PAPER.runs[PAPER.x0].recipe.objective == "x0"
    assert PAPER.n_windows is None


def test_a_folder_of_an_older_version_is_gone_on_with(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder)
    plan = json.loads((folder / "plan.json").read_text())
    del plan["position"]["knee_share"]
    (folder / "plan.json").write_text(json.dumps(plan))
    assert run("--tiny", "-o", folder, "--only", "features").exit_code == 0
    plan["position"]["epochs"] += 1
    (folder / "plan.json").write_text(json.dumps(plan))
    assert "another plan" in str(run("--tiny", "-o", folder).exception)


def test_so_far_writes_what_the_runs_at_hand_allow(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(made, folder, ignore=shutil.ignore_patterns("results", "evaluations"))
    for kind in ("runs", "sets", "histories", "levels"):
        for path in (folder / kind).iterdir():
            name = path.name.partition(".")[0] if kind != "runs" else path.name
            if name.startswith(("position-123", "position-2024", "x0")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert run("--tiny", "-o", folder, "--so-far").exit_code == 0
    results = results_of(folder)
    assert results["about"]["seeds"]["position"] == [42]
    assert results["about"]["not_yet_run"] == ["position-123", "position-2024", "x0-123"]
    assert {"features", "fgd", "velocity", "levels"} <= set(results["tables"])
    assert not {"sampling", "objective", "weights", "training"} & set(results["tables"])
    page = (folder / "results" / "README.md").read_text()
    assert "Not yet run: position-123, position-2024, x0-123" in page
    assert not (folder / "runs" / "position-123").exists()
    # When the others are there, nothing of the smaller reproduction is taken for theirs.
    for kind in ("runs", "sets", "histories", "levels"):
        shutil.copytree(made / kind, folder / kind, dirs_exist_ok=True)
    assert run("--tiny", "-o", folder).exit_code == 0
    assert results_of(folder)["tables"] == results_of(made)["tables"]
