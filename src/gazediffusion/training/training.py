"""Training a model from windows to a calibrated run folder, resumable at any point.

Training proper is the loop's (loop.py); a model conditioned on summary statistics is then
calibrated (calibration.py), and distilled where its recipe says so (distilling.py). All resume
where they were stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.models.checkpoint import CONFIG, Run, load_run, read_config, read_metrics
from gazediffusion.models.recipes import Recipe, find_recipe
from gazediffusion.training import calibration
from gazediffusion.training.distilling import distill
from gazediffusion.training.distributed import by_first, joined
from gazediffusion.training.loop import Epoch, train_epochs
from gazediffusion.training.student import Distillation

# The learning rate of fine-tuning, as a share of the recipe's.
FINE_TUNING_RATE = 0.5


def train(
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    recipe: Recipe | str | None = None,
    *,
    initial: Run | None = None,
    seed: int = 42,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    resume: bool = True,
    save_every_s: float = 60.0,
    on_step: Callable[[int, int], None] = lambda done, total: None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_calibration: Callable[[float, int], None] = lambda done, total: None,
    on_distillation: Callable[[int, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train into a run folder, calibrate and distill; returns the folder.

    windows: one windows file, or for the joint recipe several.
    recipe: a name or a recipe; None is the initial model's, or that of the windows' protocol.
    initial: a trained run whose weights and scales are taken; None is random weights.
    epochs, batch_size, learning_rate: override the recipe's; with `initial` the learning rate is
        half the recipe's by default.
    on_step, on_calibration, on_distillation(done, total): count windows. say: receives one line per
        phase.
    When `should_stop` returns True, what was done is saved and StoppedError raised; the same call
    resumes. Processes that torchrun has started train together when each makes this call; the first
    writes, calibrates, distills and calls the functions that receive the progress.
    """
    folder = Path(folder)
    if seed < 0:
        raise GazeError(f"`seed` must be 0 or more, not {seed}")
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    chosen = _with_settings(
        _chosen(recipe, initial, parts), initial, epochs, batch_size, learning_rate
    )
    processes = joined(device)
    if processes is not None:
        device = str(processes.device)
        if not processes.is_first:
            on_step, on_epoch = lambda done, total: None, lambda epoch: None
    if resume:
        by_first(processes, lambda: _announce(folder, say))
    epochs_done = train_epochs(
        parts,
        folder,
        chosen,
        seed=seed,
        initial=initial,
        device=device,
        precision=precision,
        compiled=compiled,
        resume=resume,
        save_every_s=save_every_s,
        processes=processes,
        should_stop=should_stop,
        on_step=on_step,
    )
    for epoch in epochs_done:
        on_epoch(epoch)
    n_done = by_first(processes, lambda: len(read_metrics(folder)))
    if n_done < chosen.epochs:
        raise StoppedError(
            f"training stopped after {n_done} of {chosen.epochs} epochs; {shown(folder)} is saved"
        )

    def calibrated() -> None:
        if calibration.is_due(read_config(folder)):
            calibration.calibrate(
                folder,
                choose_device(device),
                progress=on_calibration,
                should_stop=should_stop,
                say=say,
            )

    def distilled() -> None:
        n_windows = sum(len(part.train) for part in parts)
        per_epoch = math.ceil(n_windows / chosen.batch_size)
        n_steps = round(chosen.distillation * chosen.epochs * per_epoch)
        if n_steps:
            distill(
                load_run(folder),
                parts,
                folder,
                Distillation(n_steps=n_steps),
                initial=initial,
                seed=seed,
                device=device,
                precision=precision,
                compiled=compiled,
                save_every_s=save_every_s,
                on_step=on_distillation,
                on_calibration=on_calibration,
                should_stop=should_stop,
                say=say,
            )

    by_first(processes, calibrated)
    by_first(processes, distilled)
    return folder


def _chosen(recipe: Recipe | str | None, initial: Run | None, parts: Sequence[Windows]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if recipe is not None:
        return find_recipe(recipe)
    return initial.config.recipe if initial is not None else find_recipe(parts[0].protocol)


def _with_settings(
    recipe: Recipe,
    initial: Run | None,
    epochs: int | None,
    batch_size: int | None,
    learning_rate: float | None,
) -> Recipe:
    if learning_rate is None:
        share = 1.0 if initial is None else FINE_TUNING_RATE
        learning_rate = recipe.learning_rate * share
    return replace(
        recipe,
        epochs=recipe.epochs if epochs is None else epochs,
        batch_size=recipe.batch_size if batch_size is None else batch_size,
        learning_rate=learning_rate,
    )


def _announce(folder: Path, say: Callable[[str], None]) -> None:
    """Say where a run in the folder resumes."""
    if not (folder / CONFIG).is_file():
        return
    n_done, total = len(read_metrics(folder)), read_config(folder).recipe.epochs
    say(
        f"{shown(folder)} is trained: {n_done} of {total} epochs"
        if n_done >= total
        else f"resuming {shown(folder)} after {n_done} of {total} epochs"
    )
