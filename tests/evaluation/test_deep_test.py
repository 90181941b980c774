"""Trials share nobody, AUC equals scikit-learn's, a planted defect is found and one law is not."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import gazediffusion as gd
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation import deep_test, reading, report
from gazediffusion.evaluation.deep_test import (
    DeepConfig,
    DeepTest,
    Draws,
    RealSets,
    Trial,
    Wins,
    scaled,
)
from gazediffusion.evaluation.metrics import Estimate, draw_weights
from gazediffusion.evaluation.report import FLOOR, deep_sets
from gazediffusion.evaluation.result import ALL, Evaluation, plain_values
from gazediffusion.evaluation.sets import GazeSet
from tests.conftest import SCREEN, RunCommand
from tests.plotting.test_evaluation import make_results

LENGTH, RATE_HZ = 128, 250.0


def walks(n: int, seed: int, memory: float = 0.7, length: int = LENGTH) -> NDArray[np.float32]:
    """Gaze whose steps remember the one before, (n, 2, length)."""
    from scipy.signal import lfilter

    steps = np.random.default_rng(seed).normal(0, 0.01, (n, 2, length))
    steps = lfilter([np.sqrt(1 - memory**2)], [1.0, -memory], steps, axis=2)
    return np.cumsum(steps, axis=2).astype(np.float32)


def gaze_set(
    n: int,
    n_participants: int,
    seed: int,
    memory: float = 0.7,
    tasks: tuple[str, ...] = ("a", "b"),
    is_synthetic: bool = False,
) -> GazeSet:
    """Walks; the tasks change from window to window."""
    windows = Windows.from_array(
        walks(n, seed, memory),
        RATE_HZ,
        SCREEN,
        [f"p{k * n_participants // n}" for k in range(n)],
        [tasks[k % len(tasks)] for k in range(n)],
    )
    return GazeSet.of(f"set {seed}", windows, is_synthetic)


def real_sets(n_windows: int = 1000) -> RealSets:
    return RealSets(gaze_set(400, 10, 0), gaze_set(120, 4, 1), n_windows, seed=0)


def windows_of(one: GazeSet) -> set[bytes]:
    return {gaze.tobytes() for gaze in one.gaze}


def require_matched(trial: Trial) -> None:
    for first, second in (trial.train, trial.stop, trial.test):
        assert len(first.gaze) == len(second.gaze) >= 20
        assert sorted(first.tasks) == sorted(second.tasks)
    parts = [trial.train, trial.stop, trial.test]
    for k in (0, 1):
        found = [windows_of(part[k]) for part in parts]
        assert len(set.union(*found)) == sum(map(len, found))


@pytest.mark.parametrize("number", range(5))
def test_a_synthetic_set_is_tested_on_other_participants_and_other_windows(number: int) -> None:
    real = real_sets()
    trial = real.against(gaze_set(300, 1, 2, is_synthetic=True), number)
    require_matched(trial)
    assert not set(trial.train[0].group) & set(trial.stop[0].group)
    assert windows_of(trial.test[0]) <= windows_of(real.held_out)
    blocks = [set(part[1].group) for part in (trial.train, trial.stop, trial.test)]
    assert len(set.union(*blocks)) == sum(map(len, blocks))


def test_each_trial_stops_at_other_participants() -> None:
    real, synthetic = real_sets(), gaze_set(300, 1, 2, is_synthetic=True)
    stopping = [set(real.against(synthetic, k).stop[0].group.tolist()) for k in range(5)]
    assert len(set.union(*stopping)) == 10
    assert sum(map(len, stopping)) == 10


@pytest.mark.parametrize("number", range(3))
def test_the_floor_is_between_different_participants(number: int) -> None:
    trial = real_sets().between_participants(number)
    require_matched(trial)
    for first, second in (trial.train, trial.stop, trial.test):
        assert not set(first.group) & set(second.group)
    training = [set(one.group) for one in (*trial.train, *trial.stop)]
    assert sum(map(len, training)) == len(set.union(*training)) == 10


def test_a_planted_defect_is_in_the_second_side_alone() -> None:
    real = real_sets()
    trial = real.with_defect("shift", lambda one: replace(one, gaze=one.gaze + 5), 0)
    require_matched(trial)
    for first, second in (trial.train, trial.stop, trial.test):
        assert first.gaze.mean() < 1 < 4 < second.gaze.mean()


def test_a_side_has_at_most_so_many_windows_and_every_set_meets_the_same_real_ones() -> None:
    real = real_sets(n_windows=80)
    first, second = (real.against(gaze_set(300, 1, seed, is_synthetic=True), 1) for seed in (2, 3))
    assert [len(part[0].gaze) for part in (first.train, first.stop, first.test)] == [80, 20, 80]
    assert windows_of(first.test[0]) == windows_of(second.test[0])
    assert windows_of(first.train[0]) == windows_of(second.train[0])


def test_sets_without_a_common_task_are_compared_as_they_are() -> None:
    trial = real_sets().against(gaze_set(300, 1, 2, tasks=("other",), is_synthetic=True), 0)
    assert len(trial.test[0].gaze) == len(trial.test[1].gaze) > 50


def test_scaled_gaze_has_scaled_speeds_about_the_same_place() -> None:
    gaze = gaze_set(6, 2, 0).gaze
    found = scaled(gaze_set(6, 2, 0), 1.25).gaze
    assert np.diff(found) == pytest.approx(1.25 * np.diff(gaze), abs=1e-6)
    assert found.mean(axis=-1) == pytest.approx(gaze.mean(axis=-1), abs=1e-6)


def test_too_few_participants_or_windows_are_refused() -> None:
    with pytest.raises(GazeError, match="3 training and 4 held-out participants"):
        RealSets(gaze_set(100, 3, 0), gaze_set(100, 4, 1), 100, 0)
    with pytest.raises(GazeError, match="16 windows a side to train on, of 320 of set 0 and 16 "):
        real_sets().against(gaze_set(30, 1, 2, is_synthetic=True), 0)


def two_sides() -> tuple[GazeSet, GazeSet]:
    return gaze_set(40, 5, seed=0), gaze_set(60, 6, seed=1)


def test_auc_equals_scikit_learn_with_ties() -> None:
    rng = np.random.default_rng(0)
    scores = [rng.integers(0, 9, (40, 2)), rng.integers(2, 12, (60, 2))]
    found = Wins.of(two_sides(), [one.astype(float) for one in scores])
    labels = np.repeat([0, 1], [80, 120])
    expected = roc_auc_score(labels, np.concatenate([one.ravel() for one in scores]))
    assert found.auc == pytest.approx(expected, abs=1e-12)
    assert found.n_all.sum() == 80 * 120
    # Of one task, its windows only.
    rows = np.arange(40) % 2 == 0, np.arange(60) % 3 == 0
    kept = [one[row].ravel() for one, row in zip(scores, rows, strict=True)]
    expected = roc_auc_score(np.repeat([0, 1], [40, 40]), np.concatenate(kept))
    of_task = Wins.of(two_sides(), [one.astype(float) for one in scores], rows)
    assert of_task.auc == pytest.approx(expected, abs=1e-12)


def test_the_interval_widens_when_groups_differ() -> None:
    rng = np.random.default_rng(2)
    first, second = two_sides()
    noise, other = rng.normal(size=(40, 1)), rng.normal(1, 1, (60, 1))
    draws = Draws(draw_weights(5, 400, rng), draw_weights(6, 400, rng), 2, rng)

    def width(scores: np.ndarray) -> float:
        one = draws.estimate([Wins.of((first, second), [scores, other])] * 2)
        assert one.interval is not None
        low, high = one.interval
        assert low is not None
        assert high is not None
        assert low < (one.value or 0.0) < high
        return high - low

    assert width(noise + 2.0 * first.group[:, None]) > 2 * width(noise)


SIDE: dict[str, Any] = {"n_steps": 40, "batch_size": 32, "n_seeds": 2, "widths": (8, 16)}
TINY = DeepConfig(seconds=(8.0,), **SIDE)


def real_sides() -> tuple[GazeSet, GazeSet]:
    return gaze_set(360, 9, 0), gaze_set(160, 5, 1)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Walks of one law, with other memory, the floor and the planted defect."""
    synthetic = {
        "same": gaze_set(400, 1, 2, is_synthetic=True),
        "other": gaze_set(400, 1, 3, memory=-0.6, is_synthetic=True),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deep_test, "SCALE", 3.0)  # one that so small a network finds
        return plain_values(deep_test.deep_tests(*real_sides(), synthetic, TINY))  # type: ignore[no-any-return]


def interval(one: Estimate) -> tuple[float, float]:
    assert one.interval is not None
    low, high = one.interval
    assert low is not None
    assert high is not None
    return low, high


def test_two_draws_and_two_groups_of_one_law_are_not_separated(found: dict[str, Any]) -> None:
    for one in deep_sets(found)["same"].auc.values():
        low, high = interval(one)
        assert low < 0.5 < high
        assert abs((one.value or 0) - 0.5) < 0.12
    for one in deep_sets(found)[FLOOR].auc.values():
        assert abs((one.value or 0) - 0.5) < 0.2


def test_another_law_and_a_planted_defect_are_separated(found: dict[str, Any]) -> None:
    other = deep_sets(found)["other"]
    assert (other.auc["0.512 s"].value or 0) > 0.95
    assert interval(other.auc["0.512 s"])[0] > 0.85
    assert min(one.value or 0 for one in other.by_task["0.512 s"].values()) > 0.9
    assert set(other.by_task["0.512 s"]) == {"a", "b"}
    planted = deep_sets(found)["planted: all speeds times 3"]
    assert min(one.value or 0 for one in planted.auc.values()) > 0.8


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others() -> None:
    synthetic = {"same": gaze_set(150, 1, 2, is_synthetic=True)}
    config = DeepConfig(seconds=(0.25,), n_seeds=1, n_steps=6, batch_size=16, widths=(4,))
    one, again, other = (
        deep_test.deep_tests(*real_sides(), synthetic, config, seed, references=())
        for seed in (0, 0, 1)
    )
    assert plain_values(one) == plain_values(again)
    assert one["synthetic"] != other["synthetic"]
    assert one["floor"] is None


def test_progress_names_set_rate_and_time_left() -> None:
    lines: list[str] = []
    config = DeepConfig(seconds=(0.25,), n_seeds=1, n_steps=3, batch_size=16, widths=(4,))
    synthetic = {"ours": gaze_set(150, 1, 2, is_synthetic=True)}
    so_far: list[list[str]] = []

    def on_set(found: dict[str, Any]) -> None:
        so_far.append([*found["synthetic"], *(["floor"] if found["floor"] else [])])

    real = real_sides()
    deep_test.deep_tests(*real, synthetic, config, 0, lines.append, ("floor",), on_set)
    assert so_far == [["ours"], ["ours", "floor"]]
    assert lines[0].startswith("deep test: ours, 0.248 s, seed 1 of 1, training 1 of 4, step 3, ")
    assert "steps/s" in lines[0]
    assert lines[-1].endswith("at most 0:00 left")


@pytest.mark.parametrize(
    ("n_samples", "rate_hz", "tests"),
    [
        (2000, 250, ["0.5 s", "2 s", "8 s", "0.5 s below 30 Hz", "2 s below 30 Hz",
                     "8 s below 30 Hz"]),
        (500, 250, ["0.5 s", "2 s", "0.5 s below 30 Hz", "2 s below 30 Hz"]),
        (480, 60, ["0.5 s", "2 s", "8 s"]),
    ],
)  # fmt: skip
def test_tests_are_those_that_windows_allow(
    n_samples: int, rate_hz: float, tests: list[str]
) -> None:
    assert list(DeepConfig().cells(n_samples, rate_hz)) == tests


@pytest.mark.parametrize("setting", [{"seconds": ()}, {"n_windows": 0}, {"widths": ()}])
def test_settings_without_sense_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(GazeError):
        DeepConfig(**setting)


def test_plain_results_are_read_again(found: dict[str, Any]) -> None:
    for row in found["synthetic"].values():
        assert plain_values(DeepTest.of(row)) == row


def test_the_report_shows_the_test(found: dict[str, Any]) -> None:
    results = make_results(("same", "other"))
    results["tests"] = {"deep": {"about": "what it is", **found}}
    evaluation = Evaluation({ALL: results})
    assert list(evaluation.deep) == [FLOOR, *found["planted"], "same", "other"]
    page = evaluation.to_markdown()
    for words in ("## Deep two-sample test", "what it is", "AUC by task"):
        assert words in page
    assert "AUC of the deep two-sample test" in evaluation.headline()


def test_an_evaluation_that_cannot_do_the_test_says_so() -> None:
    sets = [gaze_set(60, 3, seed) for seed in range(3)]
    names = [f"p{k // 20}" for k in range(60)]
    evaluation = gd.evaluate(
        sets[0].gaze,
        {"ours": sets[1].gaze},
        sets[2].gaze,
        gd.EvaluationConfig(quick=True, deep=TINY),
        rate_hz=250,
        screen=sets[0].screens[0],
        participants=names,
        reference_participants=names,
    )
    assert any("3 training and 3 held-out participants" in one for one in evaluation.warnings)
    assert evaluation.deep == {}


def test_the_test_needs_recordings() -> None:
    with pytest.raises(GazeError, match="`deep` needs recordings"):
        gd.evaluate("gazecom", gaze_set(30, 1, 0).gaze, config=gd.EvaluationConfig(deep=TINY),
                    rate_hz=250, screen=gd.Screen(1280, 720))  # fmt: skip


def saved(path: Path, n: int, seed: int, held_out: frozenset[str] = frozenset()) -> Path:
    """A windows file of walks of eight participants and two tasks."""
    names, tasks = [f"p{k * 8 // n}" for k in range(n)], ["a", "b"] * (n // 2)
    windows = gd.Windows.from_array(walks(n, seed), RATE_HZ, SCREEN, names, tasks)
    replace(windows, validation=held_out).save(path)
    return path


def test_the_command_tests_several_sets(
    run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = saved(tmp_path / "real.safetensors", 400, 0, frozenset({"p0", "p1", "p2"}))
    sets = [saved(tmp_path / f"{name}.safetensors", 160, k) for k, name in enumerate("xy", 1)]
    tiny = partial(DeepConfig, n_seeds=1, n_steps=2, batch_size=8, widths=(4,))
    monkeypatch.setattr(gd, "DeepConfig", tiny, raising=False)
    monkeypatch.setattr(report, "draw_figures", lambda *_: {})  # takes seconds
    words = ["evaluate", "--real", real, "--synthetic", *sets, "--quick", "--deep"]
    code, said, lines = run(*words, "-o", tmp_path / "report")
    assert code == 0, lines
    assert "AUC of the deep two-sample test, 0.5 is chance:" in said
    parts = json.loads((tmp_path / "report" / "results.json").read_text())["parts"]
    test = parts["all tasks"]["tests"]["deep"]
    assert list(test["synthetic"]) == ["x", "y"]
    assert set(test["synthetic"]["x"]["by_task"]["0.5 s"]) == {"a", "b"}
    assert "Deep two-sample test" in (tmp_path / "report" / "report.html").read_text()


def test_the_test_is_of_all_tasks_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = saved(tmp_path / "real.safetensors", 400, 0, frozenset({"p0", "p1", "p2"}))
    other = saved(tmp_path / "x.safetensors", 160, 1)
    asked = []

    def evaluate_windows(*given: Any) -> dict[str, Any]:
        asked.append(given[3].deep)
        return {"about": {"warnings": []}}

    monkeypatch.setattr(reading, "evaluate_windows", evaluate_windows)
    config = gd.EvaluationConfig(quick=True, deep=TINY)
    found = gd.evaluate_files([other], real, config=config, by_task=True)
    assert list(found.parts) == [ALL, "a", "b"]
    assert asked == [TINY, None, None]
