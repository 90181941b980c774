"""Planted copies are found, and a model that memorised its windows; independent draws are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.evaluation import privacy as module
from gazediffusion.evaluation.privacy import (
    auc,
    between_participants,
    membership,
    memorisation,
    nearest,
)
from gazediffusion.network.checkpoint import load_run
from gazediffusion.network.unet import UNet
from gazediffusion.training.training import train_epochs
from tests.runs import TINY, short_windows
from tests.training.test_steering import labelled_windows

Gaze = NDArray[np.float32]
RATE_HZ = 250.0
N_COPIES = 10


def scanpaths(n: int, seed: int, length: int = 1000) -> Gaze:
    """Fixations of 0.1 to 0.5 s at random places of the screen, (n, 2, length)."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(25, 125, (n, length // 25)), axis=1)
    number = (np.arange(length) >= ends[:, :, None]).sum(axis=1)
    places = rng.uniform(-0.8, 0.8, (n, 2, ends.shape[1] + 1))
    gaze = np.take_along_axis(places, np.repeat(number[:, None], 2, axis=1), axis=2)
    return (gaze + rng.normal(0, 0.002, gaze.shape)).astype(np.float32)


TRAINING, HELD_OUT, OTHER = scanpaths(300, 0), scanpaths(200, 1), scanpaths(200, 2)


def noisy(gaze: Gaze) -> Gaze:
    noise = np.random.default_rng(7).normal(0, 0.01, gaze.shape)
    return np.asarray(gaze + noise, dtype=np.float32)


def shifted(gaze: Gaze, by: int) -> Gaze:
    """The window that begins `by` samples later; its unknown part comes from other gaze."""
    fresh = scanpaths(len(gaze), 8)
    if by > 0:
        return np.concatenate([gaze[:, :, by:], fresh[:, :, :by]], axis=2)
    return np.concatenate([fresh[:, :, :-by], gaze[:, :, :by]], axis=2)


def mirrored(gaze: Gaze, x: int, y: int) -> Gaze:
    return gaze * np.array([[x], [y]], dtype=np.float32)


@pytest.mark.parametrize(
    ("copy", "at_most"),
    [
        pytest.param(lambda g: g, 1e-9, id="exact"),
        pytest.param(noisy, 0.01, id="noise of 0.01"),
        pytest.param(lambda g: mirrored(g, -1, 1), 1e-9, id="mirrored x"),
        pytest.param(lambda g: mirrored(g, 1, -1), 1e-9, id="mirrored y"),
        pytest.param(lambda g: mirrored(g, -1, -1), 1e-9, id="mirrored both"),
        pytest.param(lambda g: g[:, :, ::-1], 1e-9, id="reversed"),
        pytest.param(lambda g: shifted(g, 125), 1e-9, id="half a second later"),
        pytest.param(lambda g: shifted(g, -125), 1e-9, id="half a second earlier"),
        pytest.param(lambda g: shifted(g, 250), 1e-9, id="a second later"),
        pytest.param(lambda g: shifted(g, -93), 1e-9, id="372 ms earlier"),
        pytest.param(
            lambda g: noisy(shifted(mirrored(g, -1, 1)[:, :, ::-1], 37)), 0.01, id="all at once"
        ),
    ],
)
def test_planted_copies_are_found(copy: Callable[[Gaze], Gaze], at_most: float) -> None:
    sources = np.arange(50, 50 + N_COPIES)
    synthetic = OTHER.copy()
    synthetic[:N_COPIES] = copy(TRAINING[sources])
    found = nearest(synthetic[:N_COPIES], TRAINING, RATE_HZ)
    assert found.index.tolist() == sources.tolist()
    assert found.distance.max() <= at_most

    result = memorisation(synthetic, TRAINING, HELD_OUT, RATE_HZ)
    assert N_COPIES / 200 <= result["share_of_copies"] <= N_COPIES / 200 + 0.04
    assert result["share_of_copies_interval"][0] > result["share_of_copies_expected"]
    assert result["share_below_minimum"] >= N_COPIES / 200
    assert {pair["synthetic_index"] for pair in result["pairs"]} <= set(range(N_COPIES))


def test_independent_draws_are_near_by_chance_only() -> None:
    result = memorisation(OTHER, TRAINING, HELD_OUT, RATE_HZ)
    low, high = result["share_of_copies_interval"]
    assert low <= result["share_of_copies_expected"] <= high
    assert abs(result["auc"] - 0.5) < 0.1
    assert result["p_value"] > 0.01
    # The SD of a share of 0.6 among 200 is 0.035; three of them are allowed.
    assert result["nearest_in_training_expected"] == pytest.approx(0.6)
    assert result["nearest_in_training"] == pytest.approx(0.6, abs=0.105)


def test_a_generator_that_only_copies_is_identified_by_every_number() -> None:
    result = memorisation(noisy(TRAINING[:100]), TRAINING, HELD_OUT, RATE_HZ)
    assert result["share_of_copies"] == result["share_below_minimum"] == 1.0
    assert result["auc"] == 1.0
    assert result["p_value"] < 1e-6
    assert result["nearest_in_training"] == 1.0


def test_gaze_of_little_movement_is_near_to_everything_and_no_copy() -> None:
    result = memorisation(0.3 * OTHER, TRAINING, HELD_OUT, RATE_HZ)
    assert result["auc"] > 0.9
    assert result["nearest_in_training"] == pytest.approx(0.6, abs=0.105)


def test_the_distance_equals_a_slow_search_over_its_definition() -> None:
    windows, training = scanpaths(6, 3), scanpaths(12, 4)
    found = nearest(windows, training, RATE_HZ)
    a = windows.reshape(6, 2, 100, 10).mean(axis=3)
    b = training.reshape(12, 2, 100, 10).mean(axis=3)
    for k in range(len(windows)):
        slow = np.inf
        for one in b:
            for directed in (one, one[:, ::-1]):
                for mirror in ([1, 1], [-1, 1], [1, -1], [-1, -1]):
                    other = directed * np.array(mirror)[:, None]
                    for s in range(-24, 25, 2):
                        gap = a[k][:, max(0, -s) : 100 - max(0, s)]
                        gap = gap - other[:, max(0, s) : 100 + min(0, s)]
                        slow = min(slow, float(np.sqrt((gap**2).sum(axis=0).mean())))
        assert found.distance[k] <= slow + 1e-6  # shifts to the sample can only bring it nearer
        assert found.distance[k] == pytest.approx(slow, rel=0.05)


def test_pairs_are_aligned_and_fit_into_json() -> None:
    synthetic = OTHER.copy()
    synthetic[17] = shifted(mirrored(TRAINING[40:41], 1, -1)[:, :, ::-1], 125)[0]
    result = json.loads(json.dumps(memorisation(synthetic, TRAINING, HELD_OUT, RATE_HZ)))
    assert len(result["pairs"]) == 5
    first = result["pairs"][0]
    assert (first["synthetic_index"], first["training_index"]) == (17, 40)
    assert (first["shift_s"], first["is_reversed"]) == (0.5, True)
    for pair in result["pairs"]:
        a, b = np.array(pair["synthetic"]), np.array(pair["training"])
        assert a.shape == b.shape
        rms = np.sqrt(((a - b) ** 2).sum(axis=0).mean())
        assert rms == pytest.approx(pair["distance"], abs=2e-4)


def test_a_length_that_is_no_multiple_of_the_blocks_is_no_obstacle() -> None:
    found = nearest(TRAINING[:3, :, :995][:, :, ::-1], TRAINING[:60, :, :995], RATE_HZ)
    assert found.index.tolist() == [0, 1, 2]
    assert found.distance.max() < 1e-9


def test_many_windows_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = nearest(OTHER[:20], TRAINING, RATE_HZ)
    monkeypatch.setattr(module, "_CHUNK_PAIRS", 7 * len(TRAINING))
    parts = nearest(OTHER[:20], TRAINING, RATE_HZ)
    assert whole.index.tolist() == parts.index.tolist()
    np.testing.assert_allclose(whole.distance, parts.distance)


def test_distances_between_participants_are_a_second_chance_level() -> None:
    participant = np.arange(len(TRAINING)) % 10
    between = between_participants(TRAINING, participant, RATE_HZ)
    slow = nearest(TRAINING[participant == 3], TRAINING[participant != 3], RATE_HZ).distance
    assert set(slow.round(9)) <= set(between["distance"].round(9))
    copied = memorisation(TRAINING[:100], TRAINING, HELD_OUT, RATE_HZ, between=between)
    calm = memorisation(0.3 * OTHER, TRAINING, HELD_OUT, RATE_HZ, between=between)
    shares = [
        {key: one["share_of_copies"] for key, one in found["between_participants"].items()}
        for found in (copied, calm)
    ]
    assert shares[0] == {"distance": 1.0, "distance_over_spread": 1.0}
    assert shares[1]["distance"] > 0.5
    assert shares[1]["distance_over_spread"] < 0.05


@pytest.mark.parametrize(
    ("synthetic", "training", "held_out", "words"),
    [
        pytest.param(OTHER[:49], TRAINING, HELD_OUT, "49 synthetic windows", id="few synthetic"),
        pytest.param(OTHER, TRAINING[:9], HELD_OUT, "9 training windows", id="few training"),
        pytest.param(OTHER, TRAINING, HELD_OUT[:0], "0 held-out windows", id="no held-out"),
        pytest.param(OTHER, TRAINING, TRAINING, "are training windows", id="leaking split"),
        pytest.param(OTHER * np.nan, TRAINING, HELD_OUT, "NaN", id="NaN"),
        pytest.param(
            *(one[:, :, :500] for one in (OTHER, TRAINING, HELD_OUT)), "more than 2 s", id="short"
        ),
        pytest.param(OTHER[:, :, :900], TRAINING, HELD_OUT, "900", id="other length"),
    ],
)
def test_what_cannot_be_computed_is_said(
    synthetic: Gaze, training: Gaze, held_out: Gaze, words: str
) -> None:
    with pytest.raises(GazeError, match=words):
        memorisation(synthetic, training, held_out, RATE_HZ)


def test_auc_is_the_share_of_pairs_in_which_the_member_has_the_lower_loss() -> None:
    rng = np.random.default_rng(0)
    members, others = rng.normal(0, 1, 40).round(1), rng.normal(0.5, 1, 60).round(1)
    pairs = members[:, None] - others[None]
    assert auc(members, others) == pytest.approx(((pairs < 0) + 0.5 * (pairs == 0)).mean())


@pytest.mark.slow
def test_a_model_that_memorised_its_windows_is_identified(tmp_path: Path) -> None:
    windows = short_windows()
    few = windows.select(np.r_[np.arange(0, 12, 3), np.arange(12, 36)])
    recipe = replace(TINY, epochs=100, learning_rate=1e-2, flip=0.0, reversal=0.0)
    list(train_epochs(few, tmp_path / "memorised", recipe, seed=0, device="cpu"))
    sides = few.train, few.held_out
    memorised = membership(load_run(tmp_path / "memorised", "last"), *sides, 500, 16)
    list(train_epochs(few, tmp_path / "new", replace(recipe, epochs=1), seed=0, device="cpu"))
    new = membership(load_run(tmp_path / "new", "last"), *sides, 500, 16)
    assert memorised.auc > 0.9
    assert memorised.auc > new.auc
    assert memorised.interval[0] <= memorised.auc <= memorised.interval[1]
    assert (memorised.n_members, memorised.n_others) == (4, 24)


@pytest.mark.parametrize("channels", ["labels", "gaze"])
def test_a_steerable_model_is_attacked_by_its_channels_of_gaze_alone(
    steerable_folder: Path, channels: str
) -> None:
    run = load_run(steerable_folder)
    windows = replace(labelled_windows(), rate_hz=20.0)
    sides = windows.train, windows.held_out
    found = membership(run, *sides, 10, n_levels=4)
    assert (found.n_members, found.n_others) == (10, 10)
    is_given: list[bool] = []
    noise = torch.Generator().manual_seed(0)

    class Other(UNet):
        """Another output in some channels."""

        def forward(
            self,
            x: Tensor,
            t: Tensor,
            condition: Tensor | None = None,
            sequences: Tensor | None = None,
        ) -> Tensor:
            is_given.append(bool(x[:, 4:].any()) or sequences is not None)
            out = super().forward(x, t, condition)
            changed = slice(4, None) if channels == "labels" else slice(0, 4)
            out[:, changed] += 100 * torch.rand((len(x), 1, 1), generator=noise)
            return out

    other = Other(run.config.recipe.network).eval()
    other.load_state_dict(run.network.state_dict())
    changed = membership(replace(run, network=other), *sides, 10, n_levels=4)
    assert (changed == found) is (channels == "labels")
    assert not any(is_given)


def test_without_held_out_participants_there_is_no_attack(tmp_path: Path) -> None:
    list(train_epochs(short_windows(), tmp_path / "run", TINY, seed=0, device="cpu"))
    alone = short_windows().train
    with pytest.raises(GazeError, match="held-out participants"):
        membership(load_run(tmp_path / "run"), alone, alone.select(np.arange(0)))
