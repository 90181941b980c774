"""Distillation: the student's steps, its folder, resuming, and what it is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.labelling import can_label
from gazediffusion.models.checkpoint import Run, load_run, load_tensors
from gazediffusion.scoring.scorer import ScoreConfig, Scorer
from gazediffusion.training.distilling import SETTINGS, STATE, distill, rate_at
from gazediffusion.training.student import Distillation, Student
from tests.training.test_steering import labelled_windows

CPU = torch.device("cpu")
SETTINGS_SMALL = Distillation(levels=(20.0, 1.0, 0.1), n_steps=4, group=3)


def windows() -> gd.Windows:
    return replace(labelled_windows(), rate_hz=20.0)


@pytest.fixture(scope="module")
def teacher(steerable_folder: Path) -> Run:
    return load_run(steerable_folder)


@pytest.fixture(scope="module")
def folder(teacher: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student, distilled in one go; no test writes into it."""
    path = tmp_path_factory.mktemp("distilled") / "run"
    with pytest.MonkeyPatch.context() as patch:
        _small_calibration(patch)
        return distill(teacher, windows(), path, SETTINGS_SMALL, device="cpu")


def _small_calibration(patch: pytest.MonkeyPatch) -> None:
    from functools import partial

    from gazediffusion.training import calibration

    patch.setattr(calibration, "calibrate", partial(calibration.calibrate, n=4, rounds=1))


def student_of(teacher: Run, settings: Distillation = SETTINGS_SMALL) -> Student:
    return Student(teacher, [windows().train], settings, 0, CPU, "fp32")


def test_windows_pass_the_levels_one_a_step_by_their_own_steps(teacher: Run) -> None:
    student = student_of(teacher)
    first = [student._windows(number)[0] for number in range(6)]
    n, x = student.slots.n_new, student.slots.x.clone()
    with torch.no_grad():
        estimate = student._denoised(student.teacher, x, student.sigma)
    student.step(0, 0.0, 0.0)
    # New windows begin at the first level as pure noise, the others moved on by one level.
    now = student.slots
    assert torch.equal(now.real, torch.cat([first[3], first[0], first[1]]))
    torch.testing.assert_close(now.x[:n], 20.0 * now.noise[:n])
    # At a rate of zero the student is the teacher: a DDIM step with its estimate.
    for k, (here, there) in enumerate(pairwise(SETTINGS_SMALL.levels)):
        of, after = slice(k * n, (k + 1) * n), slice((k + 1) * n, (k + 2) * n)
        expected = estimate[of] + there / here * (x[of] - estimate[of])
        torch.testing.assert_close(now.x[after], expected)


def test_the_aim_leads_where_many_steps_of_the_teacher_lead(
    teacher: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    student = student_of(teacher, replace(SETTINGS_SMALL, n_between=12))
    std, slots, n = 0.7, student.slots, student.slots.n_new

    def gaussian(_: Any, x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        """The best estimate of a Gaussian, whose flow only rescales x."""
        return x * (std**2 / (std**2 + sigma.square()))[:, None, None]

    monkeypatch.setattr(student, "_denoised", gaussian)
    aim = student._aim()
    assert torch.equal(aim[slots.counts == 0], slots.real[slots.counts == 0])
    for k, (here, there) in enumerate(pairwise((*SETTINGS_SMALL.levels, 0.0))):
        of = slice(k * n, (k + 1) * n)
        is_free = slots.counts[of] > 0
        reached = aim[of] + there / here * (slots.x[of] - aim[of])
        exact = slots.x[of] * math.sqrt((std**2 + there**2) / (std**2 + here**2))
        torch.testing.assert_close(reached[is_free], exact[is_free], rtol=0.01, atol=1e-3)


def test_training_reduces_the_error(teacher: Run) -> None:
    settings = replace(SETTINGS_SMALL, group=8, learning_rate=1e-3)
    student = student_of(teacher, settings)
    errors = []
    for number in range(60):
        student.step(number, 1.0, 0.1)
        errors.append(student.errors.clone())
    begin, end = (float(torch.stack(some).mean()) for some in (errors[:8], errors[-8:]))
    assert end < 0.85 * begin


def test_the_average_moves_towards_the_student(teacher: Run) -> None:
    student = student_of(teacher)
    before = torch.cat([p.detach().flatten().clone() for p in student.network.parameters()])
    student.step(0, 1.0, 0.1)
    after = torch.cat([p.detach().flatten() for p in student.network.parameters()])
    assert not torch.equal(after, before)
    average = torch.cat([p.flatten() for p in student.average.parameters()])
    torch.testing.assert_close(average, before + 0.1 * (after - before))


def test_given_samples_stay_in_the_estimates(teacher: Run) -> None:
    student = student_of(teacher, replace(SETTINGS_SMALL, group=12))
    is_given = student.slots.counts == 0
    assert bool(is_given.any())
    with torch.no_grad():
        clean = student._denoised(student.network, student.slots.x, student.sigma)
    assert torch.equal(clean[is_given], student.slots.real[is_given])


def test_rates_warm_up_and_end_low() -> None:
    assert rate_at(0, 1000) == pytest.approx(1 / 200)
    assert rate_at(400, 1000) == 1.0
    assert rate_at(750, 1000) == pytest.approx(0.5)
    assert rate_at(999, 1000) == 0.02


@pytest.mark.usefixtures("small_calibration")
def test_a_stopped_distillation_ends_as_an_uninterrupted_one(
    teacher: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_calibration(monkeypatch)
    path, said, counts = tmp_path / "run", list[str](), list[int]()

    def stop() -> bool:
        return len(counts) == 3

    def go() -> None:
        distill(
            teacher,
            windows(),
            path,
            SETTINGS_SMALL,
            device="cpu",
            on_step=lambda done, total: counts.append(done),
            should_stop=stop,
            say=said.append,
        )

    with pytest.raises(StoppedError, match="after 3 of 4 steps"):
        go()
    assert (path / STATE).is_file()
    assert not (path / "best.safetensors").exists()
    go()
    assert any("after 3 of 4 steps" in line for line in said)
    assert not (path / STATE).exists()
    here, there = (load_tensors(one / "best.safetensors")[0] for one in (path, folder))
    assert all(torch.equal(here[name], there[name]) for name in there)
    before = (path / "best.safetensors").read_bytes()
    go()  # complete already
    assert (path / "best.safetensors").read_bytes() == before


def test_the_student_samples_and_is_steered(folder: Path) -> None:
    run = load_run(folder)
    assert run.config.recipe.levels == SETTINGS_SMALL.levels
    assert run.config.conditioning.is_calibrated
    generator = DiffusionGenerator.of_quality(run, "default")
    made = generator.sample(3, seed=1).cut()
    assert np.isfinite(made).all()
    other = DiffusionGenerator.of_quality(run, "best", batch_size=2).sample(3, seed=1).cut()
    np.testing.assert_allclose(made, other, atol=1e-5)
    assert generator.settings["sampler"] == "ddim"
    assert generator.settings["steps"] == 3
    known = np.full((1, 2, 64), np.nan, dtype=np.float32)
    known[..., :20] = made[:1, :, :20]
    steered = DiffusionGenerator.of_quality(run, "default", constraints=Constraints(known=known))
    np.testing.assert_array_equal(steered.sample(1).cut()[0, :, :20], made[0, :, :20])


def test_each_level_takes_one_evaluation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = load_run(folder)
    levels: list[float] = []
    forward = run.network.forward

    def counted(x: Any, t: Any, *given: Any) -> Any:
        levels.append(float(t[0]))
        return forward(x, t, *given)

    monkeypatch.setattr(run.network, "forward", counted)
    DiffusionGenerator.of_quality(run, "default").sample(1)
    expected = run.config.recipe.edm.embedded(torch.tensor(SETTINGS_SMALL.levels))
    np.testing.assert_allclose(levels, expected.numpy(), rtol=1e-5)


def test_what_a_student_cannot_do_is_refused(folder: Path, teacher: Run, tmp_path: Path) -> None:
    run = load_run(folder)
    assert not can_label(run)
    with pytest.raises(GazeError, match="guidance"):
        DiffusionGenerator(run, guidance=2.0, steps=3)
    with pytest.raises(GazeError, match="must be 3"):
        DiffusionGenerator(run, steps=2)
    with pytest.raises(GazeError, match="must be ddim"):
        DiffusionGenerator(run, sampler="unipc")
    with pytest.raises(GazeError, match="has no scores"):
        Scorer(run, ScoreConfig())
    with pytest.raises(GazeError, match="cannot be distilled"):
        distill(run, windows(), tmp_path / "run", SETTINGS_SMALL)
    with pytest.raises(GazeError, match="64 at 250 Hz"):
        distill(teacher, labelled_windows(), tmp_path / "run", SETTINGS_SMALL)
    assert not (tmp_path / "run").exists()


def test_another_distillation_in_the_folder_is_refused(
    folder: Path, teacher: Run, tmp_path: Path
) -> None:
    changed = replace(SETTINGS_SMALL, n_steps=9)
    with pytest.raises(GazeError, match="other settings"):
        distill(teacher, windows(), folder, changed, device="cpu")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(GazeError, match="something else"):
        distill(teacher, windows(), tmp_path, SETTINGS_SMALL, device="cpu")


def test_the_settings_are_in_the_folder(folder: Path, teacher: Run) -> None:
    found = json.loads((folder / SETTINGS).read_text())
    assert found["teacher"] == teacher.weights_sha256
    assert found["settings"]["levels"] == list(SETTINGS_SMALL.levels)
    assert load_run(folder).config.initialised_from == teacher.weights_sha256


@pytest.mark.parametrize("levels", [(1.0, 2.0), (1.0, 1.0), (1.0, 0.0)])
def test_levels_that_do_not_decrease_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises(GazeError, match="levels"):
        Distillation(levels=levels)
