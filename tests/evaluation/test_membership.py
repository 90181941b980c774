"""The membership attack finds a model that learned by heart, and not one that learned nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.membership import auc, membership
from gazediffusion.models.checkpoint import load_run
from gazediffusion.training.loop import train_epochs
from tests.runs import TINY, short_windows
from tests.training.test_joint import JOINT
from tests.training.test_joint import parts as joint_parts


def test_auc_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    members, others = rng.normal(0, 1, 40).round(1), rng.normal(0.5, 1, 60).round(1)
    truth = np.r_[np.ones(40), np.zeros(60)]
    expected = roc_auc_score(truth, -np.concatenate([members, others]))
    assert auc(members, others) == pytest.approx(expected)


@pytest.mark.slow
def test_a_model_that_learned_by_heart_is_found_out(tmp_path: Path) -> None:
    windows = short_windows()
    few = windows.select(np.r_[np.arange(0, 12, 3), np.arange(12, 36)])
    recipe = replace(TINY, epochs=400, learning_rate=5e-3, flip=0.0, reversal=0.0)
    list(train_epochs(few, tmp_path / "heart", recipe, seed=0, device="cpu"))
    by_heart = membership(load_run(tmp_path / "heart", "last"), [few])
    list(train_epochs(few, tmp_path / "new", replace(recipe, epochs=1), seed=0, device="cpu"))
    new = membership(load_run(tmp_path / "new", "last"), [few])
    assert by_heart.auc > 0.9
    assert by_heart.auc > new.auc
    assert by_heart.interval[0] <= by_heart.auc <= by_heart.interval[1]
    assert (by_heart.n_members, by_heart.n_others) == (4, 24)


def test_a_conditioned_model_is_attacked_with_its_tasks(tmp_path: Path) -> None:
    list(train_epochs(joint_parts(), tmp_path / "run", JOINT, seed=0, device="cpu"))
    found = membership(load_run(tmp_path / "run"), joint_parts(), n_windows=10)
    assert 0 <= found.auc <= 1
    assert found.n_members == 10


def test_without_held_out_people_there_is_no_attack(tmp_path: Path) -> None:
    list(train_epochs(short_windows(), tmp_path / "run", TINY, seed=0, device="cpu"))
    alone = replace(short_windows(), validation=frozenset())
    with pytest.raises(GazeError, match="held-out people"):
        membership(load_run(tmp_path / "run"), [alone])
