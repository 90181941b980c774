"""Random effects against simulated participants with known covariances."""

from __future__ import annotations

import numpy as np

from gazediffusion.conditioning.prior import fit_effects, posterior, root_of


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
