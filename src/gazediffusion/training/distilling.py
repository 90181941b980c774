"""Distillation: a run folder with a student of a trained model, resumable at any point.

config.json, conditioning.safetensors, best.safetensors   the student, as in any run folder
distillation.json          settings, and the weights that it is distilled from
distillation.safetensors   all that is needed to resume; removed at the end
distillation.jsonl         the error at each level, from time to time
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.models.checkpoint import Run, read_config
from gazediffusion.training import calibration
from gazediffusion.training.derived import (
    WEIGHTS,
    open_folder,
    require_fit,
    restored,
    run_steps,
    save_weights,
)
from gazediffusion.training.learner import average_weight_at, choose_precision
from gazediffusion.training.student import Distillation, Student
from gazediffusion.urls import shown

SETTINGS, STATE, LOG = "distillation.json", "distillation.safetensors", "distillation.jsonl"
_WARMUP = 200  # steps
_LOGGED = 100


def distill(
    teacher: Run,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    settings: Distillation | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    save_every_s: float = 60.0,
    on_step: Callable[[int, int], None] = lambda done, total: None,
    on_calibration: Callable[[float, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Distill a model into a run folder and calibrate it; returns the folder.

    windows: what the teacher was trained on, or recordings of the same tasks; the training
    participants are taken. on_step, on_calibration(done, total): count windows. When `should_stop`
    returns True, what was done is saved and StoppedError raised; the same call resumes.
    """
    folder, settings = Path(folder), settings or Distillation()
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    require_fit(teacher, parts, "distilled")
    on = choose_device(device)
    chosen = choose_precision(precision, teacher.config.recipe, on)
    plain = {"settings": settings.to_json(), "seed": seed, "teacher": teacher.weights_sha256}
    recipe = replace(
        teacher.config.recipe,
        name="distilled",
        levels=settings.levels,
        sampling_steps=len(settings.levels),
    )
    open_folder(folder, SETTINGS, plain, teacher, recipe)
    total = settings.n_steps
    if not (folder / WEIGHTS).is_file():
        fast = on.type == "cuda"
        student = Student(
            teacher,
            [part.train for part in parts],
            settings,
            seed,
            on,
            chosen,
            compiled=fast if compiled is None else compiled,
            captured=fast,
        )
        done = restored(folder / STATE, student.load)
        say(
            f"resuming {shown(folder)} after {done} of {total} steps"
            if done
            else f"distilling into {shown(folder)}: {total} steps"
        )
        _run(student, folder, done, save_every_s, on_step, should_stop)
    if calibration.is_due(read_config(folder)):
        calibration.calibrate(folder, on, progress=on_calibration, should_stop=should_stop, say=say)
    return folder


def rate_at(step: int, total: int) -> float:
    """Learning rates over their highest: constant, in the second half down a cosine to 0.02."""
    share = max(0.0, 2 * step / total - 1)
    return min(1.0, (step + 1) / _WARMUP) * max(0.02, 0.5 * (1 + math.cos(math.pi * share)))


def _run(
    student: Student,
    folder: Path,
    done: int,
    save_every_s: float,
    on_step: Callable[[int, int], None],
    should_stop: Callable[[], bool],
) -> None:
    settings = student.settings
    total = settings.n_steps

    def update(step: int) -> None:
        weight = average_weight_at(step, settings.average)
        student.step(step, rate_at(step, total), weight)
        on_step((step + 1) * student.n_windows, total * student.n_windows)
        if (step + 1) % _LOGGED == 0:
            _log(student, folder, step + 1)

    run_steps(folder / STATE, done, total, update, student.state, save_every_s, should_stop)
    save_weights(folder, dict(student.average.named_parameters()), total)
    (folder / STATE).unlink(missing_ok=True)


def _log(student: Student, folder: Path, step: int) -> None:
    errors = [float(f"{error:.4g}") for error in student.errors.tolist()]
    line = {"step": step, "errors": errors}
    with open(folder / LOG, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")
