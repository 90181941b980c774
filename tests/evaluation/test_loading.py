from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.reading import (
    Side,
    bottleneck_features,
    evaluate_files,
    load_set,
    matched_windows,
    name_of,
    split_again,
)
from gazediffusion.generation.sampler import DiffusionGenerator
from gazediffusion.network.checkpoint import load_run
from gazediffusion.screen import Screen
from gazediffusion.settings import Reading
from gazediffusion.training.training import train_epochs
from tests.conftest import SCREEN
from tests.gaze import simulated_windows
from tests.runs import TINY_VELOCITY, saved_windows, short_windows, trained_run
from tests.training.test_joint import JOINT
from tests.training.test_joint import parts as joint_parts

SIDES: tuple[Side, ...] = ("real", "reference", "synthetic")


def test_of_a_windows_file_the_held_out_participants_are_real(tmp_path: Path) -> None:
    windows = simulated_windows()
    windows.save(tmp_path / "w.safetensors")
    real, train, everything = (
        load_set(tmp_path / "w.safetensors", side, windows.held_out) for side in SIDES
    )
    assert len(real) == len(windows.held_out)
    assert len(train) == len(windows.train)
    assert len(everything) == len(windows)


def test_a_run_folder_generates_as_many_windows_as_are_real(tmp_path: Path) -> None:
    run = trained_run(tmp_path / "run")
    like = saved_windows(tmp_path / "w.safetensors").held_out
    generated = load_set(run, "synthetic", like)
    assert len(generated) == len(like)
    assert generated.length == 64


def test_synthetic_recordings_are_not_cleaned(tmp_path: Path) -> None:
    like = simulated_windows().held_out
    gaze = SCREEN.to_pixels(like.cut()[0])
    gaze[0, 100] += 5000  # no eye does that, and the evaluation must see it
    frame = pl.DataFrame({"t_ms": np.arange(like.length) * 4.0, "x_px": gaze[0], "y_px": gaze[1]})
    for name in ("a", "b"):
        frame.write_csv(tmp_path / f"{name}.csv")
    options = Reading(screen=SCREEN)
    loaded = load_set(tmp_path, "synthetic", like, options)
    assert len(loaded) == 2
    assert np.abs(loaded.cut()).max() == pytest.approx(1.2, abs=1e-3)


def test_an_npz_of_ours_is_read(tmp_path: Path) -> None:
    like = simulated_windows().held_out
    np.savez(tmp_path / "g.npz", gaze=like.cut()[:3], time_ms=np.arange(like.length) * 4.0)
    loaded = load_set(tmp_path / "g.npz", "synthetic", like)
    np.testing.assert_array_equal(loaded.cut(), like.cut()[:3])
    np.savez(tmp_path / "bad.npz", other=np.zeros(3))
    with pytest.raises(GazeError, match="array 'gaze'"):
        load_set(tmp_path / "bad.npz", "synthetic", like)


def test_sets_are_named_by_the_user_or_their_file(tmp_path: Path) -> None:
    assert name_of("ours=some/gaze.parquet") == ("ours", "some/gaze.parquet")
    assert name_of("some/gaze.parquet") == ("gaze", "some/gaze.parquet")


def test_bottleneck_features_are_the_mean_bottleneck_at_the_first_step(tmp_path: Path) -> None:
    import torch

    run = load_run(trained_run(tmp_path / "run"))
    gaze = np.random.default_rng(0).normal(0, 0.3, (5, 2, 64)).astype(np.float32)
    features = bottleneck_features(run, batch_size=2)(gaze)
    assert features.shape == (5, 24)
    expected = run.network.features(torch.from_numpy(gaze), torch.ones(5, dtype=torch.long))
    np.testing.assert_allclose(features, expected.mean(dim=2).numpy(), atol=1e-5)


def test_a_velocity_model_is_no_feature_model(tmp_path: Path) -> None:
    run = load_run(trained_run(tmp_path / "run", TINY_VELOCITY))
    with pytest.raises(GazeError, match="must be a position model"):
        bottleneck_features(run)


@pytest.fixture(scope="module")
def joint_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joint") / "run"
    list(train_epochs(joint_parts(), folder, JOINT, seed=0, device="cpu"))
    return folder


def test_a_model_generates_the_shares_of_tasks_of_the_reference(joint_run: Path) -> None:
    run, windows = load_run(joint_run), joint_parts()[1]
    n_task = np.bincount(windows.task, minlength=2)
    found = matched_windows(run, windows, 10)
    assert len(found) == 10
    expected = dict(zip(windows.tasks, n_task / n_task.sum(), strict=True))
    for task, share in expected.items():
        assert (np.array(found.tasks)[found.task] == task).sum() == pytest.approx(
            10 * share, abs=0.51
        )
    first = DiffusionGenerator.of_quality(run, "default", task=found.tasks[found.task[0]])
    number = windows.tasks.index(found.tasks[found.task[0]])
    np.testing.assert_allclose(found.cut()[:1], first.sample(1, number).cut(), atol=1e-4)
    assert found.screens[found.screen_index[0]] == first.screens[first.task or ""]


def test_a_model_that_does_not_know_a_task_generates_its_own_mixture(joint_run: Path) -> None:
    run = load_run(joint_run)
    unknown = replace(joint_parts()[0], tasks=("knitting", "sewing"))
    found = matched_windows(run, unknown, 6)
    expected = DiffusionGenerator.of_quality(run, "default").sample(6, 0)
    np.testing.assert_array_equal(found.cut(), expected.cut())


def test_a_split_seed_holds_out_other_participants() -> None:
    windows = simulated_windows()
    again = split_again(windows, windows.provenance["config"]["split_seed"])
    assert again.validation == windows.validation
    others = [split_again(windows, seed).validation for seed in range(5)]
    assert len(set(others)) > 1
    assert {len(one) for one in others} == {len(windows.validation)}


def with_two_tasks(path: Path) -> Windows:
    """Simulated windows of reading and dots; of stills by one participant."""
    windows = simulated_windows()
    number = np.arange(len(windows.segment_starts)) % 2
    is_alone = windows.segment_participant == windows.held_out.participant[0]
    tasks = np.where(is_alone & (number == 1), 2, number).astype(np.int32)
    replace(windows, tasks=("reading", "dots", "stills"), segment_task=tasks).save(path)
    return Windows.load(path)


def test_parts_are_all_tasks_and_each_of_three_held_out_participants(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    windows = with_two_tasks(path)
    windows.train.save(tmp_path / "ours.safetensors")
    config = EvaluationConfig(quick=True, protocols=("velocity",))
    found = evaluate_files({"ours": tmp_path / "ours.safetensors"}, path, None, config,
                           by_task=True)  # fmt: skip
    assert list(found.parts) == ["all tasks", "reading"]
    assert any("the task dots is not a part" in one for one in found.warnings)
    reading = windows.of_task("reading")
    alone = evaluate(reading.held_out, {"ours": reading.train}, reading.train, config)
    assert alone.ratio == found.headlines["reading: ours"].ratio.value
    whole = evaluate(windows.held_out, {"ours": windows.train}, windows.train, config)
    assert found.ratio == whole.ratio


def test_a_model_is_evaluated_and_attacked_on_the_fly(joint_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    starts = (np.arange(0, 177, 3) + np.array([[0], [250], [500]])).ravel()
    windows = replace(short_windows(), starts=starts)
    windows.save(path)
    config = EvaluationConfig(quick=True, protocols=("velocity",))
    found = evaluate_files({"model": joint_run}, path, None, config, n=400, with_membership=True)
    # At most half as many as the training participants have.
    assert found.results["about"]["n_common"] == len(windows.train) // 2
    attack = found.results["tests"]["membership"]["synthetic"]["model"]
    assert 0 <= attack["auc"] <= 1


def test_what_needs_recordings_names_its_arguments(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="`reference` and `feature_model` need recordings"):
        evaluate_files({"ours": "x.npz"}, reference="w.safetensors")
    with pytest.raises(GazeError, match="`split_seed` needs a windows file"):
        evaluate_files({"ours": "x.npz"}, tmp_path, split_seed=3)
    with pytest.raises(GazeError, match="`summary` is for comparing without `real`"):
        evaluate_files({"ours": "x.npz"}, tmp_path, summary="gazecom")


def test_a_synthetic_file_keeps_the_screen_it_names(tmp_path: Path) -> None:
    like = simulated_windows().held_out
    other = Screen(800, 600, 40.0, 30.0, 50.0)
    gaze = other.to_pixels(like.cut()[0])
    frame = pl.DataFrame({"t_ms": np.arange(like.length) * 4.0, "x_px": gaze[0], "y_px": gaze[1]})
    frame.write_csv(tmp_path / "a.csv")
    assert load_set(tmp_path, "synthetic", like).screen == like.screen
    sidecar = {"ScreenResolution": [800, 600], "ScreenSize": [0.4, 0.3], "ScreenDistance": 0.5}
    (tmp_path / "a.json").write_text(json.dumps(sidecar))
    assert load_set(tmp_path, "synthetic", like).screen == other
