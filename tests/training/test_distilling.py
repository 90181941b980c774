"""Distillation: the student's steps, its folder, resuming, and what it is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gazediffusion as gd
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.labelling import can_label
from gazediffusion.generation.sampler import Sampler
from gazediffusion.generation.steering import Constraints
from gazediffusion.network.checkpoint import Run, load_run
from gazediffusion.network.distilled import DISTILLED
from gazediffusion.network.pretrained import pretrained_folder
from gazediffusion.network.recipes import find_recipe
from gazediffusion.network.tensors import load_tensors, save_tensors
from gazediffusion.scoring.scorer import Scorer
from gazediffusion.settings import Scoring
from gazediffusion.training import calibration, training
from gazediffusion.training.distillation import (
    SETTINGS,
    STATE,
    Distillation,
    Student,
    _open,
    distill,
    rate_at,
)
from tests.training.test_steering import labelled_windows

CPU = torch.device("cpu")
CONDITION = "condition.0.weight.change"
SETTINGS_SMALL = Distillation(levels=(20.0, 1.0, 0.1), n_steps=4, group=3)


def windows() -> gd.Windows:
    return replace(labelled_windows(), rate_hz=20.0)


@pytest.fixture(scope="module")
def teacher(steerable_folder: Path) -> Run:
    return load_run(steerable_folder)


@pytest.fixture(scope="module")
def folder(teacher: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a distilled network, made in one go; no test writes into it."""
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

    def gaussian(_: Any, x: torch.Tensor, sigma: torch.Tensor, *which: Any) -> torch.Tensor:
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
    for number in range(120):
        student.step(number, 1.0, 0.1)
        errors.append(student.errors.clone())
    begin, end = (float(torch.stack(some).mean()) for some in (errors[:8], errors[-8:]))
    assert end < 0.85 * begin


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
            progress=lambda *shown: counts.append(shown[1]) if shown[0] == "distilling" else None,
            should_stop=stop,
            say=said.append,
        )

    with pytest.raises(StoppedError, match="after 3 of 4 steps"):
        go()
    assert (path / STATE).is_file()
    assert not (path / DISTILLED).exists()
    assert load_run(path).distilled is None
    go()
    assert any("after 3 of 4 steps" in line for line in said)
    assert not (path / STATE).exists()
    before = (path / DISTILLED).read_bytes()
    assert before == (folder / DISTILLED).read_bytes()
    go()  # complete already
    assert (path / DISTILLED).read_bytes() == before


@pytest.mark.usefixtures("small_calibration")
def test_a_calibration_stopped_in_the_distilled_network_resumes_there(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(folder, path)
    said, n_done = list[str](), list[float]()

    def go(should_stop: Callable[[], bool]) -> None:
        calibration.calibrate(
            path,
            CPU,
            n=4,
            rounds=1,
            progress=lambda phase, done, total, note: n_done.append(done / total),
            should_stop=should_stop,
            say=said.append,
        )

    with pytest.raises(StoppedError):
        go(lambda: n_done[-1] > 0.6)
    said.clear()
    go(lambda: False)
    assert len(said) == 1
    assert said[0].startswith("resuming")
    # The same windows lead to the same calibration as when the network was distilled.
    assert load_distilled_json(path) == load_distilled_json(folder)


def load_distilled_json(folder: Path) -> dict[str, Any]:
    return load_tensors(folder / DISTILLED)[1]


def test_default_takes_the_distilled_network_and_is_steered(folder: Path) -> None:
    run = load_run(folder)
    assert run.distilled is not None
    assert run.distilled.is_calibrated
    found = {}
    for quality in ("default", "best"):
        settings = Sampler.of_quality(run, quality).settings
        found[quality] = (settings["sampler"], settings["steps"])
        assert settings.get("distilled_sha256") == (
            None if quality == "best" else run.distilled.sha256
        )
    assert found == {"default": ("distilled", 3), "best": ("unipc", 40)}
    sampler = Sampler.of_quality(run, "default")
    made = replace(sampler, seed=1).windows(0, 3).cut()
    assert np.isfinite(made).all()
    other = Sampler.of_quality(run, "default", batch_size=2, seed=1).windows(0, 3).cut()
    np.testing.assert_allclose(made, other, atol=1e-5)
    known = np.full((1, 2, 64), np.nan, dtype=np.float32)
    known[..., :20] = made[:1, :, :20]
    steered = Sampler.of_quality(run, "default", constraints=Constraints(known=known))
    assert steered.settings["steps"] == len(SETTINGS_SMALL.levels)
    np.testing.assert_array_equal(steered.windows(0, 1).cut()[0, :, :20], made[0, :, :20])


def test_settings_of_the_model_itself_take_its_own_network(folder: Path) -> None:
    run = load_run(folder)
    for settings in ({"steps": 9}, {"sampler": "unipc"}):
        sampler = Sampler.of_quality(run, "default", **settings)
        assert sampler.settings["sampler"] != "distilled"
        assert sampler.sampled is run
    without = replace(run, distilled=None)
    assert Sampler.of_quality(without, "default").settings["sampler"] == "unipc"


def test_labels_and_scores_are_the_models_own(folder: Path, teacher: Run) -> None:
    run, gaze = load_run(folder), windows().held_out
    assert can_label(run)
    found, expected = (
        Scorer(one, Scoring(n_steps=5, n_draws=1)).scores(gaze) for one in (run, teacher)
    )
    np.testing.assert_array_equal(found.by_level, expected.by_level)


def test_what_a_distilled_network_cannot_do_is_refused(
    folder: Path, teacher: Run, tmp_path: Path
) -> None:
    run = load_run(folder)
    with pytest.raises(GazeError, match="must be 3, not 5"):
        Sampler(run, sampler="distilled", steps=5)
    with pytest.raises(GazeError, match="no distilled network"):
        Sampler(teacher, sampler="distilled")
    with pytest.raises(GazeError, match="64 at 250 Hz"):
        distill(teacher, labelled_windows(), tmp_path / "run", SETTINGS_SMALL)
    assert not (tmp_path / "run").exists()
    with pytest.raises(GazeError, match="stays as it is"):
        _open(gd.load("joint", device="cpu").run, pretrained_folder() / "joint", {})


def test_a_distilled_network_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(folder, path)
    tensors, header = load_tensors(path / DISTILLED)
    tensors.pop("stem.weight.change")
    save_tensors(path / DISTILLED, tensors, header)
    with pytest.raises(GazeError, match="not of this model"):
        load_run(path)


def test_a_rounded_network_is_nearly_the_same(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(folder, path)
    run = load_run(path)
    assert run.distilled is not None
    run.distilled.save(path, levels=31)
    rounded = load_run(path)
    exact, near = (
        Sampler.of_quality(one, "default", "fp32").windows(0, 2).cut() for one in (run, rounded)
    )
    np.testing.assert_allclose(near, exact, atol=0.02)
    assert not np.array_equal(near, exact)


@pytest.mark.usefixtures("small_calibration")
def test_training_ends_with_a_distilled_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_calibration(monkeypatch)
    # Batches of few windows: the default has six levels of 32.
    monkeypatch.setattr(training, "Distillation", partial(Distillation, group=2))
    n_windows = len(windows().train)
    recipe = replace(
        find_recipe("steerable-tiny"), epochs=2, batch_size=-(-n_windows // 2), distillation=0.75
    )
    said, counts, phases = list[str](), list[float](), set[str]()

    def progress(phase: str, done: float, total: float, note: str) -> None:
        phases.add(phase)
        if phase == "distilling":
            counts.append(done)

    def go(**more: Any) -> gd.Model:
        return gd.train(
            windows(),
            tmp_path / "run",
            replace(recipe, **more),
            device="cpu",
            progress=progress,
            should_stop=lambda: len(counts) == 2,
            say=said.append,
        )

    # Two epochs of two steps, three quarters of them: three steps of distillation.
    with pytest.raises(StoppedError, match="distillation stopped after 2 of 3 steps"):
        go()
    assert load_run(tmp_path / "run").distilled is None
    said.clear()
    model = go()
    assert any("resuming the distillation" in line and "after 2 of 3" in line for line in said)
    assert len(counts) == 3
    assert model.sampler().settings["sampler"] == "distilled"
    # A complete run is neither calibrated nor distilled again; one of other settings is named.
    before = {one: one.stat().st_mtime_ns for one in (tmp_path / "run").iterdir()}
    phases.clear()
    go()
    assert phases == set()
    assert {one: one.stat().st_mtime_ns for one in (tmp_path / "run").iterdir()} == before
    with pytest.raises(GazeError, match=r"learning rate: .* in the folder, 0\.5 asked for"):
        go(learning_rate=0.5)
    assert [one.name for one in tmp_path.iterdir() if one.name != "run"] == []
    weights = (tmp_path / "run" / DISTILLED).read_bytes()
    go()  # complete already
    assert (tmp_path / "run" / DISTILLED).read_bytes() == weights


@pytest.mark.usefixtures("small_calibration")
def test_the_student_of_a_fine_tuned_model_begins_with_that_of_its_source(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _small_calibration(monkeypatch)
    monkeypatch.setattr(training, "Distillation", partial(Distillation, group=2, learning_rate=0.0))
    source = gd.load(folder, device="cpu")
    assert source.run.distilled is not None
    recipe = replace(source.config.recipe, distillation=0.5)
    tasks = ("juggling", *windows().tasks[1:])  # one that the source does not have
    more = replace(windows(), tasks=tasks)
    run = tmp_path / "run"
    training.train(more, run, recipe, initial=source.run, epochs=1, device="cpu")
    model = gd.load(run, device="cpu")
    found = json.loads((run / SETTINGS).read_text())
    assert found["initialised_from"] == source.run.distilled.sha256
    assert model.run.distilled is not None
    there, here = source.run.distilled.change, model.run.distilled.change
    for name in there.keys() - {CONDITION}:
        assert torch.equal(there[name], here[name]), name
    width = model.config.conditioning.width
    old, new = (one[CONDITION].view(-1, width) for one in (there, here))
    assert model.config.conditioning.tasks == tasks
    assert old[:, 0].any()
    assert not new[:, 0].any()
    assert torch.equal(old[:, 1:], new[:, 1:])


def test_a_shared_model_keeps_its_distilled_network(folder: Path, tmp_path: Path) -> None:
    model = gd.load(folder, device="cpu")
    model.save_pretrained(tmp_path / "shared")
    shared = gd.load(tmp_path / "shared", device="cpu")
    np.testing.assert_array_equal(shared.sample(2).cut(), model.sample(2).cut())
    assert shared.sampler().settings == model.sampler().settings


def test_another_distillation_in_the_folder_is_refused(
    folder: Path, teacher: Run, tmp_path: Path
) -> None:
    changed = replace(SETTINGS_SMALL, n_steps=9)
    with pytest.raises(GazeError, match="other settings"):
        distill(teacher, windows(), folder, changed, device="cpu")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(GazeError, match="not written by this command"):
        distill(teacher, windows(), tmp_path, SETTINGS_SMALL, device="cpu")


def test_the_settings_are_in_the_folder(folder: Path, teacher: Run) -> None:
    found = json.loads((folder / SETTINGS).read_text())
    assert found["teacher"] == teacher.weights_sha256
    assert found["settings"]["levels"] == list(SETTINGS_SMALL.levels)
    run = load_run(folder)
    assert run.distilled is not None
    assert run.distilled.settings == found
    assert torch.equal(run.network.stem.weight, teacher.network.stem.weight)


@pytest.mark.parametrize("levels", [(1.0, 2.0), (1.0, 1.0), (1.0, 0.0)])
def test_levels_that_do_not_decrease_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises(GazeError, match="levels"):
        Distillation(levels=levels)
