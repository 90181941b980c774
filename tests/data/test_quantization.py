"""The grid of a file and the step in which recordings report positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.data.quantization import is_on_grid, recorded_steps
from gazediffusion.data.windows import Windows
from tests.conftest import SCREEN, wandering_gaze

RATE = 250.0


def drifting(n: int, seed: int) -> np.ndarray:
    """Gaze (window, 2, 400) that drifts."""
    steps = np.random.default_rng(seed).normal(0, 5e-3, (n, 2, 400))
    return np.asarray(np.clip(steps.cumsum(axis=-1), -0.9, 0.9))


def on_grid(gaze: np.ndarray, cells: tuple[float, float]) -> Windows:
    """Windows on a grid of 0.1 px, in steps of this many cells."""
    cell = 2 * 0.1 / SCREEN.size_px
    step = cell * np.array(cells)[:, None]
    coarse = np.rint(np.rint(gaze / step) * step / cell) * cell
    windows = Windows.from_array(coarse.astype(np.float32), RATE, SCREEN)
    return replace(windows, grid_px=0.1)


@pytest.mark.parametrize("cells", [(10.0, 10.0), (10.0, 10.667), (5.0, 0.0)])
def test_a_coarse_step_is_found(cells: tuple[float, float]) -> None:
    windows = on_grid(drifting(4, 0), (cells[0], cells[1] or 1.0))
    found = recorded_steps(windows) / windows.grid_of_window[:, :, 0]
    np.testing.assert_allclose(found, np.tile(cells, (4, 1)), rtol=5e-3)


def test_a_file_without_a_grid_has_no_steps() -> None:
    windows = replace(on_grid(drifting(2, 0), (10, 10)), grid_px=None)
    assert not recorded_steps(windows).any()


def test_the_grid_is_recognised() -> None:
    assert is_on_grid(wandering_gaze(500), 0.1)
    assert not is_on_grid(wandering_gaze(500), 1.0)
    assert not is_on_grid(wandering_gaze(500, grid_px=None), 0.1)


def test_the_resolution_in_pixels_is_that_of_each_windows_screen() -> None:
    windows = on_grid(drifting(2, 0), (10, 10))
    np.testing.assert_allclose(windows.resolution_px, 1.0, rtol=5e-3)
    assert not on_grid(drifting(2, 0), (1, 1)).resolution_px.any()
    small = replace(SCREEN, width_px=640)
    steps = np.array([[0.01, 0.02], [0.01, 0.0]])
    known = Windows.from_array(np.zeros((2, 2, 9)), RATE, [SCREEN, small], steps=steps)
    np.testing.assert_allclose(known.resolution_px, [[6.4, 7.2], [3.2, 0.0]])
