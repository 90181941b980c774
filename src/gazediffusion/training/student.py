"""A student: a network that makes windows in a few evaluations, distilled from a trained one.

The probability flow takes noise to a window by many small steps of the teacher. The student learns
to take one step where the teacher takes several (progressive distillation, Salimans and Ho 2022):
from a window x at one of a few levels, several steps of the teacher lead to x' at the next level,
and the student's estimate D is to be the one with which a single DDIM step leads there,

    x' = r x + (1 - r) D,    r = next level / level

so that the same noise gives the same window as the teacher's, up to an error. Windows go from level
to level by the student's own steps, one a step of training. Recordings are only the source of
conditions and of given samples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.data.windows import Windows
from gazediffusion.diffusion.solvers import combined, step_weights
from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.low_rank import LowRank
from gazediffusion.training.batches import Batches
from gazediffusion.training.optimizers import move_averages, restore_state
from gazediffusion.training.slots import Slots

_KEPT = ("step", "exp_avg", "exp_avg_sq")  # of the optimizer, for each parameter
_ORDER = 3  # of the teacher's solver


@dataclass(frozen=True)
class Distillation:
    """How a student is trained.

    levels: of noise, one evaluation each. n_steps: of training. group: windows at each level in a
    step. n_between: the teacher's steps for one of the student's. rank: of the change of weights.
    average: decay of its average.
    """

    levels: tuple[float, ...] = (13.0, 4.5, 2.2, 1.1, 0.45, 0.12)
    n_steps: int = 6_000
    group: int = 32
    learning_rate: float = 1e-3
    n_between: int = 4
    rank: int = 32
    average: float = 0.998

    def __post_init__(self) -> None:
        if min(self.n_steps, self.group, self.n_between, self.rank) < 1:
            raise GazeError("`steps`, `batch_size`, `n_between` and `rank` must be 1 or more")
        if list(self.levels) != sorted(set(self.levels), reverse=True) or self.levels[-1] <= 0:
            raise GazeError(f"`levels` must decrease and be above 0, not {self.levels}")

    def to_json(self) -> dict[str, Any]:
        """All settings as plain values."""
        return asdict(self)


class Student:
    """The student, its average, the teacher, and the step that updates them.

    parts: windows of the training participants. initial: the change of weights that the student
    begins with (LowRank), none by default. `compiled` and `captured` make a step fast on a GPU and
    change nothing else.
    """

    def __init__(
        self,
        teacher: Run,
        parts: Sequence[Windows],
        settings: Distillation,
        seed: int,
        device: torch.device,
        precision: str,
        *,
        initial: Mapping[str, Tensor] | None = None,
        compiled: bool = False,
        captured: bool = False,
    ) -> None:
        config = teacher.config
        self.settings, self.device, self.precision = settings, device, precision
        self.recipe, self.process = config.recipe, config.recipe.edm
        recipe = replace(config.recipe, batch_size=settings.group)
        self.batches = Batches(parts, replace(config, recipe=recipe), seed, device)
        self.n_windows = self.batches.batch_size * len(settings.levels)
        # A copy: the teacher's own network stays on its device.
        network = copy.deepcopy(teacher.network).float().to(device).eval().requires_grad_(False)
        self.network = copy.deepcopy(network).train().requires_grad_(True)
        self.change = LowRank(self.network, settings.rank, seed, initial)
        self.average = {name: tensor.clone() for name, tensor in self.change.tensors.items()}
        self.teacher = network.bfloat16() if precision == "bf16" else network
        self.rate, self.average_weight = (torch.zeros((), device=device) for _ in range(2))
        on_gpu = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            list(self.change.tensors.values()),
            lr=self.rate,
            betas=(0.9, 0.99),
            weight_decay=0.0,
            capturable=on_gpu,
            fused=on_gpu,
        )
        self._student, self._teacher = (
            torch.compile(one, dynamic=False) if compiled else one
            for one in (self.network, self.teacher)
        )
        self._tabulate()
        first = [self._windows(number) for number in range(len(settings.levels))]
        self.slots = Slots(first, settings.levels)
        self.errors = torch.zeros(len(settings.levels), device=device)
        self._captured = captured
        self._step: Callable[[], None] | None = None

    def _tabulate(self) -> None:
        """Levels and weights of the teacher's solver, for each window (window,)."""
        levels, n = self.settings.levels, self.settings.n_between
        ends = (*levels[1:], self.process.sigma_min)
        fine = [
            [a * (b / a) ** (k / n) for k in range(n + 1)]
            for a, b in zip(levels, ends, strict=True)
        ]

        def table(rows: Sequence[Sequence[float]]) -> Tensor:
            """(row, window) of rows by level."""
            given = torch.tensor(rows, dtype=torch.float32, device=self.device).T
            return given.repeat_interleave(self.batches.batch_size, dim=1)

        def weights(begin: int, newest: int) -> Tensor:
            """(estimate, window, 1, 1), the newest first, in a step between two fine levels."""
            u = [[-math.log(level) for level in one] for one in fine]
            nodes = range(newest, max(newest - _ORDER, -1), -1)
            rows = [step_weights([one[k] for k in nodes], *one[begin : begin + 2]) for one in u]
            return table(rows)[..., None, None]

        self.fine = table(fine)
        self.predicted = [weights(k, k) for k in range(n)]
        self.corrected = [weights(k - 1, k) for k in range(1, n)]
        self.sigma = self.fine[0]
        # The last step is to a window without noise.
        self.ratio = table([[b / a] for a, b in zip(levels, (*levels[1:], 0.0), strict=True)])[0]

    def _windows(self, number: int) -> tuple[Tensor, ...]:
        """Channels, noise, condition, sequences and where errors count, of a training batch."""
        x0, _, eps, *given = self.batches.at(number)
        n = self.recipe.gaze_channels
        x0, eps = x0[:, :n], eps[:, :n]
        if self.recipe.is_steerable:
            condition, sequences, counts = given
            return x0, eps, condition, sequences, counts[:, :n]
        none = x0.new_zeros(len(x0), 0, x0.shape[-1])
        return x0, eps, given[0], none, torch.ones_like(x0)

    def step(self, number: int, rate: float, average_weight: float) -> None:
        """The number-th step, with the learning rate multiplied by `rate`."""
        if self._captured and self._step is None:
            self._step = self._recorded()
        self.rate.fill_(self.settings.learning_rate * rate)
        self.average_weight.fill_(average_weight)
        self.slots.put(self._windows(number + len(self.settings.levels)))
        (self._step or self._update)()

    def _update(self) -> None:
        slots, aim = self.slots, self._aim()
        with torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"
        ):
            clean = self._denoised(self._student, slots.x, self.sigma)
        error = self.process.weighted((clean - aim).square(), self.sigma, slots.counts)
        self.network.zero_grad(set_to_none=True)
        error.mean().backward()  # type: ignore[no-untyped-call]
        self.change.pass_gradients()
        tensors: Any = list(self.change.tensors.values())
        torch.nn.utils.clip_grad_norm_(tensors, self.recipe.gradient_clip, foreach=True)
        self.optimizer.step()
        self.change.set_weights()
        move_averages(self.average.values(), tensors, self.average_weight)
        self.errors.copy_(error.detach().reshape(len(self.errors), -1).mean(dim=1))
        ratio = self.ratio[:, None, None]
        slots.advance(ratio * slots.x + (1 - ratio) * clean.detach())

    @torch.no_grad()
    def _aim(self) -> Tensor:
        """The estimates (window, channel, time) that lead where the teacher's steps lead.

        By its steps x goes from every window's level to the next, at the last level to the
        sampler's least noise, where the teacher's estimate is the window.
        """
        fine, values = self.fine[..., None, None], list[Tensor]()
        x = before = self.slots.x
        for k, weights in enumerate(self.predicted):
            values = [self._denoised(self._teacher, x, self.fine[k]), *values][:_ORDER]
            if k:
                x = combined(before, fine[k] / fine[k - 1], self.corrected[k - 1], values)
            before, x = x, combined(x, fine[k + 1] / fine[k], weights, values)
        ratio = self.ratio[:, None, None]
        aim = (x - ratio * self.slots.x) / (1 - ratio)
        last = slice(-self.slots.n_new, None)
        aim[last] = self._denoised(self._teacher, x[last], self.fine[-1, last], last)
        return torch.where(self.slots.counts > 0, aim, self.slots.real)

    def _denoised(
        self, network: Any, x: Tensor, sigma: Tensor, which: slice = slice(None)
    ) -> Tensor:
        """Estimates (window, channel, time) of some windows, given samples in their places."""
        slots, n = self.slots, self.recipe.network.channels - x.shape[1]
        given = (slots.condition[which], slots.sequences[which])[: 1 + self.recipe.is_steerable]
        clean = self.process.denoise(network, functional.pad(x, (0, 0, 0, n)), sigma, *given)
        gaze = clean[:, : x.shape[1]].float()
        return torch.where(slots.counts[which] > 0, gaze, slots.real[which])

    def _recorded(self) -> Callable[[], None]:
        """The step as a CUDA graph; weights and windows stay as they were."""
        kept = {name: tensor.clone() for name, tensor in self.state().items()}
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._update()
        torch.cuda.current_stream().wait_stream(side)
        self.network.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._update()
        self.load(kept)
        replay: Callable[[], None] = graph.replay
        return replay

    def state(self) -> dict[str, Tensor]:
        """Everything that a step changes, by name; live tensors, not copies."""
        tensors = {f"average.{name}": tensor for name, tensor in self.average.items()}
        for name, tensor in self.change.tensors.items():
            tensors[f"change.{name}"] = tensor
            for key, value in self.optimizer.state.get(tensor, {}).items():
                tensors[f"{key}.{name}"] = value
        return tensors | {f"slots.{name}": tensor for name, tensor in self.slots.state().items()}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `state` gave, in place, so that a captured graph sees it."""
        for name, tensor in self.change.tensors.items():
            self.average[name].copy_(tensors[f"average.{name}"])
            tensor.copy_(tensors[f"change.{name}"])
            saved = {key: tensors.get(f"{key}.{name}") for key in _KEPT}
            restore_state(self.optimizer.state[tensor], saved, self.device)
        self.change.set_weights()
        for name, tensor in self.slots.state().items():
            tensor.copy_(tensors[f"slots.{name}"])
