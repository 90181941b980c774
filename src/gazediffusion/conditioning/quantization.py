"""Quantization: generated gaze rounded to the step in which a tracker reports positions.

A network reproduces such a step only approximately. Rounding its output, as the tracker would,
gives the step exactly (data/quantization.py measures it).
"""

from __future__ import annotations

import numpy as np
import torch
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
    step, grid = (torch.from_numpy(one).float()[..., None] for one in (steps, grids))
    is_coarse, given = step > 0, torch.from_numpy(gaze)
    cells = (given / torch.where(is_coarse, step, 1.0)).round_()
    within = (torch.from_numpy(uniforms) - 0.5) * grid
    rounded = cells.mul_(step).add_(within).clamp_(-CLIP, CLIP)
    found: Floats = torch.where(is_coarse, rounded, given).numpy()
    return found
