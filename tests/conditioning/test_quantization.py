"""Generated gaze in the steps of a tracker."""

from __future__ import annotations

import numpy as np

from gazediffusion.conditioning.conditioning import quantize
from gazediffusion.data.resolution import recorded_steps
from tests.data.test_quantization import drifting, on_grid


def test_quantized_gaze_lies_on_steps_and_is_spread_over_the_grid() -> None:
    gaze = drifting(2, 1).astype(np.float32)
    steps = np.array([[0.01, 0.02], [0.0, 0.0]])
    uniforms = np.random.default_rng(0).random(gaze.shape, dtype=np.float32)
    made = quantize(gaze, steps, steps / 10, uniforms)
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made[1], gaze[1])
    whole = made[0] / steps[0, :, None]
    off = whole - whole.round()
    assert 0.04 < np.abs(off).max() <= 0.0501
    assert np.abs(made[0] - gaze[0]).max() < 0.56 * 0.02
    # The tracker's step comes out of what was rounded by it.
    again = on_grid(drifting(2, 1), (10, 10))
    cells = recorded_steps(again)[0]
    still = np.full_like(gaze, 0.5)
    tracked = quantize(gaze, np.tile(cells, (2, 1)), np.zeros((2, 2)), still)
    np.testing.assert_allclose(tracked, again.cut(), atol=1e-5)


def test_a_window_does_not_depend_on_the_others_of_its_batch() -> None:
    far = np.full((2, 2, 4), 9.0, np.float32)  # beyond what is kept of rounded gaze
    steps = np.array([[0.01, 0.01], [0.0, 0.0]])
    both = quantize(far, steps, steps, np.full_like(far, 0.5))
    alone = quantize(far[1:], steps[1:], steps[1:], np.full_like(far[1:], 0.5))
    np.testing.assert_array_equal(both[1:], alone)
