"""Refinement: negative extrapolation from self-training (Alemohammad et al. 2025, "Neon").

A copy of a model is trained on windows that the model generated. It repeats the model's errors, and
so its weights move in the direction of these errors. The refined model moves the other way:

    refined = model + weight (model - copy)

The copy sees generated windows alone, with the masks of known samples and fixations that a
steerable model is trained with. Recorded windows beside them, for what generated windows do not
have (targets, labels, elapsed time), take the effect away: docs/log.md.

config.json, conditioning.safetensors, best.safetensors   the refined model, as in any run folder
refinement.json          settings, and the weights that are refined
generated                the model's windows; removed at the end
refinement.safetensors   all that is needed to resume; removed at the end
"""

from __future__ import annotations

import copy
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.qualities import default_batch_size
from gazediffusion.models.checkpoint import Run, read_config
from gazediffusion.seeds import seed_for
from gazediffusion.training import calibration
from gazediffusion.training.batches import Batches
from gazediffusion.training.derived import (
    WEIGHTS,
    open_folder,
    require_fit,
    restored,
    run_steps,
    save_weights,
)
from gazediffusion.training.learner import Learner, average_weight_at, choose_precision
from gazediffusion.urls import shown

SETTINGS, STATE, GENERATED = "refinement.json", "refinement.safetensors", "generated"
_WARMUP = 100  # steps
_AVERAGE = 0.999
_LEAST = 64  # windows that are generated between two checks for a stop
_GENERATION = 7  # names the stream of seeds of generated windows
OnWindows = Callable[[int, int], None]


@dataclass(frozen=True)
class Refinement:
    """Settings. weight: how far the weights are extrapolated, 0 changes nothing.

    n_windows: generated, with the shares of tasks of the training windows.
    """

    weight: float = 0.5
    n_windows: int = 16_384
    n_steps: int = 3000
    batch_size: int = 64
    learning_rate: float = 3e-4

    def __post_init__(self) -> None:
        for name in ("n_windows", "n_steps", "batch_size"):
            if getattr(self, name) < 1:
                raise GazeError(f"`{name}` must be 1 or more, not {getattr(self, name)}")
        for name in ("weight", "learning_rate"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise GazeError(f"`{name}` must be 0 or more, not {getattr(self, name)}")


def refine(
    model: Run,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    settings: Refinement | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    save_every_s: float = 60.0,
    on_generation: OnWindows = lambda done, total: None,
    on_step: OnWindows = lambda done, total: None,
    on_calibration: Callable[[float, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Refine a model into a run folder and calibrate it; returns the folder.

    windows: what the model was trained on. on_generation, on_step, on_calibration(done, total):
    count windows. When `should_stop` returns True, what was done is saved and StoppedError raised;
    the same call resumes.
    """
    folder, settings = Path(folder), settings or Refinement()
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    require_fit(model, parts, "refined")
    on = choose_device(device)
    chosen = choose_precision(precision, model.config.recipe, on)
    plain = {"settings": asdict(settings), "seed": seed, "model": model.weights_sha256}
    open_folder(folder, SETTINGS, plain, model, model.config.recipe)
    if not (folder / WEIGHTS).is_file():
        trained = [part.train for part in parts]
        generated = list(
            _generated(model, trained, folder, settings, seed, on, on_generation, should_stop, say)
        )
        fast = on.type == "cuda"
        learner = Learner(
            model.config.recipe,
            seed,
            on,
            chosen,
            weights=model.network.state_dict(),
            compiled=fast if compiled is None else compiled,
            captured=fast,
        )
        recipe = replace(model.config.recipe, batch_size=settings.batch_size)
        batches = Batches(generated, replace(model.config, recipe=recipe), seed, on)
        done = restored(folder / STATE, learner.load)
        say(
            f"resuming {shown(folder)} after {done} of {settings.n_steps} steps"
            if done
            else f"training on generated windows: {settings.n_steps} steps"
        )
        _train(learner, batches, folder, settings, done, save_every_s, on_step, should_stop)
        save_weights(folder, extrapolated(model, learner, settings.weight), settings.n_steps)
        (folder / STATE).unlink(missing_ok=True)
    shutil.rmtree(folder / GENERATED, ignore_errors=True)
    if calibration.is_due(read_config(folder)):
        calibration.calibrate(folder, on, progress=on_calibration, should_stop=should_stop, say=say)
    return folder


def extrapolated(model: Run, learner: Learner, weight: float) -> dict[str, torch.Tensor]:
    """The model's weights, moved away from the averaged ones of its copy."""
    trained = dict(learner.average.named_parameters())
    return {
        name: own.detach() + weight * (own.detach() - trained[name].detach().to(own))
        for name, own in model.network.named_parameters()
    }


def rate_at(step: int, total: int) -> float:
    """Learning rates over their highest: a short warm-up, then a cosine down to zero."""
    return min(1.0, (step + 1) / _WARMUP) * 0.5 * (1 + math.cos(math.pi * step / total))


def _train(
    learner: Learner,
    batches: Batches,
    folder: Path,
    settings: Refinement,
    done: int,
    save_every_s: float,
    on_step: OnWindows,
    should_stop: Callable[[], bool],
) -> None:
    total = settings.n_steps

    def update(step: int) -> None:
        rate = settings.learning_rate * rate_at(step, total)
        learner.step(batches.at(step), rate, average_weight_at(step, _AVERAGE))
        on_step((step + 1) * batches.batch_size, total * batches.batch_size)

    run_steps(folder / STATE, done, total, update, learner.state, save_every_s, should_stop)


def _generated(
    model: Run,
    parts: Sequence[Windows],
    folder: Path,
    settings: Refinement,
    seed: int,
    device: torch.device,
    on_generation: OnWindows,
    should_stop: Callable[[], bool],
    say: Callable[[str], None],
) -> Iterator[Windows]:
    """The model's windows, in pieces that are kept until the copy is trained."""
    kept = folder / GENERATED
    kept.mkdir(exist_ok=True)
    # Its own network: the errors of a distilled one are others.
    run = replace(model, network=copy.deepcopy(model.network).to(device), distilled=None)
    size = max(_LEAST, default_batch_size(run))
    numbers = np.concatenate([model.config.conditioning.task_numbers([part]) for part in parts])
    n_recorded = np.bincount(numbers, minlength=len(model.config.conditioning.tasks))
    n_of_task = np.ceil(n_recorded * (settings.n_windows / len(numbers))).astype(int)
    total, done, is_new = int(n_of_task.sum()), 0, True
    for number, task in enumerate(model.config.conditioning.tasks):
        generator = DiffusionGenerator.of_quality(run, "default", task=task)
        for first in range(0, n_of_task[number], size):
            stop = min(first + size, int(n_of_task[number]))
            path = kept / f"{number}-{first}-{stop}.safetensors"
            if not path.is_file():
                if is_new:
                    resumed = f" ({done} are there)" if done else ""
                    say(f"generating {total} windows of the model{resumed}")
                    is_new = False
                gaze = np.concatenate(
                    list(generator.pieces(first, stop, seed_for(seed, _GENERATION)))
                )
                Windows.from_array(
                    gaze, run.config.rate_hz, generator.screens[task], tasks=task
                ).save(path)
                if should_stop():
                    raise StoppedError(
                        f"refinement stopped while generating windows; {shown(folder)} is saved"
                    )
            done += stop - first
            on_generation(done, total)
            yield Windows.load(path)
