"""Solvers against the exact solution for Gaussian data, where D is linear."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.edm import Edm
from gazediffusion.diffusion.solvers import evaluations, heun, multistep, step_weights, unipc
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
    levels = Edm(sigma_min=0.002, sigma_max=20.0, rho=7.0).sigma_schedule(n).tolist()
    x = torch.tensor([levels[0]], dtype=torch.float64)
    *_, before_last, _ = solve(denoise, x, levels, **settings)
    return float(abs(before_last / exact(x, levels[0], levels[-2]) - 1))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_multistep_converges_with_its_order(order: int) -> None:
    coarse, fine = (error(multistep, n, order=order) for n in (100, 200))
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.45)


@pytest.mark.parametrize("order", [2, 3])
def test_correction_brings_each_step_nearer(order: int) -> None:
    for n in (25, 50, 100, 200):
        assert error(unipc, n, order=order) < 0.6 * error(multistep, n, order=order)


def test_correction_converges_with_its_order() -> None:
    coarse, fine = (error(unipc, n, order=3) for n in (100, 200))
    assert math.log2(coarse / fine) > 2.55


def test_heun_is_of_second_order() -> None:
    coarse, fine = (error(heun, n) for n in (50, 100))
    assert math.log2(coarse / fine) == pytest.approx(2, abs=0.3)


def test_higher_order_is_nearer_at_few_steps() -> None:
    assert error(multistep, 12, order=3) < error(multistep, 12, order=2)
    assert error(multistep, 12, order=2) < error(multistep, 12, order=1)


def test_order_one_is_ddim() -> None:
    levels = [5.0, 1.0, 0.2, 0.0]
    x = torch.tensor([5.0])
    expected = x
    steps = list(multistep(denoise, x, levels, order=1))
    for (here, there), step in zip(pairwise(levels), steps, strict=True):
        clean = denoise(expected, here)
        expected = clean + there / here * (expected - clean)
        torch.testing.assert_close(step, expected)


def test_order_two_is_dpm_solver_2m() -> None:
    """Lu et al. 2022, algorithm 2, in its own form."""
    levels = [5.0, 1.0, 0.4]
    x = torch.tensor([5.0])
    (first, second) = list(multistep(denoise, x, [*levels, 0.0], order=2))[:2]
    h1, h2 = math.log(5.0 / 1.0), math.log(1.0 / 0.4)
    d0, d1 = denoise(x, 5.0), denoise(first, 1.0)
    mixed = (1 + h2 / (2 * h1)) * d1 - h2 / (2 * h1) * d0
    dpm = 0.4 * first - math.expm1(-h2) * mixed
    # The paper's form approximates the same integral to second order.
    torch.testing.assert_close(second, dpm, rtol=0.05, atol=0)


def test_weights_of_a_step_sum_to_what_a_constant_gives() -> None:
    nodes, end = [0.3, -0.4, -1.5], 1.1
    assert sum(step_weights(nodes, nodes[0], end)) == pytest.approx(1 - math.exp(0.3 - 1.1))


def test_the_last_step_is_the_estimate_itself() -> None:
    for solve in (multistep, unipc, heun):
        levels = [2.0, 0.5, 0.0]
        x = torch.tensor([2.0])
        before, last = list(solve(denoise, x, levels))
        torch.testing.assert_close(last, denoise(before, 0.5))


@pytest.mark.parametrize(("solver", "n"), [("multistep", 12), ("unipc", 12), ("heun", 23)])
def test_evaluations_are_counted(solver: str, n: int) -> None:
    calls: list[float] = []

    def counting(x: Tensor, sigma: float) -> Tensor:
        calls.append(sigma)
        return denoise(x, sigma)

    solve = {"multistep": multistep, "unipc": unipc, "heun": heun}[solver]
    list(solve(counting, torch.ones(1), Edm().sigma_schedule(12).tolist()))
    assert len(calls) == evaluations(solver, 12) == n  # type: ignore[arg-type]


def test_an_order_that_does_not_exist_is_refused() -> None:
    with pytest.raises(GazeError, match="order"):
        list(multistep(denoise, torch.ones(1), [1.0, 0.0], order=5))
