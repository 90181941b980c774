"""Means over given fixations are in place."""

from __future__ import annotations

import numpy as np
import torch

from gazediffusion.generation.steering import FixationMeans

# Window 0: two fixations with three samples between; window 1: one in the middle; window 2: none.
FIXATIONS = [(0, 2, 6, (0.5, -0.5)), (0, 9, 12, (1.0, 0.0)), (1, 4, 8, (-1.0, 1.0))]


def given() -> torch.Tensor:
    array = torch.full((3, 2, 16), torch.nan)
    for window, first, stop, place in FIXATIONS:
        array[window, :, first:stop] = torch.tensor(place)[:, None]
    return array


def test_means_are_where_they_were_asked_for() -> None:
    position = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(0))
    means = FixationMeans.of(given())
    assert means is not None
    moved = means.moved(position)
    for window, first, stop, place in FIXATIONS:
        found = moved[window, :, first:stop].mean(dim=-1)
        torch.testing.assert_close(found, torch.tensor(place), atol=1e-5, rtol=0)
    assert torch.equal(moved[2], position[2])


def test_the_shift_is_constant_within_and_linear_between() -> None:
    means = FixationMeans.of(given())
    assert means is not None
    shift = means.moved(torch.zeros(3, 2, 16))
    # The ends of a window keep the shift of the nearest fixation.
    expected = np.interp(np.arange(16), [5, 9], [0.5, 1.0])
    np.testing.assert_allclose(shift[0, 0].numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(shift[1, 1].numpy(), np.ones(16), atol=1e-6)


def test_neighbouring_fixations_differ_by_their_position() -> None:
    array = torch.full((1, 2, 8), 0.25)
    array[..., 4:] = -0.25
    means = FixationMeans.of(array)
    assert means is not None
    assert means.number.tolist() == [[1, 1, 1, 1, 2, 2, 2, 2]]
    torch.testing.assert_close(means.moved(torch.zeros(1, 2, 8)), array)


def test_known_samples_stay_and_the_shift_begins_after_them() -> None:
    is_known = torch.zeros(3, 16, dtype=torch.bool)
    is_known[0, :4] = True  # half of the first fixation
    is_known[1, :2] = True
    is_known[2] = True
    means = FixationMeans.of(given(), is_known)
    assert means is not None
    shift = means.moved(torch.zeros(3, 2, 16))
    expected = np.interp(np.arange(16), [3, 4, 5, 9], [0.0, 0.5, 0.5, 1.0])
    np.testing.assert_allclose(shift[0, 0].numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(
        shift[1, 1].numpy(), np.interp(np.arange(16), [1, 4], [0.0, 1.0]), atol=1e-6
    )
    assert not shift[2].any()
    assert FixationMeans.of(given(), torch.ones(3, 16, dtype=torch.bool)) is None


def test_nothing_given_is_nothing_to_do() -> None:
    assert FixationMeans.of(torch.full((2, 2, 5), torch.nan)) is None
