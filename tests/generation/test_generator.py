from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

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


def test_the_same_seed_gives_the_same_bytes_and_another_other_windows(run_folder: Path) -> None:
    sampler = Sampler(load_run(run_folder))
    one, again, other = (replace(sampler, seed=seed).windows(0, 3).cut() for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.01


def test_more_windows_begin_with_the_same_ones(run_folder: Path) -> None:
    sampler = Sampler(load_run(run_folder), batch_size=4)
    few, many = sampler.windows(0, 4).cut(), sampler.windows(0, 8).cut()
    np.testing.assert_array_equal(few, many[:4])


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
