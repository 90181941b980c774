"""The sampler: windows of a seed by their numbers, from a trained run.

Window k of a seed is always the same window, whatever the batch size. Windows come in pieces, so
that a set larger than memory can be written while it is generated. Given samples and fixations
stay in their places in every estimate of the network.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning import Condition, Conditions
from gazediffusion.conditioning.conditioning import Sequences, quantized
from gazediffusion.conditioning.style import Style
from gazediffusion.data.windows import Windows
from gazediffusion.device import fetching, has_fast_bf16, require_precision, sent
from gazediffusion.diffusion.ddpm import ddim_times, sample
from gazediffusion.diffusion.solvers import WindowNoise, ddim, unipc
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.generation.long_gaze import (
    long_gaze,
    waypoint_samples,
    window_starts,
    with_known,
)
from gazediffusion.generation.scheduling import (
    Progress,
    Span,
    by_threads,
    drawn_ahead,
    in_parts,
    spans_of,
)
from gazediffusion.generation.steering import Constraints, FixationMeans
from gazediffusion.generation.style_choice import Blocks, chosen_pieces, require_choice
from gazediffusion.network.checkpoint import Run
from gazediffusion.network.representations import Joint
from gazediffusion.network.unet import UNet
from gazediffusion.screen import Floats, Screen
from gazediffusion.seeds import Stream, rng

SamplerName = Literal["auto", "ddim", "ancestral", "unipc", "distilled"]
# The samplers of each process, the default first; edm models with a distilled network take that.
SAMPLERS: dict[str, tuple[SamplerName, ...]] = {
    "ddpm": ("ddim", "ancestral"),
    "edm": ("unipc", "distilled"),
}
QUALITIES = ("default", "best")
_BEST_STEPS = {"ddpm": 200, "edm": 40}


def default_batch_size(run: Run) -> int:
    """Windows per batch for the device that a run is on.

    On a GPU enough that running a kernel takes longer than launching it: 256 for the paper's
    network, 1,024 for the joint recipe's, whose tensors are a quarter of that size.
    """
    network = run.config.recipe.network
    is_gpu = next(run.network.parameters()).device.type == "cuda"
    return max(16, 256 * 128 * network.patch // network.widths[0]) if is_gpu else 16


def sampling_of(
    run: Run, quality: str, sampler: SamplerName = "auto", steps: int | None = None
) -> tuple[SamplerName, int]:
    """Sampler and steps in force: those given, or else those of the quality.

    A number of steps is of the model's own network; its distilled one has the steps it is trained
    for.
    """
    recipe = run.config.recipe
    if quality not in QUALITIES:
        raise GazeError(f"no `quality` {quality!r}", remedy=suggestion(quality, list(QUALITIES)))
    is_free = sampler == "auto" and steps is None and quality == "default"
    distilled = run.distilled
    if distilled and (sampler == "distilled" or (is_free and distilled.is_calibrated)):
        return "distilled", len(distilled.levels) if steps is None else steps
    usual = recipe.sampling_steps if quality == "default" else _BEST_STEPS[recipe.process]
    chosen = SAMPLERS[recipe.process][0] if sampler == "auto" else sampler
    return chosen, min(usual, recipe.most_steps) if steps is None else steps


def require_sampler(run: Run, sampler: str, steps: int, eta: float | None, bf16: bool) -> None:
    """Refuse a sampler that the run does not have, and settings that the sampler does not have."""
    recipe = run.config.recipe
    allowed = SAMPLERS[recipe.process]
    if sampler not in allowed:
        raise GazeError(f"`sampler` must be {' or '.join(allowed)} for this model, not {sampler!r}")
    if sampler == "distilled":
        if run.distilled is None:
            raise GazeError(
                "this run has no distilled network",
                remedy="take another `sampler`, or train with recipe joint or steerable",
            )
        if steps != (n := len(run.distilled.levels)):
            raise GazeError(f"`steps` of sampler distilled must be {n}, not {steps}")
    if recipe.process == "edm":
        if eta is not None:
            raise GazeError("`eta` is for the paper's recipes alone")
        recipe.edm.sigma_schedule(steps)  # refuses numbers of steps that it cannot have
        return
    if bf16:
        raise GazeError("`precision` bf16 is for the joint recipe alone")
    if sampler == "ddim":  # ancestral sampling has an eta and steps of its own
        eta = recipe.eta if eta is None else eta
        if not 0 <= eta <= 1:
            raise GazeError(f"`eta` must lie between 0 and 1, not {eta:g}")
        ddim_times(steps, recipe.diffusion_steps)  # refuses as well


@dataclass(frozen=True)
class Sampler:
    """A trained run with a seed and its settings. `batch_size` changes speed, never the windows.

    sampler: auto, or one of the model's kind (`SAMPLERS`).
    steps, eta: None is the recipe's own; eta is of ddim alone.
    task: of all windows, for a model conditioned on tasks; None draws each window's task with the
        shares of the training windows. is_taskless: no window is given a task.
    bf16: bfloat16 arithmetic, for the joint recipe alone.
    length: samples of each window; None is the model's. Longer windows, and constraints, need a
        steerable model.
    constraints: what windows keep to. Summary statistics are then left to the model, and so is
        the resolution where samples are known.
    style: of whom summary statistics are drawn, in the style's task; also beside constraints.
    candidates: of each window, from which those in the style are taken (style_choice.py).
    """

    run: Run
    seed: int = 0
    sampler: SamplerName = "auto"
    steps: int | None = None
    eta: float | None = None
    batch_size: int = 16
    task: str | None = None
    bf16: bool = False
    length: int | None = None
    constraints: Constraints | None = None
    is_taskless: bool = False
    style: Style | None = None
    candidates: int = 1

    def __post_init__(self) -> None:
        config = self.run.config
        require_sampler(self.run, *self._sampling, self.eta, self.bf16)
        if self.batch_size < 1:
            raise GazeError(f"`batch_size` must be 1 or more, not {self.batch_size}")
        if self.task is not None:
            config.conditioning.task_number(self.task)
        if self.is_steered and not config.conditioning.sequences:
            raise GazeError(
                f"this model is not steerable: it generates windows of "
                f"{config.length / config.rate_hz:g} s and takes no constraints",
                remedy="take the default model, or train one with `recipe` steerable",
            )
        if self.candidates != 1:
            require_choice(self)

    @classmethod
    def of_quality(
        cls,
        run: Run,
        quality: str,
        precision: str = "auto",
        sampler: SamplerName = "auto",
        steps: int | None = None,
        batch_size: int | None = None,
        **settings: Any,
    ) -> Sampler:
        """A sampler of a quality: default or best.

        precision: fp32, bf16, or auto, which is bf16 for the joint recipe where that is faster.
        sampler, steps: override those of the quality. batch_size: None is the device's default.
        """
        require_precision(precision)
        device = next(run.network.parameters()).device
        is_edm = run.config.recipe.process == "edm"
        suits = precision == "auto" and is_edm and has_fast_bf16(device)
        chosen, n_steps = sampling_of(run, quality, sampler, steps)
        return cls(
            run,
            sampler=chosen,
            steps=n_steps,
            bf16=precision == "bf16" or suits,
            batch_size=default_batch_size(run) if batch_size is None else batch_size,
            **settings,
        )

    @property
    def _sampling(self) -> tuple[SamplerName, int]:
        """Sampler and steps in force."""
        return sampling_of(self.run, "default", self.sampler, self.steps)

    @property
    def is_steered(self) -> bool:
        """Whether windows keep to something: constraints, or the gaze before of long gaze."""
        return self.constraints is not None or self.n_samples > self.run.config.length

    @cached_property
    def sampled(self) -> Run:
        """The run that is sampled from: with its distilled network for that sampler."""
        return self.run.with_distilled() if self._sampling[0] == "distilled" else self.run

    @property
    def settings(self) -> dict[str, Any]:
        """Sampler and its settings in force; ancestral sampling takes every step."""
        recipe = self.run.config.recipe
        sampler, steps = self._sampling
        if recipe.process == "edm":
            condition: dict[str, Any] = {"task": self.task}
            if sampler == "distilled" and self.run.distilled is not None:
                condition["distilled_sha256"] = self.run.distilled.sha256
            if self.constraints is not None:
                condition["constraints"] = self.constraints.describe()
            elif self._draws_course:
                condition["course"] = "targets or positions drawn"
            if self.style is not None:
                condition |= {"like": dict(self.style.origin), "candidates": self.candidates}
            return {"sampler": sampler, "steps": steps, "bf16": self.bf16, **condition}
        if sampler == "ancestral":
            return {"sampler": "ancestral", "steps": recipe.diffusion_steps, "eta": 1.0}
        eta = recipe.eta if self.eta is None else self.eta
        return {"sampler": sampler, "steps": steps, "eta": eta}

    @property
    def _draws_course(self) -> bool:
        """Whether targets or beginnings are drawn for windows of some task, as for long gaze."""
        config = self.run.config
        is_free = self.constraints is None and self.style is None
        return is_free and self.is_steered and config.conditioning.course.draws_for([*self.screens])

    @property
    def n_samples(self) -> int:
        """Samples of each window."""
        return self.run.config.length if self.length is None else self.length

    def describe(self) -> dict[str, Any]:
        """What a card says. windows_each: windows of the model's length that one takes."""
        config, n_parts = self.run.config, 1
        if self.n_samples > config.length:
            n_parts = len(window_starts(self.n_samples, config.length, config.rate_hz))
        return {
            "window_samples": self.n_samples,
            "windows_each": self.candidates * n_parts,
            "rate_hz": config.rate_hz,
            "screens": self.screens,
            "sampling": self.settings,
            "model": self.run.describe(),
        }

    @property
    def screens(self) -> dict[str, Screen]:
        """The screen of each task that may be generated; `synthetic` of an unconditional model."""
        config = self.run.config
        conditioning = config.conditioning
        if not conditioning.tasks:
            return {"synthetic": config.screen}
        tasks = conditioning.tasks if self.task is None else (self.task,)
        return {task: conditioning.screen_of(task) for task in tasks}

    def windows(self, first: int, stop: int, progress: Progress = lambda done: None) -> Windows:
        """Windows first..stop-1 of the seed, each with its origin."""
        if not 0 <= first < stop:
            raise GazeError(f"there are no windows {first} to {stop}, the last one excluded")
        return self.as_windows(np.concatenate(list(self.pieces(first, stop, progress))), first)

    def pieces(
        self, first: int, stop: int, progress: Progress = lambda done: None
    ) -> Iterator[Floats]:
        """Gaze (window, 2, time) of windows first..stop-1 in batches.

        progress: called with the number of windows done, in fractions.
        """
        if self.candidates > 1:
            return chosen_pieces(self, first, stop, progress)
        spans = spans_of(first, stop, self.batch_size)
        conditioning = self.sampled.config.conditioning

        def draw(span: Span) -> tuple[WindowNoise, Conditions]:
            drawn = conditioning.draw(*span, self.seed, self.task, self.style)
            return self.noise(*span), drawn

        if next(self.network.parameters()).device.type != "cpu":
            return drawn_ahead(spans, draw, self._begun, progress)
        return in_parts(spans, lambda span, done: self._begun(span, draw(span), done)(), progress)

    @property
    def batch_kind(self) -> Hashable:
        """Equal for samplers whose windows can share a batch (`in_one_batch`); None: for none."""
        if self.is_steered or self.candidates > 1 or self.style is not None:
            return None
        return (
            id(self.run),
            *self._sampling,
            self.settings.get("eta"),
            self.bf16,
            self.is_taskless,
        )

    def in_one_batch(
        self, asked: Sequence[tuple[Sampler, Span]], progress: Progress = lambda done: None
    ) -> list[Floats]:
        """Windows of samplers of this one's `batch_kind`, computed in one batch.

        asked: sampler, and windows first, stop. progress: called with the share that is done.
        Rounding does not depend on what else is in the batch: a CPU computes an equal part in each
        of its threads, as it does windows one by one; a GPU fills the batch up to its full size.
        """

        def compute(part: Span) -> Floats:
            noise, drawn, n = [], [], 0
            for one, span in spans[slice(*part)]:
                noise.append(one.noise(*span))
                drawn.append(one.sampled.config.conditioning.draw(*span, one.seed, one.task))
                n += span[1] - span[0]
            ahead = (WindowNoise.joined(noise), Conditions.joined(drawn))
            return self._begun((0, n), ahead, lambda done: progress(done / n))()

        ends = np.cumsum([stop - first for _, (first, stop) in asked])
        if next(self.network.parameters()).device.type == "cpu":
            spans = [(one, each) for one, span in asked for each in spans_of(*span, 1)]
            parts = spans_of(0, len(spans), -(-len(spans) // torch.get_num_threads()))
            gaze = by_threads(parts, compute)
        else:
            missing = int(-ends[-1] % self.batch_size)
            spans = [*asked, *([(self, (0, missing))] if missing else [])]
            gaze = compute((0, len(spans)))
        return np.split(gaze, ends)[:-1]

    def as_windows(self, gaze: Floats, first: int = 0) -> Windows:
        """Generated gaze (window, 2, time) of windows first.., each with its origin.

        Every window has the task, the screen and the resolution that it was generated for.
        """
        config = self.run.config
        conditioning = config.conditioning
        drawn = conditioning.draw(first, first + len(gaze), self.seed, self.task, self.style)
        has_tasks = bool(drawn.tasks)
        return Windows.from_array(
            gaze,
            config.rate_hz,
            [conditioning.task_screens[k] for k in drawn.tasks] if has_tasks else config.screen,
            tasks=[conditioning.tasks[k] for k in drawn.tasks] if has_tasks else "synthetic",
            protocol=config.recipe.protocol,
            steps=drawn.steps,
            provenance={
                "seed": self.seed,
                "weights_sha256": self.run.weights_sha256,
                **self.settings,
            },
        )

    @torch.inference_mode()
    def _begun(
        self, span: Span, ahead: tuple[WindowNoise, Conditions], progress: Progress
    ) -> Callable[[], Floats]:
        """What fetches the gaze (window, 2, time) of a batch, which a GPU may be computing."""
        noise, drawn = ahead
        if self.n_samples > self.run.config.length:
            gaze, uniforms = long_gaze(self, noise, drawn, span, progress)
        else:
            given, (first, stop) = self.given(drawn, span), span

            def counted(share: float) -> None:
                progress((stop - first) * share)

            gaze = self.of_length(noise, drawn, given, counted)
            if (known := given.get("known")) is not None:
                gaze = torch.from_numpy(with_known(gaze.cpu().numpy(), known))
            uniforms = torch.special.ndtr(noise.first[:, :2])
        return fetching(self._quantized(gaze, drawn, uniforms)[..., : self.n_samples])

    def given(self, drawn: Conditions, span: Span) -> dict[str, Floats]:
        """The constraints (window, 2, time) by name; long gaze has a drawn course without any."""
        config, (first, stop) = self.sampled.config, span
        length, tasks = max(self.n_samples, config.length), config.conditioning.names_of(drawn)
        course = config.conditioning.course
        if self.constraints is not None:
            given = self.constraints.of(first, stop, length)
        elif length == config.length or self.style is not None:
            return {}
        else:
            waypoints = waypoint_samples(length, config.length, config.rate_hz)
            given = course.draw(tasks, first, length, config.rate_hz, self.seed, waypoints)
        if "targets" in given:
            given["targets"] = course.compensated(given["targets"], tasks)
        return given

    def _quantized(self, gaze: Tensor, drawn: Conditions, uniforms: Tensor) -> Tensor:
        """In the resolution that is drawn; gaze that keeps to known samples has theirs."""
        is_given = self.constraints is not None and self.constraints.known is not None
        if is_given or drawn.steps is None or drawn.grids is None:
            return gaze
        return quantized(gaze, drawn.steps, drawn.grids, uniforms)

    def noise(self, first: int, stop: int, part: int = 0) -> WindowNoise:
        """part: the number of the window within long gaze."""
        shape = (self.run.config.recipe.gaze_channels, self.run.config.length)
        generators = [rng(self.seed, Stream.NOISE, k, part) for k in range(first, stop)]
        return WindowNoise(generators, shape, next(self.run.network.parameters()).device)

    def of_length(
        self, noise: WindowNoise, drawn: Conditions, given: Mapping[str, Floats], progress: Progress
    ) -> Tensor:
        """Windows of the model's length, (window, 2, time); given: constraints by name."""
        config, sequences = self.sampled.config, Sequences()
        representation, condition = config.representation, drawn.condition
        given = {name: array for name, array in given.items() if np.isfinite(array).any()}
        if isinstance(representation, Joint):
            sequences = _encoded(representation, **given)
        if self.constraints is not None and self.style is None:
            condition = config.conditioning.without_statistics(condition)
        if self.is_taskless and condition:
            condition = config.conditioning.without_task(condition)
        is_paper = config.recipe.process == "ddpm"
        steps = self._ddpm(noise) if is_paper else self._edm(noise, condition, sequences)
        x, n_steps = torch.empty(0), self.settings["steps"]
        for number, after in enumerate(steps, start=1):
            x = after
            progress(number / n_steps)
        if isinstance(representation, Joint) and "known" in given:
            is_known = torch.from_numpy(np.isfinite(given["known"]).all(axis=1)).to(x.device)
            return representation.decode(x, is_known)
        return representation.decode(x).float()

    @cached_property
    def kept_blocks(self) -> Blocks:
        """The last block of windows that was chosen."""
        return {}

    @cached_property
    def network(self) -> UNet:
        """The network that is sampled from, or a bfloat16 copy."""
        network = self.sampled.network
        return copy.deepcopy(network).bfloat16() if self.bf16 else network

    def _ddpm(self, noise: WindowNoise) -> Iterator[Tensor]:
        recipe, how = self.run.config.recipe, self.settings
        given = (recipe.objective, how["sampler"], how["steps"], how["eta"])
        return sample(self.run.network, recipe.schedule().to(noise.device), noise, *given)

    def _edm(
        self, noise: WindowNoise, condition: Condition, sequences: Sequences
    ) -> Iterator[Tensor]:
        """Windows (window, gaze channel, time) after each step."""
        (sampler, steps), recipe = self._sampling, self.run.config.recipe
        process, n_gaze = recipe.edm, recipe.gaze_channels
        n_labels = recipe.network.channels - n_gaze
        condition = tuple(sent(part, noise.device) for part in condition)
        sequences = sequences.to(noise.device)
        known, channels = sequences.known, sequences.channels()
        given = () if channels is None else (channels,)
        is_known = None if known is None else known[:, 0].isfinite()
        fixation = sequences.fixation
        means = None if fixation is None else FixationMeans.of(fixation, is_known)

        def denoise(x: Tensor, sigma: float) -> Tensor:
            """An estimate of the gaze, with fixations and known samples in their places."""
            # Channels of labels are zero.
            x = functional.pad(x, (0, 0, 0, n_labels)) if n_labels else x
            level = torch.full((len(x),), sigma, device=x.device)
            gaze = process.denoise(self.network, x, level, *condition, *given)[:, :n_gaze]
            if means is not None:
                gaze = torch.cat([means.moved(gaze[:, :2]), gaze[:, 2:]], dim=1)
            return gaze if known is None else torch.where(known.isfinite(), known, gaze)

        if sampler == "distilled" and self.run.distilled is not None:
            return ddim(denoise, noise.draw(), [*self.run.distilled.levels, 0.0])
        levels = process.sigma_schedule(steps).tolist()
        return unipc(denoise, noise.draw() * levels[0], levels)


def _encoded(
    representation: Joint,
    known: Floats | None = None,
    fixations: Floats | None = None,
    targets: Floats | None = None,
) -> Sequences:
    """Constraints (window, 2, time), NaN where nothing is given, in the channels of a network."""

    def position(array: Floats | None) -> Tensor | None:
        return None if array is None else representation.encode_position(torch.from_numpy(array))

    encoded = None if known is None else representation.encode(torch.from_numpy(known))
    return Sequences(known=encoded, fixation=position(fixations), target=position(targets))
