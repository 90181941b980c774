"""Generated gaze in the steps of a tracker."""

from __future__ import annotations

import numpy as np
import torch

from gazediffusion.conditioning.quantization import quantize
from gazediffusion.data.quantization import recorded_steps
from tests.data.test_quantization import drifting, on_grid


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
