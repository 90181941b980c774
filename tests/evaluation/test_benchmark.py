"""The benchmark: known defects are found, versions stay as they are, and rows can be submitted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import gazediffusion as gd
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation import benchmark
from gazediffusion.evaluation import real_gaze as benchmark_definition
from gazediffusion.evaluation.benchmark import (
    BenchmarkRow,
    row_of,
    training_row,
)
from gazediffusion.evaluation.packaging import define
from gazediffusion.evaluation.quantities import GroupMeans, Measured
from gazediffusion.evaluation.real_gaze import (
    Definition,
    benchmark_tasks,
    find_definition,
    read_definition,
)
from gazediffusion.evaluation.sets import GazeSet
from gazediffusion.storage import read_json
from tests.conftest import SCREEN, RunCommand
from tests.gaze import as_synthetic, simulated_windows, with_noise
from tests.test_documents import ROOT

N = 140
TASK = "free_viewing"
# Version 1 was published: these never change.
VERSION_1 = {
    "dots": "93affee6d52be3cd6be61c023504f9e5d0050256843c943365e29a5cb6e8d719",
    "movies": "1a65452b2290b6222e0a6c9e5208567c702fe96552b3a2634b79833ca8d1064b",
    "reading": "168f2872a779691629b87ec5b37a31c3fe0b56e5d0ca33b4e33e9ae51aa470b1",
}


@pytest.fixture(scope="module")
def windows() -> Windows:
    """Twenty simulated participants, six held out."""
    return simulated_windows(20, 0.8)


@pytest.fixture(scope="module")
def definition(windows: Windows, tmp_path_factory: pytest.TempPathFactory) -> Definition:
    path = tmp_path_factory.mktemp("benchmarks") / "v1" / f"{TASK}.json"
    path.parent.mkdir()
    content = define(windows, TASK, "nobody", n_windows=N, n_balls=8, n_draws=3)
    path.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
    return read_definition(path)


@pytest.fixture(scope="module")
def others(windows: Windows) -> Windows:
    """Windows of other participants, as synthetic ones."""
    made = simulated_windows(6, 0.8, seed=3)
    return as_synthetic(made.select(np.linspace(0, len(made) - 1, N).astype(int)))


@pytest.fixture(scope="module")
def row(definition: Definition, others: Windows) -> BenchmarkRow:
    return row_of(definition, others, "others")


def test_real_windows_are_near_the_floor_and_defects_are_found(
    definition: Definition, others: Windows, row: BenchmarkRow
) -> None:
    real = training_row(definition)
    noisy = row_of(definition, with_noise(others, 0.003), "noisy")
    collapsed = row_of(definition, others.select(np.full(N, 3)), "collapsed")
    assert real.ratio.value is not None
    assert row.ratio.value is not None
    assert real.ratio.value == pytest.approx(1, abs=0.3)
    assert row.ratio.value < 2
    assert (noisy.ratio.value or 0) > 3 * row.ratio.value
    assert (noisy.n_above.value or 0) > 10
    # One window again and again may be a good one, and covers nothing.
    assert (collapsed.coverage.value or 0) < 0.4 < 0.7 < (row.coverage.value or 0)
    low, high = row.ratio.interval or (0, 0)
    assert (low or 0) < row.ratio.value < (high or 0)


def test_a_distance_is_that_of_scipy(
    definition: Definition, others: Windows, row: BenchmarkRow
) -> None:
    key = "features.mean_speed"
    about = definition.distances[key]
    values = GazeSet.of("others", others, True).measure().quantities[key].values
    edges = definition.real.edges[key]
    counts, _ = np.histogram(values.clip(edges[0], edges[-1]), edges)
    expected = jensenshannon(about["real"], counts) ** 2
    assert row.distances[key]["value"] == pytest.approx(expected, rel=1e-6)
    assert row.distances[key]["ratio"] == pytest.approx(expected / about["floor"], rel=1e-6)


def test_a_definition_holds_no_row_and_names_no_participant(
    windows: Windows, definition: Definition
) -> None:
    text = json.dumps(definition.content)
    assert not [name for name in windows.participants if f'"{name}"' in text]
    balls = definition.balls
    # Eight balls of several participants in the place of hundreds of windows.
    assert len(balls.centre) <= 8
    assert 0.4 < balls.share.sum() <= 1.0
    assert {"distances", "balls", "counts", "training_row", "real"} < set(definition.content)


def test_distances_that_are_added_later_change_no_row(
    definition: Definition, others: Windows, row: BenchmarkRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = GazeSet.measure

    def with_more(self: GazeSet, *given: Any) -> Measured:
        found = plain(self, *given)
        first = found.quantities["features.mean_speed"]
        more = {"features.later": replace(first, name="later", values=first.values * 9)}
        curve = GroupMeans.of(np.ones((len(self.gaze), 1)), self.group)
        return replace(
            found, quantities=more | found.quantities, curves={"later": curve} | found.curves
        )

    monkeypatch.setattr(GazeSet, "measure", with_more)
    assert row_of(definition, others, "others").to_json() == row.to_json()


def test_exactly_the_windows_of_the_definition_are_compared(
    definition: Definition, others: Windows, row: BenchmarkRow
) -> None:
    with pytest.raises(GazeError, match=r"has 139 windows .* exactly 140"):
        row_of(definition, others.select(np.arange(N - 1)), "few")
    more = others.select(np.arange(2 * N) % N)
    one, other = (row_of(definition, more, name) for name in ("a", "b"))
    assert (one.n_windows, one.n_given) == (N, 2 * N)
    assert one.to_json() | {"name": "b"} == other.to_json()
    array = others.cut()
    for changed, message in (
        (Windows.from_array(array, 125, SCREEN), "cannot be invented"),
        (Windows.from_array(array[..., :400], 250, SCREEN), "windows of 1.6 s"),
        (Windows.from_array(array, 250, SCREEN, tasks="reading"), "no windows of the task"),
    ):
        with pytest.raises(GazeError, match=message):
            row_of(definition, changed, "changed")


def test_a_row_is_written_read_and_put_into_a_table(
    definition: Definition, row: BenchmarkRow, tmp_path: Path
) -> None:
    row.save(tmp_path / "row.json")
    again = BenchmarkRow.load(tmp_path / "row.json")
    assert again.to_json() == row.to_json()
    assert again.definition_sha256 == definition.sha256
    assert again.figures() == row.figures()
    with pytest.raises(GazeError, match="no row of the benchmark"):
        BenchmarkRow.load(ROOT / "docs" / "results" / "results.json")


def test_the_command_writes_the_row_and_refuses_in_one_line(
    definition: Definition, windows: Windows, others: Windows, tmp_path: Path, run: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path / "v1"
    folder.mkdir()
    (folder / f"{TASK}.json").write_text(json.dumps(definition.content), encoding="utf-8")
    monkeypatch.setattr(benchmark_definition, "definitions_folder", lambda version=1: folder)
    monkeypatch.chdir(tmp_path)
    # Gaze that leaves the screen: the same row of a file as of windows.
    wide = Windows.from_array(others.cut() * 4, 250, SCREEN)
    wide.save("gaze.safetensors")
    words = ("benchmark", "gaze.safetensors", "--task", TASK, "--name", "my own", "--link", "here")
    code, said, errors = run(*words)
    assert (code, "ratio to the floor" in said) == (0, True), errors
    assert "the task of the windows is not known" in errors
    written = read_json(tmp_path / f"my-own-{TASK}.json")
    expected = gd.benchmark(wide, TASK).to_json()
    assert written["ratio"] == expected["ratio"]
    assert written["distances"] == expected["distances"]
    assert (written["name"], written["link"]) == ("my own", "here")
    for wrong, message in (
        (words, "already"),
        (("benchmark", "gaze.safetensors", "--task", "free_viewin"), "did you mean"),
        ((*words, "--version", "7", "--overwrite"), "known are: 1"),
    ):
        code, said, errors = run(*wrong)
        assert (code, said, len(errors.strip().splitlines())) == (2, "", 1), errors
        assert message in errors


def test_with_recordings_networks_are_trained_for_the_set(
    definition: Definition, windows: Windows, others: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "find_definition", lambda task, version: definition)
    config = gd.DeepConfig(seconds=(0.5,), n_seeds=1, n_steps=2, batch_size=8, widths=(4,))
    row = gd.benchmark(with_noise(others, 0.01), TASK, real=windows, deep=config)
    assert list(row.deep_auc) == list(row.deep_floor) == ["0.5 s", "0.5 s below 30 Hz"]
    assert "deep test, 0.5 s" in row.figures()
    plain = row.to_json()
    assert plain.pop("format") == "gazediffusion-benchmark"
    assert BenchmarkRow.of(plain).to_json()["deep_auc"] == plain["deep_auc"]
    assert row.deep_windows_sha256 == row.windows_sha256
    assert (row.deep_settings["n_steps"], row.deep_settings["seconds"]) == (2, (0.5,))
    with pytest.raises(GazeError, match="needs recordings"):
        gd.benchmark(others, TASK, deep=config)


def test_version_1_is_as_it_was_published() -> None:
    assert {task: find_definition(task).sha256 for task in benchmark_tasks()} == VERSION_1
    keys = {tuple(find_definition(task).distances) for task in VERSION_1}
    assert [len(one) for one in keys] == [31]
    # A set of known numbers: what measures it has not changed either.
    rng = np.random.default_rng(0)
    saccades = np.where(rng.random((300, 2, 2000)) < 0.004, rng.normal(0, 0.2, (300, 2, 2000)), 0)
    gaze = (saccades + rng.normal(0, 0.0015, saccades.shape)).cumsum(axis=-1).clip(-1, 1)
    made = Windows.from_array(gaze.astype(np.float32), 250, find_definition("reading").real.screen)
    row = gd.benchmark(made, "reading")
    found = [row.ratio.value, row.worst_ratio.value, row.precision.value, row.coverage.value]
    assert found == pytest.approx([8.98688, 95.4245, 0.01, 0.00687279], rel=1e-4)


def test_the_published_rows_are_of_the_published_definitions() -> None:
    rows = [BenchmarkRow.load(path) for path in (ROOT / "docs" / "benchmark").glob("*/*.json")]
    assert len(rows) > 15
    for row in rows:
        assert row.definition_sha256 == VERSION_1[row.task]
        assert row.n_windows == find_definition(row.task).n_windows
