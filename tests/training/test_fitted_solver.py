"""The solver of a run: fitted in its calibration, and taken for quality fast."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gazediffusion.conditioning.quantization import Floats
from gazediffusion.errors import GazeError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.models.checkpoint import Run, load_run, read_config
from gazediffusion.training.calibration import calibrate
from gazediffusion.training.fitted_solver import fitted_solver, levels_of


@pytest.fixture(scope="module")
def run(steerable_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that was calibrated, with its solver."""
    folder = tmp_path_factory.mktemp("solver") / "run"
    shutil.copytree(steerable_folder, folder)
    calibrate(folder, torch.device("cpu"), n=4, rounds=1)
    return load_run(folder)


def test_levels_of_other_numbers_of_steps_lie_between_those_of_seven() -> None:
    seven = levels_of(7)
    assert len(seven) == 7
    for n in (2, 5, 13):
        levels = levels_of(n)
        assert (levels[0], levels[-1]) == (seven[0], seven[-1])
        assert levels == sorted(set(levels), reverse=True)
    assert levels_of(13)[::2] == seven
    assert levels_of(1) == seven[:1]


def test_calibration_fits_the_solver_that_fast_takes(run: Run) -> None:
    solver = run.config.solver
    assert solver is not None
    assert list(solver.levels) == levels_of(run.config.recipe.solver_steps)
    assert solver == fitted_solver(run, 4)
    assert read_config(run.path).solver == solver
    settings = {
        quality: DiffusionGenerator.of_quality(run, quality).settings
        for quality in ("fast", "default", "best")
    }
    assert [settings[one]["sampler"] for one in settings] == ["olss", "unipc", "unipc"]
    assert settings["fast"]["steps"] == 7


def test_fast_windows_are_those_of_best_up_to_a_small_error(run: Run) -> None:
    def gaze(quality: str, **settings: object) -> Floats:
        generator = DiffusionGenerator.of_quality(run, quality, "fp32", **settings)  # type: ignore[arg-type]
        return generator.sample(6, seed=3).cut()

    best = gaze("best")

    def error(found: Floats) -> float:
        return float(np.sqrt(np.mean((found - best) ** 2)))

    assert error(gaze("fast")) < 0.5 * error(gaze("default", sampler="multistep", steps=7))


def test_fast_windows_keep_what_is_known_and_do_not_depend_on_the_batch(run: Run) -> None:
    made = DiffusionGenerator.of_quality(run, "fast").sample(3, seed=1).cut()
    other = DiffusionGenerator.of_quality(run, "fast", batch_size=2).sample(3, seed=1).cut()
    np.testing.assert_allclose(made, other, atol=1e-5)
    known = np.full((1, *made.shape[1:]), np.nan, dtype=np.float32)
    known[..., :20] = made[:1, :, :20]
    steered = DiffusionGenerator.of_quality(run, "fast", constraints=Constraints(known=known))
    np.testing.assert_array_equal(steered.sample(1).cut()[0, :, :20], made[0, :, :20])


def test_other_steps_take_a_general_solver(run: Run) -> None:
    generator = DiffusionGenerator.of_quality(run, "fast", steps=9)
    assert generator.settings["sampler"] == "multistep"
    with pytest.raises(GazeError, match="`steps` of sampler olss must be 7 for this run, not 9"):
        DiffusionGenerator.of_quality(run, "fast", sampler="olss", steps=9)


def test_a_run_without_a_solver_says_how_to_fit_one(run: Run) -> None:
    without = replace(run, config=replace(run.config, solver=None))
    assert DiffusionGenerator.of_quality(without, "fast").settings["sampler"] == "multistep"
    with pytest.raises(GazeError, match=r"no fitted solver.*gazediffusion calibrate"):
        DiffusionGenerator.of_quality(without, "fast", sampler="olss")


def test_fast_takes_the_solver_also_with_its_number_of_steps_and_guidance(run: Run) -> None:
    for settings in ({"steps": 7}, {"guidance": 2.0}):
        generator = DiffusionGenerator.of_quality(run, "fast", **settings)
        assert (generator.settings["sampler"], generator.settings["steps"]) == ("olss", 7)
