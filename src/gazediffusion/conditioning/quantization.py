"""Quantization: generated gaze rounded to the step in which a tracker reports positions.

A network reproduces such a step only approximately. Rounding its output, as the tracker would,
gives the step exactly (data/quantization.py measures it).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gazediffusion.data.windows import CLIP


def quantize(gaze: Tensor, steps: Tensor, grids: Tensor, uniforms: Tensor) -> Tensor:
    """Gaze (batch, 2, time) rounded to steps (batch, 2); a step of 0 leaves it unchanged.

    As training recordings are, rounded gaze is dequantized over the cells of the grids (batch, 2)
    by uniforms (batch, 2, time) in [0, 1].
    """
    step, grid = steps[..., None].to(gaze), grids[..., None].to(gaze)
    rounded = (gaze / step).round() * step + (uniforms - 0.5) * grid
    return torch.where(step > 0, rounded, gaze).clamp(-CLIP, CLIP)
