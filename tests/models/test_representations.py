from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.data.preparing import fit_velocity_scale
from gazediffusion.errors import GazeError
from gazediffusion.models.representations import Position, Velocity
from tests.data.test_windows import make_windows


def test_position_is_the_gaze_itself() -> None:
    gaze = make_windows().cut()
    np.testing.assert_array_equal(Position().decode(Position().encode(gaze)), gaze)


def test_velocity_is_the_difference_quotient_with_the_first_sample_zero() -> None:
    gaze = make_windows().cut().astype(np.float64)
    velocity = Velocity(scale=2.0, rate_hz=250.0).encode(gaze)
    assert (velocity[..., 0] == 0).all()
    np.testing.assert_allclose(velocity[..., 1:] * 2.0, np.diff(gaze) * 250.0)


def test_summation_rebuilds_position_from_zero() -> None:
    gaze = make_windows().cut().astype(np.float64)
    velocity = Velocity(scale=3.7, rate_hz=250.0)
    rebuilt = velocity.decode(velocity.encode(gaze))
    np.testing.assert_allclose(rebuilt, gaze - gaze[..., :1], atol=1e-12)


def test_torch_tensors_give_the_same_numbers() -> None:
    torch = pytest.importorskip("torch")
    gaze = make_windows().cut()
    velocity = Velocity(scale=3.7, rate_hz=250.0)
    encoded = velocity.encode(torch.from_numpy(gaze.copy()))
    np.testing.assert_allclose(encoded.numpy(), velocity.encode(gaze), rtol=1e-6)
    np.testing.assert_allclose(
        velocity.decode(encoded).numpy(), velocity.decode(velocity.encode(gaze)), atol=1e-6
    )


def test_the_scale_is_the_joint_percentile_of_the_training_participants_only() -> None:
    windows = make_windows()
    train = windows.train.cut()
    speeds = np.abs(np.diff(train, prepend=train[..., :1])) * 250.0
    expected = np.quantile(speeds, 0.995)
    assert fit_velocity_scale(windows) == pytest.approx(expected, rel=1e-5)

    held_out_changed = make_windows()
    held_out_changed.gaze[:, 250:] *= 100  # bert, who is kept apart
    assert fit_velocity_scale(held_out_changed) == fit_velocity_scale(windows)


def test_gaze_that_does_not_move_has_no_scale() -> None:
    windows = make_windows()
    windows.gaze[:] = 0.5
    with pytest.raises(GazeError, match="does not move"):
        fit_velocity_scale(windows)
