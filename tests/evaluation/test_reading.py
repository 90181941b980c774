"""Sets of files, recordings and models: the same windows from every format; what is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.reading import read
from gazediffusion.data.simulation import write_simulation
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation import reading
from gazediffusion.evaluation.evaluation import EvaluationConfig, evaluate
from gazediffusion.evaluation.reading import (
    Side,
    bottleneck_features,
    evaluate_files,
    in_one_order,
    load_set,
    matched_windows,
    name_of,
    real_windows,
    split_again,
)
from gazediffusion.generation.sampler import Sampler
from gazediffusion.network.checkpoint import load_run
from gazediffusion.screen import Screen
from gazediffusion.settings import Reading, SimulationConfig
from gazediffusion.training.training import train_epochs
from tests.conftest import SCREEN, RunCommand
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
    number = windows.tasks.index(found.tasks[found.task[0]])
    first = Sampler.of_quality(run, "default", task=windows.tasks[number], seed=number)
    np.testing.assert_allclose(found.cut()[:1], first.windows(0, 1).cut(), atol=1e-4)
    assert found.screens[found.screen_index[0]] == first.screens[first.task or ""]


def test_a_model_that_does_not_know_a_task_generates_its_own_mixture(joint_run: Path) -> None:
    run = load_run(joint_run)
    unknown = replace(joint_parts()[0], tasks=("knitting", "sewing"))
    found = matched_windows(run, unknown, 6)
    expected = Sampler.of_quality(run, "default").windows(0, 6)
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
    with pytest.raises(GazeError, match="`reference` needs recordings"):
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


QUICK = EvaluationConfig(quick=True)
WIDE = Screen(1920, 1080, 53.0, 30.0, 60.0)
CARD = {
    "synthetic": True, "gazediffusion_version": "0", "seed": 0, "rate_hz": 250.0, "sampling": {},
    "screens": {"stop-motion": vars(SCREEN), "reading": vars(WIDE)},
    "model": {"baseline": "none", "trained_on": {
        "n_participants": 2, "n_held_out_participants": 1, "n_windows": 2, "tasks": ["reading"],
    }},
}  # fmt: skip


@lru_cache(maxsize=1)
def generated() -> Windows:
    """60 windows of two tasks, each on its screen, mixed as a model generates them."""
    gaze = simulated_windows().train.dequantized(0).cut(np.arange(60) * 5)
    is_reading = np.random.default_rng(1).random(60) < 0.4
    return Windows.from_array(
        gaze, 250.0, [WIDE if one else SCREEN for one in is_reading],
        tasks=["reading" if one else "stop-motion" for one in is_reading],
        provenance={"card": CARD},
    )  # fmt: skip


@pytest.mark.parametrize("format", ["npz", "parquet", "csv", "bids", "asc"])
@pytest.mark.parametrize("screen", [None, WIDE])
def test_the_same_windows_are_read_from_every_format_and_screen(
    tmp_path: Path, format: str, screen: Screen | None
) -> None:
    windows, like = generated(), simulated_windows().held_out
    if screen is not None:
        one = np.zeros_like(windows.segment_screen)
        windows = replace(windows, screens=(screen,), segment_screen=one)
    path = tmp_path / (f"set.{format}" if format in ("npz", "parquet", "csv") else "set")
    windows.save(path, format)
    found, expected = load_set(path, "synthetic", like), in_one_order(generated())
    np.testing.assert_array_equal(found.identity["task"], expected.identity["task"])
    # ASC has tenths of a pixel: an error of 0.05 px on 720.
    atol = 2 * 0.051 / 720 if format == "asc" else 1e-5
    np.testing.assert_allclose(found.cut(), expected.cut(), atol=atol)
    if screen is None:
        of_window = [found.screens[k] for k in found.screen_index]
        assert of_window == [expected.screens[k] for k in expected.screen_index]


def test_an_evaluation_is_the_same_for_every_format(tmp_path: Path) -> None:
    real = simulated_windows()
    real.save(tmp_path / "real.safetensors")
    for name in ("a.npz", "b.parquet"):
        generated().save(tmp_path / name)
    generated().save(tmp_path / "c", "asc")
    sets = {name: tmp_path / name for name in ("a.npz", "b.parquet", "c")}
    # The screen is that of files that are silent; these state theirs.
    ratios = evaluate_files(
        sets, tmp_path / "real.safetensors", config=QUICK, screen=Screen(800, 600)
    ).ratios
    whole = evaluate(real.held_out, {"o": in_one_order(generated())}, real.train, QUICK).ratio
    for name, share in {"a.npz": 0.01, "b.parquet": 0.01, "c": 0.05}.items():
        assert ratios[name] == pytest.approx(whole, rel=share)


def test_tasks_are_mixed_evenly_and_keep_their_order() -> None:
    found = in_one_order(generated())
    first = found.identity["task"][:20]
    share = np.mean(generated().identity["task"] == "reading")
    assert np.mean(first == "reading") == pytest.approx(share, abs=0.05)
    for task in ("reading", "stop-motion"):
        numbers = found.identity["trial"][found.identity["task"] == task].astype(int)
        assert (np.diff(numbers) > 0).all()


def synthetic_frame(n: int, n_samples: int = 500) -> pl.DataFrame:
    gaze = SCREEN.to_pixels(simulated_windows().train.dequantized(0).cut(np.arange(n)))
    return pl.DataFrame({
        "trial": np.repeat(np.arange(n), 500), "t_ms": np.tile(np.arange(500) * 4.0, n),
        "x_px": gaze[:, 0].ravel(), "y_px": gaze[:, 1].ravel(),
    })  # fmt: skip


def test_windows_that_fall_out_are_counted_with_the_reason(tmp_path: Path) -> None:
    real = simulated_windows()
    frame, trial, time_ms = synthetic_frame(33), pl.col("trial"), pl.col("t_ms")
    is_lost = (trial == 3) & (time_ms == 1000.0)
    frame = frame.with_columns(pl.when(is_lost).then(None).otherwise(pl.col("x_px")).alias("x_px"))
    frame = frame.filter((trial != 7) | (time_ms < 900))
    # Far off the screen, which is a defect to be seen, not a reason to leave a window out.
    frame = frame.with_columns(pl.when(trial == 9).then(1500.0 + time_ms / 100).otherwise("x_px")
                               .alias("x_px"))  # fmt: skip
    frame.write_csv(tmp_path / "ours.csv")
    real.save(tmp_path / "real.safetensors")
    found = evaluate_files([tmp_path / "ours.csv"], tmp_path / "real.safetensors", config=QUICK)
    expected = "2 of 33 windows of 'ours' were left out: 1 with missing samples, 1 shorter than 2 s"
    assert expected in found.warnings
    assert found.results["sets"]["synthetic"]["ours"]["n_windows"] == 31


def test_an_npz_leaves_out_windows_with_missing_samples(tmp_path: Path) -> None:
    like = simulated_windows().held_out
    gaze = like.cut()[:30]
    gaze[[4, 8], 0, 7] = np.nan
    np.savez(tmp_path / "g.npz", gaze=gaze)
    found = load_set(tmp_path / "g.npz", "synthetic", like)
    np.testing.assert_array_equal(found.cut(), np.delete(gaze, [4, 8], axis=0))
    assert found.provenance["left_out"]["reasons"] == "2 with missing samples"


def test_the_participant_pattern_is_of_the_real_side_alone(tmp_path: Path) -> None:
    config = SimulationConfig(n_participants=3, minutes=1.5, rate_hz=250, screen=SCREEN)
    write_simulation(config, tmp_path / "study", "asc")
    like = real_windows(read(tmp_path / "study"))
    gaze = like.dequantized(0).cut()
    Windows.from_array(gaze, 250.0, SCREEN).save(tmp_path / "ours.parquet")
    found = evaluate_files(
        [tmp_path / "ours.parquet"], tmp_path / "study", config=QUICK,
        participant_pattern=r"sub-(\d+)", columns={"x": "nowhere"},
    )  # fmt: skip
    assert found.results["sets"]["real"]["n_participants"] == 3
    assert found.results["sets"]["synthetic"]["ours"]["n_windows"] == len(gaze)


@pytest.mark.parametrize("rate_hz", [60.0, 120.0])
def test_slow_recordings_keep_their_rate_and_models_come_to_it(
    tmp_path: Path, rate_hz: float
) -> None:
    config = SimulationConfig(n_participants=4, minutes=1.5, rate_hz=rate_hz, screen=SCREEN)
    write_simulation(config, tmp_path / "study", "csv")
    real = real_windows(read(tmp_path / "study"))
    assert (real.rate_hz, real.length) == (rate_hz, 8 * rate_hz)
    assert np.diff(real.starts).min() <= rate_hz  # a window begins every second
    fast = SimulationConfig(n_participants=4, minutes=1.5, rate_hz=250, seed=5, screen=SCREEN)
    write_simulation(fast, tmp_path / "fast", "parquet")
    real_windows(read(tmp_path / "fast")).save(tmp_path / "fast.parquet")
    found = evaluate_files([tmp_path / "fast.parquet"], tmp_path / "study", config=QUICK)
    sentence = found.results["about"]["compared"]
    assert f"at {rate_hz:g} Hz (fast low-passed from 250 Hz)" in sentence
    assert any("I-VT threshold of 5" in note for note in found.results["about"]["notes"])
    assert np.isfinite(found.ratio)
    names = [row["name"] for row in found.results["quantities"]]
    assert "microsaccades_per_s" not in names
    assert len(found.headlines["fast"].worst) > 0
    assert found.headlines["fast"].n_distances == 31


def test_a_synthetic_set_slower_than_the_real_is_refused_with_the_remedy(
    tmp_path: Path, run: RunCommand
) -> None:
    slow = Windows.from_array(generated().cut()[:, :, :480], 60.0, SCREEN)
    slow.save(tmp_path / "slow.npz")
    simulated_windows().save(tmp_path / "real.safetensors")
    with pytest.raises(GazeError, match=r"slow\.npz is at 60 Hz and the real gaze at 250 Hz"):
        evaluate_files([tmp_path / "slow.npz"], tmp_path / "real.safetensors")
    code, _, error = run("evaluate", "--synthetic", tmp_path / "slow.npz", "-o", tmp_path / "r")
    assert code == 2
    assert "generate at 250 Hz, or give recordings of 60 Hz as --real" in " ".join(error.split())


def test_real_gaze_thinned_from_a_higher_rate_is_compared_with_thinned_gaze() -> None:
    windows = simulated_windows()
    half = replace(
        windows.held_out, gaze=windows.gaze[:, ::2], starts=windows.held_out.starts // 2,
        segment_starts=windows.segment_starts // 2, length=250, rate_hz=125.0,
        provenance={"rates": {"250 Hz": 3}},
    )  # fmt: skip
    config = replace(QUICK, protocols=("velocity",))
    for rates, how in (({"250 Hz": 3}, "thinned"), ({"125 Hz": 3}, "low-passed")):
        real = replace(half, provenance={"rates": rates})
        found = evaluate(real, {"a": replace(generated(), provenance={})}, None, config)
        assert f"a was {how} from 250 Hz to 125 Hz" in found.results["about"]["notes"]


def test_of_a_large_set_in_parts_some_parts_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_WINDOWS", 30)
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(6):
        generated().select(np.arange(10) + 10 * number).save(folder / f"part-{number}.parquet")
    whole = generated().select(np.arange(60)).save(tmp_path / "whole.npz")
    card = next(json.loads(path.read_text()) for path in whole if path.suffix == ".json")
    (folder / "card.json").write_text(json.dumps({**card, "n_windows": 60}))
    found = load_set(folder, "synthetic", simulated_windows().held_out)
    assert len(found) == 30
    assert found.provenance["warnings"] == ["3 of the 6 parts of the set were read, evenly spaced"]
