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
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.diffusion.solvers import combined, step_weights
from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.jobs import Show, never, nothing
from gazediffusion.network.checkpoint import Run, load_run
from gazediffusion.network.distilled import DISTILLED, Distilled, LowRank
from gazediffusion.network.pretrained import copy_run, pretrained_folder
from gazediffusion.network.tensors import load_tensors, save_tensors
from gazediffusion.storage import read_json, write_json
from gazediffusion.training import calibration
from gazediffusion.training.batches import Batches
from gazediffusion.training.fine_tuning import initial_change
from gazediffusion.training.learner import (
    average_weight_at,
    choose_precision,
    move_averages,
    restore_state,
)

WEIGHTS = "best.safetensors"
SETTINGS, STATE, LOG = "distillation.json", "distillation.safetensors", "distillation.jsonl"
_WARMUP = 200  # steps
_LOGGED = 100
_KEPT = ("step", "exp_avg", "exp_avg_sq")  # of the optimizer, for each parameter
_ORDER = 3  # of the teacher's solver


class Slots:
    """The windows in work: those at the first level, those at the second, and so on.

    real, noise, counts, x: (window, channel, time), recorded channels, first noise, where channels
    are generated, and the student's input. condition, sequences: what windows are given.
    """

    NAMES = ("real", "noise", "condition", "sequences", "counts")

    def __init__(self, first: Sequence[tuple[Tensor, ...]], levels: Sequence[float]) -> None:
        self.levels, self.n_new = levels, len(first[0][0])
        tensors = [torch.cat(parts) for parts in zip(*first, strict=True)]
        self.real, self.noise, self.condition, self.sequences, self.counts = tensors
        sigma = self.real.new_tensor(levels).repeat_interleave(self.n_new)
        self.x = self.real + sigma[:, None, None] * self.noise
        # Where the next windows are put before a step, so that a graph finds them.
        self.new = [torch.zeros_like(one[: self.n_new]) for one in tensors]

    def put(self, new: Sequence[Tensor]) -> None:
        """The windows that enter after the step."""
        for held, given in zip(self.new, new, strict=True):
            held.copy_(given)

    @torch.no_grad()
    def advance(self, after: Tensor) -> None:
        """Windows are at the next level with these values; the last leave and new ones enter."""
        n = self.n_new
        first = self.new[self.NAMES.index("noise")] * self.levels[0]
        self.x.copy_(torch.cat([first, after[:-n]]))
        for name, new in zip(self.NAMES, self.new, strict=True):
            held = getattr(self, name)
            held.copy_(torch.cat([new, held[:-n]]))

    def state(self) -> dict[str, Tensor]:
        """All tensors by name."""
        return {name: getattr(self, name) for name in (*self.NAMES, "x")}


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


def distill(
    teacher: Run,
    windows: Windows | Sequence[Windows],
    folder: Path | str,
    settings: Distillation | None = None,
    *,
    initial: Run | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "auto",
    compiled: bool | None = None,
    save_every_s: float = 60.0,
    progress: Show = nothing,
    should_stop: Callable[[], bool] = never,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Distill a model, add the distilled network to a run folder and calibrate it.

    folder: the model's own, or a new one that the model is copied to; it is returned. windows: what
    the teacher was trained on, or recordings of the same tasks; the training participants are
    taken. initial: the model that the teacher was fine-tuned from; the student begins with the
    difference between that model's networks. progress: counts windows, distilling and calibrating.
    When `should_stop` returns True, what was done is saved and StoppedError raised; the same call
    resumes.
    """
    folder, settings = Path(folder), settings or Distillation()
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    require_fit(teacher, parts)
    on = choose_device(device)
    chosen = choose_precision(precision, teacher.config.recipe, on)
    plain = {"settings": settings.to_json(), "seed": seed, "teacher": teacher.weights_sha256}
    if initial is not None and initial.distilled is not None:
        plain["initialised_from"] = initial.distilled.sha256
    _open(teacher, folder, plain)
    total = settings.n_steps
    if not (folder / DISTILLED).is_file():
        fast = on.type == "cuda"
        student = Student(
            teacher,
            [part.train for part in parts],
            settings,
            seed,
            on,
            chosen,
            initial=None if initial is None else initial_change(initial, teacher.config),
            compiled=fast if compiled is None else compiled,
            captured=fast,
        )
        done = _restored(student, folder / STATE)
        say(
            f"resuming the distillation in {shown(folder)} after {done} of {total} steps"
            if done
            else f"distilling into {shown(folder)}: {total} steps"
        )
        _run(student, folder, done, save_every_s, progress, should_stop)
        change = {name: tensor.cpu() for name, tensor in student.average.items()}
        if not all(bool(weight.isfinite().all()) for weight in change.values()):
            raise GazeError(
                "the weights are not finite",
                path=folder,
                remedy="lower `learning_rate`, or set `precision` to fp32",
            )
        conditioning = teacher.config.conditioning.uncalibrated()
        Distilled(teacher.network, change, conditioning, plain, "").save(folder)
        (folder / STATE).unlink(missing_ok=True)
    distilled = load_run(folder).distilled
    if distilled is not None and not distilled.is_calibrated:
        calibration.calibrate(
            folder, on, progress=progress, should_stop=should_stop, say=say, again=False
        )
    return folder


def _open(teacher: Run, folder: Path, plain: Mapping[str, Any]) -> None:
    """Put the teacher into a new folder, or check that the folder has this very distillation."""
    if (folder / SETTINGS).is_file():
        there, here = read_json(folder / SETTINGS), json.loads(json.dumps(plain))
        if changed := [key for key in here if there.get(key) != here[key]]:
            raise GazeError(
                f"the folder has a distillation with other {' and '.join(changed)}",
                path=folder,
                remedy="name a new folder, or give the same settings to resume",
            )
        return
    is_own = folder.resolve() == teacher.path.resolve()
    if is_own and folder.resolve().parent == pretrained_folder():
        raise GazeError("a packaged model stays as it is", path=folder, remedy="name a new folder")
    if not is_own and folder.exists() and any(folder.iterdir()):
        raise GazeError("the folder is not empty and was not written by this command", path=folder)
    if not is_own:
        copy_run(teacher, folder, WEIGHTS, teacher.config)
    elif (folder / DISTILLED).is_file():
        raise GazeError(
            "the model has a distilled network", path=folder, remedy="name a new folder"
        )
    write_json(folder / SETTINGS, plain)


def rate_at(step: int, total: int) -> float:
    """Learning rates over their highest: constant, in the second half down a cosine to 0.02."""
    share = max(0.0, 2 * step / total - 1)
    return min(1.0, (step + 1) / _WARMUP) * max(0.02, 0.5 * (1 + math.cos(math.pi * share)))


def _run(
    student: Student,
    folder: Path,
    done: int,
    save_every_s: float,
    progress: Show,
    should_stop: Callable[[], bool],
) -> None:
    """Steps done.. of all, with the state saved from time to time and at a stop."""
    settings, saved = student.settings, time.monotonic()
    total, n = settings.n_steps, student.n_windows
    for number in range(done + 1, total + 1):
        weight = average_weight_at(number - 1, settings.average)
        student.step(number - 1, rate_at(number - 1, total), weight)
        progress("distilling", number * n, total * n, "")
        if number % _LOGGED == 0:
            line = {"step": number, "errors": [float(f"{e:.4g}") for e in student.errors.tolist()]}
            with open(folder / LOG, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        is_stopped = should_stop()
        if number == total:
            return
        if is_stopped or time.monotonic() - saved > save_every_s:
            save_tensors(folder / STATE, student.state(), {"step": number})
            saved = time.monotonic()
        if is_stopped:
            raise StoppedError(
                f"distillation stopped after {number} of {total} steps; {shown(folder)} is saved"
            )


def require_fit(model: Run, parts: Sequence[Windows]) -> None:
    """Refuse models and windows that cannot be combined."""
    config = model.config
    recipe = config.recipe
    if recipe.process != "edm" or not recipe.is_conditioned:
        raise GazeError(
            f"a model of recipe {recipe.name} cannot be distilled",
            remedy="take one of recipe joint or steerable",
        )
    for part in parts:
        if (part.length, part.rate_hz) != (config.length, config.rate_hz):
            raise GazeError(
                f"the model has windows of {config.length} samples at {config.rate_hz:g} Hz, and "
                f"these have {part.length} at {part.rate_hz:g} Hz",
                remedy=f"prepare them with `rate_hz` {config.rate_hz:g} and `seconds` "
                f"{config.length / config.rate_hz:g}",
            )
        if len(part.train) == 0:
            raise GazeError("there are no training windows in this file")
        for task in part.tasks:
            config.conditioning.task_number(task)


def _restored(student: Student, path: Path) -> int:
    """The steps done, with the state in `path` loaded; 0 where there is none."""
    if not path.is_file():
        return 0
    tensors, header = load_tensors(path)
    try:
        student.load(tensors)
        return int(header["step"])
    except (KeyError, RuntimeError) as error:
        raise GazeError(f"the state of the distillation is damaged ({error})", path=path) from error
