"""Oracles: diffusers for schedule, posterior and DDIM; samples of Gaussian data."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from diffusers import DDIMScheduler, DDPMScheduler
from torch import Tensor

from gazediffusion.diffusion.ddpm import Schedule, ddim_times, denoising_loss, loss_weight, sample
from gazediffusion.diffusion.solvers import WindowNoise
from gazediffusion.errors import GazeError
from gazediffusion.network.unet import UNet
from gazediffusion.seeds import Stream, rng
from tests.diffusion.test_likelihood import gaussian_denoiser
from tests.network.test_unet import SMALL

SCHEDULE = Schedule()
CPU = torch.device("cpu")


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


def noise_of(seed: int, windows: Iterable[int], length: int) -> WindowNoise:
    return WindowNoise([rng(seed, Stream.NOISE, k) for k in windows], (2, length), CPU)


def last(steps: object) -> Tensor:
    return list(steps)[-1]  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("n_steps", [1, 7, 50, 100, 250, 1000])
def test_steps_start_at_the_noisiest_and_equal_diffusers_trailing(n_steps: int) -> None:
    theirs = DDIMScheduler(num_train_timesteps=1000, timestep_spacing="trailing")
    theirs.set_timesteps(n_steps)
    assert ddim_times(n_steps, 1000) == [int(t) + 1 for t in theirs.timesteps]
    assert ddim_times(n_steps, 1000)[0] == 1000


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
def test_ddim_equals_diffusers(eta: float) -> None:
    theirs = DDIMScheduler(
        num_train_timesteps=1000,
        beta_start=1e-4,
        beta_end=2e-2,
        beta_schedule="linear",
        clip_sample=False,
        set_alpha_to_one=True,
        timestep_spacing="trailing",
    )
    theirs.set_timesteps(20)
    network = UNet(SMALL).eval().requires_grad_(False)
    ours = last(sample(network, SCHEDULE, noise_of(3, [0, 1], 64), "eps", "ddim",
                       20, eta))  # fmt: skip
    noise = noise_of(3, [0, 1], 64)
    x = noise.draw()
    for t in theirs.timesteps:
        eps = network(x, torch.full((2,), int(t) + 1))
        # The last step lands on clean data, where neither adds noise.
        needs_noise = eta > 0 and int(t) != int(theirs.timesteps[-1])
        extra = noise.draw() if needs_noise else torch.zeros_like(x)
        x = theirs.step(eps, t, x, eta=eta, variance_noise=extra).prev_sample
    torch.testing.assert_close(ours, x, atol=1e-3, rtol=1e-3)


def test_ddim_with_eta_one_over_all_steps_is_ancestral() -> None:
    schedule = Schedule(50, 1e-3, 0.2)
    denoiser = gaussian_denoiser(schedule, 0.7)
    ancestral = last(sample(denoiser, schedule, noise_of(0, range(4), 32), "eps",
                            "ancestral"))  # fmt: skip
    ddim = last(sample(denoiser, schedule, noise_of(0, range(4), 32), "eps", "ddim",
                       50, 1.0))  # fmt: skip
    torch.testing.assert_close(ancestral, ddim, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("sampler", "n_steps", "eta", "tolerance"),
    [("ddim", 100, 0.0, 0.03), ("ddim", 1000, 0.5, 0.02), ("ancestral", 1000, 1.0, 0.02)],
)
@pytest.mark.parametrize("objective", ["eps", "x0"])
def test_samples_of_the_best_denoiser_have_the_data_mean_and_spread(
    sampler: str, n_steps: int, eta: float, tolerance: float, objective: str
) -> None:
    std = 0.5
    denoiser = gaussian_denoiser(SCHEDULE, std, objective)
    noise = noise_of(0, range(160), 500)
    x = last(sample(denoiser, SCHEDULE, noise, objective, sampler, n_steps, eta))  # type: ignore[arg-type]
    assert float(x.mean()) == pytest.approx(0, abs=0.01)
    assert float(x.std()) == pytest.approx(std, rel=tolerance)
    # Neighbouring samples of white data stay uncorrelated.
    assert abs(float((x[..., 1:] * x[..., :-1]).mean())) / std**2 < 0.02


def test_a_window_is_the_same_whatever_it_is_batched_with() -> None:
    network = UNet(SMALL).eval().requires_grad_(False)

    def windows(indices: list[int]) -> Tensor:
        return last(sample(network, SCHEDULE, noise_of(7, indices, 64), "eps", "ddim",
                           10, 0.5))  # fmt: skip

    together = windows([0, 1, 2, 3])
    torch.testing.assert_close(windows([2]), together[2:3], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(windows([3, 1]), together[[3, 1]], atol=1e-4, rtol=1e-4)


def test_a_window_is_the_same_for_any_number_of_threads() -> None:
    network = UNet(SMALL).eval().requires_grad_(False)
    before = torch.get_num_threads()
    results = []
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            noise = noise_of(7, [0, 1], 64)
            results.append(last(sample(network, SCHEDULE, noise, "eps", "ddim", 10)))
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(*results, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n_steps", [0, 1001])
def test_impossible_step_counts_are_refused(n_steps: int) -> None:
    with pytest.raises(GazeError, match="`steps` must lie between 1 and 1000"):
        ddim_times(n_steps, 1000)


def test_an_impossible_eta_is_refused() -> None:
    noise = noise_of(0, [0], 8)
    with pytest.raises(GazeError, match="`eta`"):
        list(sample(gaussian_denoiser(SCHEDULE, 1.0), SCHEDULE, noise, eta=1.5))
