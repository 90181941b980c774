"""Elapsed time as weights of linear interpolation."""

from __future__ import annotations

import torch

from gazediffusion.conditioning.course import KNOTS_S, encode_elapsed


def test_weights_interpolate_the_time_linearly() -> None:
    seconds = torch.tensor([0.0, 0.3, 1.0, 2.0, 11.9, 45.0, 90.0])
    weights = encode_elapsed(seconds)
    assert weights.shape == (7, len(KNOTS_S))
    assert (weights >= 0).all()
    assert ((weights > 0).sum(dim=1) <= 2).all()
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(7))
    torch.testing.assert_close(weights @ torch.tensor(KNOTS_S), seconds)


def test_a_time_that_is_not_given_has_no_weights_and_a_late_one_the_last() -> None:
    weights = encode_elapsed(torch.tensor([torch.nan, 3600.0]))
    assert not weights[0].any()
    assert weights[1].tolist() == [0.0] * (len(KNOTS_S) - 1) + [1.0]
