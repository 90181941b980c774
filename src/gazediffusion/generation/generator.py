"""Generators: windows from a seed and their number, by a model or a baseline.

Window k of a seed is always the same window, whatever the batch size. Windows come in pieces, so
that a set larger than memory can be written while it is generated. Gaze longer than the model's
windows is generated window by window, each given the end of the one before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning import Condition, Draw
from gazediffusion.conditioning.quantization import Floats, quantized
from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.conditioning.style import Style
from gazediffusion.data.windows import Windows
from gazediffusion.device import fetching, sent
from gazediffusion.diffusion.ddim import WindowNoise, sample
from gazediffusion.diffusion.solvers import CleanEstimate, ddim, unipc
from gazediffusion.errors import GazeError
from gazediffusion.generation import qualities
from gazediffusion.generation.candidates import (
    Blocks,
    chosen_pieces,
    require_choice,
)
from gazediffusion.generation.constraints import (
    Constraints,
    continued,
    joined,
    waypoint_samples,
    window_starts,
)
from gazediffusion.generation.edm_sampling import sample_edm, sequences_of
from gazediffusion.generation.noise_level import at_noise_level, noise_level
from gazediffusion.generation.qualities import SamplerName, settings_of
from gazediffusion.generation.scheduling import (
    Progress,
    Span,
    by_threads,
    drawn_ahead,
    in_parts,
    spans_of,
)
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.representations import Joint
from gazediffusion.models.unet import UNet
from gazediffusion.seeds import seed_for

_CONTINUED = 4  # names the random numbers of windows after the first of long gaze


@dataclass(frozen=True)
class DiffusionGenerator:
    """A trained run with its sampler. `batch_size` changes speed, never the windows.

    sampler: auto, or one of the model's kind (`qualities: SAMPLERS`).
    steps, eta: None is the recipe's own; eta is of ddim alone.
    task: of all windows, for a model conditioned on tasks; None draws each window's task with the
        shares of the training windows. is_taskless: no window is given a task.
    bf16: bfloat16 arithmetic, for the joint recipe alone.
    length: samples of each window; None is the model's. Longer windows, and constraints, need a
        steerable model.
    constraints: what windows keep to. Summary statistics are then left to the model, and so is
        the resolution where samples are known.
    style: of whom summary statistics are drawn, in the style's task; also beside constraints.
    candidates: of each window, from which those in the style are taken (candidates.py).
    """

    run: Run
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
        qualities.require_sampler(self.run, *self._sampling, self.eta, self.bf16)
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
    ) -> DiffusionGenerator:
        """A generator with the settings of a quality: `settings_of`."""
        chosen = settings_of(run, quality, precision, sampler, steps, batch_size)
        return cls(run, **chosen, **settings)

    @property
    def _sampling(self) -> tuple[SamplerName, int]:
        """Sampler and steps in force."""
        return qualities.sampling_of(self.run, "default", self.sampler, self.steps)

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
        config = self.run.config
        return {
            "window_samples": self.n_samples,
            "windows_each": self.candidates
            * len(window_starts(self.n_samples, config.length, config.rate_hz)),
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

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = lambda done: None
    ) -> Iterator[Floats]:
        """Windows in batches; `progress` receives the number of windows done, in fractions.

        How they are computed: scheduling.py; how they are chosen: candidates.py.
        """
        if self.candidates > 1:
            return chosen_pieces(self, first, stop, seed, progress)
        spans = spans_of(first, stop, self.batch_size)
        conditioning = self.sampled.config.conditioning

        def draw(span: Span) -> Callable[[], tuple[WindowNoise, Draw]]:
            # Sobol points are computed in parallel, which would slow down the sampler's thread.
            uniforms = conditioning.uniforms(*span, seed)
            return lambda: (
                self._noise(*span, seed),
                conditioning.draw_by(uniforms, self.task, self.style),
            )

        begin = partial(self._begun, seed)
        if next(self.network.parameters()).device.type != "cpu":
            return drawn_ahead(spans, draw, begin, progress)
        return in_parts(spans, lambda span, done: begin(span, draw(span)(), done)(), progress)

    @property
    def batch_kind(self) -> Hashable:
        """Equal for generators whose windows can share a batch (`in_one_batch`); None: for none."""
        if self.is_steered or self.candidates > 1 or self.style is not None:
            return None
        return (
            id(self.run),
            *self._sampling,
            self.settings.get("eta"),
            self.bf16,
            self.is_taskless,
        )

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed, in memory."""
        if n < 1:
            raise GazeError(f"`n` must be 1 or more, not {n}")
        return self.as_windows(np.concatenate(list(self.pieces(0, n, seed))), seed)

    def as_windows(self, gaze: Floats, seed: int, first: int = 0) -> Windows:
        """Generated gaze (window, 2, time) of windows first.. of a seed, each with its origin.

        Every window has the task, the screen and the resolution that it was generated for.
        """
        config = self.run.config
        conditioning = config.conditioning
        drawn = conditioning.draw(first, first + len(gaze), seed, self.task, self.style)
        has_tasks = bool(drawn.tasks)
        return Windows.from_array(
            gaze,
            config.rate_hz,
            [conditioning.task_screens[k] for k in drawn.tasks] if has_tasks else config.screen,
            tasks=[conditioning.tasks[k] for k in drawn.tasks] if has_tasks else "synthetic",
            protocol=config.recipe.protocol,
            steps=drawn.steps,
            provenance={"seed": seed, "weights_sha256": self.run.weights_sha256, **self.settings},
        )

    @torch.inference_mode()
    def _begun(
        self, seed: int, span: Span, ahead: tuple[WindowNoise, Draw], progress: Progress
    ) -> Callable[[], Floats]:
        """What fetches the gaze (window, 2, time) of a batch, which a GPU may be computing."""
        noise, drawn = ahead
        if self.n_samples > self.run.config.length:
            gaze, uniforms = self._long(noise, drawn, span, seed, progress)
        else:
            given = self._given(drawn, span, self.run.config.length, seed)
            known, (first, stop) = given.pop("known", None), span

            def counted(share: float) -> None:
                progress((stop - first) * share)

            gaze = self._batch(noise, drawn, known, given, counted)
            if known is not None:
                whole = joined(gaze.cpu().numpy(), known, self.run.config.rate_hz)
                gaze = torch.from_numpy(whole)
            uniforms = torch.special.ndtr(noise.first[:, :2])
        return fetching(self._quantized(gaze, drawn, uniforms)[..., : self.n_samples])

    def _long(
        self, noise: WindowNoise, drawn: Draw, span: Span, seed: int, progress: Progress
    ) -> tuple[Tensor, Tensor]:
        """Gaze longer than a window, and uniforms: both (window, 2, time).

        noise, drawn: of the first 8 s.
        """
        config, (first, stop) = self.sampled.config, span
        length, rate_hz = config.length, config.rate_hz
        starts = window_starts(self.n_samples, length, rate_hz)
        total = self.n_samples
        given = self._given(drawn, span, total, seed)
        is_placed = self.constraints is not None and "targets" not in given
        fixed = given.pop("known", None)
        gaze = np.empty((stop - first, 2, total), dtype=np.float32)
        here, uniforms = drawn, np.empty_like(gaze)
        for number, start in enumerate(starts):
            if number:
                noise = self._noise(first, stop, seed_for(seed, _CONTINUED, number))
            elapsed_s = None if is_placed else start / rate_hz
            here = config.conditioning.of_part(drawn, number, elapsed_s, first, seed)
            within = slice(start, start + length)
            others = {name: array[..., within] for name, array in given.items()}
            known = None if fixed is None else fixed[..., within]
            if number:
                stop_before, targets = starts[number - 1] + length - start, others.get("targets")
                known = continued(gaze[..., within], known, stop_before, rate_hz, targets)

            def counted(share: float, number: int = number) -> None:
                progress((stop - first) * (number + share) / len(starts))

            made = self._batch(noise, here, known, others, counted).cpu().numpy()
            if number and known is not None and self.style is None:
                made = at_noise_level(made, known, noise_level(gaze[..., :length]), rate_hz)
            gaze[..., within] = made if known is None else joined(made, known, rate_hz)
            # At the scale of a resolution gaze no longer depends on its initial noise.
            uniforms[..., within] = torch.special.ndtr(noise.first[:, :2]).cpu().numpy()
        return torch.from_numpy(gaze), torch.from_numpy(uniforms)

    def _given(self, drawn: Draw, span: Span, n_samples: int, seed: int) -> dict[str, Floats]:
        """The constraints (window, 2, time) by name; long gaze has a drawn course without any."""
        config, (first, stop) = self.sampled.config, span
        course, tasks = config.conditioning.course, config.conditioning.names_of(drawn)
        if self.constraints is not None:
            given = self.constraints.of(first, stop, n_samples)
        elif n_samples == config.length or self.style is not None:
            given = {}
        else:
            waypoints = waypoint_samples(n_samples, config.length, config.rate_hz)
            given = course.draw(tasks, first, n_samples, config.rate_hz, seed, waypoints)
        if "targets" in given:
            given["targets"] = course.compensated(given["targets"], tasks)
        return given

    def _quantized(self, gaze: Tensor, drawn: Draw, uniforms: Tensor) -> Tensor:
        """In the resolution that is drawn; gaze that keeps to known samples has theirs."""
        is_given = self.constraints is not None and self.constraints.known is not None
        if is_given or drawn.steps is None or drawn.grids is None:
            return gaze
        return quantized(gaze, drawn.steps, drawn.grids, uniforms)

    def _noise(self, first: int, stop: int, seed: int) -> WindowNoise:
        shape = (self.run.config.recipe.gaze_channels, self.run.config.length)
        device = next(self.run.network.parameters()).device
        return WindowNoise(seed, range(first, stop), shape, device)

    def _batch(
        self,
        noise: WindowNoise,
        drawn: Draw,
        known: Floats | None,
        given: Mapping[str, Floats],
        progress: Progress,
    ) -> Tensor:
        """Windows of the model's length, (window, 2, time); given: other constraints by name."""
        config = self.sampled.config
        is_paper = config.recipe.process == "ddpm"
        known = None if known is None or not np.isfinite(known).any() else known
        representation, sequences = config.representation, Sequences()
        if isinstance(representation, Joint):
            sequences = sequences_of(representation, known, **given)
        condition = drawn.condition
        if self.constraints is not None and self.style is None:
            condition = config.conditioning.without_statistics(condition)
        if self.is_taskless and condition:
            condition = config.conditioning.without_task(condition)
        steps = self._ddpm(noise) if is_paper else self._edm(noise, condition, sequences)
        x = torch.empty(0)
        for number, after in enumerate(steps, start=1):
            x = after
            progress(number / self.settings["steps"])
        if isinstance(representation, Joint) and known is not None:
            is_known = torch.from_numpy(np.isfinite(known).all(axis=1)).to(x.device)
            return representation.decode(x, is_known)
        return representation.decode(x).float()

    def _ddpm(self, noise: WindowNoise) -> Iterator[Tensor]:
        recipe, how = self.run.config.recipe, self.settings
        given = (recipe.objective, how["sampler"], how["steps"], how["eta"])
        return sample(self.run.network, recipe.schedule().to(noise.device), noise, *given)

    @cached_property
    def kept_blocks(self) -> Blocks:
        """The last block of windows that was chosen."""
        return {}

    @cached_property
    def network(self) -> UNet:
        """The network that is sampled from, or a bfloat16 copy."""
        network = self.sampled.network
        return copy.deepcopy(network).bfloat16() if self.bf16 else network

    def _edm(
        self, noise: WindowNoise, condition: Condition, sequences: Sequences
    ) -> Iterator[Tensor]:
        (sampler, steps), recipe = self._sampling, self.run.config.recipe
        condition = tuple(sent(part, noise.device) for part in condition)
        distilled = self.run.distilled if sampler == "distilled" else None
        levels = (
            [*distilled.levels, 0.0] if distilled else recipe.edm.sigma_schedule(steps).tolist()
        )

        def solve(denoise: CleanEstimate, noise: Tensor) -> Iterator[Tensor]:
            if distilled:
                return ddim(denoise, noise, levels)
            return unipc(denoise, noise * levels[0], levels)

        given = sequences.to(noise.device)
        return sample_edm(self.network, recipe, noise, condition, given, solve)


def in_one_batch(
    asked: Sequence[tuple[DiffusionGenerator, int, Span]], progress: Progress = lambda done: None
) -> list[Floats]:
    """Windows of several generators of one `batch_kind`, computed in one batch.

    asked: generator, seed, and windows first, stop. A CPU computes an equal part in each of its
    threads, as it does windows one by one. progress: called with the share that is done.
    """
    generator = asked[0][0]
    is_cpu = next(generator.network.parameters()).device.type == "cpu"

    def compute(part: Span) -> Floats:
        noise, drawn, n = [], [], 0
        for one, seed, span in spans[slice(*part)]:
            noise.append(one._noise(*span, seed))
            drawn.append(one.sampled.config.conditioning.draw(*span, seed, one.task))
            n += span[1] - span[0]
        ahead = (WindowNoise.joined(noise), Draw.joined(drawn))
        return generator._begun(0, (0, n), ahead, lambda done: progress(done / n))()

    spans = list(asked)
    if is_cpu:
        spans = [(one, seed, each) for one, seed, span in asked for each in spans_of(*span, 1)]
        parts = spans_of(0, len(spans), -(-len(spans) // torch.get_num_threads()))
        gaze = by_threads(parts, compute)
    else:
        gaze = compute((0, len(spans)))
    ends = np.cumsum([stop - first for _, _, (first, stop) in asked])
    return np.split(gaze, ends[:-1])
