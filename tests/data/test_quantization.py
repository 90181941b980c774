"""The grid of a file and the step in which recordings report positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.data.resolution import is_on_grid, recorded_steps, rounded_as
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


@pytest.mark.parametrize("grid", [1.0, 0.1, 0.01])
def test_gaze_is_rounded_to_the_grid_of_known_gaze(grid: float) -> None:
    rng = np.random.default_rng(0)
    known = (np.rint(rng.uniform(100, 900, (2, 400)) / grid) * grid).astype(np.float32)
    gaze = rng.uniform(100, 900, (2, 50)).astype(np.float32)
    found = rounded_as(gaze, known)
    assert is_on_grid(found, grid)
    assert np.abs(found - gaze).max() <= grid * 0.501


def test_gaze_is_rounded_to_known_values_where_they_are_coarse() -> None:
    # Steps of 0.8 px on a grid of 0.1 px, as some recordings have them.
    lattice = 300 + 0.8 * np.arange(40)
    known = np.tile(np.repeat(lattice, 5), (2, 1)).astype(np.float32)
    known[0, 7] = np.nan
    gaze = np.random.default_rng(0).uniform(300, 331, (2, 100)).astype(np.float32)
    found = rounded_as(gaze, known)
    assert np.isin(found, known).all()
    assert np.abs(found - gaze).max() <= 0.401
    # Beyond the known values the grid is left.
    np.testing.assert_allclose(rounded_as(np.full((2, 1), 400.04, np.float32), known), 400.0)


def test_gaze_beside_gaze_without_a_grid_stays_as_it_is() -> None:
    known = np.random.default_rng(0).uniform(0, 1, (2, 300)).astype(np.float32)
    gaze = known[:, :9] + np.float32(0.123)
    np.testing.assert_array_equal(rounded_as(gaze, known), gaze)
    np.testing.assert_array_equal(rounded_as(gaze, np.full((2, 3), np.nan, np.float32)), gaze)
