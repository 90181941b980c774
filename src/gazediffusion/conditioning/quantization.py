"""Quantization: generated gaze rounded to the step in which a tracker reports positions.

A network reproduces such a step only approximately. Rounding its output, as the tracker would,
gives the step exactly (data/quantization.py measures it).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.data.windows import CLIP
from gazediffusion.device import sent

Floats = NDArray[np.float32]


def quantize(
    gaze: Floats, steps: NDArray[np.float64], grids: NDArray[np.float64], uniforms: Floats
) -> Floats:
    """Gaze (batch, 2, time) rounded to steps (batch, 2); a step of 0 leaves it unchanged.

    As training recordings are, rounded gaze is dequantized over the cells of the grids (batch, 2)
    by uniforms (batch, 2, time) in [0, 1].
    """
    found = quantized(torch.from_numpy(gaze), steps, grids, torch.from_numpy(uniforms))
    rounded: Floats = found.numpy()
    return rounded


def quantized(
    gaze: Tensor, steps: NDArray[np.float64], grids: NDArray[np.float64], uniforms: Tensor
) -> Tensor:
    """The same of tensors, on their device."""
    if not steps.any():
        return gaze
    step, grid = (
        sent(torch.from_numpy(one).float()[..., None], gaze.device) for one in (steps, grids)
    )
    is_coarse = step > 0
    cells = (gaze / torch.where(is_coarse, step, 1.0)).round_()
    rounded = cells.mul_(step).add_((uniforms - 0.5) * grid).clamp_(-CLIP, CLIP)
    return torch.where(is_coarse, rounded, gaze)
