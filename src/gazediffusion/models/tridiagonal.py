"""Symmetric tridiagonal systems of equations, many at once, on any device, differentiable."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def solve_tridiagonal(diagonal: Tensor, beside: Tensor, right: Tensor) -> Tensor:
    """The solution (..., n) of symmetric, diagonally dominant systems.

    diagonal, right: (..., n). beside: (..., n - 1), the entries beside the diagonal. By parallel
    cyclic reduction: each round removes the neighbours of every unknown and leaves those that are
    twice as far away, so that log2(n) rounds on whole tensors solve all systems.
    """
    from torch.nn.functional import pad

    n, stride = diagonal.shape[-1], 1
    while stride < n:
        # Of the equation one stride after, and before, each pair.
        after, before = beside / diagonal[..., stride:], beside / diagonal[..., :-stride]
        right = (
            right
            - pad(after * right[..., stride:], (0, stride))
            - pad(before * right[..., :-stride], (stride, 0))
        )
        diagonal = diagonal - pad(after * beside, (0, stride)) - pad(before * beside, (stride, 0))
        beside = -after[..., :-stride] * beside[..., stride:]
        stride *= 2
    return right / diagonal
