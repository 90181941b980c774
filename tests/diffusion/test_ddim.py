"""Oracles: diffusers' DDIM step by step, and Gaussian data whose samples are known in law."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from diffusers import DDIMScheduler
from torch import Tensor

from gazediffusion.diffusion.ddpm import Schedule, ddim_times, sample
from gazediffusion.diffusion.solvers import WindowNoise
from gazediffusion.errors import GazeError
from gazediffusion.network.unet import UNet
from gazediffusion.seeds import Stream, rng
from tests.diffusion.test_likelihood import gaussian_denoiser
from tests.network.test_unet import SMALL

SCHEDULE = Schedule()
CPU = torch.device("cpu")


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


def test_windows_and_seeds_differ() -> None:
    def start(seed: int, index: int) -> Tensor:
        return noise_of(seed, [index], 64).draw()

    starts = torch.cat([start(seed, index) for seed in (0, 1) for index in (0, 1)])
    assert torch.pdist(starts.flatten(1)).min() > 5


@pytest.mark.parametrize("n_steps", [0, 1001])
def test_impossible_step_counts_are_refused(n_steps: int) -> None:
    with pytest.raises(GazeError, match="`steps` must lie between 1 and 1000"):
        ddim_times(n_steps, 1000)


def test_an_impossible_eta_is_refused() -> None:
    noise = noise_of(0, [0], 8)
    with pytest.raises(GazeError, match="`eta`"):
        list(sample(gaussian_denoiser(SCHEDULE, 1.0), SCHEDULE, noise, eta=1.5))
