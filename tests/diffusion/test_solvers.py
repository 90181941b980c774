"""Solvers against the exact solution for Gaussian data, where D is linear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.edm import Edm
from gazediffusion.diffusion.solvers import ddim, heun, unipc
from gazediffusion.errors import GazeError

STD = 0.7


def denoise(x: Tensor, sigma: float) -> Tensor:
    """The best estimate of a centred Gaussian with standard deviation STD."""
    return x * (STD**2 / (STD**2 + sigma**2))


def exact(x: Tensor, here: float, there: float) -> Tensor:
    """The probability flow of a Gaussian only rescales it."""
    return x * math.sqrt((STD**2 + there**2) / (STD**2 + here**2))


def error(solve: Callable[..., Iterator[Tensor]], n: int, **settings: int) -> float:
    """Of the sample just before the last level, relative; the last step to zero is D itself."""
    levels = Edm(sigma_min=0.002, sigma_max=20.0).sigma_schedule(n).tolist()
    x = torch.tensor([levels[0]], dtype=torch.float64)
    begin = torch.ones_like(x) if solve is ddim else x
    *_, before_last, _ = solve(denoise, begin, levels, **settings)
    return float(abs(before_last / exact(x, levels[0], levels[-2]) - 1))


@pytest.mark.parametrize(
    ("solve", "settings", "order"),
    [(ddim, {}, 1), (unipc, {"order": 1}, 1), (unipc, {"order": 3}, 4), (heun, {}, 2)],
)
def test_solvers_converge_with_their_order(
    solve: Callable[..., Iterator[Tensor]], settings: dict[str, int], order: int
) -> None:
    coarse, fine = (error(solve, n, **settings) for n in (100, 200))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.45)


def test_higher_order_is_nearer_at_few_steps() -> None:
    assert error(unipc, 12, order=3) < error(unipc, 12, order=1) < error(ddim, 12)


def test_steps_of_ddim_are_linear_in_sigma() -> None:
    levels, expected = [5.0, 1.0, 0.2, 0.0], torch.tensor([5.0])
    for (here, there), step in zip(
        pairwise(levels), ddim(denoise, torch.ones(1), levels), strict=True
    ):
        clean = denoise(expected, here)
        expected = clean + there / here * (expected - clean)
        torch.testing.assert_close(step, expected)


@pytest.mark.parametrize("solve", [ddim, unipc, heun])
def test_each_step_takes_one_evaluation_and_the_last_is_the_estimate_itself(
    solve: Callable[..., Iterator[Tensor]],
) -> None:
    levels, calls = [2.0, 1.0, 0.5, 0.0], list[float]()

    def counting(x: Tensor, sigma: float) -> Tensor:
        calls.append(sigma)
        return denoise(x, sigma)

    *_, before, last = solve(counting, torch.ones(1) * (1 if solve is ddim else 2), levels)
    torch.testing.assert_close(last, denoise(before, 0.5))
    assert calls == (levels[:-1] if solve is not heun else [2.0, 1.0, 1.0, 0.5, 0.5])


def test_an_order_that_does_not_exist_is_refused() -> None:
    with pytest.raises(GazeError, match="order"):
        list(unipc(denoise, torch.ones(1), [1.0, 0.0], order=5))
