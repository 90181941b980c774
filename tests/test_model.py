"""The model as users hold it: loading, sampling with settings, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd
from tests.runs import TINY, saved_windows, trained_run


def test_default_is_the_packaged_joint_model() -> None:
    default, joint = gd.load("default"), gd.load("joint")
    assert default.run.weights_sha256 == joint.run.weights_sha256
    assert default.is_calibrated
    assert repr(joint).startswith("Model(steerable: 5.6 M parameters, 250 Hz, tasks: movies")


def test_a_mixture_keeps_the_task_and_screen_of_every_window() -> None:
    windows = gd.load("default").sample(12, seed=3)
    by_task = dict(zip(windows.task.tolist(), windows.screen_index.tolist(), strict=True))
    widths = {windows.tasks[t]: windows.screens[k].width_px for t, k in by_task.items()}
    assert widths["reading"] == 1680
    assert widths["movies"] == 1280
    degrees = windows.to_numpy("deg")
    for k in range(len(windows)):
        screen = windows.screens[windows.screen_index[k]]
        expected = screen.to_degrees(screen.to_pixels(windows[k]))
        np.testing.assert_array_equal(degrees[k], expected)


def test_the_schema_of_the_packaged_model_is_in_its_files() -> None:
    schema = gd.describe("joint")["conditioning"]["schema"]
    assert list(schema) == ["task", "augmentation", "statistics", "statistics_known", "elapsed"]
    assert len(schema["statistics"]) == 30
    assert schema["statistics"][-1] == "overshoot"


def test_a_packaged_model_is_not_calibrated_again() -> None:
    with pytest.raises(gd.GazeError, match="calibrated already"):
        gd.load("joint").calibrate()


def test_an_uncalibrated_model_says_so(tmp_path: Path) -> None:
    trained = gd.load(trained_run(tmp_path / "run", TINY))
    assert trained.is_calibrated  # it has no summary statistics
    assert gd.describe(tmp_path / "run")["has_statistics"] is False


def test_bad_settings_name_the_argument(tmp_path: Path) -> None:
    run = gd.load(trained_run(tmp_path / "run", TINY))
    for settings, problem in (
        ({"quality": "superb"}, "`quality` must be"),
        ({"steps": 0}, "`steps` must"),
        ({"precision": "fp8"}, "`precision` must be"),
        ({"task": "reading"}, "not conditioned on tasks"),
    ):
        with pytest.raises(gd.GazeError, match=problem):
            run.sample(1, **settings)
    with pytest.raises(gd.GazeError, match="`n` must be 1 or more"):
        run.sample(0)
    with pytest.raises(gd.GazeError, match="`weights` must be best, last or raw"):
        gd.load(tmp_path / "run", "worst")  # type: ignore[arg-type]
    with pytest.raises(gd.GazeError, match="no packaged model 'joynt'; did you mean 'joint'"):
        gd.load("joynt")


def test_training_says_where_it_resumes(tmp_path: Path) -> None:
    windows = saved_windows(tmp_path / "w.safetensors")
    asked: list[bool] = []
    with pytest.raises(gd.StoppedError, match=r"stopped after 1 of 3 epochs; .* is saved"):
        gd.train(
            windows, tmp_path / "run", TINY, device="cpu",
            on_epoch=lambda epoch: asked.append(True), should_stop=lambda: bool(asked),
        )  # fmt: skip
    said: list[str] = []
    gd.train(windows, tmp_path / "run", TINY, device="cpu", say=said.append)
    assert said == [f"resuming {tmp_path / 'run'} after 1 of 3 epochs"]
    with pytest.raises(gd.GazeError, match="epochs: 3 in the folder, 4 asked for"):
        gd.train(windows, tmp_path / "run", TINY, epochs=4, device="cpu")
