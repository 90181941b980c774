from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gazediffusion.training import batches

N, LENGTH, RATE = 4000, 500, 250.0


def uniform(seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    return draw


def test_every_kind_of_mask_has_its_share() -> None:
    known = batches.known_samples(N, LENGTH, RATE, uniform())
    begins, ends = known[:, 0], known[:, -1]
    whole = known.all(dim=1)
    shares = batches.SHARES
    assert abs(float((~known.any(dim=1)).float().mean()) - shares["nothing"]) < 0.04
    assert abs(float(whole.float().mean()) - shares["everything"]) < 0.04
    prefix = begins & ~ends & (known.int().diff(dim=1).abs().sum(dim=1) == 1)
    assert float(prefix.float().mean()) > 0.08
    assert float((ends & ~begins).float().mean()) > 0.02


def test_gaps_go_from_a_few_samples_to_more_than_a_second() -> None:
    hidden = batches.gaps(N, LENGTH, RATE, uniform())
    assert hidden.any(dim=1).float().mean() > 0.98
    lengths = hidden.sum(dim=1)
    assert lengths.min() <= 10
    assert lengths.max() > RATE
    assert not hidden.all()


def test_fixations_are_given_whole_in_part_or_not_at_all() -> None:
    fixation = torch.full((N, 2, LENGTH), 0.5)
    fixation[:, :, 200:220] = torch.nan
    given = batches.given_fixations(fixation, RATE, uniform()).isfinite().all(dim=1)
    assert not given[:, 200:220].any()
    n = given.sum(dim=1)
    is_whole = n == LENGTH - 20
    expected = batches.FIXATION_SHARE * batches.FIXATIONS_WHOLE
    assert abs(float(is_whole.float().mean()) - expected) < 0.05
    assert abs(float((n == 0).float().mean()) - (1 - batches.FIXATION_SHARE)) < 0.1
    assert ((n > 0) & ~is_whole).any()


def test_targets_are_given_for_whole_windows() -> None:
    target = torch.zeros(N, 2, LENGTH)
    given = batches.given_targets(target, uniform()).isfinite().flatten(1)
    assert (given.all(dim=1) | ~given.any(dim=1)).all()
    assert abs(float(given.any(dim=1).float().mean()) - batches.TARGET_SHARE) < 0.04
