"""Sets in parts: the numbers of all windows are those of one pass, whatever the parts."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gazediffusion as gd
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.loading import evaluate_files
from gazediffusion.evaluation.metrics import histogram_counts, js_from_counts
from gazediffusion.evaluation.set_loading import load_set
from gazediffusion.evaluation.summary import find_summary
from tests.conftest import SCREEN, RunCommand
from tests.gaze import as_synthetic, simulated_windows
from tests.parts import walks, write_parts

N, N_SAMPLE = 80, 30
CONFIG = EvaluationConfig(n_bootstrap=20, with_tests=False)
QUICK = EvaluationConfig(quick=True)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / "w.safetensors"
    simulated_windows().save(path)
    return path


@pytest.fixture(scope="module")
def ours() -> Windows:
    """Windows of which the last stand still: a defect that a sample may miss."""
    gaze = as_synthetic(simulated_windows().train.subsample(N)).cut()
    gaze[-4:] = 0.0
    return Windows.from_array(gaze, 250.0, SCREEN)


def rows(results: dict[str, Any]) -> dict[str, Any]:
    """All but what says how a set was read."""
    left_out = {"whole", "about", "sets"}
    return {key: value for key, value in results.items() if key not in left_out}


def assert_close(a: Any, b: Any, where: str = "") -> None:
    """The same values to rounding, at any depth."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_close(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for k, pair in enumerate(zip(a, b, strict=True)):
            assert_close(*pair, f"{where}[{k}]")
    elif isinstance(a, float) and isinstance(b, float):
        assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), (where, a, b)
    else:
        assert a == b, where


def test_a_set_in_parts_has_the_numbers_of_one_pass(
    tmp_path: Path, real: Path, ours: Windows
) -> None:
    folder = write_parts(tmp_path / "ours", ours, 7)
    windows = simulated_windows()
    at_once = load_set(folder, "synthetic", windows.held_out)
    expected = evaluate(windows.held_out, {"ours": at_once}, windows.train, CONFIG).results
    found = evaluate_files({"ours": folder}, real, config=CONFIG).results
    assert_close(rows(json.loads(json.dumps(found))), rows(expected))
    whole = found["whole"]["synthetic"]["ours"]
    assert (whole["n_windows"], whole["n_block"], whole["n_blocks"]) == (N, N, 1)
    assert whole["sample"] == {"n": N, "seed": 0}
    for row, one in zip(expected["quantities"], whole["quantities"], strict=True):
        values = {kind: row["distances"][kind]["synthetic"]["ours"] for kind in ("js", "ks", "w1")}
        assert one["mean"] == pytest.approx(row["mean"]["ours"], rel=1e-9, abs=1e-12)
        assert one["js"] == pytest.approx(values["js"]["value"], rel=1e-9), one["name"]
        assert one["block"]["ratio"] == pytest.approx(values["js"]["ratio"], rel=1e-9)
        assert -1e-9 <= values["ks"]["value"] - one["ks"] <= one["ks_error"] + 1e-9
        assert abs(values["w1"]["value"] - one["w1"]) <= one["w1_error"] + 1e-9
        assert one["ks_error"] < 0.005
    for row, one in zip(expected["scalars"], whole["scalars"], strict=True):
        assert one["l1"] == pytest.approx(row["synthetic"]["ours"]["value"], rel=1e-9)
    headline = expected["headline"]["ours"]
    for key, one in whole["headline"].items():
        if isinstance(one, dict):
            assert one["value"] == pytest.approx(headline[key]["value"], rel=1e-9), key
    assert "n_above" in whole["headline"]
    assert "saccade_count_percent" in whole["headline"]


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory, real: Path, ours: Windows) -> dict[int, Any]:
    """Results of the same windows in parts of two sizes, by size."""
    folder = tmp_path_factory.mktemp("sampled")
    return {
        size: evaluate_files(
            {"ours": write_parts(folder / str(size), ours, size)},
            real, config=QUICK, n_sample=N_SAMPLE,
        )
        for size in (9, N)
    }  # fmt: skip


def test_the_size_of_the_parts_changes_no_number(sampled: dict[int, Any]) -> None:
    small, large = (one.results for one in sampled.values())
    assert_close(rows(small), rows(large))
    assert_close(small["whole"], large["whole"])


def test_all_windows_are_counted_and_a_sample_is_tested(
    sampled: dict[int, Any], ours: Windows
) -> None:
    evaluation = sampled[9]
    results = evaluation.results
    whole = results["whole"]["synthetic"]["ours"]
    assert results["about"]["n_common"] == N_SAMPLE
    assert (whole["n_windows"], whole["n_blocks"]) == (N, N // N_SAMPLE)
    (row,) = [one for one in results["quantities"] if one["name"] == "x_range"]
    (one,) = [one for one in whole["quantities"] if one["name"] == "x_range"]
    values = np.ptp(ours.cut()[:, 0].astype(float), axis=1)
    assert one["n_values"] == N
    assert one["mean"] == pytest.approx(values.mean(), rel=1e-5)
    assert one["deviation"] == pytest.approx(values.std(), rel=1e-5)
    edges = np.array(row["histogram"]["edges"])
    real = np.ptp(simulated_windows().held_out.dequantized(0).cut()[:, 0], axis=1)
    counts = histogram_counts(real.astype(float), edges)
    blocks = [histogram_counts(some, edges) for some in np.split(values, [30, 60])[:2]]
    js = [float(js_from_counts(counts, block)) for block in blocks]
    assert one["block"]["mean"] == pytest.approx(np.mean(js), rel=0.02)  # draws within the grid
    assert one["block"]["deviation"] == pytest.approx(np.std(js), abs=0.01)
    assert one["block"]["ratio"] == one["block"]["mean"] / row["distances"]["js"]["floor"]
    (note,) = [one for one in results["about"]["notes"] if "in parts" in one]
    assert "are of 30 of its 80 windows, drawn with seed 0" in note
    report = evaluation.to_markdown()
    assert "## All windows" in report
    assert "ours, all 80 windows: median ratio" in report
    assert "sample of 30 windows, seed 0" in evaluation.headline()
    assert note in report


def test_windows_of_several_tasks_are_counted_with_the_summary_of_their_own(
    tmp_path: Path,
) -> None:
    tasks = ["movies", "reading", "movies"] * 30
    windows = Windows.from_array(walks(90, 2000), 250.0, SCREEN, tasks=tasks)
    folder = write_parts(tmp_path / "ours", windows, 16)
    at_once = load_set(folder, "synthetic", find_summary("gazecom"))
    expected = evaluate(None, {"ours": at_once}, config=QUICK)
    found = evaluate_files({"ours": folder}, config=QUICK)
    assert found.parts.keys() == expected.parts.keys() == {"movies", "reading"}
    for part, n in (("movies", 60), ("reading", 30)):
        assert_close(rows(found.parts[part]), rows(expected.parts[part]))
        whole = found.parts[part]["whole"]["synthetic"]["ours"]
        assert whole["n_windows"] == n
        for row, one in zip(expected.parts[part]["quantities"], whole["quantities"], strict=True):
            for kind in ("js", "ks", "w1"):
                value = row["distances"][kind]["synthetic"]["ours"]["value"]
                assert one[kind] == pytest.approx(value, rel=1e-9), one["name"]
        for row, one in zip(expected.parts[part]["scalars"], whole["scalars"], strict=True):
            assert one["l1"] == pytest.approx(row["synthetic"]["ours"]["value"], rel=1e-9)


def test_settings_of_parts_are_refused_where_no_set_is_in_parts(
    tmp_path: Path, ours: Windows, run: RunCommand
) -> None:
    ours.save(tmp_path / "one.parquet")
    given = ["evaluate", "--synthetic", tmp_path / "one.parquet", "-o", tmp_path / "report"]
    for words, name in (
        (["--sample", 100], "--sample"),
        (["--workers", 2], "--workers"),
        (["--engine", "ray"], "--engine"),
    ):
        code, _, errors = run(*given, *words)
        assert code == 2
        assert f"{name} is for sets in parts, and no set is; leave it out" in errors
    code, _, errors = run(*given, "--address", "auto")
    assert code == 2
    assert "--address needs --engine ray" in errors
    assert not (tmp_path / "report").exists()
    parts = write_parts(tmp_path / "parts", ours, 50)
    with pytest.raises(GazeError, match="`n_sample` must be from 25 to 10000, not 5"):
        gd.evaluate_files([parts], n_sample=5)


PEAKS = """
import re, sys
from pathlib import Path
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.loading import evaluate_files
from gazediffusion.evaluation.set_loading import load_set
from gazediffusion.evaluation.summary import find_summary

quick = EvaluationConfig(quick=True)
def peak():
    # Not ru_maxrss, which begins at that of the parent.
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
for folder in sys.argv[1:]:
    evaluate_files({"ours": folder}, config=quick, summary="gazecom", n_sample=25)
    peak()
summary = find_summary("gazecom")
windows = load_set(folder, "synthetic", summary)
evaluate("gazecom", {"ours": windows}, config=quick)
peak()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_twenty_times_the_windows_take_the_same_memory(tmp_path: Path) -> None:
    windows = Windows.from_array(walks(32, 2000), 250.0, SCREEN)
    few = write_parts(tmp_path / "few", windows, 32)
    many = tmp_path / "many"
    many.mkdir()
    shutil.copy(few / "card.json", many)
    manifest = json.loads((few / "manifest.json").read_text())
    names = [f"part-{number:06d}.parquet" for number in range(20)]
    for name in names:
        os.link(few / "part-000000.parquet", many / name)
    parts = [{"file": name, "first": 32 * k, "n": 32} for k, name in enumerate(names)]
    (many / "manifest.json").write_text(json.dumps({**manifest, "parts": parts}))
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, few, many], capture_output=True, text=True, check=True
    )
    of_few, of_many, at_once = map(float, done.stdout.split())  # MiB
    assert of_many - of_few < 30, (of_few, of_many, at_once)
    assert at_once - of_many > 60, (of_few, of_many, at_once)


@pytest.mark.slow
def test_each_task_of_the_real_windows_is_counted_by_itself(tmp_path: Path, ours: Windows) -> None:
    windows = simulated_windows()
    is_film = np.arange(len(windows.segment_task)) % 2 == 0
    real = replace(windows, tasks=("film", "page"), segment_task=np.where(is_film, 0, 1))
    real.save(tmp_path / "w.safetensors")
    tasks = ["film" if k % 3 else "page" for k in range(N)]
    mixed = Windows.from_array(ours.cut(), 250.0, SCREEN, tasks=tasks)
    folder = write_parts(tmp_path / "parts", mixed, 11)
    found = evaluate_files({"ours": folder}, tmp_path / "w.safetensors", config=QUICK, by_task=True)
    held_out = real.held_out
    at_once = load_set(folder, "synthetic", held_out)
    for part, n in (("all tasks", N), ("film", 53), ("page", 27)):
        results = found.parts[part]
        assert results["whole"]["synthetic"]["ours"]["n_windows"] == n
        if part != "all tasks":
            sides = (one.of_task(part) for one in (held_out, at_once, real.train))
            one, synthetic, base = sides
            expected = evaluate(one, {"ours": synthetic}, base, QUICK).results
            assert_close(rows(results), rows(expected))
            js = [
                row["distances"]["js"]["synthetic"]["ours"]["value"]
                for row in expected["quantities"]
            ]
            whole = results["whole"]["synthetic"]["ours"]["quantities"]
            assert [row["js"] for row in whole] == pytest.approx(js, rel=1e-9)
