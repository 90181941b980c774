"""Rounding of generated gaze to the step in which a tracker reports positions.

A network reproduces such a step only approximately. Rounding its output, as the tracker would,
gives the step exactly (`data.quantization` measures it).
"""

from __future__ import annotations

import torch
from torch import Tensor

from gazediffusion.data.windows import CLIP


def rounded(gaze: Tensor, steps: Tensor, grids: Tensor, places: Tensor) -> Tensor:
    """Gaze (batch, 2, time) as trackers with these steps (batch, 2) give it; 0 leaves it as it is.

    As recordings are in training, it is then spread over the cells of the grids (batch, 2), by
    places (batch, 2, time) between 0 and 1.
    """
    step, grid = steps[..., None].to(gaze), grids[..., None].to(gaze)
    whole = (gaze / step).round() * step + (places - 0.5) * grid
    return torch.where(step > 0, whole, gaze).clamp(-CLIP, CLIP)
