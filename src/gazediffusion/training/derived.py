"""Runs derived from a trained model: the fit of windows, and the folder that is resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.files import read_json, write_json
from gazediffusion.models.checkpoint import CONFIG, Run, write_config
from gazediffusion.models.recipes import Recipe
from gazediffusion.models.tensors import load_tensors, save_tensors
from gazediffusion.urls import shown

WEIGHTS = "best.safetensors"
Settings = TypeVar("Settings")


class DerivedSettings(TypedDict, total=False):
    """How `distill` and `refine` are run, beside their own settings; see there."""

    seed: int
    device: str
    precision: str
    compiled: bool | None
    save_every_s: float
    on_step: Callable[[int, int], None]
    on_calibration: Callable[[float, int], None]
    should_stop: Callable[[], bool]
    say: Callable[[str], None]


def with_given(usual: Settings, **given: Any) -> Settings:
    """Settings (a dataclass) with those that are given, not None, in the place of the usual."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(usual, **chosen)  # type: ignore[type-var]


def require_fit(model: Run, parts: Sequence[Windows], done: str) -> None:
    """Refuse models and windows that cannot be combined. done: as "distilled"."""
    config = model.config
    recipe = config.recipe
    if recipe.process != "edm" or not recipe.is_conditioned:
        raise GazeError(
            f"a model of recipe {recipe.name} cannot be {done}",
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


def open_folder(
    folder: Path, settings_file: str, plain: Mapping[str, Any], model: Run, recipe: Recipe
) -> None:
    """Begin a run folder derived from a model, or check that it has this very run.

    settings_file, plain: what the run depends on, and the file in the folder that says so.
    """
    path = folder / settings_file
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, plain)
        config = replace(
            model.config,
            recipe=recipe,
            conditioning=model.config.conditioning.uncalibrated(),
            initialised_from=model.weights_sha256,
            solver=None,
        )
        write_config(folder, config)
        return
    if not path.is_file() or not (folder / CONFIG).is_file():
        raise GazeError("the folder has something else in it", path=folder, remedy="name a new one")
    require_same(path, plain)


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


def save_weights(folder: Path, weights: Mapping[str, Tensor], epoch: int) -> None:
    """The weights of the run; those that are not finite are refused."""
    require_finite(folder, weights)
    save_tensors(folder / WEIGHTS, weights, {"epoch": epoch})
