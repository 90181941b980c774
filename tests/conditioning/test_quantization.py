"""The step in which recordings report positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.quantization import quantize
from gazediffusion.data.quantization import recorded_steps
from gazediffusion.data.windows import Windows
from tests.runs import short_windows

RATE = 250.0


def drifting(n: int, seed: int) -> np.ndarray:
    """Gaze (window, 2, 400) that drifts."""
    steps = np.random.default_rng(seed).normal(0, 5e-3, (n, 2, 400))
    return np.asarray(np.clip(steps.cumsum(axis=-1), -0.9, 0.9))


def on_grid(gaze: np.ndarray, cells: tuple[float, float]) -> Windows:
    """Windows on a grid of 0.1 px, in steps of this many cells."""
    screen = short_windows().screen
    cell = 2 * 0.1 / screen.size_px
    step = cell * np.array(cells)[:, None]
    coarse = np.rint(np.rint(gaze / step) * step / cell) * cell
    windows = Windows.from_array(coarse.astype(np.float32), RATE, screen)
    return replace(windows, grid_px=0.1)


@pytest.mark.parametrize("cells", [(10.0, 10.0), (10.0, 10.667), (5.0, 0.0)])
def test_a_coarse_step_is_found(cells: tuple[float, float]) -> None:
    windows = on_grid(drifting(4, 0), (cells[0], cells[1] or 1.0))
    found = recorded_steps(windows) / windows.grid_of_window[:, :, 0]
    np.testing.assert_allclose(found, np.tile(cells, (4, 1)), rtol=5e-3)


def test_a_file_without_a_grid_has_no_steps() -> None:
    windows = replace(on_grid(drifting(2, 0), (10, 10)), grid_px=None)
    assert not recorded_steps(windows).any()


def test_quantized_gaze_lies_on_steps_and_is_spread_over_the_grid() -> None:
    gaze = torch.from_numpy(drifting(2, 1)).float()
    steps = torch.tensor([[0.01, 0.02], [0.0, 0.0]])
    grids = steps / 10
    uniforms = torch.rand(gaze.shape, generator=torch.Generator().manual_seed(0))
    made = quantize(gaze, steps, grids, uniforms)
    assert torch.equal(made[1], gaze[1])
    whole = made[0] / steps[0, :, None]
    off = whole - whole.round()
    assert 0.04 < float(off.abs().max()) <= 0.0501
    assert float((made[0] - gaze[0]).abs().max()) < 0.56 * 0.02
    # The tracker's step comes out of what was rounded by it.
    again = on_grid(drifting(2, 1), (10, 10))
    cells = recorded_steps(again)[0]
    smooth = torch.from_numpy(drifting(2, 1)).float()
    still = torch.full_like(smooth, 0.5)
    tracked = quantize(smooth, torch.from_numpy(cells).expand(2, 2), torch.zeros(2, 2), still)
    np.testing.assert_allclose(tracked.numpy(), again.cut(), atol=1e-5)
