"""The response of a network to its statistics, and the calibration that inverts it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.prior import Prior
from gazediffusion.conditioning.response import calibrated
from gazediffusion.conditioning.statistics import STATISTICS, TRACKER
from tests.conditioning.test_prior import drawn, of_two_groups, same


@pytest.fixture(scope="module")
def prior() -> Prior:
    return Prior.fit([of_two_groups()], ["both"])


def respond(condition: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    """A network with a gain of 0.8, an offset and a scatter."""
    return 0.8 * condition - 0.2 + 0.3 * torch.randn(condition.shape, generator=noise)


def test_calibrated_statistics_have_the_mean_and_variance_of_their_targets(prior: Prior) -> None:
    noise = torch.Generator().manual_seed(0)
    zeros = [0] * 4000
    targets = torch.randn(4000, len(STATISTICS), generator=noise)
    assert torch.equal(prior.calibrated_condition(zeros, zeros, targets), targets)
    before = respond(targets, noise)
    found = calibrated(prior, [zeros], [targets], [before])
    condition = found.calibrated_condition(zeros, zeros, targets)
    after = respond(condition, noise)
    assert float((before - targets).mean().abs()) > 0.19
    assert float((after - targets).mean().abs()) < 0.02
    others = slice(len(TRACKER), None)
    excess = [float((one.std(dim=0) - 1)[others].mean()) for one in (before, after)]
    assert excess[0] < -0.1
    assert abs(excess[1]) < 0.02
    # Of the tracker's statistics only the mean is calibrated.
    shift = (condition - targets)[:, : len(TRACKER)]
    torch.testing.assert_close(shift, shift[:1].expand_as(shift))
    assert torch.equal(drawn(found, 9), drawn(prior, 9))
    assert found.is_calibrated
    assert same(found.uncalibrated(), prior)


def test_calibration_converges(prior: Prior) -> None:
    zeros = [0] * 4000
    targets = torch.randn(4000, len(STATISTICS), generator=torch.Generator().manual_seed(1))
    conditions = []
    for _ in range(3):
        condition = prior.calibrated_condition(zeros, zeros, targets)
        conditions.append(condition)
        generated = respond(condition, torch.Generator().manual_seed(2))
        prior = calibrated(prior, [zeros], [targets], [generated])
    assert float((conditions[1] - conditions[0]).abs().max()) > 0.2
    assert float((conditions[2] - conditions[1]).abs().max()) < 0.02


def test_statistics_without_a_response_are_shifted_but_not_stretched(prior: Prior) -> None:
    noise = torch.Generator().manual_seed(3)
    targets = torch.randn(4000, len(STATISTICS), generator=noise)
    unrelated = torch.randn(4000, len(STATISTICS), generator=noise) + 1
    (component,) = calibrated(prior, [[0] * 4000], [targets], [unrelated]).components[0]
    intercept, slope = component.deviation.T
    np.testing.assert_allclose(intercept, 1, atol=0.2)
    assert np.abs(slope).max() == 0


def test_conditions_stay_within_the_range_of_the_targets(prior: Prior) -> None:
    """A network with a constant output does not drive the condition to infinity."""
    zeros = [0] * 400
    targets = torch.randn(400, len(STATISTICS), generator=torch.Generator().manual_seed(4))
    shifts = []
    for _ in range(6):
        prior = calibrated(prior, [zeros], [targets], [torch.full_like(targets, -1.0)])
        condition = prior.calibrated_condition(zeros, zeros, targets)
        shift = (condition - targets).mean(dim=0) / targets.std(dim=0)
        shifts.append((float(shift.min()), float(shift.max())))
    assert 0.8 < shifts[0][0] < shifts[0][1] < 1.2
    assert shifts[-1] == pytest.approx((1.5, 1.5), abs=0.01)


def test_rounds_do_not_stretch_a_condition_further_and_further(prior: Prior) -> None:
    zeros = [0] * 2000
    targets = torch.randn(2000, len(STATISTICS), generator=torch.Generator().manual_seed(3))
    for _ in range(5):
        condition = prior.calibrated_condition(zeros, zeros, targets)
        prior = calibrated(prior, [zeros], [targets], [0.5 * condition])
    stretch = prior.calibrated_condition(zeros, zeros, targets).std(dim=0) / targets.std(dim=0)
    others = stretch[len(TRACKER) :]
    torch.testing.assert_close(others, torch.full_like(others, 1.25), rtol=0.01, atol=0)
