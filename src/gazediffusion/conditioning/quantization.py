"""Resolution: the step in which a recording gives positions, where that is coarser than its file's.

Coordinates are kept on one grid, a tenth of a pixel say, but some recordings in a file may have
come in whole pixels. There the eye rests for many samples and then moves by one step, and
directions pile up along the axes. A network learns this nearly; rounding what it makes, as such a
tracker would, does the rest.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.data.windows import CLIP, Windows

# A recording is coarse if its values are so many cells of the grid apart, or more.
_COARSE_CELLS = 3
_FEWEST_VALUES = 16  # fewer different values tell nothing


def recorded_steps(windows: Windows) -> NDArray[np.float64]:
    """Each window's step in x and y in normalized units, (window, 2); zeros where it is fine."""
    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    steps = np.zeros((len(windows.segment_starts), 2))
    if windows.segment_step is not None:
        return windows.segment_step[windows.segment_of_window]
    grids = windows._grid_of_screen[windows.segment_screen]
    if windows.grid_px is not None:
        for run in np.unique(windows.segment_of_window):
            gaze = windows.gaze[:, windows.segment_starts[run] : ends[run]]
            cells = np.rint(gaze / grids[run]).astype(np.int64)
            steps[run] = [_cells_apart(axis) for axis in cells] * grids[run, :, 0].astype(
                np.float64
            )
    return steps[windows.segment_of_window]


def rounded(gaze: Tensor, steps: Tensor, grids: Tensor, places: Tensor) -> Tensor:
    """Gaze (batch, 2, time) as trackers with these steps (batch, 2) give it; 0 leaves it as it is.

    As recordings are in training, it is then spread over the cells of the grids (batch, 2), by
    places (batch, 2, time) between 0 and 1.
    """
    step, grid = steps[..., None].to(gaze), grids[..., None].to(gaze)
    whole = (gaze / step).round() * step + (places - 0.5) * grid
    return torch.where(step > 0, whole, gaze).clamp(-CLIP, CLIP)


def _cells_apart(cells: NDArray[np.int64]) -> float:
    """How far apart the values of a recording are, in cells; 0 where that is little."""
    apart = np.diff(np.unique(cells))
    if len(apart) < _FEWEST_VALUES or apart.min() < _COARSE_CELLS:
        return 0.0
    # A step that is no multiple of a cell is rounded up here and down there.
    return float(apart[apart < 1.5 * apart.min()].mean())
