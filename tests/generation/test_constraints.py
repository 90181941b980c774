from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.conditioning.course import JITTER_S
from gazediffusion.errors import GazeError
from gazediffusion.generation.long_gaze import (
    EDGE_S,
    OVERLAP_S,
    continued,
    joint_samples,
    waypoint_samples,
    window_starts,
)
from gazediffusion.generation.steering import Constraints


def test_windows_of_long_gaze_overlap_and_reach_its_end() -> None:
    assert window_starts(1500, 2000, 250.0) == [0]
    assert window_starts(2000, 2000, 250.0) == [0]
    starts = window_starts(15_000, 2000, 250.0)
    steps = np.diff(starts)
    assert starts[0] == 0
    assert starts[-1] == 13_000
    assert (steps <= 2000 - round(OVERLAP_S * 250)).all()
    # A minute takes at most 1.3 times its windows.
    assert len(starts) * 8 <= 1.3 * 60


def test_waypoints_lie_after_the_joints_and_not_close_together() -> None:
    rate_hz, length = 250.0, 2000
    later = JITTER_S * rate_hz
    for n_samples in (2001, 5000, 15_000):
        at = np.array(waypoint_samples(n_samples, length, rate_hz))
        assert (np.diff(at) >= later + rate_hz).all()
        starts = np.array(window_starts(n_samples, length, rate_hz))
        # Every window of a minute has one, a second after the joint and before the next one.
        own = at[:, None] - starts
        is_own = (own >= (OVERLAP_S + 1) * rate_hz) & (own + later < length - EDGE_S * rate_hz)
        assert is_own.any(axis=1).all()
        assert is_own.any(axis=0).all() or n_samples != 15_000


def test_joints_lie_before_the_end_of_a_window_and_before_the_last_jump_of_a_target() -> None:
    edge = round(EDGE_S * 250)
    assert joint_samples(2, 375, 250.0).tolist() == [375 - edge] * 2
    targets = np.zeros((6, 2, 2000), np.float32)
    targets[0, 0, 300:] = 1  # a jump in the overlap
    targets[1, 1, [250, 320]] = 1  # the last of several
    targets[2, 0, 376:] = 1  # just after the end of the gaze before
    targets[3, 0, 500:] = 1  # later
    targets[4, 0, 100:] = 1  # so early that too little would be known
    targets[5, 0, :300] = np.nan  # the target appears
    found = joint_samples(6, 375, 250.0, targets)
    assert found.tolist() == [300 - edge, 321 - edge, *[375 - edge] * 4]


def test_gaze_is_given_up_to_the_joint_and_what_is_fixed_after_it() -> None:
    before = np.random.default_rng(0).normal(size=(1, 2, 2000)).astype(np.float32)
    fixed = np.full((1, 2, 2000), np.nan, np.float32)
    fixed[..., 1000:1100] = 0.5
    known = continued(before, fixed, 375, 250.0)
    np.testing.assert_array_equal(known[..., :325], before[..., :325])
    np.testing.assert_array_equal(known[..., 325:], fixed[..., 325:])


def test_constraints_repeat_and_are_padded() -> None:
    known = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    found = Constraints(known=known).of(2, 5, 3)["known"]
    assert found[:, 0, 0].tolist() == [8.0, 0.0, 4.0]
    assert np.isnan(found[:, :, 2]).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"known": np.zeros((2, 2, 5), np.float32), "targets": np.zeros((2, 2, 6), np.float32)},
        {"known": np.zeros((2, 5), np.float32)},
        {"targets": np.full((1, 2, 5), np.inf, np.float32)},
    ],
)
def test_constraints_that_do_not_fit_are_refused(settings: dict[str, np.ndarray]) -> None:
    with pytest.raises(GazeError, match="constraints must"):
        Constraints(**settings)
