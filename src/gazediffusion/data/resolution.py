"""Quantization of recorded gaze: the grid of a file, and the steps in which a tracker reported it.

Coordinates are stored on one grid, for example a tenth of a pixel. Some recordings in a file may
have a coarser step, for example whole pixels: there the gaze repeats for many samples and then
moves by one step, and directions concentrate along the axes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.seeds import Stream, rng

GRIDS_PX = (1.0, 0.1, 0.01)  # that are looked for, the coarsest first
# A recording is coarse if its values are at least so many grid cells apart.
_COARSE_CELLS = 3
_FEWEST_VALUES = 16  # with fewer different values the step is not estimated


def is_on_grid(gaze_px: NDArray[np.float32], grid_px: float) -> bool:
    """Whether every coordinate is a multiple of the grid, to the precision of float32."""

    def on_grid(values: NDArray[np.float32]) -> bool:
        steps = values / np.float32(grid_px)
        return bool(np.all(np.abs(steps - np.rint(steps)) < 0.01))

    # Most gaze that is off the grid shows it in its first samples.
    return on_grid(gaze_px[:, :256]) and on_grid(gaze_px)


def spread_over_grid(
    gaze: NDArray[np.float32], grid: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    """Gaze (..., 2, time) moved uniformly within its grid cells; `grid` broadcasts against it."""
    spread = rng(seed, Stream.RESOLUTION).random(gaze.shape, np.float32) - np.float32(0.5)
    return np.asarray(np.clip(gaze + spread * grid, -CLIP, CLIP), dtype=np.float32)


def rounded_as(gaze_px: NDArray[np.float32], known_px: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gaze (2, time) in the resolution of known gaze (2, time) of the same recording, in pixels.

    A coordinate becomes the nearest multiple of the known ones' grid or, where their step is
    coarser, the nearest known one within a step. Without a grid it stays as it is.
    """
    return np.stack([_rounded(*axes) for axes in zip(gaze_px, known_px, strict=True)])


def _rounded(values: NDArray[np.float32], known: NDArray[np.float32]) -> NDArray[np.float32]:
    known = np.unique(known[np.isfinite(known)])
    grid = next((one for one in GRIDS_PX if is_on_grid(known[None], one)), None)
    if grid is None or not len(known):
        return values
    rounded: NDArray[np.float32] = (np.rint(values / grid) * grid).astype(np.float32)
    step = _cells_apart(np.rint(known / grid).astype(np.int64)) * grid
    if not step:
        return rounded
    after = np.searchsorted(known, values).clip(1, len(known) - 1)
    below, above = known[after - 1], known[after]
    nearest = np.where(values - below < above - values, below, above)
    return np.asarray(np.where(np.abs(nearest - values) <= step, nearest, rounded))


def recorded_steps(windows: Windows) -> NDArray[np.float64]:
    """Each window's step in x and y in normalized units, (window, 2).

    Zeros where the step is not coarser than the grid.
    """
    of_window = windows.segment_of_window
    if windows.segment_step is not None:
        return windows.segment_step[of_window]
    steps = np.zeros((len(windows.segment_starts), 2))
    if windows.grid_px is not None:
        ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
        grids = windows.grid_of_screen[windows.segment_screen]
        for segment in np.unique(of_window):
            gaze = windows.gaze[:, windows.segment_starts[segment] : ends[segment]]
            cells = np.rint(gaze / grids[segment]).astype(np.int64)
            grid = grids[segment, :, 0].astype(np.float64)
            steps[segment] = [_cells_apart(axis) for axis in cells] * grid
    return steps[of_window]


def _cells_apart(cells: NDArray[np.int64]) -> float:
    """The distance between neighbouring values of a recording in cells; 0 where it is small."""
    apart = np.diff(np.unique(cells))
    if len(apart) < _FEWEST_VALUES or apart.min() < _COARSE_CELLS:
        return 0.0
    # A step that is no multiple of a cell is sometimes rounded up and sometimes down.
    return float(apart[apart < 1.5 * apart.min()].mean())
