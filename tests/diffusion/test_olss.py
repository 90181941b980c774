"""Fitted solvers: exact where an exact one exists, closer than general ones elsewhere."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.edm import Edm
from gazediffusion.diffusion.olss import LinearSolver, ddim_states, reference
from gazediffusion.diffusion.solvers import CleanEstimate, multistep, unipc
from gazediffusion.errors import GazeError

HIGHEST, LOWEST = 20.0, 0.02
STD = torch.tensor([0.3, 1.1])[:, None]


def noise(seed: int, n: int = 24) -> Tensor:
    return torch.randn(n, 2, 60, generator=torch.Generator().manual_seed(seed))


def gaussian(x: Tensor, sigma: float) -> Tensor:
    """The best estimate of channels with standard deviations STD."""
    return x * (STD**2 / (STD**2 + sigma**2))


def bimodal(x: Tensor, sigma: float) -> Tensor:
    """The best estimate of samples that are -0.5 or 0.5, up to a scatter of 0.1."""
    total = 0.1**2 + sigma**2
    share = torch.tanh(0.5 * x / total)
    return (0.1**2 * x + sigma**2 * 0.5 * share) / total


def fitted(denoise: CleanEstimate, levels: list[float]) -> LinearSolver:
    states = reference(denoise, noise(0) * HIGHEST, levels, HIGHEST, LOWEST)
    return LinearSolver.fit(denoise, noise(0), levels, states)


def test_a_gaussian_takes_one_evaluation_with_coefficients_by_channel() -> None:
    solver = fitted(gaussian, [5.0])
    (found,) = solver.steps(gaussian, noise(1))
    exact = noise(1) * HIGHEST * STD / (STD**2 + HIGHEST**2) ** 0.5
    torch.testing.assert_close(found, exact, rtol=0.02, atol=0.01)


def test_a_fitted_solver_comes_closer_than_general_ones_with_more_steps() -> None:
    levels = Edm(sigma_min=0.05, sigma_max=5.0).sigma_schedule(5).tolist()[:-1]
    solver = fitted(bimodal, levels)
    x = noise(1)
    fine = Edm(sigma_min=LOWEST, sigma_max=HIGHEST).sigma_schedule(400).tolist()
    *_, exact = unipc(bimodal, x * HIGHEST, fine)

    def error(found: Tensor) -> float:
        return float((found - exact).square().mean().sqrt())

    *_, few = solver.steps(bimodal, x)
    errors = []
    for solve in (multistep, unipc):
        coarse = Edm(sigma_min=LOWEST, sigma_max=HIGHEST).sigma_schedule(7).tolist()
        *_, general = solve(bimodal, x * HIGHEST, coarse)
        errors.append(error(general))
    assert error(few) < 0.7 * min(errors)


def test_each_step_takes_one_evaluation_at_its_level() -> None:
    levels = [8.0, 1.0, 0.1]
    solver = fitted(bimodal, levels)
    asked: list[float] = []

    def counted(x: Tensor, sigma: float) -> Tensor:
        asked.append(sigma)
        return bimodal(x, sigma)

    assert len(list(solver.steps(counted, noise(1)))) == 3
    assert asked == levels


def test_the_reference_gives_the_states_after_each_level() -> None:
    levels, x = [8.0, 1.0, 0.1], noise(0) * HIGHEST
    states = reference(gaussian, x, levels, HIGHEST, LOWEST)
    assert len(states) == 3
    for level, state in zip([1.0, 0.1], states, strict=False):
        exact = x * (STD**2 + level**2).sqrt() / (STD**2 + HIGHEST**2).sqrt()
        torch.testing.assert_close(state, exact, rtol=0.02, atol=0.005)


def test_ddim_steps_are_a_linear_solver() -> None:
    levels, x = [8.0, 1.0, 0.1], noise(0)
    solver = LinearSolver.ddim(levels, x.shape[1])
    expected = list(multistep(bimodal, x * levels[0], [*levels, 0.0], order=1))
    for found, state in zip(solver.steps(bimodal, x), expected, strict=True):
        torch.testing.assert_close(found, state, rtol=1e-4, atol=1e-4)


def test_states_along_ddim_steps_are_those_of_its_solver() -> None:
    levels = [8.0, 2.0, 1.0, 0.1]
    solver = LinearSolver.ddim(levels, noise(0).shape[1])
    states = ddim_states(bimodal, noise(0), levels, levels)
    for state, x in zip(states, solver.steps(bimodal, noise(0)), strict=True):
        torch.testing.assert_close(state, x, rtol=1e-4, atol=1e-5)
    # A level between two others lies on the line between their states.
    between = ddim_states(bimodal, noise(0), levels, [8.0, 1.5, 0.1])
    torch.testing.assert_close(between[0], (states[0] + states[1]) / 2, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(between[1:], states[2:], rtol=0.0, atol=0.0)


def test_fewer_steps_fitted_to_ddim_come_closer_to_it_than_fewer_ddim_steps() -> None:
    levels, fewer = [8.0, 2.0, 1.0, 0.1], [8.0, 1.4, 0.1]
    states = ddim_states(bimodal, noise(0), levels, fewer)
    fitted = LinearSolver.fit(bimodal, noise(0), fewer, states)
    n = noise(0).shape[1]
    aim, found, plain = (
        list(one.steps(bimodal, noise(1)))[-1]
        for one in (LinearSolver.ddim(levels, n), fitted, LinearSolver.ddim(fewer, n))
    )
    assert (found - aim).square().mean() < (plain - aim).square().mean()


def test_a_solver_survives_json() -> None:
    solver = fitted(bimodal, [8.0, 1.0, 0.1])
    again = LinearSolver.from_json(json.loads(json.dumps(solver.to_json())))
    assert again == solver
    assert np.isfinite([w for step in again.coefficients for one in step for w in one]).all()


@pytest.mark.parametrize(
    ("levels", "coefficients", "problem"),
    [
        ((1.0, 2.0), (((1.0, 0.0),), ((1.0, 0.0, 0.0),)), "must decrease"),
        ((), (), "must decrease"),
        ((2.0, 1.0), (((1.0, 0.0),),), "as many steps as levels"),
        ((2.0,), (((1.0, 0.0, 0.0),),), "step 1 of a solver has 2 coefficients"),
        ((2.0,), (((1.0, math.nan),),), "finite"),
    ],
)
def test_damaged_solvers_are_refused(levels: tuple, coefficients: tuple, problem: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(GazeError, match=problem):
        LinearSolver(levels, coefficients)
