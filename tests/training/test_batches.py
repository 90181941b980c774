"""Batches: a function of seed and step; masks of what windows are given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.network.checkpoint import RunConfig
from gazediffusion.network.recipes import RECIPES, Recipe
from gazediffusion.training.batches import (
    FIXATION_SHARE,
    FIXATIONS_WHOLE,
    SHARES,
    TARGET_SHARE,
    Batches,
    fixed_validation,
    gaps,
    given_fixations,
    given_targets,
    known_samples,
)
from tests.data.test_windows import make_windows

CPU = torch.device("cpu")
STEERABLE = replace(RECIPES["steerable-tiny"], batch_size=4)
PLAIN = replace(RECIPES["position-tiny"], flip=0.0, reversal=0.0, batch_size=4)
N_MASKS, LENGTH, RATE_HZ = 4000, 500, 250.0


def batches(recipe: Recipe = PLAIN, windows: Windows | None = None, seed: int = 0) -> Batches:
    windows = make_windows() if windows is None else windows
    config = RunConfig.of([windows], recipe, seed, "fp32", "cpu")
    return Batches([windows], config, seed, CPU)


@pytest.mark.parametrize("recipe", [PLAIN, STEERABLE], ids=["position", "steerable"])
def test_a_step_depends_on_seed_and_number_alone(recipe: Recipe) -> None:
    straight = batches(recipe)
    for step in range(6):
        straight.at(step)
    jumped = batches(recipe)
    for one, other in zip(straight.at(7), jumped.at(7), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(straight.at(7)[2], straight.at(8)[2])
    assert not torch.equal(straight.at(7)[2], batches(recipe, seed=1).at(7)[2])


def test_an_epoch_shows_every_window_once_in_a_new_order() -> None:
    windows = make_windows(grid_px=None)
    made = batches(windows=windows)
    assert made.per_epoch == 4  # 18 windows in whole batches of 4
    cut = windows.cut()

    def shown(epoch: int) -> list[int]:
        x0 = torch.cat([made.at(epoch * 4 + k)[0] for k in range(4)]).numpy()
        return [int(np.abs(cut - window).max(axis=(1, 2)).argmin()) for window in x0]

    first, second = shown(0), shown(1)
    assert len(set(first)) == len(set(second)) == 16
    assert first != second


def test_noise_is_standard_and_steps_cover_the_schedule() -> None:
    made = batches()
    drawn = [made.at(step) for step in range(200)]
    eps = torch.cat([batch[2] for batch in drawn])
    t = torch.cat([batch[1] for batch in drawn])
    assert float(eps.mean()) == pytest.approx(0, abs=0.01)
    assert float(eps.std()) == pytest.approx(1, abs=0.01)
    assert t.min() >= 1
    assert t.max() <= 1000
    assert float(t.float().mean()) == pytest.approx(500, rel=0.1)


def test_gaze_is_spread_over_its_grid_cells_anew_at_every_step() -> None:
    windows = make_windows(grid_px=0.1)
    made = batches(windows=windows)
    step = torch.from_numpy(windows.grid_of_window[0])
    on_grid = torch.from_numpy(windows.cut())
    x0 = made.at(0)[0]
    nearest = torch.stack([on_grid[(on_grid - x).abs().amax(dim=(1, 2)).argmin()] for x in x0])
    moved = (x0 - nearest) / step
    assert moved.abs().max() <= 0.501
    assert float(moved.std()) == pytest.approx(12**-0.5, rel=0.1)
    assert not torch.equal(x0, made.at(4)[0])


def test_axes_are_mirrored_half_the_time_and_time_reversed_three_tenths() -> None:
    windows = make_windows(grid_px=None)
    recipe = replace(PLAIN, flip=0.5, reversal=0.3, batch_size=1)
    made = batches(recipe, windows.select(np.array([7])))
    original = torch.from_numpy(windows.cut(np.array([7])))[0]
    counts = {"x": 0, "y": 0, "time": 0}
    n = 600
    for step in range(n):
        x0 = made.at(step)[0][0]
        found = [
            (x, y, backwards)
            for x in (1, -1)
            for y in (1, -1)
            for backwards in (False, True)
            if torch.allclose(
                x0,
                (original.flip(-1) if backwards else original)
                * torch.tensor([[float(x)], [float(y)]]),
                atol=1e-6,
            )
        ]
        ((x, y, backwards),) = found
        counts["x"] += x < 0
        counts["y"] += y < 0
        counts["time"] += backwards
    assert counts["x"] / n == pytest.approx(0.5, abs=0.07)
    assert counts["y"] / n == pytest.approx(0.5, abs=0.07)
    assert counts["time"] / n == pytest.approx(0.3, abs=0.07)


def test_velocity_batches_hold_scaled_velocities() -> None:
    windows = replace(make_windows(grid_px=None), protocol="velocity", velocity_scale=2.0)
    recipe = replace(RECIPES["velocity-tiny"], batch_size=4)
    x0 = batches(recipe, windows).at(0)[0].numpy()
    velocity = np.diff(windows.cut(), axis=2, prepend=np.nan) * 250.0 / 2.0
    velocity[..., 0] = 0
    for window in x0:
        assert np.abs(velocity - window).max(axis=(1, 2)).min() < 1e-4


def test_a_file_smaller_than_a_batch_still_trains() -> None:
    made = batches(replace(PLAIN, batch_size=64))
    assert (made.batch_size, made.per_epoch) == (18, 1)


@pytest.mark.parametrize("recipe", [PLAIN, STEERABLE], ids=["position", "steerable"])
def test_validation_is_fixed_and_covers_all_steps(recipe: Recipe) -> None:
    windows = make_windows()
    config = RunConfig.of([windows], recipe, 5, "fp32", "cpu")
    first = fixed_validation([windows.held_out], config, CPU)
    again = fixed_validation([windows.held_out], replace(config, seed=6), CPU)
    for one, other in zip(first, again, strict=True):
        for a, b in zip(one, other, strict=True):
            assert torch.equal(a, b)
    if recipe is STEERABLE:
        return
    t = torch.cat([batch[1] for batch in first]).sort().values
    assert len(t) == 12
    assert t[0] < 100
    assert t[-1] > 900


def test_nobody_held_out_gives_no_validation() -> None:
    windows = replace(make_windows(), validation=frozenset())
    config = RunConfig.of([windows], PLAIN, 5, "fp32", "cpu")
    assert fixed_validation([windows.held_out], config, CPU) == []


def uniform(seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    return draw


def test_every_kind_of_mask_has_its_share() -> None:
    known = known_samples(N_MASKS, LENGTH, RATE_HZ, uniform())
    begins, ends = known[:, 0], known[:, -1]
    whole = known.all(dim=1)
    assert abs(float((~known.any(dim=1)).float().mean()) - SHARES["nothing"]) < 0.04
    assert abs(float(whole.float().mean()) - SHARES["everything"]) < 0.04
    prefix = begins & ~ends & (known.int().diff(dim=1).abs().sum(dim=1) == 1)
    assert float(prefix.float().mean()) > 0.08
    assert float((ends & ~begins).float().mean()) > 0.02


def test_gaps_go_from_a_few_samples_to_more_than_a_second() -> None:
    hidden = gaps(N_MASKS, LENGTH, RATE_HZ, uniform())
    assert hidden.any(dim=1).float().mean() > 0.98
    lengths = hidden.sum(dim=1)
    assert lengths.min() <= 10
    assert lengths.max() > RATE_HZ
    assert not hidden.all()


def test_fixations_are_given_whole_in_part_or_not_at_all() -> None:
    fixation = torch.full((N_MASKS, 2, LENGTH), 0.5)
    fixation[:, :, 200:220] = torch.nan
    given = given_fixations(fixation, RATE_HZ, uniform()).isfinite().all(dim=1)
    assert not given[:, 200:220].any()
    n = given.sum(dim=1)
    is_whole = n == LENGTH - 20
    expected = FIXATION_SHARE * FIXATIONS_WHOLE
    assert abs(float(is_whole.float().mean()) - expected) < 0.05
    assert abs(float((n == 0).float().mean()) - (1 - FIXATION_SHARE)) < 0.1
    assert ((n > 0) & ~is_whole).any()


def test_targets_are_given_for_whole_windows() -> None:
    target = torch.zeros(N_MASKS, 2, LENGTH)
    given = given_targets(target, uniform()).isfinite().flatten(1)
    assert (given.all(dim=1) | ~given.any(dim=1)).all()
    assert abs(float(given.any(dim=1).float().mean()) - TARGET_SHARE) < 0.04
