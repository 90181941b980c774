"""The membership attack identifies a model that memorised its windows, and not a new one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.privacy import auc, membership
from gazediffusion.network.checkpoint import load_run
from gazediffusion.network.unet import UNet
from gazediffusion.training.training import train_epochs
from tests.runs import TINY, short_windows
from tests.training.test_joint import JOINT
from tests.training.test_joint import parts as joint_parts
from tests.training.test_steering import labelled_windows


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


def test_a_conditioned_model_is_attacked_with_its_tasks(tmp_path: Path) -> None:
    list(train_epochs(joint_parts(), tmp_path / "run", JOINT, seed=0, device="cpu"))
    part = joint_parts()[0]
    found = membership(load_run(tmp_path / "run"), part.train, part.held_out, 10, n_levels=16)
    assert 0 <= found.auc <= 1
    assert found.n_members == 10


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
