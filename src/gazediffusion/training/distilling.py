"""Distillation: a distilled network is added to a trained run, resumable at any point.

distilled.safetensors      the network, as its difference from the model's (models/distilled.py)
distillation.json          settings, and the weights that it is distilled from
distillation.safetensors   all that is needed to resume; removed at the end
distillation.jsonl         the error at each level, from time to time
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.models.checkpoint import Run, load_run
from gazediffusion.models.copying import copy_run
from gazediffusion.models.distilled import DISTILLED, Distilled
from gazediffusion.models.pretrained import pretrained_folder
from gazediffusion.models.tensors import load_tensors, save_tensors
from gazediffusion.storage import read_json, write_json
from gazediffusion.training import calibration
from gazediffusion.training.fine_tuning import initial_change
from gazediffusion.training.learner import average_weight_at, choose_precision
from gazediffusion.training.student import Distillation, Student

WEIGHTS = "best.safetensors"
SETTINGS, STATE, LOG = "distillation.json", "distillation.safetensors", "distillation.jsonl"
_WARMUP = 200  # steps
_LOGGED = 100


def distill(
    teacher: Run,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    settings: Distillation | None = None,
    *,
    initial: Run | None = None,
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
    """Distill a model, add the distilled network to a run folder and calibrate it.

    folder: the model's own, or a new one that the model is copied to; it is returned. windows: what
    the teacher was trained on, or recordings of the same tasks; the training participants are
    taken. initial: the model that the teacher was fine-tuned from; the student begins with the
    difference between that model's networks. on_step, on_calibration(done, total): count windows.
    When `should_stop` returns True, what was done is saved and StoppedError raised; the same call
    resumes.
    """
    folder, settings = Path(folder), settings or Distillation()
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    require_fit(teacher, parts)
    on = choose_device(device)
    chosen = choose_precision(precision, teacher.config.recipe, on)
    plain = {"settings": settings.to_json(), "seed": seed, "teacher": teacher.weights_sha256}
    if initial is not None and initial.distilled is not None:
        plain["initialised_from"] = initial.distilled.sha256
    _open(teacher, folder, plain)
    total = settings.n_steps
    if not (folder / DISTILLED).is_file():
        fast = on.type == "cuda"
        student = Student(
            teacher,
            [part.train for part in parts],
            settings,
            seed,
            on,
            chosen,
            initial=None if initial is None else initial_change(initial, teacher.config),
            compiled=fast if compiled is None else compiled,
            captured=fast,
        )
        done = restored(folder / STATE, student.load)
        say(
            f"resuming the distillation in {shown(folder)} after {done} of {total} steps"
            if done
            else f"distilling into {shown(folder)}: {total} steps"
        )
        _run(student, folder, done, save_every_s, on_step, should_stop)
        change = {name: tensor.cpu() for name, tensor in student.average.items()}
        require_finite(folder, change)
        conditioning = teacher.config.conditioning.uncalibrated()
        Distilled(teacher.network, change, conditioning, plain, "").save(folder)
        (folder / STATE).unlink(missing_ok=True)
    distilled = load_run(folder).distilled
    if distilled is not None and not distilled.is_calibrated:
        calibration.calibrate(
            folder, on, progress=on_calibration, should_stop=should_stop, say=say, again=False
        )
    return folder


def _open(teacher: Run, folder: Path, plain: Mapping[str, Any]) -> None:
    """Put the teacher into a new folder, or check that the folder has this very distillation."""
    if (folder / SETTINGS).is_file():
        require_same(folder / SETTINGS, plain)
        return
    is_own = folder.resolve() == teacher.path.resolve()
    if is_own and folder.resolve().parent == pretrained_folder():
        raise GazeError("a packaged model stays as it is", path=folder, remedy="name a new folder")
    if not is_own and folder.exists() and any(folder.iterdir()):
        raise GazeError("the folder is not empty and was not written by this command", path=folder)
    if not is_own:
        copy_run(teacher, folder, WEIGHTS, teacher.config)
    elif (folder / DISTILLED).is_file():
        raise GazeError(
            "the model has a distilled network", path=folder, remedy="name a new folder"
        )
    write_json(folder / SETTINGS, plain)


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


def _log(student: Student, folder: Path, step: int) -> None:
    errors = [float(f"{error:.4g}") for error in student.errors.tolist()]
    line = {"step": step, "errors": errors}
    with open(folder / LOG, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


def require_fit(model: Run, parts: Sequence[Windows]) -> None:
    """Refuse models and windows that cannot be combined."""
    config = model.config
    recipe = config.recipe
    if recipe.process != "edm" or not recipe.is_conditioned:
        raise GazeError(
            f"a model of recipe {recipe.name} cannot be distilled",
            remedy="take one of recipe joint or steerable",
        )
    for part in parts:
        if (part.length, part.rate_hz) != (config.length, config.rate_hz):
            raise GazeError(
                f"the model has windows of {config.length} samples at {config.rate_hz:g} Hz, and "
                f"these have {part.length} at {part.rate_hz:g} Hz",
                remedy=f"prepare them with `rate_hz` {config.rate_hz:g} and `seconds` "
                f"{config.length / config.rate_hz:g}",
            )
        if len(part.train) == 0:
            raise GazeError("there are no training windows in this file")
        for task in part.tasks:
            config.conditioning.task_number(task)


def require_same(path: Path, plain: Mapping[str, Any]) -> None:
    """Refuse to resume with other settings than those in the file."""
    there, here = read_json(path), json.loads(json.dumps(plain))
    if there != here:
        changed = [key for key in here if there.get(key) != here[key]]
        raise GazeError(
            f"the folder has a {path.stem} with other {' and '.join(changed)}",
            path=path.parent,
            remedy="name a new folder, or give the same settings to resume",
        )


def restored(path: Path, load: Callable[[dict[str, Tensor]], None]) -> int:
    """The steps done, with the state in `path` loaded; 0 where there is none."""
    if not path.is_file():
        return 0
    tensors, header = load_tensors(path)
    try:
        load(tensors)
        return int(header["step"])
    except (KeyError, RuntimeError) as error:
        raise GazeError(f"the state of the {path.stem} is damaged ({error})", path=path) from error


def run_steps(
    path: Path,
    done: int,
    total: int,
    step: Callable[[int], None],
    state: Callable[[], dict[str, Tensor]],
    save_every_s: float,
    should_stop: Callable[[], bool],
) -> None:
    """Steps done.. of total, with the state saved to `path` from time to time and at a stop."""
    saved = time.monotonic()
    for number in range(done, total):
        step(number)
        is_stopped = should_stop()
        if number + 1 == total:
            return
        if is_stopped or time.monotonic() - saved > save_every_s:
            save_tensors(path, state(), {"step": number + 1})
            saved = time.monotonic()
        if is_stopped:
            raise StoppedError(
                f"{path.stem} stopped after {number + 1} of {total} steps; {shown(path.parent)} is "
                "saved"
            )


def require_finite(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that are not finite."""
    if not all(bool(weight.isfinite().all()) for weight in weights.values()):
        raise GazeError(
            "the weights are not finite",
            path=folder,
            remedy="lower `learning_rate`, or set `precision` to fp32",
        )
