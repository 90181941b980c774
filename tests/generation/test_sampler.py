from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation.sampler import Sampler
from gazediffusion.network.checkpoint import load_run
from tests.runs import TINY_VELOCITY, trained_run


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_run(tmp_path_factory.mktemp("sampler") / "run")


def test_windows_are_the_same_for_every_batch_size(run_folder: Path) -> None:
    run = load_run(run_folder)
    sets = [Sampler(run, batch_size=size, seed=3).windows(0, 7) for size in (1, 3, 7, 100)]
    assert sets[0].cut().shape == (7, 2, 64)
    for other in sets[1:]:
        np.testing.assert_allclose(other.cut(), sets[0].cut(), atol=1e-3, rtol=1e-3)


# The networks of the paper round a batch of one window otherwise.
@pytest.mark.parametrize(("is_paper", "atol"), [(True, 1e-3), (False, 0.0)])
def test_a_call_gives_any_windows_of_a_seed_alone(
    run_folder: Path, steerable_folder: Path, is_paper: bool, atol: float
) -> None:
    model = gd.load(run_folder if is_paper else steerable_folder, device="cpu")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # sums by several threads are rounded otherwise
    try:
        windows = model.sample(7, seed=3)
        for k in (0, 3, 6):
            alone = model.sampler(seed=3).windows(k, k + 1)
            np.testing.assert_allclose(alone.cut()[0], windows.cut()[k], rtol=0, atol=atol)
            assert alone.screen == windows.screens[windows.screen_index[k]]
        first = model.sample(2, seed=3).cut()
        np.testing.assert_allclose(first, windows.cut()[:2], rtol=0, atol=atol)
    finally:
        torch.set_num_threads(before)
    assert np.abs(model.sample(7, seed=4).cut() - windows.cut()).max() > 0.01


def test_velocity_windows_begin_at_zero_and_are_summed(tmp_path: Path) -> None:
    run = load_run(trained_run(tmp_path / "run", TINY_VELOCITY))
    gaze = Sampler(run).windows(0, 3).cut()
    assert (gaze[:, :, 0] == 0).all()
    assert np.abs(gaze[:, :, -1]).max() > 0


def test_defaults_are_those_of_the_recipe_and_can_be_changed(run_folder: Path) -> None:
    run = load_run(run_folder)
    assert Sampler(run).settings == {"sampler": "ddim", "steps": 5, "eta": 0.0}
    changed = Sampler(run, steps=9, eta=0.5)
    assert changed.settings == {"sampler": "ddim", "steps": 9, "eta": 0.5}
    ancestral = Sampler(run, sampler="ancestral")
    assert ancestral.settings == {"sampler": "ancestral", "steps": 1000, "eta": 1.0}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"steps": 0}, "`steps` must lie between 1 and 1000"),
        ({"steps": 1001}, "`steps` must lie between 1 and 1000"),
        ({"eta": 2.0}, "`eta`"),
        ({"sampler": "magic"}, "`sampler`"),
        ({"batch_size": 0}, "`batch_size`"),
    ],
)
def test_impossible_settings_are_refused(
    run_folder: Path, settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(GazeError, match=problem):
        Sampler(load_run(run_folder), **settings)  # type: ignore[arg-type]


def test_no_windows_cannot_be_generated(run_folder: Path) -> None:
    with pytest.raises(GazeError, match="no windows 4 to 4"):
        Sampler(load_run(run_folder)).windows(4, 4)


def test_progress_counts_windows(run_folder: Path) -> None:
    received: list[float] = []
    list(Sampler(load_run(run_folder), batch_size=2).pieces(0, 4, received.append))
    assert received == sorted(received)
    assert received[-1] == 4
    assert len(received) == 10
