"""Symmetric tridiagonal systems."""

from __future__ import annotations

import pytest
import torch

from gazediffusion.network.representations import solve_tridiagonal


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
