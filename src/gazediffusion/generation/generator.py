"""Generators: anything that makes windows from a number and a seed.

Window k of a seed is always the same window, whatever the batch size: models and baselines give
windows in pieces, so that a set larger than memory can be written as it is made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning.manner import NAMES
from gazediffusion.conditioning.quantization import rounded
from gazediffusion.data.windows import Windows
from gazediffusion.device import has_fast_bf16, require_precision
from gazediffusion.diffusion import solvers
from gazediffusion.diffusion.ddim import WindowNoise, ddim_times, sample
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.geometry import Screen
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.recipes import conditions
from gazediffusion.models.unet import UNet
from gazediffusion.seeds import evenly_spread, fallen_on, seed_for

Progress = Callable[[float], None]
SamplerName = Literal["auto", "ddim", "ancestral", "multistep", "unipc", "heun"]
_SAMPLERS = {"ddpm": ("ddim", "ancestral"), "edm": ("unipc", "multistep", "heun")}
# Sampler and steps along the trade of speed for fidelity.
QUALITIES: dict[str, dict[str, tuple[SamplerName, int]]] = {
    "ddpm": {"fast": ("ddim", 25), "default": ("ddim", 100), "best": ("ddim", 200)},
    "edm": {"fast": ("multistep", 10), "default": ("unipc", 15), "best": ("unipc", 40)},
}
_PLACES = 3  # names the stream of random numbers that tasks and manners are drawn from


def usual_batch(run: Run) -> int:
    """How many windows at a time suit the device a run is on.

    On a GPU so many that running a kernel takes longer than launching it: 256 for the paper's
    network, 1,024 for the joint recipe's, whose tensors are a quarter of that size.
    """
    network = run.config.recipe.network
    is_gpu = next(run.network.parameters()).device.type == "cuda"
    return max(16, 256 * 128 * network.patch // network.widths[0]) if is_gpu else 16


class Generator(Protocol):
    """Makes windows of normalized gaze."""

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = ...
    ) -> Iterator[NDArray[np.float32]]:
        """Windows first..stop-1 of this seed, in pieces (window, 2, time)."""
        ...

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed."""
        ...


@dataclass(frozen=True)
class _Begun:
    """What a batch is made from: noise, what the network is told, and each window's resolution."""

    noise: WindowNoise
    told: Tensor | None = None
    steps: Tensor = field(default_factory=lambda: torch.zeros(0))
    grids: Tensor = field(default_factory=lambda: torch.zeros(0))


@dataclass(frozen=True)
class DiffusionGenerator:
    """A trained run with its sampler. `batch_size` changes speed, never the windows.

    sampler: ddim or ancestral for the paper's recipes, unipc, multistep or heun for the joint one.
    steps, eta: None is the recipe's own; eta is of ddim alone.
    task: what the person is doing, for a model that was told; None draws each window's task with
        the shares of the training windows.
    guidance: above 1 exaggerates what the task changes, at twice the cost.
    bf16: arithmetic of half the width, for speed; of the joint recipe alone.
    """

    run: Run
    sampler: SamplerName = "auto"
    steps: int | None = None
    eta: float | None = None
    batch_size: int = 16
    task: str | None = None
    guidance: float = 1.0
    bf16: bool = False

    def __post_init__(self) -> None:
        config, recipe = self.run.config, self.run.config.recipe
        allowed = _SAMPLERS[recipe.process]
        if self.sampler not in ("auto", *allowed):
            names = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
            raise GazeError(f"--sampler must be {names} for this model, not {self.sampler!r}")
        if self.batch_size < 1:
            raise GazeError(f"--batch-size must be 1 or more, not {self.batch_size}")
        if self.task is not None and self.task not in config.tasks:
            known = list(config.tasks)
            raise GazeError(
                f"the model knows no task {self.task!r}",
                remedy=suggestion(self.task, known) if known else "it knows no tasks at all",
            )
        if not 0 <= self.guidance <= 20:
            raise GazeError(f"--guidance must lie between 0 and 20, not {self.guidance:g}")
        if recipe.process == "ddpm":
            if self.bf16:
                raise GazeError("--precision bf16 is for the joint recipe alone")
            if not 0 <= self.settings["eta"] <= 1:
                raise GazeError(f"--eta must lie between 0 and 1, not {self.settings['eta']:g}")
            ddim_times(self.settings["steps"], recipe.diffusion_steps)
        else:
            if self.eta is not None:
                raise GazeError("--eta is for the paper's recipes alone")
            recipe.edm.grid(self.settings["steps"])

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
        """A generator that is fast, best, or the recipe's default.

        precision: fp32, bf16, or auto, which is bf16 for the joint recipe where that is faster.
        sampler, steps: go before those of the quality. batch_size: None is what suits the device.
        """
        require_precision(precision)
        recipe = run.config.recipe
        device = next(run.network.parameters()).device
        known = QUALITIES[recipe.process]
        if quality not in known:
            raise GazeError(f"no quality {quality!r}", remedy=suggestion(quality, list(known)))
        usual, n_steps = known[quality]
        if quality == "default":
            n_steps = recipe.sampling_steps
        suits = precision == "auto" and recipe.process == "edm" and has_fast_bf16(device)
        return cls(
            run,
            sampler=usual if sampler == "auto" else sampler,
            steps=min(n_steps, recipe.most_steps) if steps is None else steps,
            bf16=precision == "bf16" or suits,
            batch_size=usual_batch(run) if batch_size is None else batch_size,
            **settings,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Sampler and its settings in force; ancestral sampling takes every step."""
        recipe = self.run.config.recipe
        sampler = _SAMPLERS[recipe.process][0] if self.sampler == "auto" else self.sampler
        steps = recipe.sampling_steps if self.steps is None else self.steps
        if recipe.process == "edm":
            told = {"task": self.task, "guidance": self.guidance}
            return {"sampler": sampler, "steps": steps, "bf16": self.bf16, **told}
        if sampler == "ancestral":
            return {"sampler": "ancestral", "steps": recipe.diffusion_steps, "eta": 1.0}
        return {
            "sampler": sampler,
            "steps": steps,
            "eta": recipe.eta if self.eta is None else self.eta,
        }

    def describe(self) -> dict[str, Any]:
        """What a card says: length and rate of windows, screens by task, sampling and model."""
        config, run = self.run.config, self.run
        screens = dict(zip(config.tasks, config.task_screens, strict=True))
        if self.task is not None:
            screens = {self.task: screens[self.task]}
        return {
            "window_samples": config.length,
            "rate_hz": config.rate_hz,
            "screens": screens or {"synthetic": config.screen},
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
    def screen(self) -> Screen:
        """The screen that the task was recorded on, or the model's."""
        config = self.run.config
        if self.task is None:
            return config.screen
        return config.task_screens[config.tasks.index(self.task)]

    def tasks(self, first: int, stop: int, seed: int) -> list[str | None]:
        """The tasks of windows first..stop-1; None each for a model that knows none."""
        tasks = self.run.config.tasks
        if not tasks:
            return [None] * (stop - first)
        return [tasks[number] for number in self._task_numbers(self.places(first, stop, seed))]

    def places(self, first: int, stop: int, seed: int) -> NDArray[np.float64]:
        """What tasks and manners are drawn by, (window, 2 + number), between 0 and 1."""
        return evenly_spread(seed_for(seed, _PLACES), first, stop, 2 + len(NAMES))

    def _task_numbers(self, places: NDArray[np.float64]) -> list[int]:
        """Which task each window has, of a model that knows tasks."""
        config = self.run.config
        if self.task is not None:
            return [config.tasks.index(self.task)] * len(places)
        numbers, _ = fallen_on(np.array(config.task_shares), places[:, 0])
        return [int(number) for number in numbers]

    def pieces(
        self, first: int, stop: int, seed: int, progress: Progress = lambda done: None
    ) -> Iterator[NDArray[np.float32]]:
        """Windows in batches; `progress` hears how many windows are done, in fractions.

        While one batch is made, noise and conditions of the next are drawn.
        """
        starts = range(first, stop, self.batch_size)
        spans = [(start, min(start + self.batch_size, stop)) for start in starts]
        with ThreadPoolExecutor(max_workers=1) as aside:

            def begin(begin_at: int, end_at: int) -> Future[_Begun]:
                places = self.places(begin_at, end_at, seed)
                return aside.submit(self._begun, begin_at, end_at, seed, places)

            coming = [begin(a, b) for a, b in spans[:1]]
            for number, (start, end) in enumerate(spans, start=1):
                begun = coming.pop().result()
                coming = [begin(a, b) for a, b in spans[number : number + 1]]
                yield self._batch(begun, start, end, progress)

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed, in memory."""
        if n < 1:
            raise GazeError(f"-n must be 1 or more, not {n}")
        return self.as_windows(np.concatenate(list(self.pieces(0, n, seed))), seed)

    def as_windows(self, gaze: NDArray[np.float32], seed: int, first: int = 0) -> Windows:
        """Generated gaze (window, 2, time) of windows first.. of a seed, each with its origin.

        Every window has the task, the screen and the resolution that it was generated for.
        """
        config = self.run.config
        tasks: list[str] | str = "synthetic"
        screens: list[Screen] | Screen = config.screen
        steps = None
        if config.tasks:
            places = self.places(first, first + len(gaze), seed)
            numbers = self._task_numbers(places)
            tasks = [config.tasks[number] for number in numbers]
            screens = [config.task_screens[number] for number in numbers]
            if config.manners is not None:
                _, kinds = config.manners.drawn(numbers, places[:, 1:])
                pairs = zip(numbers, kinds, strict=True)
                steps = np.array([config.manners.tasks[t][k].step for t, k in pairs])
        return Windows.from_array(
            gaze,
            config.rate_hz,
            screens,
            tasks=tasks,
            protocol=config.recipe.protocol,
            steps=steps,
            provenance={"seed": seed, "weights_sha256": self.run.weights_sha256, **self.settings},
        )

    def _begun(self, first: int, stop: int, seed: int, places: NDArray[np.float64]) -> _Begun:
        """What windows first..stop-1 are made from."""
        config = self.run.config
        shape = (config.recipe.network.channels, config.length)
        device = next(self.run.network.parameters()).device
        noise = WindowNoise(seed, range(first, stop), shape, device)
        if not config.tasks:
            return _Begun(noise)
        tasks = self._task_numbers(places)
        one_hot = functional.one_hot(torch.tensor(tasks), len(config.tasks)).float()
        if config.manners is None:
            return _Begun(noise, conditions(one_hot))
        wanted, numbers = config.manners.drawn(tasks, places[:, 1:])
        heard = config.manners.heard(tasks, numbers, wanted)
        kinds = [config.manners.tasks[t][k] for t, k in zip(tasks, numbers, strict=True)]
        return _Begun(
            noise,
            conditions(one_hot, manner=heard),
            torch.tensor([kind.step for kind in kinds]),
            torch.tensor([kind.grid for kind in kinds]),
        )

    @torch.inference_mode()
    def _batch(
        self, begun: _Begun, first: int, stop: int, progress: Progress
    ) -> NDArray[np.float32]:
        config, noise = self.run.config, begun.noise
        is_paper = config.recipe.process == "ddpm"
        steps = self._ddpm(noise) if is_paper else self._edm(noise, begun.told)
        x = torch.empty(0)
        for number, after in enumerate(steps, start=1):
            x = after
            progress(first + (stop - first) * number / self.settings["steps"])
        gaze = config.representation.decode(x).float()
        if begun.steps.any():
            # The noise that positions began with has long been forgotten at this scale.
            places = torch.special.ndtr(noise.first[:, :2])
            gaze = rounded(gaze, begun.steps, begun.grids, places)
        found: NDArray[np.float32] = gaze.cpu().numpy()
        return found

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
    def _network(self) -> UNet:
        """The run's network, or a copy of half the width."""
        network = self.run.network
        return copy.deepcopy(network).bfloat16() if self.bf16 else network

    def _edm(self, noise: WindowNoise, told: Tensor | None) -> Iterator[Tensor]:
        process, settings, network = self.run.config.recipe.edm, self.settings, self._network
        levels: list[float] = process.grid(settings["steps"]).tolist()
        n_tasks = len(self.run.config.tasks)
        told = None if told is None else told.to(noise.device)

        def denoise(x: Tensor, sigma: float) -> Tensor:
            level = torch.full((len(x),), sigma, device=x.device)
            clean = process.denoise(network, x, level, told)
            if self.guidance == 1 or told is None:
                return clean
            no_task = torch.cat([torch.zeros_like(told[:, :n_tasks]), told[:, n_tasks:]], dim=1)
            without = process.denoise(network, x, level, no_task)
            return without + self.guidance * (clean - without)

        x = noise.draw() * levels[0]
        solve = {"unipc": solvers.unipc, "multistep": solvers.multistep, "heun": solvers.heun}
        return solve[settings["sampler"]](denoise, x, levels)
