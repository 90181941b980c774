"""Oracle: diffusers for the schedule and the posterior."""

from __future__ import annotations

import pytest
import torch
from diffusers import DDPMScheduler

from gazediffusion.diffusion.ddpm import Schedule, denoising_loss, loss_weight
from gazediffusion.errors import GazeError

SCHEDULE = Schedule()


@pytest.fixture(scope="module")
def theirs() -> DDPMScheduler:
    return DDPMScheduler(
        num_train_timesteps=1000,
        beta_start=1e-4,
        beta_end=2e-2,
        beta_schedule="linear",
        clip_sample=False,
        variance_type="fixed_small",
    )


def test_the_schedule_is_linear_and_equals_diffusers(theirs: DDPMScheduler) -> None:
    assert SCHEDULE.beta[1] == 1e-4
    assert SCHEDULE.beta[1000] == pytest.approx(2e-2)
    torch.testing.assert_close(SCHEDULE.beta[1:].float(), theirs.betas)
    torch.testing.assert_close(SCHEDULE.alpha_bar[1:].float(), theirs.alphas_cumprod)
    assert SCHEDULE.alpha_bar[0] == 1


def test_noising_equals_diffusers(theirs: DDPMScheduler) -> None:
    x0, eps = torch.randn(4, 2, 16), torch.randn(4, 2, 16)
    t = torch.tensor([1, 10, 500, 1000])
    expected = theirs.add_noise(x0, eps, t - 1)
    torch.testing.assert_close(SCHEDULE.noisy(x0, t, eps), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("t", [2, 10, 500, 1000])
def test_the_posterior_equals_diffusers(theirs: DDPMScheduler, t: int) -> None:
    x0, eps = torch.randn(3, 2, 16), torch.randn(3, 2, 16)
    steps = torch.full((3,), t)
    xt = SCHEDULE.noisy(x0, steps, eps)
    mean, variance = SCHEDULE.posterior(xt, steps, x0)
    # With the seed of its noise, diffusers' step is its posterior mean plus known noise.
    after = theirs.step(eps, t - 1, xt, generator=torch.Generator().manual_seed(0)).prev_sample
    noise = torch.randn(xt.shape, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(mean + variance.sqrt() * noise, after, atol=2e-5, rtol=1e-3)


def test_the_posterior_is_bayes_rule() -> None:
    """Appendix A: precision is alpha/beta + 1/(1 - ab_{t-1}); the mean completes the square."""
    t = torch.tensor([300])
    beta, before = SCHEDULE.beta[300], SCHEDULE.alpha_bar[299]
    precision = (1 - beta) / beta + 1 / (1 - before)
    x0, xt = torch.randn(1, 2, 8, dtype=torch.float64), torch.randn(1, 2, 8, dtype=torch.float64)
    b = (1 - beta).sqrt() / beta * xt + before.sqrt() / (1 - before) * x0
    mean, variance = SCHEDULE.posterior(xt, t, x0)
    torch.testing.assert_close(variance.squeeze(), 1 / precision)
    torch.testing.assert_close(mean, b / precision)


def test_at_the_first_step_the_posterior_is_the_clean_sample() -> None:
    x0, xt, t = torch.randn(2, 2, 8), torch.randn(2, 2, 8), torch.tensor([1, 1])
    mean, variance = SCHEDULE.posterior(xt, t, x0)
    torch.testing.assert_close(mean, x0)
    assert (variance == 0).all()


def test_x0_and_eps_imply_each_other() -> None:
    x0, eps = torch.randn(3, 2, 8).double(), torch.randn(3, 2, 8).double()
    t = torch.tensor([1, 400, 1000])
    xt = SCHEDULE.noisy(x0, t, eps)
    torch.testing.assert_close(SCHEDULE.x0_from_eps(xt, t, eps), x0)
    torch.testing.assert_close(SCHEDULE.eps_from_x0(xt, t, x0), eps)
    for objective, predicted in (("eps", eps), ("x0", x0)):
        both = SCHEDULE.both(predicted, xt, t, objective)  # type: ignore[arg-type]
        torch.testing.assert_close(both[0], x0)
        torch.testing.assert_close(both[1], eps)


def test_nothing_clamps_x0() -> None:
    xt, t = torch.full((1, 2, 8), 50.0), torch.tensor([10])
    assert SCHEDULE.x0_from_eps(xt, t, torch.zeros_like(xt)).max() > 50


def test_min_snr_weights_are_those_of_the_paper() -> None:
    t = torch.arange(1, 1001)
    snr = SCHEDULE.alpha_bar[t] / (1 - SCHEDULE.alpha_bar[t])
    expected = torch.minimum(snr, torch.tensor(5.0, dtype=torch.float64))
    torch.testing.assert_close(
        loss_weight(SCHEDULE, t, "x0", "min-snr", 5.0), expected.float(), rtol=1e-5, atol=0
    )
    torch.testing.assert_close(
        loss_weight(SCHEDULE, t, "eps", "min-snr", 5.0), (expected / snr).float(), rtol=1e-5, atol=0
    )
    assert (loss_weight(SCHEDULE, t, "eps", "standard") == 1).all()


@pytest.mark.parametrize("objective", ["eps", "x0"])
def test_the_loss_is_zero_for_a_perfect_prediction(objective: str) -> None:
    x0, eps = torch.randn(3, 2, 8), torch.randn(3, 2, 8)
    target = eps if objective == "eps" else x0
    loss = denoising_loss(
        lambda xt, t: target, SCHEDULE, x0, torch.tensor([1, 9, 99]), eps, objective  # type: ignore[arg-type]
    )  # fmt: skip
    assert (loss == 0).all()


def test_the_loss_of_predicting_nothing_is_the_variance_of_the_noise() -> None:
    eps = torch.randn(4, 2, 5000)
    loss = denoising_loss(
        lambda xt, t: torch.zeros_like(xt), SCHEDULE, torch.zeros_like(eps),
        torch.full((4,), 500), eps,
    )  # fmt: skip
    torch.testing.assert_close(loss, torch.ones(4), atol=0.05, rtol=0)


def test_an_impossible_schedule_is_refused() -> None:
    with pytest.raises(GazeError, match="schedule"):
        Schedule(0)
    with pytest.raises(GazeError, match="schedule"):
        Schedule(10, 0.5, 0.1)
