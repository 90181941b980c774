"""Targets of long gaze: their intervals and positions are those of the training participants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gazediffusion.conditioning.targets import TargetPrior
from gazediffusion.data.windows import Windows
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
    target = prior.draw(100_000, RATE_HZ, 3)
    at = np.flatnonzero(np.diff(target[0])) + 1
    intervals_s = np.diff(at) / RATE_HZ
    assert 0.396 <= intervals_s.min() < 0.41
    assert 0.59 < intervals_s.max() <= 0.604
    assert np.quantile(target[0, at], [0.25, 0.5, 0.75]) == pytest.approx(
        [-0.25, 0, 0.25], abs=0.06
    )
    np.testing.assert_allclose(target[1], 0.1)
    np.testing.assert_array_equal(prior.draw(100, RATE_HZ, 3), target[:, :100])
    assert not np.array_equal(prior.draw(100, RATE_HZ, 4), target[:, :100])


@pytest.mark.parametrize("task", ["movies", "reading"])
def test_too_few_jumps_and_tasks_without_targets_have_no_prior(task: str) -> None:
    assert TargetPrior.fit([jumping_windows()], task) is None
    assert TargetPrior.fit([short_windows()], "dots") is None
