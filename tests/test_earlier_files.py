"""Files that earlier versions wrote are read, or refused in one line; see fixtures/README.md."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import gazediffusion as gd

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("name", ["position", "velocity", "steerable"])
def test_a_run_folder_generates_the_gaze_that_it_generated(name: str) -> None:
    steps = None if name == "steerable" else 4
    gaze = gd.load(FIXTURES / name, device="cpu").sample(1, seed=3, steps=steps).to_numpy()
    np.testing.assert_allclose(gaze, np.load(FIXTURES / name / "sample.npy"), atol=1e-4)


def test_a_run_folder_of_a_development_version_is_refused() -> None:
    with pytest.raises(gd.GazeError, match=r"development version.*gazediffusion train"):
        gd.load(FIXTURES / "development")


@pytest.mark.parametrize(
    ("version", "n_windows", "n_screens", "sha256"),
    [
        (1, 4, 1, "8c55c53b504c"),
        (2, 4, 2, "8c55c53b504c"),
        (3, 4, 1, "5ff2c5e218eb"),
        (4, 42, 1, "0a2edd3a26f4"),
    ],
)
def test_a_windows_file_of_each_version_is_read(
    version: int, n_windows: int, n_screens: int, sha256: str
) -> None:
    windows = gd.Windows.load(FIXTURES / f"version_{version}.safetensors")
    assert (len(windows), windows.length, len(windows.screens)) == (n_windows, 64, n_screens)
    assert hashlib.sha256(windows.cut().tobytes()).hexdigest().startswith(sha256)
    assert (windows.labels is not None) == (windows.targets is not None) == (version == 3)
    assert np.isnan(windows.gaze).any() == (version == 3)
    assert (windows.segment_elapsed_ms is not None) == (version == 4)


def test_windows_without_the_settings_of_prepare_are_not_split_again() -> None:
    windows = FIXTURES / "version_1.safetensors"
    with pytest.raises(gd.GazeError, match=r"which names are one participant.*prepare"):
        gd.evaluate_files([windows], windows, split_seed=1)
