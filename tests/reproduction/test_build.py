"""The whole reproduction by the command itself, on a tree of the paper's 10-column files."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from typer.testing import CliRunner, Result

import gazediffusion as gd
from gazediffusion.cli import app
from gazediffusion.cli import evaluation as command
from gazediffusion.data.simulation import write_simulation
from gazediffusion.errors import GazeError
from gazediffusion.plotting import style
from gazediffusion.reproduction import build
from gazediffusion.reproduction.figures import FIGURES
from gazediffusion.reproduction.plan import BASELINES, PAPER, TINY, Plan
from gazediffusion.reproduction.tables import TABLES
from gazediffusion.settings import SimulationConfig

Copied = Callable[..., Path]
pytestmark = pytest.mark.slow  # together most of a minute


# The tiny plan with windows of half the length and fewer steps, which train and sample faster.
SMALL = replace(
    TINY,
    position=replace(TINY.position, sampling_steps=10),
    velocity=replace(TINY.velocity, sampling_steps=10),
    seconds=2.048,
)


@pytest.fixture(scope="module", autouse=True)
def small_plan() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "TINY", SMALL)
        yield


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, words), "--device", "cpu"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings at 1,000 Hz as the paper's dataset has them, one file for each trial."""
    folder = tmp_path_factory.mktemp("tree") / "waldo"
    write_simulation(SimulationConfig(n_participants=7, minutes=0.4, seed=1), folder, "columns")
    return folder


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "reproduction"
    words = ["--data", tree, "--screen", "1920x1080", "--screen-cm", "53.1x29.9"]
    result = run(*words, "--distance-cm", "70", "--tiny", "-o", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Copied:
    """A copy of the made folder without some of its parts."""

    def copy(*without: str) -> Path:
        ignored = shutil.ignore_patterns(*without)
        return Path(shutil.copytree(made, tmp_path / "copy", ignore=ignored))

    return copy


@pytest.fixture
def unsaved_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are built but not saved, which takes longest; `made` has all of them as files."""
    monkeypatch.setattr(style, "save_figure", lambda figure, path: plt.close(figure))


def results_of(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "results" / "results.json").read_text())
    return values


def parts(folder: Path) -> dict[Path, int]:
    kinds = ("windows", "runs", "sets", "features", "histories", "evaluations")
    return {
        path: path.stat().st_mtime_ns
        for kind in kinds
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file()
    }


def test_every_run_set_table_and_figure_is_there(made: Path) -> None:
    assert {path.name for path in (made / "runs").iterdir()} == set(SMALL.runs)
    assert {path.stem for path in (made / "sets").iterdir()} == set(SMALL.sets)
    results = results_of(made)
    assert list(results["tables"]) == list(TABLES)
    assert results["figures"] == list(FIGURES)
    assert results["about"]["tiny"] is True


@pytest.mark.usefixtures("unsaved_figures")
def test_what_is_there_is_not_built_again(made: Path) -> None:
    before, page = parts(made), (made / "results" / "README.md").read_bytes()
    result = run("--tiny", "-o", made)
    assert result.exit_code == 0
    assert f"{len(SMALL.runs)} of {len(SMALL.runs)} runs trained" in result.output
    assert parts(made) == before
    assert (made / "results" / "README.md").read_bytes() == page


@pytest.mark.usefixtures("unsaved_figures")
def test_a_lost_set_is_built_again_the_same_and_nothing_else(copied: Copied) -> None:
    folder = copied()
    lost = folder / "sets" / f"{SMALL.with_steps(25)}.safetensors"
    content = lost.read_bytes()
    lost.unlink()
    before = parts(folder)
    assert run("--tiny", "-o", folder, "--table", "sampling").exit_code == 0
    after = parts(folder)
    assert lost.read_bytes() == content
    assert {path for path in after if after[path] != before.get(path)} == {lost}


def test_one_run_is_trained_alone_with_its_sets(made: Path, copied: Copied) -> None:
    folder = copied("runs", "sets", "histories", "evaluations", "results")
    name = SMALL.velocity_sets[-1]
    assert run("--tiny", "-o", folder, "--run", name).exit_code == 0
    own = {one.name for one in SMALL.sets.values() if one.run == name}
    assert {path.stem for path in (folder / "sets").iterdir()} == own
    assert [path.name for path in (folder / "runs").iterdir()] == [name]
    for part in ("sets", "histories"):
        for path in (folder / part).iterdir():
            if path.suffix == ".safetensors":
                assert path.read_bytes() == (made / part / path.name).read_bytes()
    assert not (folder / "evaluations").exists()


@pytest.mark.usefixtures("unsaved_figures")
def test_sets_without_their_runs_are_enough(made: Path, copied: Copied) -> None:
    """The sets of a GPU machine are evaluated on a laptop without the weights."""
    folder = copied("runs", "evaluations", "results")
    assert run("--tiny", "-o", folder, "--table", "features", "--table", "velocity").exit_code == 0
    assert not (folder / "runs").exists()
    results = results_of(folder)
    assert list(results["tables"]) == ["features", "velocity"]
    kept = [row for row in results_of(made)["rows"] if row["table"] in results["tables"]]
    assert results["rows"] == kept


def test_the_command_builds_what_the_function_builds(tree: Path, tmp_path: Path) -> None:
    words = ["--data", tree, "--screen", "1920x1080", "--tiny", "--until", "windows"]
    assert run(*words, "-o", tmp_path / "command").exit_code == 0
    recordings = gd.read(tree, screen=gd.Screen(1920, 1080))
    folder = tmp_path / "function"
    assert gd.reproduce(folder, recordings, tiny=True, until="windows") is None
    for name in ("plan.json", "windows/position.safetensors", "windows/velocity.safetensors"):
        assert (folder / name).read_bytes() == (tmp_path / "command" / name).read_bytes()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--table", "feature"], "did you mean 'features'"),
        (["--run", "velocity-7"], "no run 'velocity-7'"),
        (["--until", "tomorrow"], "until` must be"),
    ],
)
def test_unknown_tables_and_stages_are_refused(tmp_path: Path, words: list[str], says: str) -> None:
    result = run("--tiny", "-o", tmp_path / "r", *words)
    assert isinstance(result.exception, GazeError)
    assert says in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_missing_recordings_are_named(tmp_path: Path) -> None:
    result = run("-o", tmp_path / "r")
    assert isinstance(result.exception, GazeError)
    assert "give `recordings`" in str(result.exception)
    assert not (tmp_path / "r").exists()


def test_another_plan_in_the_folder_is_refused(made: Path) -> None:
    result = run("-o", made)
    assert isinstance(result.exception, GazeError)
    assert "another plan" in str(result.exception)
    assert "position.network.widths: (8, 8, 8) there, (128, 256, 512) here" in str(result.exception)


@pytest.mark.parametrize("plan", [PAPER, TINY], ids=["paper", "tiny"])
def test_a_plan_names_nothing_that_it_does_not_build(plan: Plan) -> None:
    for names in plan.evaluations.values():
        assert set(names) <= set(plan.sets)
    for one in plan.sets.values():
        assert one.run in plan.runs if one.run else one.name in BASELINES
    assert {run.seed for run in plan.runs.values()} >= {42, 123, 2024, 0, 1, 2}


def test_the_papers_plan_is_the_papers_protocol() -> None:
    papers = [run for name, run in PAPER.runs.items() if not name.startswith("joint")]
    assert [run.recipe.epochs for run in papers] == [500] * 7
    assert PAPER.reference == "position-42"
    assert PAPER.runs[PAPER.x0].recipe.objective == "x0"
    assert PAPER.n_windows is None


def test_a_plan_survives_json() -> None:
    for plan in (PAPER, TINY):
        assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.usefixtures("unsaved_figures")
def test_so_far_writes_what_the_runs_at_hand_allow(made: Path, copied: Copied) -> None:
    folder = copied("results", "evaluations")
    for kind in ("runs", "sets", "histories"):
        for path in (folder / kind).iterdir():
            name = path.name.partition(".")[0] if kind != "runs" else path.name
            if name.startswith(("position-123", "position-2024", "x0")):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert run("--tiny", "-o", folder, "--so-far").exit_code == 0
    results = results_of(folder)
    assert results["about"]["seeds"]["position"] == [42]
    assert results["about"]["not_yet_run"] == ["position-123", "position-2024", "x0-42"]
    assert {"features", "fgd", "velocity"} <= set(results["tables"])
    assert not {"sampling", "objective", "training"} & set(results["tables"])
    page = (folder / "results" / "README.md").read_text()
    assert "Not yet run: position-123, position-2024, x0-42" in page
    assert not (folder / "runs" / "position-123").exists()
    # With the others there, no artefact of the smaller reproduction is taken for theirs.
    for kind in ("runs", "sets", "histories"):
        shutil.copytree(made / kind, folder / kind, dirs_exist_ok=True)
    assert run("--tiny", "-o", folder, "--table", "features").exit_code == 0
    kept = [row for row in results_of(made)["rows"] if row["table"] == "features"]
    assert results_of(folder)["rows"] == kept


def test_a_stop_is_one_line_that_says_how_to_resume(
    copied: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied()
    (folder / "sets" / f"{SMALL.raw}.safetensors").unlink()
    always = contextlib.nullcontext(lambda: True)
    monkeypatch.setattr(command, "stop_on_interrupt", lambda: always)
    result = run("--tiny", "-o", folder, "--table", "sampling")
    assert result.exit_code == 130
    said = " ".join(result.stdout.split())
    assert said.startswith("stopped; all finished parts are saved in")
    assert said.endswith("the same command resumes")
    assert not (folder / "sets" / f"{SMALL.raw}.safetensors").exists()
