"""runs/deep_noise.py: without noise gaze is as it was; the table has every noise level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.models.checkpoint import load_run
from tests.conftest import SCREEN
from tests.evaluation.test_trials import walks
from tests.test_documents import ROOT, from_folder


@pytest.fixture(scope="module")
def script() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "runs"))
        return from_folder("runs", "deep_noise")


def windows_of(folder: Path, n: int = 320) -> gd.Windows:
    """Walks at the model's rate, of eight participants, two of them held out."""
    names = [f"p{k * 8 // n}" for k in range(n)]
    task = load_run(folder).config.conditioning.tasks[0]
    windows = gd.Windows.from_array(walks(n, 0, length=64), 20.0, SCREEN, names, task)
    return replace(windows, validation=frozenset({"p0", "p1"}))


def test_gaze_noised_by_nothing_is_as_it_was(script: object, steerable_folder: Path) -> None:
    run = load_run(steerable_folder)
    one = GazeSet.of("real", windows_of(steerable_folder).subsample(20))
    errors = []
    for sigma in (1e-4, 1.0):
        defect = script.noised_to(run, sigma, steps=5)  # type: ignore[attr-defined]
        found = defect(one, np.random.default_rng(0))
        assert found.gaze.shape == one.gaze.shape
        assert found.tasks == one.tasks
        errors.append(np.abs(found.gaze - one.gaze).max())
    assert errors[0] < 0.01
    assert errors[1] > 5 * errors[0]


def test_the_same_draw_gives_the_same_gaze(script: object, steerable_folder: Path) -> None:
    run = load_run(steerable_folder)
    one = GazeSet.of("real", windows_of(steerable_folder).subsample(20))
    defect = script.noised_to(run, 0.5, steps=5)  # type: ignore[attr-defined]
    found = [defect(one, np.random.default_rng(seed)).gaze for seed in (0, 0, 1)]
    assert torch.equal(*map(torch.from_numpy, found[:2]))
    assert not np.array_equal(found[0], found[2])


def test_the_table_has_every_noise_level(
    script: object, steerable_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    windows_of(steerable_folder).save(tmp_path / "walks.safetensors")
    words = (
        f"{tmp_path / 'walks.safetensors'} --model {steerable_folder} --sigma 0.1 1 --steps 5 "
        "--seeds 1 --training-steps 2 --batch-size 8 --seconds 8 -n 100"
    )
    script.main(words.split())  # type: ignore[attr-defined]
    table = capsys.readouterr().out.partition("## AUC")[2]
    rows = [line for line in table.splitlines() if line.startswith("| walks")]
    assert [row.split("|")[1].strip() for row in rows] == [
        "walks: two groups of participants (floor)", "walks: sigma 0.1", "walks: sigma 1",
    ]  # fmt: skip
