"""The log-density by the probability flow: equal to known densities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import Tensor

from gazediffusion.diffusion.likelihood import Flow, gregory_weights, with_trace
from gazediffusion.errors import GazeError

SIGMAS = (0.02, 20.0)
Denoiser = Callable[[Tensor, float], Tensor]


def gaussian(mean: Tensor, covariance: Tensor) -> Denoiser:
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
    denoise = gaussian(mean, torch.diag(variance))
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
    draws = flow.log_densities(gaussian(mean, covariance), x0)[0]
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
    denoise = gaussian(torch.zeros(4, dtype=torch.float64), covariance)
    x = torch.randn(3, 2, 2, dtype=torch.float64)
    signs = [torch.tensor(one).view(2, 2).double() for one in itertools.product((-1, 1), repeat=4)]
    traces = torch.stack([with_trace(denoise, x, 0.5, one)[1] for one in signs])
    gain = covariance @ torch.linalg.inv(covariance + 0.25 * torch.eye(4, dtype=torch.float64))
    np.testing.assert_allclose(traces.mean(dim=0), [float(gain.trace())] * 3)
    assert float(traces.std(dim=0).min()) > 0.01  # a single one is not exact


def test_a_window_has_the_same_density_in_any_batch_and_by_one_seed() -> None:
    denoise = gaussian(torch.zeros(6, dtype=torch.float64), some_covariance(6))
    x0 = torch.randn(5, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    flow = Flow(*SIGMAS)
    together = flow.log_densities(denoise, x0)
    alone = torch.cat([flow.log_densities(denoise, one[None]) for one in x0.flip(0)]).flip(0)
    np.testing.assert_allclose(together, alone, rtol=1e-10)
    other = Flow(*SIGMAS, seed=1).log_densities(denoise, x0)
    assert not torch.isclose(together, other).any()


def test_progress_counts_every_evaluation() -> None:
    seen: list[tuple[int, int]] = []
    denoise = gaussian(torch.zeros(2, dtype=torch.float64), some_covariance(2))
    flow = Flow(*SIGMAS, n_steps=6, n_draws=2)
    flow.log_densities(denoise, torch.zeros(1, 1, 2).double(), lambda *at: seen.append(at))
    assert seen == [(k, 14) for k in range(1, 15)]


def test_the_rule_of_the_integral_is_of_fourth_order() -> None:
    u = torch.linspace(0, 1, 17, dtype=torch.float64)
    for power in range(4):
        assert float(gregory_weights(17) @ u**power) / 16 == pytest.approx(
            1 / (power + 1), abs=1e-4 if power == 3 else 1e-12
        )


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
