"""Denoising errors: 1 for the best linear denoiser of white noise, and where they arise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.likelihood import denoising_errors

LEVELS = (0.05, 0.5, 5.0)
STD = 0.5


def linear(x: Tensor, sigma: float) -> Tensor:
    """The ideal denoiser of independent samples of standard deviation STD."""
    return x * (STD**2 / (STD**2 + sigma**2))


def white(n: int, length: int = 1000) -> Tensor:
    return STD * torch.randn(n, 2, length, generator=torch.Generator().manual_seed(0))


def test_the_errors_of_white_noise_are_one_at_every_level() -> None:
    errors = denoising_errors(linear, white(20), LEVELS, 4, STD, 100)
    assert errors.shape == (20, 3, 2, 10)
    np.testing.assert_allclose(errors.mean(dim=(0, 2, 3)), [1, 1, 1], atol=0.03)


def test_errors_are_means_over_spans_and_the_last_may_be_shorter() -> None:
    x0 = white(3, 25)
    whole = denoising_errors(linear, x0, LEVELS, 2, STD, 25)[..., 0]
    parts = denoising_errors(linear, x0, LEVELS, 2, STD, 10)
    assert parts.shape[-1] == 3
    sizes = torch.tensor([10, 10, 5])
    np.testing.assert_allclose((parts * sizes).sum(dim=-1) / 25, whole, rtol=1e-5)


def test_a_planted_outlier_shows_in_its_span_and_channel() -> None:
    x0 = white(1, 100)
    odd = x0.clone()
    odd[0, 1, 35] += 20
    before, after = (denoising_errors(linear, x, (0.5,), 1, STD, 10) for x in (x0, odd))
    changed = (after > before + 1)[0, 0]
    assert changed.nonzero().tolist() == [[1, 3]]


def test_errors_do_not_depend_on_the_batch_but_on_the_seed() -> None:
    x0 = white(4, 50)
    together = denoising_errors(linear, x0, LEVELS, 1, STD, 10)
    alone = torch.cat([denoising_errors(linear, x0[k : k + 1], LEVELS, 1, STD, 10) for k in (2, 0)])
    assert torch.equal(together[[2, 0]], alone)
    assert not torch.equal(together, denoising_errors(linear, x0, LEVELS, 1, STD, 10, seed=1))


def test_progress_counts_evaluations() -> None:
    seen: list[tuple[int, int]] = []
    denoising_errors(linear, white(1, 10), LEVELS, 2, STD, 5, progress=lambda *at: seen.append(at))
    assert seen == [(k, 6) for k in range(1, 7)]
    assert seen[-1][0] == pytest.approx(6)
