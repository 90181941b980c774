"""Oracle: Gaussian data, for which the best denoiser and every term of the bound are known."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gazediffusion.diffusion.ddpm import Denoiser, Schedule
from gazediffusion.diffusion.likelihood import (
    Bound,
    draw_steps,
    expected_sizes,
    probabilities,
    standard_error_of_mean,
    variational_bound,
)
from gazediffusion.errors import GazeError
from gazediffusion.seeds import Stream, rng

SCHEDULE = Schedule()
SHORT = Schedule(100, 1e-4, 0.2)
STD = 0.5


def gaussian_denoiser(schedule: Schedule, std: float, objective: str = "eps") -> Denoiser:
    """The best possible denoiser for data N(0, std^2), in closed form."""

    def denoise(xt: Tensor, t: Tensor) -> Tensor:
        alpha_bar = schedule.alpha_bar[t].to(xt)[:, None, None]
        x0 = alpha_bar.sqrt() * std**2 / (alpha_bar * std**2 + 1 - alpha_bar) * xt
        return x0 if objective == "x0" else schedule.eps_from_x0(xt, t, x0)

    return denoise


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    """Data of other random numbers than the noise of the same seed."""
    seed += 10_000
    return STD * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def closed_form(schedule: Schedule) -> tuple[float, float, float]:
    """Expected prior, diffusion and reconstruction for data N(0, STD^2), by the posterior."""
    alpha_bar, before = schedule.alpha_bar[1:], schedule.alpha_bar_before[1:]
    unknown = STD**2 * (1 - alpha_bar) / (alpha_bar * STD**2 + 1 - alpha_bar)  # Var(x0 | xt)
    weight = before * schedule.beta[1:] ** 2 / (1 - alpha_bar) ** 2
    terms = (weight * unknown / (2 * schedule.beta_tilde[1:]))[1:]
    first, last = float(schedule.beta[1]), float(alpha_bar[-1])
    prior = 0.5 * (last * STD**2 - last - math.log(1 - last))
    reconstruction = 0.5 * (float(unknown[0]) / first + math.log(2 * math.pi * first))
    return prior, float(terms.sum()), reconstruction


@pytest.mark.parametrize("objective", ["eps", "x0"])
@pytest.mark.parametrize("n_times", [None, 1000, 8])
def test_the_bound_of_the_best_denoiser_of_gaussian_data_is_its_closed_form(
    objective: str, n_times: int | None
) -> None:
    """And no code is shorter than the entropy."""
    denoiser = gaussian_denoiser(SCHEDULE, STD, objective)
    x0 = gaussian(16 if n_times != 8 else 64, 2, 200)
    bound = variational_bound(denoiser, SCHEDULE, x0, objective, n_times, seed=1)  # type: ignore[arg-type]
    prior, diffusion, reconstruction = closed_form(SCHEDULE)
    error = bound.standard_error
    assert 0 < error < 0.05
    assert bound.diffusion == pytest.approx(diffusion, abs=3 * error)
    assert bound.reconstruction == pytest.approx(reconstruction, abs=0.02)
    assert bound.prior == pytest.approx(prior, abs=1e-5)
    assert bound.total > 0.5 * math.log(2 * math.pi * math.e * STD**2) - 3 * error
    assert bound.n_steps == (n_times if n_times == 8 else 999)
    assert bound.n_evaluations == len(x0) * (bound.n_steps + 1)


def test_any_number_of_steps_gives_the_same_bound_on_average_and_its_error_covers_it() -> None:
    """120 seeds with 3 of 99 steps: the mean is the full sum, 95 % of the intervals hold it."""
    denoiser, truth = gaussian_denoiser(SHORT, STD), sum(closed_form(SHORT))
    bounds = [
        variational_bound(denoiser, SHORT, gaussian(16, 1, 16, seed=seed), n_times=3, seed=seed)
        for seed in range(120)
    ]
    totals = torch.tensor([bound.total for bound in bounds]).double()
    errors = torch.tensor([bound.standard_error for bound in bounds]).double()
    assert float(totals.mean()) == pytest.approx(truth, abs=3 * float(totals.std()) / 120**0.5)
    assert float(errors.square().mean().sqrt()) == pytest.approx(float(totals.std()), rel=0.2)
    share = float(((totals - truth).abs() < 1.96 * errors).double().mean())
    assert 0.88 < share < 0.99


def test_a_few_steps_of_each_window_cost_little_precision() -> None:
    x0, denoiser = gaussian(32, 2, 50), gaussian_denoiser(SCHEDULE, STD)
    few = variational_bound(denoiser, SCHEDULE, x0, n_times=8)
    every = variational_bound(denoiser, SCHEDULE, x0)
    assert few.total == pytest.approx(every.total, abs=3 * few.standard_error)
    assert few.standard_error < 3 * every.standard_error


@pytest.mark.parametrize("n", [1, 8, 50, 999])
def test_every_step_is_drawn_with_its_probability(n: int) -> None:
    probability = probabilities(expected_sizes(SCHEDULE), n)
    assert float(probability.sum()) == pytest.approx(n)
    assert 0 < float(probability.min()) <= float(probability.max()) <= 1
    draws = rng(0, Stream.LIKELIHOOD)
    drawn = torch.zeros(999)
    for _ in range(2000):
        steps = draw_steps(probability, float(draws.random()))
        assert len(steps) == n == len(set(steps.tolist()))
        drawn[steps] += 1
    drawn /= 2000
    assert (drawn[probability == 1] == 1).all()
    spread = (probability * (1 - probability) / 2000).sqrt()
    assert ((drawn - probability).abs() <= 5 * spread + 1e-3).all()


def test_the_bound_of_a_worse_denoiser_is_worse() -> None:
    x0 = gaussian(16, 2, 100)
    good = variational_bound(gaussian_denoiser(SCHEDULE, STD), SCHEDULE, x0, n_times=50)
    bad = variational_bound(gaussian_denoiser(SCHEDULE, 4 * STD), SCHEDULE, x0, n_times=50)
    assert bad.total > good.total + 0.05


def test_the_prior_term_is_the_divergence_of_gaussians() -> None:
    short = Schedule(10, 0.1, 0.5)
    x0 = torch.full((1, 1, 1), 2.0, dtype=torch.float64)
    alpha_bar = float(short.alpha_bar[-1])
    mean, variance = math.sqrt(alpha_bar) * 2.0, 1 - alpha_bar
    expected = 0.5 * (variance + mean**2 - 1 - math.log(variance))
    bound = variational_bound(gaussian_denoiser(short, 1.0), short, x0)
    assert bound.prior == pytest.approx(expected)


def test_the_standard_error_is_that_of_independent_participants() -> None:
    """Ten copies of a participant's window say nothing new."""
    values = torch.tensor([1.0, 4.0, 2.0, 7.0]).double()
    alone = standard_error_of_mean(values)
    assert alone == pytest.approx(float(values.std()) / 2)
    copies, names = values.repeat_interleave(10), [name for name in "abcd" for _ in range(10)]
    assert standard_error_of_mean(copies, names) == pytest.approx(alone)
    assert standard_error_of_mean(copies) < 0.4 * alone
    assert standard_error_of_mean(values, "aaaa") == pytest.approx(alone)
    assert math.isnan(standard_error_of_mean(values[:1]))


def test_a_change_of_variables_moves_the_bound_by_its_log_determinant() -> None:
    """Data twice as wide have the density of the same data in half units, halved."""
    x0 = gaussian(8, 1, 50)
    bound = variational_bound(
        gaussian_denoiser(SHORT, STD), SHORT, x0, log_determinant=math.log(1 / 2)
    )
    values = bound.to_json()
    assert values["total_in_position"] == pytest.approx(bound.total + math.log(2))
    assert set(values) >= {"prior", "diffusion", "reconstruction", "total", "standard_error"}
    assert (values["n_windows"], values["n_steps"]) == (8, 99)


def test_parts_known_by_window_make_a_bound() -> None:
    parts = torch.tensor([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    bound = Bound.of_windows(parts[0], parts[1], parts[2], n_steps=99)
    assert (bound.prior, bound.diffusion, bound.reconstruction) == (0.5, 1.5, 2.5)
    assert bound.standard_error == pytest.approx(1.5)


def test_progress_counts_evaluations() -> None:
    seen: list[tuple[int, int]] = []
    denoiser = gaussian_denoiser(SHORT, STD)
    bound = variational_bound(
        denoiser, SHORT, gaussian(3, 1, 8), progress=lambda *one: seen.append(one)
    )
    assert seen[-1] == (bound.n_evaluations, bound.n_evaluations) == (300, 300)
    assert len(seen) > 3  # the steps of a window are evaluated in parts


def test_no_steps_are_refused() -> None:
    with pytest.raises(GazeError, match="`n_times` must be 1 or more"):
        variational_bound(gaussian_denoiser(SHORT, STD), SHORT, gaussian(2, 1, 8), n_times=0)
