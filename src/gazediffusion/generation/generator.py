"""Generators: windows from a seed and their number, by a model or a baseline.

Window k of a seed is always the same window, whatever the batch size. Windows come in pieces, so
that a set larger than memory can be written while it is generated. Gaze longer than the model's
windows is generated window by window, each given the end of the one before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from gazediffusion.conditioning import Condition, Draw
from gazediffusion.conditioning.quantization import Floats, quantize
from gazediffusion.conditioning.sequences import Sequences
from gazediffusion.conditioning.style import Style
from gazediffusion.data.windows import Windows
from gazediffusion.diffusion.ddim import WindowNoise, ddim_times, sample
from gazediffusion.errors import GazeError
from gazediffusion.generation import qualities
from gazediffusion.generation.constraints import (
    Constraints,
    continued,
    joined,
    waypoint_samples,
    window_starts,
)
from gazediffusion.generation.edm_sampling import Guidance, sample_edm, sequences_of, solve_of
from gazediffusion.generation.noise_level import at_noise_level, noise_level
from gazediffusion.generation.qualities import SamplerName, settings_of
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.representations import Joint
from gazediffusion.models.unet import UNet
from gazediffusion.seeds import seed_for

Progress = Callable[[float], None]
_CONTINUED = 4  # names the stream of random numbers of windows after the first of long gaze


class Generator(Protocol):
    """Generates windows of normalized gaze."""

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = ...
    ) -> Iterator[Floats]:
        """Windows first..stop-1 of this seed, in pieces (window, 2, time)."""
        ...

    def as_windows(self, gaze: Floats, seed: int, first: int = 0) -> Windows:
        """Pieces of this seed, from window `first`, each window with its origin."""
        ...

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed."""
        ...


@dataclass(frozen=True)
class DiffusionGenerator:
    """A trained run with its sampler. `batch_size` changes speed, never the windows.

    sampler: auto, or one of the model's kind (`qualities: SAMPLERS`).
    steps, eta: None is the recipe's own; eta is of ddim alone.
    task: of all windows, for a model conditioned on tasks; None draws each window's task with the
        shares of the training windows. is_taskless: no window is given a task.
    guidance: classifier-free guidance scale of the task; 1 is none, others cost twice as much.
    bf16: bfloat16 arithmetic, for the joint recipe alone.
    length: samples of each window; None is the model's. Longer windows, and constraints, need a
        steerable model.
    constraints: what windows keep to. Summary statistics are then left to the model, and so is
        the resolution where samples are known.
    style: of whom summary statistics are drawn, in the style's task; also beside constraints.
    """

    run: Run
    sampler: SamplerName = "auto"
    steps: int | None = None
    eta: float | None = None
    batch_size: int = 16
    task: str | None = None
    guidance: float = 1.0
    bf16: bool = False
    length: int | None = None
    constraints: Constraints | None = None
    is_taskless: bool = False
    style: Style | None = None

    def __post_init__(self) -> None:
        config, recipe = self.run.config, self.run.config.recipe
        qualities.require_sampler(recipe, self.sampler)
        if self.batch_size < 1:
            raise GazeError(f"`batch_size` must be 1 or more, not {self.batch_size}")
        if self.task is not None:
            config.conditioning.task_number(self.task)
        is_steered = self.constraints is not None or self.n_samples > config.length
        if is_steered and not config.conditioning.sequences:
            raise GazeError(
                f"this model is not steerable: it generates windows of "
                f"{config.length / config.rate_hz:g} s and takes no constraints",
                remedy="take the default model, or train one with `recipe` steerable",
            )
        if not 0 <= self.guidance <= 20:
            raise GazeError(f"`guidance` must lie between 0 and 20, not {self.guidance:g}")
        if recipe.process == "ddpm":
            if self.bf16:
                raise GazeError("`precision` bf16 is for the joint recipe alone")
            if not 0 <= self.settings["eta"] <= 1:
                raise GazeError(f"`eta` must lie between 0 and 1, not {self.settings['eta']:g}")
            ddim_times(self.settings["steps"], recipe.diffusion_steps)
        else:
            if self.eta is not None:
                raise GazeError("`eta` is for the paper's recipes alone")
            recipe.edm.sigma_schedule(self.settings["steps"])
            if self.settings["sampler"] == "olss":
                qualities.solver_of(config, self.settings["steps"])
        qualities.require_distilled(recipe, self.settings["steps"], self.guidance)

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
    def settings(self) -> dict[str, Any]:
        """Sampler and its settings in force; ancestral sampling takes every step."""
        recipe = self.run.config.recipe
        sampler, steps = qualities.sampling_of(self.run.config, "default", self.sampler, self.steps)
        if recipe.process == "edm":
            condition: dict[str, Any] = {"task": self.task, "guidance": self.guidance}
            if self.constraints is not None:
                condition["constraints"] = self.constraints.describe()
            elif self._draws_course:
                condition["course"] = "targets or positions drawn"
            if self.style is not None:
                condition["like"] = dict(self.style.origin)
            return {"sampler": sampler, "steps": steps, "bf16": self.bf16, **condition}
        if sampler == "ancestral":
            return {"sampler": "ancestral", "steps": recipe.diffusion_steps, "eta": 1.0}
        return {
            "sampler": sampler,
            "steps": steps,
            "eta": recipe.eta if self.eta is None else self.eta,
        }

    @property
    def _draws_course(self) -> bool:
        """Whether targets or beginnings are drawn for windows of some task, as for long gaze."""
        config = self.run.config
        is_free = self.constraints is None and self.style is None
        is_long = self.n_samples > config.length
        return is_free and is_long and config.conditioning.course.draws_for([*self.screens])

    @property
    def n_samples(self) -> int:
        """Samples of each window."""
        return self.run.config.length if self.length is None else self.length

    def describe(self) -> dict[str, Any]:
        """What a card says: length and rate of windows, screens by task, sampling and model.

        windows_each: how many windows of the model's length one window is generated in.
        """
        config, run = self.run.config, self.run
        return {
            "window_samples": self.n_samples,
            "windows_each": len(window_starts(self.n_samples, config.length, config.rate_hz)),
            "rate_hz": config.rate_hz,
            "screens": self.screens,
            "sampling": self.settings,
            "model": {
                "recipe": config.recipe.name,
                "training_seed": config.seed,
                "weights": run.weights,
                "weights_sha256": run.weights_sha256,
                "epoch": run.epoch,
                "validation_loss": run.validation_loss,
                "trained_on": dict(config.data),
            },
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

        While one batch is generated, noise and conditions of the next are drawn.
        """
        starts = range(first, stop, self.batch_size)
        spans = [(start, min(start + self.batch_size, stop)) for start in starts]
        conditioning = self.run.config.conditioning
        with ThreadPoolExecutor(max_workers=1) as aside:

            def draw(begin: int, end: int) -> Future[tuple[WindowNoise, Draw]]:
                # Sobol points are computed in parallel, which would slow down the sampler's thread.
                uniforms = conditioning.uniforms(begin, end, seed)
                return aside.submit(
                    lambda: (
                        self._noise(begin, end, seed),
                        conditioning.draw_by(uniforms, self.task, self.style),
                    )
                )

            coming = [draw(a, b) for a, b in spans[:1]]
            for number, (start, end) in enumerate(spans, start=1):
                noise, drawn = coming.pop().result()
                coming = [draw(a, b) for a, b in spans[number : number + 1]]
                yield self._gaze(noise, drawn, (start, end), seed, progress)

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

    def _gaze(
        self, noise: WindowNoise, drawn: Draw, span: tuple[int, int], seed: int, progress: Progress
    ) -> Floats:
        """Gaze (window, 2, time) of a batch of windows, from noise and draw of the first 8 s."""
        config, (first, stop) = self.run.config, span
        length, rate_hz = config.length, config.rate_hz
        starts = window_starts(self.n_samples, length, rate_hz)
        total = max(self.n_samples, length)
        given = self._given(drawn, span, total, seed)
        is_placed = self.constraints is not None and "targets" not in given
        fixed = given.pop("known", None)
        gaze = np.empty((stop - first, 2, total), dtype=np.float32)
        here, uniforms = drawn, np.empty_like(gaze)
        for number, start in enumerate(starts):
            if number:
                noise = self._noise(first, stop, seed_for(seed, _CONTINUED, number))
            if len(starts) > 1:
                elapsed_s = None if is_placed else start / rate_hz
                here = config.conditioning.of_part(drawn, number, elapsed_s, first, seed)
            within = slice(start, start + length)
            others = {name: array[..., within] for name, array in given.items()}
            known = None if fixed is None else fixed[..., within]
            if number:
                stop_before, targets = starts[number - 1] + length - start, others.get("targets")
                known = continued(gaze[..., within], known, stop_before, rate_hz, targets)

            def counted(share: float, number: int = number) -> None:
                progress(first + (stop - first) * (number + share) / len(starts))

            made = self._batch(noise, here, known, others, counted)
            if number and known is not None and self.style is None:
                made = at_noise_level(made, known, noise_level(gaze[..., :length]), rate_hz)
            gaze[..., within] = made if known is None else joined(made, known, rate_hz)
            # At the scale of a resolution gaze no longer depends on its initial noise.
            uniforms[..., within] = torch.special.ndtr(noise.first[:, :2]).cpu().numpy()
        return self._quantized(gaze, drawn, uniforms)[..., : self.n_samples]

    def _given(
        self, drawn: Draw, span: tuple[int, int], n_samples: int, seed: int
    ) -> dict[str, Floats]:
        """The constraints (window, 2, time) by name; long gaze has a drawn course without any."""
        config, (first, stop) = self.run.config, span
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

    def _quantized(self, gaze: Floats, drawn: Draw, uniforms: Floats) -> Floats:
        """In the resolution that is drawn; gaze that keeps to known samples has theirs."""
        is_given = self.constraints is not None and self.constraints.known is not None
        if is_given or drawn.steps is None or drawn.grids is None:
            return gaze
        return quantize(gaze, drawn.steps, drawn.grids, uniforms)

    def _noise(self, first: int, stop: int, seed: int) -> WindowNoise:
        config = self.run.config
        shape = (config.recipe.gaze_channels, config.length)
        device = next(self.run.network.parameters()).device
        return WindowNoise(seed, range(first, stop), shape, device)

    @torch.inference_mode()
    def _batch(
        self,
        noise: WindowNoise,
        drawn: Draw,
        known: Floats | None,
        given: Mapping[str, Floats],
        progress: Progress,
    ) -> Floats:
        """Windows of the model's length, (window, 2, time); given: other constraints by name."""
        config = self.run.config
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
            gaze = representation.decode(x, is_known)
        else:
            gaze = representation.decode(x).float()
        generated: Floats = gaze.cpu().numpy()
        return generated

    def _ddpm(self, noise: WindowNoise) -> Iterator[Tensor]:
        recipe, settings = self.run.config.recipe, self.settings
        return sample(
            self.run.network,
            recipe.schedule().to(noise.device),
            noise,
            recipe.objective,
            settings["sampler"],
            settings["steps"],
            settings["eta"],
        )

    @cached_property
    def network(self) -> UNet:
        """The run's network, or a bfloat16 copy."""
        network = self.run.network
        return copy.deepcopy(network).bfloat16() if self.bf16 else network

    def _edm(
        self, noise: WindowNoise, condition: Condition, sequences: Sequences
    ) -> Iterator[Tensor]:
        settings, conditioning = self.settings, self.run.config.conditioning
        condition = tuple(part.to(noise.device) for part in condition)
        is_guided = self.guidance != 1 and bool(condition)
        return sample_edm(
            self.network,
            self.run.config.recipe,
            noise,
            condition,
            sequences.to(noise.device),
            solve_of(self.run.config, settings["sampler"], settings["steps"]),
            Guidance(self.guidance, conditioning.without_task(condition)) if is_guided else None,
        )
