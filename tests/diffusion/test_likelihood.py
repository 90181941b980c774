"""Oracle: Gaussian data and mixtures, whose bound, density and denoising errors are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import Tensor

from gazediffusion.diffusion.ddpm import Denoiser, Schedule
from gazediffusion.diffusion.likelihood import (
    Bound,
    Flow,
    denoising_errors,
    draw_steps,
    expected_sizes,
    probabilities,
    standard_error_of_mean,
    variational_bound,
    with_trace,
)
from gazediffusion.errors import GazeError
from gazediffusion.seeds import Stream, rng

SCHEDULE = Schedule()
SHORT = Schedule(100, 1e-4, 0.2)
STD = 0.5
SIGMAS = (0.02, 20.0)
FlowDenoiser = Callable[[Tensor, float], Tensor]
LEVELS = (0.05, 0.5, 5.0)


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


def normal(mean: Tensor, covariance: Tensor) -> FlowDenoiser:
    """The ideal denoiser of N(mean, covariance): mu + C (C + sigma^2 I)^-1 (x - mu)."""
    eye = torch.eye(len(mean), dtype=torch.float64)

    def denoise(x: Tensor, sigma: float) -> Tensor:
        gain = covariance @ torch.linalg.inv(covariance + sigma**2 * eye)
        return torch.as_tensor(mean + (x.flatten(1) - mean) @ gain).view(x.shape)

    return denoise


def some_covariance(n: int, seed: int = 0) -> Tensor:
    root = torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    eye = torch.eye(n, dtype=torch.float64)
    return torch.as_tensor(root @ root.T / n * 0.25 + 1e-3 * eye)


def test_the_density_of_a_gaussian_with_independent_channels_is_exact() -> None:
    # A diagonal Jacobian has its trace estimated without error: what is left is the solver's.
    rng = torch.Generator().manual_seed(0)
    variance = torch.logspace(-4, 0, 24, dtype=torch.float64)
    mean = torch.randn(24, dtype=torch.float64, generator=rng) * 0.3
    x = (mean + variance.sqrt() * torch.randn(8, 24, dtype=torch.float64, generator=rng)).view(
        8, 2, 12
    )
    denoise = normal(mean, torch.diag(variance))
    low, high = (torch.sqrt(variance + sigma**2) for sigma in SIGMAS)
    # The flow multiplies deviations by high / low; at sigma_max the model's noise has mean 0.
    carried = mean + (x.flatten(1) - mean) * high / low
    exact = (norm.logpdf(carried, 0, SIGMAS[1]) + torch.log(high / low).numpy()).sum(axis=1)
    found, finer = (Flow(*SIGMAS, n_steps=n).log_density(denoise, x) for n in (16, 64))
    np.testing.assert_allclose(found / 24, exact / 24, atol=5e-3)  # nats per dimension
    np.testing.assert_allclose(finer / 24, exact / 24, atol=1e-4)
    # That is the density of the noised data but for the mean at sigma_max.
    data = np.sum(norm.logpdf(x.flatten(1), mean, low), axis=1)
    np.testing.assert_allclose(exact / 24, data / 24, atol=0.02)


def test_the_mean_over_draws_of_a_full_gaussian_is_that_of_its_noised_windows() -> None:
    mean, covariance = torch.zeros(6, dtype=torch.float64), some_covariance(6)
    x0 = torch.full((1, 2, 3), 0.2, dtype=torch.float64)
    flow = Flow(*SIGMAS, n_steps=24, n_draws=60)
    draws = flow.log_densities(normal(mean, covariance), x0)[0]
    noised = covariance + SIGMAS[0] ** 2 * torch.eye(6, dtype=torch.float64)
    # E log N(x0 + sigma eps) = log N(x0) - sigma^2 tr(C^-1) / 2
    exact = multivariate_normal.logpdf(x0.flatten().numpy(), mean.numpy(), noised.numpy())
    exact -= 0.5 * SIGMAS[0] ** 2 * float(torch.linalg.inv(noised).trace())
    error = float(draws.std()) / math.sqrt(len(draws))
    assert abs(float(draws.mean()) - exact) < 4 * error
    assert error < 0.5


def test_the_density_of_a_mixture_is_that_density_and_integrates_to_one() -> None:
    weights, means, stds = (np.array(one) for one in ((0.3, 0.7), (-1.0, 0.8), (0.1, 0.3)))

    def denoise(x: Tensor, sigma: float) -> Tensor:
        w, m, s = (torch.from_numpy(one) for one in (weights, means, stds))
        variance = s**2 + sigma**2
        flat = x.view(-1, 1)
        share = torch.softmax(w.log() - 0.5 * variance.log() - (flat - m) ** 2 / variance / 2, 1)
        return (share * (m + s**2 / variance * (flat - m))).sum(dim=1).view(x.shape)

    x = torch.linspace(-2.5, 2.5, 1001, dtype=torch.float64).view(-1, 1, 1)
    found = Flow(0.02, 2000.0, n_steps=160).log_density(denoise, x).exp()
    noised = np.hypot(stds, SIGMAS[0])
    exact = (weights * norm.pdf(x.view(-1, 1).numpy(), means, noised)).sum(axis=1)
    np.testing.assert_allclose(found, exact, atol=2e-3)
    assert float(torch.trapezoid(found, dx=0.005)) == pytest.approx(1, abs=2e-3)


def test_the_estimate_of_the_trace_is_unbiased() -> None:
    covariance = some_covariance(4)
    denoise = normal(torch.zeros(4, dtype=torch.float64), covariance)
    x = torch.randn(3, 2, 2, dtype=torch.float64)
    signs = [torch.tensor(one).view(2, 2).double() for one in itertools.product((-1, 1), repeat=4)]
    traces = torch.stack([with_trace(denoise, x, 0.5, one)[1] for one in signs])
    gain = covariance @ torch.linalg.inv(covariance + 0.25 * torch.eye(4, dtype=torch.float64))
    np.testing.assert_allclose(traces.mean(dim=0), [float(gain.trace())] * 3)
    assert float(traces.std(dim=0).min()) > 0.01  # a single one is not exact


def test_a_window_has_the_same_density_in_any_batch_and_by_one_seed() -> None:
    denoise = normal(torch.zeros(6, dtype=torch.float64), some_covariance(6))
    x0 = torch.randn(5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    flow = Flow(*SIGMAS)
    together = flow.log_densities(denoise, x0)
    alone = torch.cat([flow.log_densities(denoise, one[None]) for one in x0.flip(0)]).flip(0)
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    other = Flow(*SIGMAS, seed=1).log_densities(denoise, x0)
    assert not torch.isclose(together, other).any()


def test_progress_counts_every_evaluation() -> None:
    seen: list[tuple[int, int]] = []
    denoise = normal(torch.zeros(2, dtype=torch.float64), some_covariance(2))
    flow = Flow(*SIGMAS, n_steps=6, n_draws=2)
    flow.log_densities(denoise, torch.zeros(1, 1, 2).double(), lambda *at: seen.append(at))
    assert seen == [(k, 14) for k in range(1, 15)]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"n_steps": 4}, "`n_steps` must be 5 or more"),
        ({"n_draws": 0}, "`n_draws` must be 1 or more"),
        ({"sigma_min": 30.0}, "0 < sigma_min < sigma_max"),
    ],
)
def test_settings_without_meaning_are_refused(settings: dict[str, float], problem: str) -> None:
    with pytest.raises(GazeError, match=problem):
        Flow(**{"sigma_min": 0.02, "sigma_max": 20.0, **settings})  # type: ignore[arg-type]


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


def test_progress_counts_denoising_errors() -> None:
    seen: list[tuple[int, int]] = []
    denoising_errors(linear, white(1, 10), LEVELS, 2, STD, 5, progress=lambda *at: seen.append(at))
    assert seen == [(k, 6) for k in range(1, 7)]
    assert seen[-1][0] == pytest.approx(6)
