"""Training: the loop as a generator of epochs, which a stopped process can take up again.

What happens at step n depends on the seed, n and the weights alone, and the state on disk is
replaced whole. So a run that is killed and started again gives the losses and, on the CPU, the
bytes of one that was not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.ddpm import Bound, variational_bound
from gazediffusion.errors import GazeError
from gazediffusion.files import write_json, written_whole
from gazediffusion.models.checkpoint import (
    Run,
    RunConfig,
    load_tensors,
    read_config,
    save_tensors,
    with_prefix,
)
from gazediffusion.models.recipes import Recipe
from gazediffusion.training.batches import Batch, Batches, fixed_validation, some_held_out
from gazediffusion.training.fine_tuning import begun_from, starting_weights
from gazediffusion.training.learner import (
    Learner,
    Precision,
    average_weight_at,
    choose_precision,
    learning_rate_at,
)


@dataclass(frozen=True)
class Epoch:
    """One line of metrics.jsonl. Losses are means over the epoch's samples.

    validation_loss: of the averaged weights, on the held-out people, with the same noise at
    every epoch; None where nobody was held out.
    """

    epoch: int
    step: int
    learning_rate: float
    training_loss: float
    validation_loss: float | None
    is_best: bool


def train(
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    recipe: Recipe,
    *,
    seed: int = 42,
    start: Run | None = None,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    resume: bool = True,
    save_every_s: float = 60.0,
    should_stop: Callable[[], bool] = lambda: False,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Epoch]:
    """Train into a run folder, yielding each epoch as it is done.

    windows: a windows file, or for the joint recipe several, whose tasks are told apart.
    start: a trained model to go on from, with its scales; None begins with random weights.
    compiled: build the network's kernels for this machine first, which takes a minute or two and
        on a CPU a C++ compiler; None does so on a GPU.
    `on_step(done, total)` counts windows. When `should_stop` answers True, the state is saved and
    the loop ends; the same call then goes on from there.
    """
    folder = Path(folder)
    on = choose_device(device)
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    config = _checked_config(parts, recipe, seed, choose_precision(precision, recipe, on), on)
    weights = None
    if start is not None:
        config = begun_from(start, config)
        weights = starting_weights(start, config)
    _open_folder(folder, config, resume)
    fast = on.type == "cuda"
    learner = Learner(
        config.recipe,
        seed,
        on,
        config.precision,
        weights=weights,
        compiled=fast if compiled is None else compiled,
        captured=fast,
    )
    batches = Batches([part.train for part in parts], config, seed, on)
    held_out = fixed_validation([part.held_out for part in parts], config, on)
    loop = _Loop(folder, config, learner, batches, held_out, save_every_s)
    yield from loop.run(should_stop, on_step)


def held_out_bound(run: Run, windows: Windows, n_windows: int = 16, n_times: int = 50) -> Bound:
    """The variational bound on held-out windows, estimated from a few of them and a few steps.

    A diagnostic of how well the model explains people it has not seen, in nats per dimension.
    """
    _require_fit(windows, run.config.recipe)
    gaze = some_held_out(windows, n_windows)
    device = next(run.network.parameters()).device
    x0 = run.config.representation.encode(gaze).to(device)
    recipe = run.config.recipe
    schedule = recipe.schedule().to(device)
    return variational_bound(run.network, schedule, x0, recipe.objective, n_times)


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
    ) -> None:
        self.folder, self.config, self.learner = folder, config, learner
        self.batches, self.held_out, self.save_every_s = batches, held_out, save_every_s
        self.step = 0
        self.losses = torch.zeros(batches.per_epoch, device=batches.device)
        self.best: dict[str, Any] = {"validation_loss": None, "epoch": -1}
        self.best_weights: dict[str, Tensor] | None = None
        self._restore()

    def run(
        self, should_stop: Callable[[], bool], on_step: Callable[[int, int], None]
    ) -> Iterator[Epoch]:
        recipe, per_epoch = self.config.recipe, self.batches.per_epoch
        total = recipe.epochs * per_epoch
        saved = begun = time.monotonic()
        while self.step < total:
            rate = learning_rate_at(self.step, per_epoch, recipe)
            weight = average_weight_at(self.step, recipe.ema_decay)
            loss = self.learner.step(self.batches.at(self.step), rate, weight)
            self.losses[self.step % per_epoch].copy_(loss)
            self.step += 1
            on_step(self.step * self.batches.batch_size, total * self.batches.batch_size)
            if self.step % per_epoch == 0:
                epoch = self._finish_epoch(rate)
                self._append("timing.jsonl", {"seconds": round(time.monotonic() - begun, 3)})
                begun = time.monotonic()
                if self.step == total:
                    self._save()
                yield epoch
            is_late = time.monotonic() - saved > self.save_every_s
            if self.step < total and (is_late or should_stop()):
                self._require_finite()
                self._save()
                saved = time.monotonic()
                if should_stop():
                    return

    def _finish_epoch(self, rate: float) -> Epoch:
        self._require_finite()
        number = self.step // self.batches.per_epoch - 1
        validation = self.learner.validation_loss(self.held_out)
        training = float(self.losses.double().mean())
        # Without held-out people, the latest weights are the best there are.
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
        """Stop at the first loss that is no number; what was saved before it stays."""
        done = self.step % self.batches.per_epoch or self.batches.per_epoch
        bad = ~torch.isfinite(self.losses[:done])
        if bool(bad.any()):
            first = self.step - done + int(bad.int().argmax())
            raise GazeError(
                f"the loss is not a number at step {first}",
                path=self.folder,
                remedy="the last good checkpoint is kept; lower the learning rate, or --precision "
                "fp32",
            )

    def _save(self) -> None:
        """Write best, last, then the state that says so; in this order a kill loses nothing."""
        state = self.learner.state()
        epoch = (self.step - 1) // self.batches.per_epoch
        if self.best_weights is not None:
            save_tensors(self.folder / "best.safetensors", self.best_weights, self.best)
        save_tensors(self.folder / "last.safetensors", with_prefix(state, "ema."), {"epoch": epoch})
        header = {"step": self.step, "best": self.best}
        tensors = {**state, "losses": self.losses}
        save_tensors(self.folder / "state.safetensors", tensors, header)

    def _restore(self) -> None:
        """Go on from the saved state, if there is one."""
        path = self.folder / "state.safetensors"
        if not path.is_file():
            self._keep_lines(0)
            return
        tensors, header = load_tensors(path)
        try:
            self.learner.load(tensors)
            self.step, self.best = int(header["step"]), dict(header["best"])
            self.losses.copy_(tensors["losses"])
        except (KeyError, RuntimeError) as error:
            raise GazeError(f"the training state is damaged ({error})", path=path) from error
        if self.best["epoch"] >= 0:
            weights, _ = load_tensors(self.folder / "best.safetensors")
            self.best_weights = {
                name: tensor.to(self.batches.device) for name, tensor in weights.items()
            }
        self._keep_lines(self.step // self.batches.per_epoch)

    def _keep_lines(self, n: int) -> None:
        """Forget epochs that were written down after the state was saved."""
        for name in ("metrics.jsonl", "timing.jsonl"):
            path = self.folder / name
            lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
            if len(lines) > n or (lines and not lines[-1].endswith("\n")):
                with written_whole(path) as temporary:
                    temporary.write_text("".join(lines[:n]))

    def _append(self, name: str, values: dict[str, Any]) -> None:
        try:
            with open(self.folder / name, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(values) + "\n")
        except OSError as error:
            raise GazeError(
                f"cannot be written ({error.strerror})", path=self.folder / name
            ) from error


def _checked_config(
    parts: list[Windows], recipe: Recipe, seed: int, precision: Precision, device: torch.device
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
                remedy="prepare them with the same --rate and --seconds",
            )
    return RunConfig.of(parts, recipe, seed, precision, str(device.type))


def _require_fit(windows: Windows, recipe: Recipe) -> None:
    """Refuse windows of another recipe or of a length the network cannot take."""
    if windows.protocol != recipe.protocol:
        raise GazeError(
            f"these are {windows.protocol} windows, and recipe {recipe.name} takes "
            f"{recipe.protocol} windows",
            remedy=f"prepare them with --protocol {recipe.protocol}",
        )
    stride = recipe.network.stride
    if windows.length % stride:
        raise GazeError(
            f"a window of {windows.length} samples does not fit the network",
            remedy=f"prepare windows whose length is a multiple of {stride}",
        )


def _open_folder(folder: Path, config: RunConfig, resume: bool) -> None:
    """Make the run folder, or check that the run in it is this one."""
    if (folder / "config.json").is_file():
        if not resume:
            raise GazeError(
                "there is a run in this folder", path=folder, remedy="name another, or resume it"
            )
        # Compared as written, where a tuple is a list.
        there, here = (json.loads(json.dumps(c.to_json())) for c in (read_config(folder), config))
        for key in ("recipe", "seed", "data", "precision", "device", "begun_from"):
            if there[key] != here[key]:
                raise GazeError(
                    f"the run in this folder has another {key}",
                    path=folder,
                    remedy="name another folder, or give the settings it was begun with",
                )
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GazeError("this is not an empty folder", path=folder, remedy="name a new one")
    write_json(folder / "config.json", config.to_json())
