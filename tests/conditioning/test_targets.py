"""Targets of long gaze: their intervals and positions are those of the training participants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.conditioning.course import TargetPrior, are_regular, response_gain
from gazediffusion.data.windows import Windows
from gazediffusion.seeds import Stream, rng
from tests.runs import short_windows

RATE_HZ = 250.0


def jumping_windows(held_out: float = 0.9) -> Windows:
    """Windows whose target jumps every 8 ms; that of the held-out participant stays at one place.

    Of the training participant x is uniform in [-0.5, 0.5] and y is 0.2 or 0.4.
    """
    windows = short_windows()
    n = windows.gaze.shape[1]
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.5, 0.5, n // 2 + 1), rng.choice([0.2, 0.4], n // 2 + 1)
    targets = np.repeat(np.stack([x, y]), 2, axis=1)[:, :n]
    targets[:, windows.segment_starts[1] :] = held_out
    return replace(windows, targets=targets.astype(np.float32))


def test_intervals_and_positions_are_those_of_the_training_participants() -> None:
    prior = TargetPrior.fit([jumping_windows()], "dots")
    assert prior is not None
    assert set(prior.interval_s) == {0.008}
    assert prior.x[0] == pytest.approx(-0.5, abs=0.03)
    assert prior.x[-1] == pytest.approx(0.5, abs=0.03)
    assert np.isin(np.round(prior.y, 4), [0.2, 0.4]).mean() > 0.9
    assert TargetPrior.from_json(prior.to_json()) == prior


def test_drawn_targets_have_these_intervals_and_positions() -> None:
    prior = TargetPrior((0.4, 0.6), (-0.5, 0.5), (0.1, 0.1))
    target = prior.draw(100_000, RATE_HZ, rng(3, Stream.TARGETS))
    at = np.flatnonzero(np.diff(target[0])) + 1
    intervals_s = np.diff(at) / RATE_HZ
    assert 0.396 <= intervals_s.min() < 0.41
    assert 0.59 < intervals_s.max() <= 0.604
    assert np.quantile(target[0, at], [0.25, 0.5, 0.75]) == pytest.approx(
        [-0.25, 0, 0.25], abs=0.06
    )
    np.testing.assert_allclose(target[1], 0.1)
    np.testing.assert_array_equal(prior.draw(100, RATE_HZ, rng(3, Stream.TARGETS)), target[:, :100])
    assert not np.array_equal(prior.draw(100, RATE_HZ, rng(4, Stream.TARGETS)), target[:, :100])


def test_jumps_of_a_regular_target_do_not_drift() -> None:
    noise = np.random.default_rng(0)
    independent = [noise.uniform(0.9, 1.1, 40) for _ in range(5)]
    regular = [np.diff(np.arange(40) + noise.uniform(-0.05, 0.05, 40)) for _ in range(5)]
    assert are_regular(regular)
    assert not are_regular(independent)
    assert not are_regular([one[:5] for one in regular])  # too few in a row
    prior = TargetPrior((0.9, 1.1), (-0.5, 0.5), (0.1, 0.1), is_regular=True)
    drawn = prior.draw(100_000, RATE_HZ, rng(0, Stream.TARGETS))
    jumps_s = (np.flatnonzero(np.diff(drawn[0])) + 1) / RATE_HZ
    off = jumps_s - np.arange(1, len(jumps_s) + 1)
    assert np.abs(off).max() < 0.08
    # Intervals have the scatter they were fitted with.
    assert np.diff(jumps_s).std() == pytest.approx(0.2 / np.sqrt(12), rel=0.1)
    np.testing.assert_array_equal(prior.draw(100, RATE_HZ, rng(0, Stream.TARGETS)), drawn[:, :100])
    assert TargetPrior.from_json(prior.to_json()) == prior


def test_a_target_jumps_as_far_as_recorded_ones_at_least() -> None:
    prior = TargetPrior((0.1, 0.1), (-0.5, 0.5), (-0.5, 0.5))
    near, far = (
        np.hypot(
            *np.diff(
                replace(prior, least_jump=least).draw(50_000, RATE_HZ, rng(0, Stream.TARGETS))[
                    :, ::25
                ]
            )
        )
        for least in (0.0, 0.3)
    )
    assert near.min() < 0.05
    assert np.mean(far < 0.3) < 1e-3  # all candidates may be near
    # Jumps that are far enough anyway are as frequent among the others as before.
    levels = [0.25, 0.5, 0.75]
    assert np.quantile(far, levels) == pytest.approx(
        np.quantile(near[near >= 0.3], levels), abs=0.04
    )
    fitted = TargetPrior.fit([jumping_windows()], "dots")
    assert fitted is not None
    assert 0 < fitted.least_jump < 0.15


def test_the_gain_is_the_slope_of_gaze_late_after_jumps() -> None:
    rng = np.random.default_rng(0)
    target = np.repeat(rng.uniform(-0.5, 0.5, (30, 2, 8)), 250, axis=2).astype(np.float32)
    # Gaze follows after 0.2 s with gains of 0.9 and 0.7 and an offset.
    gaze = np.roll(target, 50, axis=2) * np.array([[0.9], [0.7]]) + 0.05
    found = response_gain(gaze.astype(np.float32), target, RATE_HZ)
    assert found == pytest.approx((0.9, 0.7), abs=1e-3)
    # A target that jumps twice a second never stays that long.
    assert response_gain(gaze[..., ::2], target[..., ::2], RATE_HZ) == (1.0, 1.0)
    prior = TargetPrior((1.0, 1.0), (-0.5, 0.5), (-0.5, 0.5), (0.99, 0.98), (0.9, 0.7))
    compensated = prior.compensated(target)
    np.testing.assert_allclose(compensated[:, 0], target[:, 0] * 1.1, rtol=1e-5)
    np.testing.assert_allclose(compensated[:, 1], target[:, 1] * 1.4, rtol=1e-5)
    again = np.roll(compensated, 50, axis=2) * np.array([[0.9], [0.7]])
    assert response_gain(again, target, RATE_HZ) == pytest.approx((0.99, 0.98), abs=1e-3)


@pytest.mark.parametrize("task", ["movies", "reading"])
def test_too_few_jumps_and_tasks_without_targets_have_no_prior(task: str) -> None:
    assert TargetPrior.fit([jumping_windows()], task) is None
    assert TargetPrior.fit([short_windows()], "dots") is None
