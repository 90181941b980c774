"""A trained model as users hold it: sample, write, fine-tune and calibrate.

>>> import gazediffusion as gd
>>> model = gd.load("default")
>>> model
Model(joint: 5.5 M parameters, 250 Hz, tasks: movies, stills, stop-motion, trailers, dots, reading)
>>> model.sample(2, task="reading", seed=0)
Windows(2 of 8 s at 250 Hz, participants: 1, tasks: reading)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import torch

from gazediffusion.conditioning.style import style_of
from gazediffusion.data.export.windows import format_of
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.likelihood import Bound
from gazediffusion.errors import GazeError
from gazediffusion.generation.generator import DiffusionGenerator, Progress
from gazediffusion.generation.sets import Sampling, SetConfig, write_set
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run, RunConfig, WeightsName
from gazediffusion.models.pretrained import load_model, pretrained_folder
from gazediffusion.models.recipes import Recipe
from gazediffusion.models.unet import n_parameters
from gazediffusion.training import calibration
from gazediffusion.training.loop import Epoch, held_out_bound
from gazediffusion.training.training import train as train_run

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


class SamplingSettings(TypedDict, total=False):
    """How windows are sampled.

    task: of all windows; None draws the training mixture. like: recordings of one participant, 8 s
    or more in a row, in whose style windows are generated; of one task, for which they are taken
    where `task` is given. quality: fast, default or best. sampler,
    steps: override the quality's. eta: of DDIM. guidance: classifier-free guidance scale of the
    task. precision: auto, fp32 or bf16. batch_size: changes speed, never the windows.
    """

    task: str | None
    like: Recordings | Windows | None
    quality: str
    sampler: str
    steps: int | None
    eta: float | None
    guidance: float
    precision: str
    batch_size: int | None


class TrainingSettings(TypedDict, total=False):
    """How a model is trained; see `training.training.train`.

    epochs, batch_size, learning_rate: override the recipe's. on_step, on_epoch, on_calibration and
    say: receive the progress. should_stop: asks for a stop, after which the same call resumes.
    """

    seed: int
    epochs: int | None
    batch_size: int | None
    learning_rate: float | None
    device: str
    precision: str
    compiled: bool | None
    resume: bool
    save_every_s: float
    on_step: Callable[[int, int], None]
    on_epoch: Callable[[Epoch], None]
    on_calibration: Callable[[float, int], None]
    should_stop: Callable[[], bool]
    say: Callable[[str], None]


def load(
    model: Path | str = "default", weights: WeightsName = "best", device: str = "auto"
) -> Model:
    """A packaged model by its name (`default`, `joint`, `position`, `velocity`), or a run folder.

    weights: best or last are averaged (EMA), raw is not; packaged models have best only.
    device: auto (the GPU where there is one), cpu, cuda, cuda:1 ...
    """
    if weights not in ("best", "last", "raw"):
        raise GazeError(f"`weights` must be best, last or raw, not {weights!r}")
    return Model(load_model(model, weights, choose_device(device)))


def train(
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    recipe: Recipe | str | None = None,
    *,
    initial: Model | None = None,
    **settings: Unpack[TrainingSettings],
) -> Model:
    """Train a model into a run folder, calibrate it and load it.

    recipe: a name of `RECIPES` or a recipe; None is the initial model's, or that of the windows'
    protocol. initial: a model to fine-tune.
    """
    run = None if initial is None else initial.run
    trained = train_run(windows, folder, recipe, initial=run, **settings)
    return load(trained, device=settings.get("device", "auto"))


class Model:
    """A trained diffusion model of gaze."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __repr__(self) -> str:
        config = self.config
        tasks = ", ".join(self.tasks) or "none"
        millions = n_parameters(config.recipe.network) / 1e6
        return (
            f"Model({config.recipe.name}: {millions:.1f} M parameters, {config.rate_hz:g} Hz, "
            f"tasks: {tasks})"
        )

    @property
    def config(self) -> RunConfig:
        """Recipe, data, representation and conditioning."""
        return self.run.config

    @property
    def name(self) -> str:
        """The name of its recipe."""
        return self.config.recipe.name

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the model is conditioned on."""
        return self.config.conditioning.tasks

    @property
    def device(self) -> torch.device:
        """The device that the network is on."""
        return next(self.run.network.parameters()).device

    @property
    def is_calibrated(self) -> bool:
        """Whether the conditioning is calibrated, or needs no calibration."""
        return self.config.conditioning.is_calibrated

    def generator(self, **settings: Unpack[SamplingSettings]) -> DiffusionGenerator:
        """The generator with these settings; see `sample`."""
        given: dict[str, Any] = {"quality": "default", **settings}
        if (like := given.pop("like", None)) is not None:
            conditioning, task = self.config.conditioning, given.get("task")
            style = style_of(like, conditioning, self.config.rate_hz, self.config.length, task)
            given |= {"style": style, "task": conditioning.tasks[style.task]}
        return DiffusionGenerator.of_quality(self.run, **given)

    def sample(
        self,
        n: int,
        *,
        seed: int = 0,
        seconds: float | None = None,
        rate_hz: float | None = None,
        progress: Progress = lambda done: None,
        **settings: Unpack[SamplingSettings],
    ) -> Windows:
        """The first n windows of a seed, each with its task, screen and resolution.

        seconds: length kept of every window. rate_hz: low-pass the windows and bring them to this
        rate, at most the model's, as of a 60 Hz tracker. progress: called with the number of
        windows done. Settings: `SamplingSettings`. Window k of a seed is always the same window.
        """
        sampling = self.sampling(n, seed=seed, seconds=seconds, rate_hz=rate_hz, **settings)
        return sampling.windows(np.concatenate(list(sampling.pieces(progress))))

    def sampling(
        self,
        n: int,
        *,
        seed: int = 0,
        seconds: float | None = None,
        rate_hz: float | None = None,
        format: str = "parquet",
        **settings: Unpack[SamplingSettings],
    ) -> Sampling:
        """The windows of `sample`, to be generated piece by piece; format: to be saved in.

        >>> sampling = load("joint").sampling(3, task="reading", quality="fast", batch_size=2)
        >>> [sampling.windows(piece) for piece in sampling.pieces()][0]
        Windows(2 of 8 s at 250 Hz, participants: 1, tasks: reading)
        """
        config = SetConfig(n=n, seed=seed, seconds=seconds, rate_hz=rate_hz, format=format)
        return Sampling(self.generator(**settings), config)

    def sample_to(
        self,
        path: Path | str,
        n: int,
        *,
        seed: int = 0,
        format: str | None = None,
        screen: Screen | None = None,
        grid_px: float | None = None,
        seconds: float | None = None,
        rate_hz: float | None = None,
        progress: Progress = lambda done: None,
        say: Callable[[str], None] = lambda line: None,
        overwrite: bool = False,
        **settings: Unpack[SamplingSettings],
    ) -> list[Path]:
        """Write the first n windows of a seed as a set, piece by piece; returns the files.

        path: a .parquet, .csv or .npz file, or a folder. format: parquet, csv, npz, bids or asc; by
        default that of the path's ending, parquet for a folder. screen: of all windows instead of
        their own. grid_px: round pixels to this grid. seconds, rate_hz: as for `sample`.
        overwrite: replace a set that is there. Settings are those of `sample`. A stopped call
        resumes from the pieces it has.
        """
        config = SetConfig(
            n=n,
            seed=seed,
            format=format_of(Path(path), format),
            screen=screen,
            grid_px=grid_px,
            seconds=seconds,
            rate_hz=rate_hz,
        )
        return write_set(self.generator(**settings), config, path, progress, say, overwrite)

    def fine_tune(
        self,
        windows: Windows | Sequence[Windows],
        folder: Path | str,
        **settings: Unpack[TrainingSettings],
    ) -> Model:
        """A new model, initialised from this one and trained on windows of other recordings.

        Settings are those of `train`; the learning rate is half the recipe's by default. The new
        model is calibrated.
        """
        return train(windows, folder, initial=self, **settings)

    def variational_bound(
        self,
        windows: Windows,
        n_windows: int = 64,
        n_times: int | None = 8,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Bound:
        """The variational bound of a DDPM on held-out windows, with its standard error.

        Without bias for any number of windows and of steps drawn for each (`n_times`; None takes
        all). `progress(done, total)` counts evaluations of the network.
        """
        return held_out_bound(self.run, windows, n_windows, n_times, progress=progress)

    def calibrate(
        self,
        n: int = calibration.WINDOWS,
        rounds: int = calibration.ROUNDS,
        progress: calibration.OnWindows = lambda done, total: None,
        should_stop: Callable[[], bool] = lambda: False,
        say: Callable[[str], None] = lambda line: None,
    ) -> Model:
        """Calibrate the conditioning by n windows of each task and round, and reload the model.

        It writes the tables of the run folder; packaged models are calibrated already.
        """
        device = self.device
        if self.run.path.parent == pretrained_folder():
            raise GazeError("a packaged model is calibrated already", path=self.run.path)
        calibration.calibrate(self.run.path, device, n, rounds, progress, should_stop, say)
        return load(self.run.path, self.run.weights, str(device))
