"""The network learns a difference, keeps quiet without one, and repeats itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.signal import butter, sosfiltfilt

from gazediffusion.evaluation.deep_network import (
    Fitting,
    SnippetNetwork,
    crop_starts,
    drawn_snippets,
    fit,
    low_passed,
    n_crops_of,
    scores,
)
from gazediffusion.seeds import DeviceDraws, Stream

TINY = Fitting(widths=(8, 16), n_steps=60, batch_size=32, n_check=10, average=0.9)


def waves(n: int, seed: int, hz: float) -> torch.Tensor:
    """Channels (n, 4, 64) of noise around a wave of random phase."""
    rng = np.random.default_rng(seed)
    phase = rng.random((n, 4, 1)) * 2 * np.pi
    wave = np.sin(2 * np.pi * hz * np.arange(64) / 64 + phase) + rng.normal(0, 0.3, (n, 4, 64))
    return torch.from_numpy(wave.astype(np.float32))


def trained(hz: float, seed: int = 0) -> SnippetNetwork:
    training = waves(100, 0, 2.0), waves(100, 1, hz)
    return fit(training, (waves(40, 2, 2.0), waves(40, 3, hz)), 48, TINY, seed)


def test_the_default_network_has_a_few_hundred_thousand_parameters() -> None:
    network = SnippetNetwork(Fitting().widths)
    assert 200_000 < sum(one.numel() for one in network.parameters()) < 400_000
    assert network(torch.zeros(3, 4, 125)).shape == (3,)
    assert network(torch.zeros(3, 4, 9)).shape == (3,)


def test_a_difference_is_learned_and_its_sign_is_that_of_the_second_set() -> None:
    network = trained(8.0)
    first, second = (scores(network, waves(60, 9, hz), 48, 2) for hz in (2.0, 8.0))
    assert first.shape == (60, 2)
    assert (second[:, None] > first).float().mean() > 0.95


def test_the_same_seed_gives_the_same_scores_and_another_gives_others() -> None:
    test = waves(20, 9, 2.0)
    before = torch.random.get_rng_state()
    one, same, other = (scores(trained(8.0, seed), test, 48, 1) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_training_ends_early_where_there_is_nothing_to_learn() -> None:
    steps: list[int] = []
    fitting = Fitting(widths=(8,), n_steps=2000, batch_size=16, n_check=4, patience=2)
    pair = waves(30, 0, 2.0), waves(30, 1, 2.0)
    fit(pair, (waves(30, 2, 2.0), waves(30, 3, 2.0)), 64, fitting, 0, steps.append)
    assert steps[0] == 4
    assert steps[-1] < 400


def test_snippets_are_cut_from_windows() -> None:
    windows = torch.arange(5 * 64).float().reshape(5, 1, 64).expand(5, 4, 64)
    found = drawn_snippets(windows, 200, 16, DeviceDraws(torch.device("cpu"), 0, Stream.EVALUATION))
    assert found.shape == (200, 4, 16)
    assert (found.diff(dim=-1) == 1).all()
    assert (found[:, 0, 0] // 64 == found[:, 0, -1] // 64).all()
    assert len(set(found[:, 0, 0].tolist())) > 100


@pytest.mark.parametrize(
    ("n_samples", "length", "starts"),
    [(2000, 2000, [0]), (2000, 500, [0, 500, 1000, 1500]), (100, 60, [0, 40]), (64, 63, [0])],
)
def test_scored_snippets_are_evenly_spaced(n_samples: int, length: int, starts: list[int]) -> None:
    assert crop_starts(n_samples, length, n_crops_of(n_samples, length)) == starts


def test_the_low_pass_equals_scipys_forwards_and_backwards_filter() -> None:
    gaze = np.cumsum(np.random.default_rng(0).normal(size=(2, 2, 1000)), axis=-1)
    found = low_passed(torch.from_numpy(gaze), 30.0, 250.0).numpy()
    expected = sosfiltfilt(butter(4, 30.0, fs=250.0, output="sos"), gaze, axis=-1)
    # The digital filter's frequencies are warped, and its ends are padded otherwise.
    inner = slice(100, -100)
    assert np.abs(found - expected)[..., inner].max() < 0.02 * gaze.std()
    assert np.abs(gaze - expected)[..., inner].max() > 0.05 * gaze.std()
