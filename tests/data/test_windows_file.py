from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from gazediffusion.data import windows_file
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from tests.conftest import SCREEN
from tests.data.test_windows import make_windows


@pytest.mark.parametrize("grid_px", [0.1, 1.0, 0.001, None])
def test_saving_and_loading_give_back_the_same_windows(
    tmp_path: Path, grid_px: float | None
) -> None:
    windows = replace(make_windows(grid_px), velocity_scale=3.5)
    windows.save(tmp_path / "w.safetensors")
    loaded = Windows.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(loaded.gaze, windows.gaze)
    np.testing.assert_array_equal(loaded.starts, windows.starts)
    np.testing.assert_array_equal(loaded.segment_onset_ms, windows.segment_onset_ms)
    assert loaded.segment_elapsed_ms is None
    for name in ("length", "rate_hz", "screens", "protocol", "participants", "tasks"):
        assert getattr(loaded, name) == getattr(windows, name)
    assert loaded.validation == {"bert"}
    assert loaded.grid_px == grid_px
    assert loaded.velocity_scale == 3.5
    assert loaded.provenance["note"] == "made"
    assert len(loaded.provenance["data_sha256"]) == 64


def test_the_elapsed_time_is_kept(tmp_path: Path) -> None:
    elapsed_ms = np.array([0.0, 250.0, 8000.0])
    replace(make_windows(), segment_elapsed_ms=elapsed_ms).save(tmp_path / "w.safetensors")
    loaded = Windows.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(loaded.segment_elapsed_ms, elapsed_ms)
    np.testing.assert_allclose(loaded.elapsed_s[[0, 1, 6, 17]], [0.0, 0.1, 0.25, 8.5])
    assert np.isnan(make_windows().elapsed_s).all()


def test_gaze_on_the_grid_takes_half_the_bytes(tmp_path: Path) -> None:
    make_windows(0.1).save(tmp_path / "grid.safetensors")
    make_windows(None).save(tmp_path / "none.safetensors")
    saved = (tmp_path / "none.safetensors").stat().st_size - (
        tmp_path / "grid.safetensors"
    ).stat().st_size
    assert saved > 0.9 * 750 * 2 * 2


def test_the_same_windows_give_the_same_bytes(tmp_path: Path) -> None:
    make_windows().save(tmp_path / "a.safetensors")
    time.sleep(0.01)
    make_windows().save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_screens_and_steps_of_a_mixture_are_kept(tmp_path: Path) -> None:
    screens = [SCREEN, Screen(1680, 1050), SCREEN]
    steps = np.array([[0.0, 0.0], [0.01, 0.02], [0.0, 0.0]])
    gaze = np.random.default_rng(0).normal(0, 0.1, (3, 2, 50))
    windows = Windows.from_array(gaze, 250, screens, tasks=["a", "b", "a"], steps=steps)
    windows.save(tmp_path / "w.safetensors")
    loaded = Windows.load(tmp_path / "w.safetensors")
    assert [loaded.screens[k] for k in loaded.screen_index] == screens
    np.testing.assert_array_equal(loaded.resolution_px, windows.resolution_px)
    np.testing.assert_array_equal(loaded.cut(), windows.cut())


def labelled_windows() -> Windows:
    """Labels that change every 10 samples, and targets that jump, vanish and come back."""
    targets = np.full((2, 750), np.nan, np.float32)
    targets[:, 40:300], targets[:, 300:500], targets[:, 600:] = 0.1, 0.7, -0.3
    return replace(
        make_windows(), labels=(np.arange(750) // 10 % 5).astype(np.uint8), targets=targets
    )


def test_labels_and_targets_are_kept_exactly_and_targets_are_small(tmp_path: Path) -> None:
    windows = labelled_windows()
    windows.save(tmp_path / "w.safetensors")
    loaded = Windows.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(loaded.labels, windows.labels)
    np.testing.assert_array_equal(loaded.targets, windows.targets)
    with safe_open(tmp_path / "w.safetensors", "np") as file:
        assert file.get_tensor("target_places").shape == (2, 5)
        header = json.loads(file.metadata()["gazediffusion"])
    assert header["format_version"] == 3
    replace(windows, targets=None).save(tmp_path / "labels.safetensors")
    assert Windows.load(tmp_path / "labels.safetensors").targets is None


def test_files_without_labels_and_targets_are_those_of_earlier_versions(tmp_path: Path) -> None:
    make_windows().save(tmp_path / "w.safetensors")
    with safe_open(tmp_path / "w.safetensors", "np") as file:
        names, header = set(file.keys()), json.loads(file.metadata()["gazediffusion"])
    assert header["format_version"] == 1
    assert names == {
        "gaze", "starts", "run_starts", "run_participant", "run_task", "run_onset_ms",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"not a tensor in sight", "no safetensors file"),
        (b"\xff" * 100, "no safetensors file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(GazeError, match=problem):
        Windows.load(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GazeError, match="no such file"):
        Windows.load(tmp_path / "none.safetensors")


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(GazeError, match="no windows file"):
        Windows.load(path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    make_windows().save(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(GazeError, match="cut short"):
        Windows.load(path)


def test_a_flipped_bit_is_found_by_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    make_windows().save(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(GazeError, match="checksum"):
        Windows.load(path)


def _rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Windows whose tensors and header were changed, with the checksum of what they are now."""
    labelled_windows().save(path, overwrite=True)
    with safe_open(path, "np") as stream:
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
        header = json.loads(stream.metadata()["gazediffusion"])
    change(tensors, header)
    header.setdefault("data_sha256", "")
    if header["data_sha256"]:
        header["data_sha256"] = windows_file._hash(tensors)
    save_file(tensors, path, {"gazediffusion": json.dumps(header)})


def _tensor(name: str, index: Any, value: float) -> Callable[[Any, Any], None]:
    def change(tensors: dict[str, Any], header: dict[str, Any]) -> None:
        tensors[name][index] = value

    return change


def _replaced(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda tensors, header: tensors.update({name: value})


def _field(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda tensors, header: header.update({name: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_tensor("starts", -1, 10**9), "a window reaches beyond its segment"),
        (_tensor("starts", 0, -1), "a window reaches beyond its segment"),
        (_tensor("run_participant", 0, 99), "a segment has an unknown participant"),
        (_tensor("run_task", 0, -1), "a segment has an unknown task"),
        (_tensor("run_starts", 0, 3), "segments are out of order"),
        (_replaced("starts", np.zeros(3)), "starts is no list of whole numbers"),
        (_replaced("run_task", np.zeros((2, 2), np.int32)), "run_task is no list"),
        (_replaced("gaze", np.zeros((3, 750), np.float32)), "gaze has the shape"),
        (_replaced("gaze", np.full((2, 750), np.inf, np.float32)), "not finite"),
        (_replaced("gaze", np.array([[np.nan], [0]], np.float32).repeat(750, 1)), "not finite"),
        (_replaced("gaze", np.zeros((2, 750))), "gaze holds float64"),
        (_field("format_version", "two"), "its version is no number"),
        (_field("format_version", None), "its version is no number"),
        (_field("length", "8"), "the length of its windows"),
        (_field("length", 10**40), "the length of its windows"),
        (_field("rate_hz", -1), "its rate"),
        (_field("rate_hz", float("nan")), "its rate"),
        (_field("participants", 3), "participants is no list of names"),
        (_field("tasks", [[]]), "tasks is no list of names"),
        (_field("screen", {"width_px": "wide"}), "a screen is invalid"),
        (_field("screen", {"width_px": None, "height_px": None}), "a screen has no size"),
        (_field("screens", []), "a segment has an unknown screen"),
        (_field("provenance", []), "its provenance"),
        (_field("recipe", ["position"]), "its protocol"),
        (_field("data_sha256", ""), "does not match its checksum"),
        (_replaced("labels", np.zeros(3, np.uint8)), "labels is damaged"),
        (_replaced("labels", np.zeros(750, np.int64)), "labels is damaged"),
        (_tensor("labels", 7, 5), "labels is damaged"),
        (_tensor("target_starts", 0, 1), "target_starts is out of order"),
        (_tensor("target_starts", -1, 10**6), "target_starts is out of order"),
        (_tensor("target_starts", 1, 400), "target_starts is out of order"),
        (_replaced("target_starts", np.zeros(5)), "target_starts is no list"),
        (_replaced("target_places", np.zeros((2, 5))), "target_places is damaged"),
        (_replaced("target_places", np.zeros((2, 4), np.float32)), "target_places is damaged"),
        (_tensor("target_places", (0, 1), np.nan), "target_places holds numbers"),
        (_tensor("target_places", (0, 1), np.inf), "target_places holds numbers"),
        (lambda tensors, header: tensors.pop("target_places"), "lacks 'target_places'"),
        (lambda tensors, header: header.pop("run_trial"), "lacks 'run_trial'"),
        (lambda tensors, header: tensors.pop("run_onset_ms"), "lacks 'run_onset_ms'"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(
    tmp_path: Path, change: Callable[[Any, Any], None], words: str
) -> None:
    _rewritten(tmp_path / "w.safetensors", lambda tensors, header: None)
    Windows.load(tmp_path / "w.safetensors")
    _rewritten(tmp_path / "w.safetensors", change)
    with pytest.raises(GazeError, match=words):
        Windows.load(tmp_path / "w.safetensors")
