"""The conditioning prior: what is drawn for new windows, and random effects of participants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import ndtr

from gazediffusion.conditioning.prior import Component, Prior, fit_effects, posterior, root_of
from gazediffusion.conditioning.statistics import STATISTICS, measure
from gazediffusion.data.windows import Windows
from gazediffusion.seeds import Stream, sobol_points
from tests.conditioning.test_statistics import RATE, walk
from tests.runs import short_windows


def of_two_groups() -> Windows:
    """Windows of one participant, half of them quiet and left, half noisy and right."""
    quiet, noisy = walk(300, 1, 3e-4) - 0.4, walk(300, 2, 3e-3) + 0.4
    gaze = torch.cat([quiet, noisy]).clamp(-0.99, 0.99).numpy()
    return Windows.from_array(gaze, RATE, short_windows().screen, tasks="both")


def drawn(prior: Prior, n: int, seed: int = 5) -> torch.Tensor:
    return prior.draw([0] * n, sobol_points(0, n, 1 + len(prior.names), seed, Stream.CONDITION))[0]


def same(one: Prior, other: Prior) -> bool:
    """Whether two priors have the same names and tables."""
    a, b = one.to_tensors(), other.to_tensors()
    return one.names == other.names and all(torch.equal(a[key], b[key]) for key in a | b)


def test_drawn_statistics_are_distributed_as_those_of_the_training_windows() -> None:
    windows = of_two_groups()
    prior = Prior.fit([windows], windows.tasks)
    real = prior.standardized(measure(torch.from_numpy(windows.cut()), RATE)).numpy()
    generated = drawn(prior, 1500).numpy()
    np.testing.assert_allclose(generated.mean(axis=0), real.mean(axis=0), atol=0.12)
    np.testing.assert_allclose(generated.std(axis=0), real.std(axis=0), atol=0.12)
    # Quiet windows lie left and noisy ones right: statistics correlate as in the windows.
    noise, mean = STATISTICS.index("median_speed_x"), STATISTICS.index("mean_x")
    assert np.corrcoef(real[:, noise], real[:, mean])[0, 1] > 0.88
    assert np.corrcoef(generated[:, noise], generated[:, mean])[0, 1] > 0.83
    # There are two groups of windows, and hardly any between.
    assert np.mean(np.abs(generated[:, noise]) < 0.5) < 0.1


def test_a_draw_does_not_depend_on_the_windows_beside_it() -> None:
    prior = Prior.fit([short_windows()], short_windows().tasks)
    uniforms = sobol_points(0, 4, 1 + len(STATISTICS), 1, Stream.CONDITION)
    together, components = prior.draw([1, 0, 0, 1], uniforms)
    assert components == [0, 0, 0, 0]
    for row, task in enumerate([1, 0, 0, 1]):
        alone, _ = prior.draw([task], uniforms[row : row + 1])
        assert torch.equal(together[row : row + 1], alone)
    assert not torch.equal(together[1], together[2])


def test_few_draws_have_the_mean_of_many() -> None:
    """Sixty-four Sobol points estimate the mean as well as thousands of independent draws."""
    prior = Prior.fit([of_two_groups()], ["both"])
    whole = drawn(prior, 4096).mean(dim=0)
    few = torch.stack([drawn(prior, 64, seed).mean(dim=0) for seed in range(20)])
    assert float((few - whole).square().mean().sqrt()) < 0.4 / 64**0.5


def in_whole_pixels() -> Windows:
    """Windows of two recordings on a grid of a tenth of a pixel, the second in whole pixels."""
    fine, coarse = walk(150, 1, 5e-3), walk(150, 2, 5e-3)
    screen = short_windows().screen
    cell = torch.from_numpy(2 * 0.1 / screen.size_px).float()
    gaze = [(one / size).round() * size for one, size in ((fine, cell), (coarse, 10 * cell))]
    both = np.concatenate([one.clamp(-0.99, 0.99).numpy() for one in gaze])
    return replace(Windows.from_array(both, RATE, screen, tasks="both"), grid_px=0.1)


def test_recordings_in_whole_pixels_are_a_component_of_their_own() -> None:
    windows = in_whole_pixels()
    prior = Prior.fit([windows], windows.tasks)
    (components,) = prior.components
    assert [float(one.weight) for one in components] == [0.5, 0.5]
    cell = windows.grid_of_window[0, :, 0]
    np.testing.assert_allclose([one.step for one in components], [cell * 0, cell * 10], rtol=1e-3)
    np.testing.assert_allclose([one.grid for one in components], [cell, cell], rtol=1e-3)
    targets, numbers = prior.draw(
        [0] * 400, sobol_points(0, 400, 1 + len(STATISTICS), 3, Stream.CONDITION)
    )
    assert np.mean(numbers) == pytest.approx(0.5, abs=0.01)
    slow = targets[:, STATISTICS.index("slow_share_x")]
    is_coarse = torch.tensor(numbers) == 1
    assert float(slow[is_coarse].mean()) > float(slow[~is_coarse].mean()) + 1


def test_few_windows_are_no_component() -> None:
    windows = in_whole_pixels()
    prior = Prior.fit([windows.select(np.arange(170))], windows.tasks)
    assert [one.step.tolist() for one in prior.components[0]] == [[0.0, 0.0]]


def test_tables_survive_and_contain_no_window() -> None:
    prior = Prior.fit([of_two_groups()], ["both"])
    assert same(Prior.from_tensors(prior.names, prior.to_tensors()), prior)
    # Each Gaussian stands for two hundred windows.
    assert len(prior.components[0][0].weights) == 3
    assert prior.components[0][0].real.shape == (25, len(STATISTICS))


def test_one_window_is_enough() -> None:
    windows = of_two_groups().select(np.array([0]))
    prior = Prior.fit([windows], windows.tasks)
    assert bool(torch.isfinite(drawn(prior, 1)).all())


def test_equal_values_get_the_normal_of_their_mean_rank() -> None:
    """Of ten windows seven have no long saccade: their mean rank is 0.35."""
    values = np.repeat([0.0, 1.0, 2.0], [700, 200, 100])[:, None]
    quantiles = np.quantile(values, ndtr(np.linspace(-3, 3, 25)), axis=0)
    component = replace(Component.fit(values[:150]), real=quantiles)
    z = component.to_normal(np.array([[0.0], [1.0], [2.0]]))[:, 0]
    expected = [-0.385, 0.842, 1.645]  # of 0.35, 0.80 and 0.95
    np.testing.assert_allclose(z, expected, atol=0.25)  # quantiles are kept a quarter apart
    smooth = np.random.default_rng(0).normal(size=(4000, 1))
    component = Component.fit(smooth)
    np.testing.assert_allclose(component.from_normal(component.to_normal(smooth[:9])), smooth[:9])


def simulated(n_participants: int, n_windows: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows of participants whose statistics share 64 %, 25 % and 0 % of their variance."""
    rng = np.random.default_rng(0)
    share = np.array([0.64, 0.25, 0.0])
    common = rng.normal(size=(n_participants, 1, 3)) * np.sqrt(share)
    z = common + rng.normal(size=(n_participants, n_windows, 3)) * np.sqrt(1 - share)
    return z.reshape(-1, 3), np.repeat(np.arange(n_participants), n_windows)


def test_covariances_between_and_within_participants_are_found() -> None:
    z, participant = simulated(3000, 4)
    between, within = fit_effects(z, participant)
    np.testing.assert_allclose(np.diag(between), [0.64, 0.25, 0.0], atol=0.03)
    np.testing.assert_allclose(np.diag(within), [0.36, 0.75, 1.0], atol=0.03)
    np.testing.assert_allclose(between + within, np.cov(z.T), atol=0.03)
    assert np.linalg.eigvalsh(between).min() > -1e-9
    assert np.linalg.eigvalsh(within).min() > 0


def test_participants_of_one_window_each_have_nothing_in_common() -> None:
    z, _ = simulated(50, 1)
    between, _ = fit_effects(z, np.arange(50))
    assert not between.any()


def test_the_posterior_is_that_of_a_normal_mean() -> None:
    between, within = np.diag([0.64, 0.25]), np.diag([0.36, 0.75])
    found = posterior(between, within, np.array([[1.0, -2.0]]), 4)
    # Shrinkage of a normal mean: b / (b + w / n).
    gain = np.array([0.64 / (0.64 + 0.09), 0.25 / (0.25 + 0.1875)])
    np.testing.assert_allclose(found.mean[0], gain * [1.0, -2.0])
    np.testing.assert_allclose(np.diag(found.covariance), (1 - gain) * [0.64, 0.25])
    root = root_of(found.covariance)
    np.testing.assert_allclose(root @ root.T, found.covariance, atol=1e-12)
