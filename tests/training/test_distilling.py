"""Distillation: the student's steps, its folder, resuming, and what it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.constraints import Constraints
from gazediffusion.generation.edm_sampling import further_noise
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


def test_windows_pass_the_levels_one_a_step_by_their_own_estimates(teacher: Run) -> None:
    student = student_of(teacher)
    first = [student._windows(number)[0] for number in range(6)]
    n = student.slots.n_new
    student.step(0, 0.0, 0.0)
    # New windows begin at the first level as pure noise, the others moved on by one level.
    expected = torch.cat([first[3], first[0], first[1]])
    assert torch.equal(student.slots.real, expected)
    begun = student.slots
    torch.testing.assert_close(begun.x[:n], 20.0 * begun.noise[:n])
    # At a rate of zero the student is the teacher, whose estimate is noised to the next level.
    again = student_of(teacher)
    with torch.no_grad():
        estimate = again._generated(again.teacher)[:n]
    noise = further_noise(again.slots.noise[:n], 1)
    torch.testing.assert_close(begun.x[n : 2 * n], estimate + 1.0 * noise)


def test_a_step_updates_the_critics_and_every_second_one_the_student(teacher: Run) -> None:
    student = student_of(teacher)

    def weights(name: str) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in student.networks[name].parameters()])

    before = {name: weights(name).clone() for name in student.networks}
    student.step(0, 1.0, 0.1)
    assert torch.equal(weights("student"), before["student"])
    assert not torch.equal(weights("imitator"), before["imitator"])
    assert not torch.equal(weights("discriminator"), before["discriminator"])
    student.step(1, 1.0, 0.1)
    assert not torch.equal(weights("student"), before["student"])
    average = torch.cat([p.flatten() for p in student.average.parameters()])
    expected = before["student"] + 0.1 * (weights("student") - before["student"])
    torch.testing.assert_close(average, expected)


def test_the_discriminator_does_not_see_the_statistics(teacher: Run) -> None:
    student = student_of(teacher)
    columns = student.batches.conditioning.columns("statistics")
    (shown, _), (hidden, _) = student._given(), student._given(is_hidden=True)
    assert bool((shown[:, columns] != 0).any())
    assert bool((hidden[:, columns] == 0).all())
    task = student.batches.conditioning.columns("task")
    assert torch.equal(shown[:, task], hidden[:, task])


def test_given_samples_stay_in_the_estimates(teacher: Run) -> None:
    student = student_of(teacher, replace(SETTINGS_SMALL, group=12))
    is_given = student.slots.counts == 0
    assert bool(is_given.any())
    with torch.no_grad():
        clean = student._generated(student.networks["student"])
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
    assert generator.settings["sampler"] == "renoising"
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


def test_noise_of_further_levels_is_the_first_at_other_times_and_channels() -> None:
    first = torch.randn(2, 4, 400, generator=torch.Generator().manual_seed(0))
    assert torch.equal(further_noise(first, 0), first)
    seen = [further_noise(first, k) for k in range(5)]
    for a in range(5):
        torch.testing.assert_close(seen[a].flatten().sort()[0], first.flatten().sort()[0])
        for b in range(a):
            correlation = torch.corrcoef(torch.stack([seen[a].flatten(), seen[b].flatten()]))
            assert abs(float(correlation[0, 1])) < 0.1


def test_what_a_student_cannot_do_is_refused(folder: Path, teacher: Run, tmp_path: Path) -> None:
    run = load_run(folder)
    assert not can_label(run)
    with pytest.raises(GazeError, match="guidance"):
        DiffusionGenerator(run, guidance=2.0, steps=3)
    with pytest.raises(GazeError, match="must be 3"):
        DiffusionGenerator(run, steps=2)
    with pytest.raises(GazeError, match="must be renoising"):
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
