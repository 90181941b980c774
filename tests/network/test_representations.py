"""Position, velocity and joint representations, and the solver of their decoding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gazediffusion.data.preparing import fit_velocity_scale
from gazediffusion.errors import GazeError
from gazediffusion.network.representations import Joint, Position, Velocity, solve_tridiagonal
from tests.data.test_windows import make_windows


def test_every_channel_has_the_same_spread_in_training() -> None:
    windows = make_windows(grid_px=None)
    joint = Joint.fit([windows])
    channels = joint.encode(torch.from_numpy(windows.train.cut()))
    np.testing.assert_allclose(channels[:, 2:, 1:].std(dim=(0, 2), unbiased=False), 0.5, rtol=1e-3)
    spread = channels[:, :2].std(dim=(0, 2), unbiased=False)
    np.testing.assert_allclose(spread, 0.5, rtol=1e-3)


def test_local_motion_is_decoded_from_velocity_and_global_position_from_position() -> None:
    joint = replace(Joint.fit([make_windows()]), rate_hz=250.0)
    channels = joint.encode(torch.zeros(1, 2, 2000))
    # A constant position and no velocity: the gaze stays there.
    channels[:, 0] += 0.25
    shift = 0.25 * joint.position_std[0] / 0.5
    np.testing.assert_allclose(joint.decode(channels)[0, 0], shift, atol=1e-6)
    # White noise on the position is filtered out: it has hardly any low-pass part.
    torch.manual_seed(0)
    noisy = channels.clone()
    noisy[:, :2] += 0.1 * torch.randn(1, 2, 2000)
    steps = joint.decode(noisy).diff(dim=-1)
    assert float(steps.std()) < 0.05 * float(0.1 * joint.position_std[0] / 0.5)


def test_scales_come_from_training_participants_alone() -> None:
    windows = make_windows()
    wild = windows.gaze.copy()
    wild[:, 250:] *= 0.1  # the held-out participant
    assert Joint.fit([replace(windows, gaze=wild)]) == Joint.fit([windows])


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
    windows = make_windows(grid_px=None)
    windows.gaze[:] = 0.5
    with pytest.raises(GazeError, match="does not move"):
        fit_velocity_scale(windows)
    with pytest.raises(GazeError, match="does not move"):
        Joint.fit([windows])


def joint_of(gaze: torch.Tensor) -> Joint:
    return Joint.of_gaze(gaze.numpy(), 250.0)


def two_fixations() -> torch.Tensor:
    """Two seconds of gaze with a saccade of 20 ms in the middle, and a little noise."""
    noise = torch.randn((3, 2, 500), generator=torch.Generator().manual_seed(0)) * 2e-5
    return noise.cumsum(dim=-1) + 0.4 * ((torch.arange(500) - 250) / 5).clamp(0, 1)


def test_channels_of_gaze_decode_to_it() -> None:
    gaze = two_fixations()
    joint = joint_of(gaze)
    torch.testing.assert_close(joint.decode(joint.encode(gaze)), gaze, atol=1e-6, rtol=0)


def test_a_saccade_makes_up_for_what_its_velocities_miss() -> None:
    """Velocities of the saccade are 5 % small, positions are right: fixations do not drift."""
    gaze = two_fixations()
    joint = joint_of(gaze)
    channels = joint.encode(gaze)
    smaller = joint.encode(0.95 * gaze)
    channels[..., 2:, 245:260] = smaller[..., 2:, 245:260]
    decoded = joint.decode(channels)
    # The sum of the velocities is 0.02 short.
    assert (decoded - gaze)[..., 260:].abs().max() < 1e-3
    assert (decoded - gaze)[..., :250].abs().max() < 1e-3
    assert ((decoded - gaze)[..., 490] - (decoded - gaze)[..., 260]).abs().max() < 5e-4


def test_a_velocity_without_bound_is_no_constraint() -> None:
    gaze = two_fixations()
    joint = joint_of(gaze)
    channels = joint.encode(gaze)
    channels[:, 2:, 100] = 2000.0
    torch.testing.assert_close(joint.decode(channels), gaze, atol=1e-3, rtol=0)


def test_known_samples_are_kept_and_gaze_after_them_does_not_jump() -> None:
    """Positions after the known half are 0.02 off; gaze goes there within a second."""
    noise = torch.randn((3, 2, 1000), generator=torch.Generator().manual_seed(0))
    gaze = (0.0002 * noise).cumsum(dim=-1)
    joint = Joint(0.33, (0.33, 0.41), (1.15, 1.18), 250.0)
    channels = joint.encode(gaze)
    channels[:, :2, 500:] += joint.encode_position(torch.full((2, 500), 0.02))
    is_known = (torch.arange(1000) < 500).expand(3, -1)
    kept = joint.decode(channels, is_known) - gaze
    assert kept[..., :500].abs().max() < 1e-5
    assert kept.diff(dim=-1).abs().max() < 1.5e-4
    assert kept[..., 750].numpy() == pytest.approx(0.02 * (1 - np.exp(-1)), abs=3e-3)
    backwards = joint.decode(channels, ~is_known) - gaze
    assert backwards[..., 500:].numpy() == pytest.approx(0.02, abs=1e-5)
    assert backwards.diff(dim=-1).abs().max() < 1.5e-4


def test_where_nothing_is_known_decoding_is_the_same() -> None:
    gaze = torch.randn((2, 2, 400), generator=torch.Generator().manual_seed(1)).cumsum(dim=-1) / 100
    joint = joint_of(gaze)
    channels = joint.encode(gaze) + 0.01
    is_known = torch.zeros(2, 400, dtype=torch.bool)
    assert torch.equal(joint.decode(channels, is_known), joint.decode(channels))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33, 2000])
def test_the_solution_solves_the_system(n: int) -> None:
    """With weights between neighbours up to 1e5 times those on the diagonal."""
    generator = torch.Generator().manual_seed(n)
    weight = 10 ** (7 * torch.rand((3, 2, n - 1), generator=generator, dtype=torch.float64) - 2)
    own = torch.ones((3, 2, n), dtype=torch.float64)
    pad = torch.nn.functional.pad
    diagonal = own + pad(weight, (0, 1)) + pad(weight, (1, 0))
    truth = torch.randn((3, 2, n), generator=generator, dtype=torch.float64)
    right = diagonal * truth
    right[..., :-1] -= weight * truth[..., 1:]
    right[..., 1:] -= weight * truth[..., :-1]
    found = solve_tridiagonal(diagonal, -weight, right)
    torch.testing.assert_close(found, truth, atol=1e-8, rtol=0)
