"""Training a model from windows to a calibrated run folder, resumable at any point.

Epochs of steps come first. A model conditioned on summary statistics is then calibrated
(calibration.py), and distilled where its recipe says so (distillation.py). All resume where they
were stopped.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.likelihood import Bound, variational_bound
from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.jobs import Show, locked, never, nothing
from gazediffusion.network.checkpoint import (
    CONFIG,
    Run,
    RunConfig,
    changed_settings,
    load_run,
    read_config,
    read_metrics,
    with_prefix,
    write_config,
)
from gazediffusion.network.recipes import Recipe, find_recipe
from gazediffusion.network.representations import Joint
from gazediffusion.network.tensors import load_tensors, save_tensors
from gazediffusion.storage import written_whole
from gazediffusion.training import calibration
from gazediffusion.training.batches import Batch, Batches, fixed_validation, some_held_out
from gazediffusion.training.distillation import Distillation, distill
from gazediffusion.training.distributed import Processes, by_first, joined
from gazediffusion.training.fine_tuning import initial_weights, initialised_config
from gazediffusion.training.learner import (
    Learner,
    Precision,
    average_weight_at,
    choose_precision,
    learning_rate_at,
)

# The learning rate of fine-tuning, as a share of the recipe's.
FINE_TUNING_RATE = 0.5


@dataclass(frozen=True)
class Epoch:
    """One line of metrics.jsonl. Losses are means over the epoch's samples.

    validation_loss: of the averaged weights on the held-out participants, with the same noise at
    every epoch; None where none are held out.
    """

    epoch: int
    step: int
    learning_rate: float
    training_loss: float
    validation_loss: float | None
    is_best: bool

    def in_words(self) -> str:
        """The losses, as progress shows them."""
        held_out = self.validation_loss
        words = f"epoch {self.epoch + 1}, loss {self.training_loss:.4f}"
        return words if held_out is None else f"{words}, held out {held_out:.4f}"


def train_epochs(
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    recipe: Recipe,
    *,
    seed: int = 42,
    initial: Run | None = None,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    resume: bool = True,
    save_every_s: float = 60.0,
    processes: Processes | None = None,
    should_stop: Callable[[], bool] = never,
    progress: Show = nothing,
) -> Iterator[Epoch]:
    """Train into a run folder, yielding each epoch as it is done.

    windows: a windows file, or for the joint recipe several.
    initial: a trained model whose weights and scales are taken; None is random weights.
    compiled: compile the network for this machine first, which takes a minute or two and on a CPU
        a C++ compiler; None does so on a GPU.
    processes: those that train this run together, each by the same call; None is one alone.
    progress: counts windows. When `should_stop` returns True, the state is saved and the loop ends;
    the same call resumes.
    """
    folder = Path(folder)
    on = choose_device(device)
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    given = (seed, choose_precision(precision, recipe, on), on)
    config = _checked_config(parts, recipe, initial, *given)
    weights = None if initial is None else initial_weights(initial, config)
    if processes is not None:
        processes.require_rows(min(recipe.batch_size, sum(len(part.train) for part in parts)))
        config = _shared_config(processes, config)
    by_first(processes, lambda: _open_folder(folder, config, resume))
    fast = on.type == "cuda"
    learner = Learner(
        config.recipe,
        seed,
        on,
        config.precision,
        weights=weights,
        compiled=fast if compiled is None else compiled,
        captured=fast and (processes is None or processes.can_be_captured),
        processes=processes,
    )
    batches = Batches([part.train for part in parts], config, seed, on)
    held_out = fixed_validation([part.held_out for part in parts], config, on)
    loop = _Loop(folder, config, learner, batches, held_out, save_every_s, processes)
    yield from loop.run(should_stop, progress)


def held_out_bound(
    run: Run,
    windows: Windows,
    n_windows: int = 64,
    n_times: int | None = 8,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Bound:
    """The variational bound of a DDPM on windows of held-out participants, in nats per dimension.

    n_windows: at most so many, evenly spaced. n_times: steps drawn for each (None: all); 8 add a
    hundredth to the variance over windows. The 576 evaluations of the default take two and a half
    minutes with the paper's network on one CPU core, less on several. `progress(done, total)`
    counts evaluations.
    """
    recipe, representation = run.config.recipe, run.config.representation
    if recipe.process != "ddpm" or isinstance(representation, Joint):
        raise GazeError(
            f"the variational bound is that of a DDPM, and recipe {recipe.name} is none",
            remedy="compare generated with recorded windows: gazediffusion evaluate",
        )
    _require_fit(windows, recipe)
    if n_windows < 2:
        raise GazeError(f"`n_windows` must be 2 or more, not {n_windows}")
    chosen = some_held_out(windows, n_windows)
    device = next(run.network.parameters()).device
    x0 = representation.encode(torch.from_numpy(chosen.cut())).to(device)
    return variational_bound(
        run.network,
        recipe.schedule().to(device),
        x0,
        recipe.objective,
        n_times,
        seed,
        chosen.participant.tolist(),
        representation.log_determinant(windows.length),
        progress,
    )


class _Loop:
    """The state of a training run between epochs."""

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        learner: Learner,
        batches: Batches,
        held_out: list[Batch],
        save_every_s: float,
        processes: Processes | None,
    ) -> None:
        self.processes = processes
        self.is_writer = processes is None or processes.is_first
        self.folder, self.config, self.learner = folder, config, learner
        self.batches, self.held_out, self.save_every_s = batches, held_out, save_every_s
        self.step = 0
        self.losses = torch.zeros(batches.per_epoch, device=batches.device)
        self.best: dict[str, Any] = {"validation_loss": None, "epoch": -1}
        self.best_weights: dict[str, Tensor] | None = None
        self._restore()

    def run(self, should_stop: Callable[[], bool], progress: Show) -> Iterator[Epoch]:
        recipe, per_epoch, note = self.config.recipe, self.batches.per_epoch, ""
        total, n_windows = recipe.epochs * per_epoch, self.batches.batch_size
        saved = begun = time.monotonic()
        while self.step < total:
            rate = learning_rate_at(self.step, per_epoch, recipe)
            weight = average_weight_at(self.step, recipe.ema_decay)
            loss = self.learner.step(self.batches.at(self.step), rate, weight)
            self.losses[self.step % per_epoch].copy_(loss)
            self.step += 1
            progress("training", self.step * n_windows, total * n_windows, note)
            if self.step % per_epoch == 0:
                epoch = self._finish_epoch(rate)
                note = epoch.in_words()
                self._append("timing.jsonl", {"seconds": round(time.monotonic() - begun, 3)})
                begun = time.monotonic()
                if self.step == total:
                    self._save()
                yield epoch
            if self.step == total:
                return
            is_late, is_stopped = time.monotonic() - saved > self.save_every_s, should_stop()
            if self.processes is not None:
                is_late, is_stopped = self.processes.agreed(is_late, is_stopped)
            if is_late or is_stopped:
                self._require_finite()
                self._save()
                saved = time.monotonic()
            if is_stopped:
                return

    def _finish_epoch(self, rate: float) -> Epoch:
        self._require_finite()
        number = self.step // self.batches.per_epoch - 1
        validation = self.learner.validation_loss(self.held_out)
        training = float(self.losses.double().mean())
        # Without held-out participants, the latest weights are taken as the best.
        is_best = (
            validation is None
            or self.best["validation_loss"] is None
            or validation < self.best["validation_loss"]
        )
        if is_best:
            self.best = {"validation_loss": validation, "epoch": number}
            weights = with_prefix(self.learner.state(), "ema.")
            self.best_weights = {name: tensor.clone() for name, tensor in weights.items()}
        epoch = Epoch(number, self.step, rate, training, validation, is_best)
        self._append("metrics.jsonl", vars(epoch))
        return epoch

    def _require_finite(self) -> None:
        """Stop at the first loss that is not finite; what was saved before it stays."""
        done = self.step % self.batches.per_epoch or self.batches.per_epoch
        bad = ~torch.isfinite(self.losses[:done])
        if bool(bad.any()):
            first = self.step - done + int(bad.int().argmax())
            raise GazeError(
                f"the loss is not a number at step {first}",
                path=self.folder,
                remedy="the last good checkpoint is kept; lower `learning_rate`, or set "
                "`precision` to fp32",
            )

    def _save(self) -> None:
        """Write best, last, then the state that says so; in this order a kill loses nothing."""
        if not self.is_writer:
            return
        state = self.learner.state()
        epoch = (self.step - 1) // self.batches.per_epoch
        if self.best_weights is not None:
            save_tensors(self.folder / "best.safetensors", self.best_weights, self.best)
        save_tensors(self.folder / "last.safetensors", with_prefix(state, "ema."), {"epoch": epoch})
        header = {"step": self.step, "best": self.best}
        tensors = {**state, "losses": self.losses}
        save_tensors(self.folder / "state.safetensors", tensors, header)

    def _restore(self) -> None:
        """Resume from the saved state, if there is one."""
        path = self.folder / "state.safetensors"
        saved = by_first(self.processes, lambda: load_tensors(path) if path.is_file() else None)
        if saved is None:
            self._keep_lines(0)
            return
        tensors, header = saved
        try:
            self.learner.load(tensors)
            self.step, self.best = int(header["step"]), dict(header["best"])
            self.losses.copy_(tensors["losses"])
        except (KeyError, RuntimeError) as error:
            raise GazeError(f"the training state is damaged ({error})", path=path) from error
        if self.best["epoch"] >= 0 and self.is_writer:
            weights, _ = load_tensors(self.folder / "best.safetensors")
            self.best_weights = {
                name: tensor.to(self.batches.device) for name, tensor in weights.items()
            }
        self._keep_lines(self.step // self.batches.per_epoch)

    def _keep_lines(self, n: int) -> None:
        """Remove epochs that were logged after the state was saved."""
        if not self.is_writer:
            return
        for name in ("metrics.jsonl", "timing.jsonl"):
            path = self.folder / name
            lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
            if len(lines) > n or (lines and not lines[-1].endswith("\n")):
                with written_whole(path) as temporary:
                    temporary.write_text("".join(lines[:n]))

    def _append(self, name: str, values: dict[str, Any]) -> None:
        if not self.is_writer:
            return
        try:
            with open(self.folder / name, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(values) + "\n")
        except OSError as error:
            raise GazeError(
                f"cannot be written ({error.strerror})", path=self.folder / name
            ) from error


def _checked_config(
    parts: list[Windows],
    recipe: Recipe,
    initial: Run | None,
    seed: int,
    precision: Precision,
    device: torch.device,
) -> RunConfig:
    """The run's configuration; windows it cannot be trained on are refused."""
    if len(parts) > 1 and recipe.representation != "joint":
        raise GazeError(f"recipe {recipe.name} takes one windows file, not {len(parts)}")
    for windows in parts:
        _require_fit(windows, recipe)
        if len(windows.train) == 0:
            raise GazeError("there are no training windows in this file")
        if (windows.length, windows.rate_hz) != (parts[0].length, parts[0].rate_hz):
            raise GazeError(
                "the windows files differ in length or rate",
                remedy="prepare them with the same `rate_hz` and `seconds`",
            )
    config = RunConfig.of(parts, recipe, seed, precision, str(device.type))
    return config if initial is None else initialised_config(initial, config)


def _shared_config(processes: Processes, config: RunConfig) -> RunConfig:
    """The first process's configuration; one with other settings is refused."""
    first = processes.by_first(lambda: config)
    changed = changed_settings(first, config)
    if changed:
        raise GazeError(
            f"process {processes.rank} has other settings than the first: {'; '.join(changed)}"
        )
    return first


def _require_fit(windows: Windows, recipe: Recipe) -> None:
    """Refuse windows with losses, of another protocol or of a length the network cannot take."""
    if np.isnan(windows.gaze).any():
        raise GazeError(
            "these windows have losses, and a model is trained on gaze without",
            remedy="save the windows as .parquet and prepare them, or generate without `losses`",
        )
    if windows.protocol != recipe.protocol:
        raise GazeError(
            f"these are {windows.protocol} windows, and recipe {recipe.name} takes "
            f"{recipe.protocol} windows",
            remedy=f"prepare them with `protocol` {recipe.protocol}",
        )
    stride = recipe.network.stride
    if windows.length % stride:
        raise GazeError(
            f"a window of {windows.length} samples does not fit the network",
            remedy=f"prepare windows whose length is a multiple of {stride}",
        )


def _open_folder(folder: Path, config: RunConfig, resume: bool) -> None:
    """Make the run folder, or check that the run in it is this one."""
    if (folder / CONFIG).is_file():
        if not resume:
            raise GazeError(
                "there is a run in this folder", path=folder, remedy="name another, or resume it"
            )
        changed = changed_settings(read_config(folder), config)
        if changed:
            raise GazeError(
                "the run in this folder has other settings: " + "; ".join(changed),
                path=folder,
                remedy="name another folder, or give the settings of the run",
            )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GazeError("this is not an empty folder", path=folder, remedy="name a new one")
    write_config(folder, config)


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
    progress: Show = nothing,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    should_stop: Callable[[], bool] = never,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train into a run folder, calibrate and distill; returns the folder.

    windows: one windows file, or for the joint recipe several.
    recipe: a name or a recipe; None is the initial model's, or that of the windows' protocol.
    initial: a trained run whose weights and scales are taken; None is random weights.
    epochs, batch_size, learning_rate: override the recipe's; with `initial` the learning rate is
        half the recipe's by default.
    progress: called with the phase (training, calibrating, distilling), the windows done, of how
        many, and the latest losses. on_epoch: called with each epoch. say: receives one line per
        phase.
    When `should_stop` returns True, what was done is saved and StoppedError raised; the same call
    resumes. A complete run of the same windows and settings is left as it is. Processes that
    torchrun has started train together when each makes this call; the first writes, calibrates,
    distills and calls the functions that receive the progress.
    """
    folder = Path(folder)
    if seed < 0:
        raise GazeError(f"`seed` must be 0 or more, not {seed}")
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    given = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    chosen = _recipe_of(recipe, initial, parts, **given)
    processes = joined(device)
    if processes is not None:
        device = str(processes.device)
        if not processes.is_first:
            progress, on_epoch = nothing, lambda epoch: None
    n_windows = sum(len(part.train) for part in parts)
    per_epoch = math.ceil(n_windows / chosen.batch_size)
    n_steps = round(chosen.distillation * chosen.epochs * per_epoch)
    how: dict[str, Any] = {"seed": seed, "device": device, "precision": precision}
    fast: dict[str, Any] = {"compiled": compiled, "save_every_s": save_every_s}
    watched: dict[str, Any] = {"progress": progress, "should_stop": should_stop}

    def calibrated() -> None:
        if calibration.is_due(read_config(folder)):
            calibration.calibrate(folder, choose_device(device), **watched, say=say)

    def distilled() -> None:
        if n_steps:
            run, settings = load_run(folder), Distillation(n_steps=n_steps)
            distill(
                run, parts, folder, settings, initial=initial, **how, **fast, **watched, say=say
            )

    with contextlib.ExitStack() as stack:
        by_first(processes, lambda: stack.enter_context(locked(folder)))
        if resume:
            by_first(processes, lambda: _announce(folder, say))
        if by_first(processes, lambda: _is_complete(folder, chosen, n_steps > 0)):
            on = choose_device(device)
            exact = choose_precision(precision, chosen, on)
            config = _checked_config(parts, chosen, initial, seed, exact, on)
            _open_folder(folder, config, resume)
            return folder
        for epoch in train_epochs(
            parts,
            folder,
            chosen,
            initial=initial,
            resume=resume,
            processes=processes,
            **how,
            **fast,
            **watched,
        ):
            on_epoch(epoch)
        n_done = by_first(processes, lambda: len(read_metrics(folder)))
        if n_done < chosen.epochs:
            raise StoppedError(
                f"training stopped after {n_done} of {chosen.epochs} epochs; {shown(folder)} is "
                "saved"
            )
        by_first(processes, calibrated)
        by_first(processes, distilled)
    return folder


def _is_complete(folder: Path, recipe: Recipe, has_distilled: bool) -> bool:
    """Whether the run in a folder is trained, calibrated and distilled."""
    if not (folder / CONFIG).is_file() or len(read_metrics(folder)) < recipe.epochs:
        return False
    if calibration.is_due(read_config(folder)):
        return False
    found = load_run(folder).distilled if has_distilled else None
    return not has_distilled or (found is not None and found.is_calibrated)


def _recipe_of(
    recipe: Recipe | str | None, initial: Run | None, parts: Sequence[Windows], **settings: Any
) -> Recipe:
    """The recipe with those settings that are given; fine-tuning has a lower learning rate."""
    if recipe is None:
        recipe = parts[0].protocol if initial is None else initial.config.recipe
    chosen = find_recipe(recipe) if isinstance(recipe, str) else recipe
    if initial is not None:
        chosen = replace(chosen, learning_rate=chosen.learning_rate * FINE_TUNING_RATE)
    return replace(chosen, **{name: one for name, one in settings.items() if one is not None})


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
