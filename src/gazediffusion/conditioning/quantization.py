"""Quantization: generated gaze rounded to the step in which a tracker reports positions.

A network reproduces such a step only approximately. Rounding its output, as the tracker would,
gives the step exactly (data/quantization.py measures it).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import CLIP

Floats = NDArray[np.float32]


def quantize(
    gaze: Floats, steps: NDArray[np.float64], grids: NDArray[np.float64], uniforms: Floats
) -> Floats:
    """Gaze (batch, 2, time) rounded to steps (batch, 2); a step of 0 leaves it unchanged.

    As training recordings are, rounded gaze is dequantized over the cells of the grids (batch, 2)
    by uniforms (batch, 2, time) in [0, 1].
    """
    if not steps.any():
        return gaze
    step, grid = (one[..., None].astype(np.float32) for one in (steps, grids))
    is_coarse = step > 0
    cells = np.rint(gaze / np.where(is_coarse, step, np.float32(1)))
    rounded = np.clip(cells * step + (uniforms - np.float32(0.5)) * grid, -CLIP, CLIP)
    return np.where(is_coarse, rounded, gaze).astype(np.float32)
