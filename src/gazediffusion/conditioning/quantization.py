"""Quantization: generated gaze rounded to the step in which a tracker reported positions.

Some recordings of a file report whole pixels although the file has a finer grid. In these, gaze
repeats a value for many samples and then changes by one step, and directions concentrate along the
axes. A network learns this approximately; rounding its output completes it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.data.windows import CLIP, Windows

# A recording is coarse if its values are so many cells of the grid apart, or more.
_COARSE_CELLS = 3
_FEWEST_VALUES = 16  # fewer different values do not identify a step


def recorded_steps(windows: Windows) -> NDArray[np.float64]:
    """Each window's step in x and y in normalized units, (window, 2); zeros where it is fine."""
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    steps = np.zeros((len(windows.segment_starts), 2))
    if windows.segment_step is not None:
        return windows.segment_step[windows.segment_of_window]
    grids = windows._grid_of_screen[windows.segment_screen]
    if windows.grid_px is not None:
        for segment in np.unique(windows.segment_of_window):
            gaze = windows.gaze[:, windows.segment_starts[segment] : ends[segment]]
            cells = np.rint(gaze / grids[segment]).astype(np.int64)
            grid = grids[segment, :, 0].astype(np.float64)
            steps[segment] = [_cells_apart(axis) for axis in cells] * grid
    return steps[windows.segment_of_window]


def quantize(gaze: Tensor, steps: Tensor, grids: Tensor, uniforms: Tensor) -> Tensor:
    """Gaze (batch, 2, time) rounded to steps (batch, 2); a step of 0 leaves it unchanged.

    As training recordings are, rounded gaze is dequantized over the cells of the grids (batch, 2)
    by uniforms (batch, 2, time) in [0, 1].
    """
    step, grid = steps[..., None].to(gaze), grids[..., None].to(gaze)
    rounded = (gaze / step).round() * step + (uniforms - 0.5) * grid
    return torch.where(step > 0, rounded, gaze).clamp(-CLIP, CLIP)


def _cells_apart(cells: NDArray[np.int64]) -> float:
    """The step of a recording in grid cells; 0 where it is not coarse."""
    apart = np.diff(np.unique(cells))
    if len(apart) < _FEWEST_VALUES or apart.min() < _COARSE_CELLS:
        return 0.0
    # A step that is no multiple of a cell is rounded up here and down there.
    return float(apart[apart < 1.5 * apart.min()].mean())
