"""Sets of recordings: the same windows from every format and screen, and what is left out."""

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
from gazediffusion.evaluation.reading import evaluate_files, in_one_order, load_set, real_windows
from gazediffusion.screen import Screen
from gazediffusion.settings import SimulationConfig
from tests.conftest import SCREEN, RunCommand
from tests.gaze import simulated_windows

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
