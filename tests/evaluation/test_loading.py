from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gazediffusion.data.readers import ReadOptions
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.loading import (
    Side,
    bottleneck_features,
    load_set,
    name_of,
)
from gazediffusion.models.checkpoint import load_run
from tests.conftest import SCREEN
from tests.gaze import simulated_windows
from tests.runs import TINY_VELOCITY, saved_windows, trained_run

SIDES: tuple[Side, ...] = ("real", "reference", "synthetic")


def test_of_a_windows_file_the_held_out_participants_are_real(tmp_path: Path) -> None:
    windows = simulated_windows()
    windows.save(tmp_path / "w.safetensors")
    real, train, everything = (load_set(tmp_path / "w.safetensors", side) for side in SIDES)
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
    options = ReadOptions(screen=SCREEN)
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
