"""A trained model: load it, sample from it, fill, label and augment with it, fine-tune it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.jobs import Show, never, nothing
from gazediffusion.network.checkpoint import WeightsName
from gazediffusion.network.hub import Shared
from gazediffusion.network.pretrained import load_model, pretrained_folder
from gazediffusion.options import Options, grouped, stated
from gazediffusion.screen import Screen
from gazediffusion.settings import (
    MOST_SECONDS,
    Augmenting,
    Computing,
    Filling,
    Finishing,
    Generating,
    Labelling,
    Sampled,
    Steering,
    Training,
)

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.recordings import Recording
    from gazediffusion.data.windows import Windows
    from gazediffusion.diffusion.likelihood import Bound
    from gazediffusion.generation.augmentation import Augmenter
    from gazediffusion.generation.dataset import Parts
    from gazediffusion.generation.filling import Filler
    from gazediffusion.generation.labelling import RecordingLabeller
    from gazediffusion.generation.sampler import Sampler
    from gazediffusion.generation.sets import Sampling
    from gazediffusion.network.checkpoint import RunConfig
    from gazediffusion.network.recipes import Recipe
    from gazediffusion.training.training import Epoch


def load(
    model: Path | str = "default", weights: WeightsName = "best", device: str = "auto"
) -> Model:
    """A packaged model by its name (`default`, `joint`, `position`, `velocity`), or a run folder.

    A run folder may be a URL (`s3://bucket/run`), a model one of the hub (`hf:owner/name`).
    weights: best or last are averaged (EMA), raw is not; packaged models have best only.
    device: auto (the GPU where there is one), cpu, cuda, cuda:1 ...

    >>> load("default").screen_of("reading").in_words()
    '1680x1050 px, 47.4x29.7 cm at 55 cm'
    """
    if weights not in ("best", "last", "raw"):
        raise GazeError(f"`weights` must be best, last or raw, not {weights!r}")
    return Model(load_model(model, weights, choose_device(device)))


def train(
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    recipe: Recipe | str | None = None,
    *options: Options,
    initial: Model | None = None,
    progress: Show = nothing,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    should_stop: Callable[[], bool] = never,
    say: Callable[[str], None] = lambda line: None,
    **given: Any,
) -> Model:
    """Train a model into a run folder, calibrate it and load it.

    recipe: a name of `RECIPES` or a recipe; None is the initial model's, or that of the windows'
    protocol. given: options of `Training`, as `epochs`. initial: a model to fine-tune. folder: at a
    URL it is uploaded after each epoch and when the call ends or is stopped. progress, on_epoch and
    say receive how far it is. should_stop: asks for a stop, after which the same call resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> windows = gd.prepare(gd.read("study"), gd.PrepareConfig(seconds=2.048))
    >>> gd.train(windows, "run", "position-tiny", epochs=1)
    Model(position-tiny: 0.4 M parameters, 250 Hz, tasks: none)
    """
    from gazediffusion.storage import upload_changes, working_copy
    from gazediffusion.training.distributed import is_first, wait_for_all
    from gazediffusion.training.training import train as train_run

    run = None if initial is None else initial.run
    (training,) = grouped(options, given, Training)
    with working_copy(folder, is_first()) as local:

        def after_epoch(epoch: Epoch) -> None:
            upload_changes(local)
            on_epoch(epoch)

        train_run(
            windows,
            local,
            recipe,
            initial=run,
            progress=progress,
            on_epoch=after_epoch,
            should_stop=should_stop,
            say=say,
            **vars(training),
        )
    wait_for_all()  # until the first process has uploaded the folder
    return load(folder, device=training.device)


class Model(Shared):
    """A trained diffusion model of gaze.

    >>> model = load("default")
    >>> model  # doctest: +ELLIPSIS
    Model(steerable: 5.6 M parameters, 250 Hz, tasks: movies, stills, ..., dots, reading)
    >>> model.sample(2, task="reading", seed=0)
    Windows(2 of 8 s at 250 Hz, participants: 1, tasks: reading)
    """

    def __repr__(self) -> str:
        from gazediffusion.network.unet import n_parameters

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

    def screen_of(self, task: str | None = None) -> Screen:
        """The screen that windows of a task are generated for.

        task: may be None where all tasks have one screen.
        """
        conditioning = self.config.conditioning
        if task is not None:
            return conditioning.screen_of(task)
        screens = set(conditioning.task_screens or (self.config.screen,))
        if len(screens) > 1:
            raise GazeError(
                "the tasks of this model have different screens",
                remedy=f"give `task` ({', '.join(self.tasks)}) or `screen`",
            )
        return screens.pop()

    @property
    def device(self) -> torch.device:
        """The device that the network is on."""
        return next(self.run.network.parameters()).device

    @property
    def is_calibrated(self) -> bool:
        """Whether the conditioning is calibrated, or needs no calibration."""
        return self.config.conditioning.is_calibrated

    @property
    def is_steerable(self) -> bool:
        """Whether windows may be of any length and keep to scanpaths, targets and known samples."""
        return bool(self.config.conditioning.sequences)

    def sampler(self, *options: Options, seed: int = 0, n: int = 1, **given: Any) -> Sampler:
        """The sampler of the windows of a seed with these settings; see `sample`.

        n: how many there will be, where a scanpath leaves durations free.

        >>> model = load("joint")
        >>> window = model.sampler(seed=1, task="dots").windows(4, 5)  # the fifth window alone
        >>> bool((window.gaze == model.sample(5, seed=1, task="dots").cut()[4]).all())
        True
        """
        from gazediffusion.conditioning.style import style_of
        from gazediffusion.generation.sampler import Sampler
        from gazediffusion.generation.steering import steered
        from gazediffusion.generation.style_choice import n_candidates

        how, steering = grouped(options, given, Generating, Steering)
        rate_hz, length = self.config.rate_hz, self.config.length
        style, task, is_steered = None, how.task, bool(stated(steering))
        if how.like is not None:
            conditioning = self.config.conditioning
            style = style_of(how.like, conditioning, rate_hz, length, task)
            task = conditioning.tasks[style.task]
        made = Sampler.of_quality(
            self.run,
            how.quality,
            seed=seed,
            sampler=how.sampler,
            steps=how.steps,
            eta=how.eta,
            precision=how.precision,
            batch_size=how.batch_size,
            task=task,
            style=style,
            candidates=how.candidates or (n_candidates(style, is_steered) if style else 1),
        )
        if self.is_steerable and how.seconds is not None and not 1 <= how.seconds <= MOST_SECONDS:
            raise GazeError(
                f"`seconds` must lie between 1 and {MOST_SECONDS:g}, not {how.seconds:g}"
            )
        if is_steered:
            return steered(made, steering, n, how.seconds)
        if not self.is_steerable or how.seconds is None:
            return made
        n_samples = round(how.seconds * rate_hz)
        return replace(made, length=n_samples) if n_samples > length else made

    def sample(
        self,
        n: int,
        *options: Options,
        seed: int = 0,
        progress: Show = nothing,
        **given: Any,
    ) -> Windows:
        """The first n windows of a seed, each with its task, screen and resolution.

        given: options of `Generating`, `Steering` and `Finishing` by name, as `task`, `seconds`,
        `scanpath` or `labels`, beside groups of them. progress: called with the phase of the
        work, what is done, of how much, and a note. Window k of a seed is always the same.
        """
        sampling = self.sampling(n, *options, seed=seed, **given)
        pieces = sampling.pieces(lambda done: progress("generating", done, n, ""))
        return sampling.windows(np.concatenate(list(pieces)))

    def sampling(
        self, n: int, *options: Options, seed: int = 0, format: str = "parquet", **given: Any
    ) -> Sampling:
        """The windows of `sample`, to be generated piece by piece; format: to be saved in.

        >>> sampling = load("joint").sampling(3, task="reading", batch_size=2)
        >>> [sampling.windows(piece) for piece in sampling.pieces()][0]
        Windows(2 of 8 s at 250 Hz, participants: 1, tasks: reading)
        """
        from gazediffusion.data.track_loss import LossModel
        from gazediffusion.generation.labelling import Labeller
        from gazediffusion.generation.sets import Sampling

        how, steering, finishing = grouped(options, given, Generating, Steering, Finishing)
        screen = finishing.given_screen()
        steering = self.read_steering(steering, screen, how.task)
        if isinstance(how.like, Path):
            how = replace(how, like=_recorded(how.like, screen))
        sampler = self.sampler(how, steering, seed=seed, n=n)
        return Sampling(
            sampler,
            n,
            format,
            screen,
            seconds=how.seconds,
            rate_hz=finishing.rate_hz,
            track_loss=LossModel.load(self.run.path) if finishing.track_loss else None,
            labeller=Labeller.of_generated(sampler) if finishing.labels else None,
            grid_px=finishing.grid_px,
        )

    def read_steering(
        self, steering: Steering, screen: Screen | None, task: str | None
    ) -> Steering:
        """Steering with what its tables and texts hold, in normalized units.

        screen: that they are on; None is that of the task.
        """
        if not stated(steering):
            return steering
        from gazediffusion.generation.steering import as_given

        return as_given(steering, screen or self.screen_of(task))

    def sample_to(
        self,
        path: Path | str,
        n: int,
        *options: Options,
        seed: int = 0,
        format: str | None = None,
        progress: Show = nothing,
        say: Callable[[str], None] = lambda line: None,
        overwrite: bool = False,
        parts: Parts | None = None,
        **given: Any,
    ) -> list[Path]:
        """Write the first n windows of a seed as a set, piece by piece; returns the files.

        path: a .parquet, .csv or .npz file, or a folder. format: parquet, csv, npz, bids or asc; by
        default that of the path's ending, parquet for a folder. overwrite: replace a set that is
        there. parts: write a large set as a folder of Parquet files, by this process or by a
        cluster. given: as to `sample`. A stopped call resumes from the pieces it has. A path ending
        in .safetensors is a windows file, generated in memory, with its card in it.
        """
        from gazediffusion.data.writers.sets import format_of
        from gazediffusion.generation.sets import write_set, write_windows_file

        path = Path(path)
        is_windows_file = format is None and path.suffix == ".safetensors"
        format = "parquet" if is_windows_file else format_of(path, format)
        sampling = self.sampling(n, *options, seed=seed, format=format, **given)
        if is_windows_file:
            if sampling.grid_px is not None:
                raise GazeError("a windows file keeps gaze as generated: leave `grid_px` out")
            return write_windows_file(sampling, path, progress, overwrite)
        if parts is not None:
            from gazediffusion.generation.dataset import write_dataset

            if format != "parquet":
                problem = f"a set in parts is parquet, not {format}"
                raise GazeError(problem, remedy="leave `format` out")
            return write_dataset(sampling, path, parts, progress, say, overwrite)
        return write_set(sampling, path, progress, say, overwrite)

    def fill(
        self,
        recording: Recording,
        *options: Options,
        progress: Show = nothing,
        **given: Any,
    ) -> list[Recording]:
        """A recording with its gaps filled, once for each draw, by a steerable model.

        given: options of `Filling` and `Sampled`. The eye that cleaning chooses is kept;
        `Recording.is_filled` marks the filled samples, all others are as recorded. progress: as of
        `sample`.
        """
        from gazediffusion.generation.filling import filled

        filler = self.filler(*options, **given)
        gaps = filler.gaps(recording)
        total = filler.n_windows(gaps)
        courses = filler.courses(gaps, lambda done: progress("filling", done, total, ""))
        return [filled(recording, gaps.marks, course) for course in courses]

    def filler(self, *options: Options, **given: Any) -> Filler:
        """What fills gaps with these settings; a model that is not steerable is refused."""
        from gazediffusion.generation.filling import Filler

        filling, sampled = grouped(options, given, Filling, Sampled)
        # Closer in long gaps than the distilled network.
        is_distilled = self.run.distilled is not None and sampled.quality == "default"
        sampler = "unipc" if is_distilled else "auto"
        return Filler(self.sampler(**vars(sampled), sampler=sampler), filling)

    def augmenter(self, *options: Options, **given: Any) -> Augmenter:
        """What generates recordings in the style of participants with these settings."""
        from gazediffusion.generation.augmentation import Augmenter

        augmenting, sampled = grouped(options, given, Augmenting, Sampled)
        return Augmenter(self.sampler(**vars(sampled)), augmenting)

    def label(
        self,
        recording: Recording,
        *options: Options,
        progress: Show = nothing,
        **given: Any,
    ) -> Recording:
        """A recording with the event class of every sample (`Recording.labels`); gaze is kept.

        given: options of `Labelling` and `Computing`. progress: as of `sample`.
        """
        labeller = self.labeller(*options, **given)
        total = labeller.n_windows(labeller.gaps(recording))
        return labeller.labelled(recording, lambda done: progress("labelling", done, total, ""))

    def labeller(self, *options: Options, **given: Any) -> RecordingLabeller:
        """What labels recordings with these settings; a model without labels is refused."""
        from gazediffusion.generation.labelling import Labeller, RecordingLabeller

        labelling, computing = grouped(options, given, Labelling, Computing)
        made = self.sampler(**vars(computing))
        labeller = Labeller(self.run, made.batch_size, made.bf16)
        return RecordingLabeller(labeller, labelling.cleaning)

    def fine_tune(
        self,
        windows: Windows | Sequence[Windows],
        folder: Path | str,
        *options: Options,
        **given: Any,
    ) -> Model:
        """A new model, initialised from this one and trained on windows of other recordings.

        Everything else is as to `train`; the learning rate is half the recipe's by default.
        """
        return train(windows, folder, None, *options, initial=self, **given)

    def variational_bound(
        self,
        windows: Windows,
        n_windows: int = 64,
        n_times: int | None = 8,
        progress: Show = nothing,
    ) -> Bound:
        """The variational bound of a DDPM on held-out windows, with its standard error.

        Without bias for any number of windows and of steps drawn for each (`n_times`; None takes
        all). progress: counts evaluations of the network.
        """
        from gazediffusion.training.training import held_out_bound

        def counted(done: int, total: int) -> None:
            progress("variational bound", done, total, "")

        return held_out_bound(self.run, windows, n_windows, n_times, progress=counted)

    def calibrate(
        self,
        n: int | None = None,
        rounds: int | None = None,
        progress: Show = nothing,
        should_stop: Callable[[], bool] = never,
        say: Callable[[str], None] = lambda line: None,
    ) -> Model:
        """Calibrate the conditioning by n windows of each task and round, and reload the model.

        n: None is 1,024 on a GPU, 128 elsewhere. rounds: None is four. Packaged models are
        calibrated already.
        """
        from gazediffusion.storage import upload_changes
        from gazediffusion.training.calibration import ROUNDS, calibrate

        device = self.device
        if self.run.path.parent == pretrained_folder():
            raise GazeError("a packaged model is calibrated already", path=self.run.path)
        try:
            calibrate(self.run.path, device, n, rounds or ROUNDS, progress, should_stop, say)
        finally:
            upload_changes(self.run.path)
        return load(self.run.path, self.run.weights, str(device))


def _recorded(path: Path, screen: Screen | None) -> Windows | Recordings:
    """A windows file, or recordings; screen: where a file states none."""
    from gazediffusion.data.windows import Windows

    if path.suffix == ".safetensors":
        return Windows.load(path)
    from gazediffusion.data.reading import read

    return read(path, screen=screen)
