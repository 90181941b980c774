"""Muon: steps that move all directions of a matrix alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gazediffusion.training.learner import Muon, is_matrix, orthogonalized


def some(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_orthogonalized_matrices_have_singular_values_near_one() -> None:
    # Singular values from 1 down to a hundredth, which the gradient's own are like.
    u, _, v = torch.linalg.svd(some(3, 16, 48), full_matrices=False)
    ill = u @ torch.diag_embed(torch.logspace(0, -2, 16).expand(3, 16)) @ v
    found = orthogonalized(ill)
    values = torch.linalg.svdvals(found)
    assert 0.5 < float(values.min()) < float(values.max()) < 1.3
    # And the same directions.
    turned = torch.linalg.solve(torch.diag_embed(values), u.mT @ found @ v.mT)
    assert float(torch.diagonal(turned, dim1=1, dim2=2).min()) > 0


def test_a_matrix_of_zeros_does_not_move() -> None:
    weight = nn.Parameter(some(8, 8))
    before = weight.detach().clone()
    weight.grad = torch.zeros_like(weight)
    Muon([weight], lr=0.1).step()
    assert torch.equal(weight, before)


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 4, 5), (4, 16, 3)])
def test_a_step_is_as_large_as_one_of_adamw(shape: tuple[int, ...]) -> None:
    """About a fifth of the rate in every number, whatever the shape and the gradient's size."""
    for size in (1e-6, 1e3):
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = size * some(*shape)
        Muon([weight], lr=0.01).step()
        root = float(weight.detach().square().mean().sqrt())
        assert root == pytest.approx(0.2 * 0.01, rel=0.35)
        # It goes down.
        assert float((weight.detach() * weight.grad).sum()) < 0


def test_weights_of_one_shape_are_moved_as_each_would_be_alone() -> None:
    shapes = [(8, 4, 3), (8, 12), (12, 8), (6, 30), (8, 4, 3)]
    together = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    alone = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    optimizers = [Muon(together, lr=0.1), *(Muon([one], lr=0.1) for one in alone)]
    for step in range(3):
        for number, shape in enumerate(shapes):
            gradient = some(*shape, seed=10 * step + number)
            together[number].grad, alone[number].grad = gradient, gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(together, alone, strict=True):
        torch.testing.assert_close(one, other)


def test_it_fits_directions_of_very_different_sizes() -> None:
    """A line whose inputs are a hundred times smaller in some directions than in others."""
    turn = torch.linalg.qr(some(32, 32, seed=2)).Q
    inputs = some(256, 32) @ torch.diag(torch.logspace(0, -2, 32)) @ turn
    truth, weight = some(32, 32, seed=1), nn.Parameter(torch.zeros(32, 32))
    rate = torch.tensor(0.0)
    optimizer = Muon([weight], lr=rate)
    for step in range(200):
        rate.fill_(0.3 * (1 - step / 200))  # read anew at every step
        optimizer.zero_grad()
        (inputs @ (weight - truth)).square().mean().backward()
        optimizer.step()
    # The smallest directions too, which hardly show in the loss.
    assert float((weight.detach() - truth).norm() / truth.norm()) < 0.2


def test_what_is_a_matrix() -> None:
    shapes = {(8,): False, (4, 1, 1): False, (4, 8): True, (8, 4, 3): True}
    found = {shape: is_matrix(torch.zeros(shape)) for shape in shapes}
    assert found == shapes
