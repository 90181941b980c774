"""Conditioning: everything a model is conditioned on, as one object with a schema of named parts.

A condition is a tuple of tensors that a network takes after its input and noise level; it is empty
for an unconditional model. Its first tensor is a vector (batch, width) of the parts in order:

    task               one-hot, zeros where it is dropped out
    augmentation       which augmentations a training window had; zeros in generation
    statistics         standardized summary statistics, zeros where they are dropped out
    statistics_known   1 where the statistics are given
    elapsed            how long the recording has lasted (course.py), zeros where it is dropped out

Only this module knows the order and the offsets. The schema is stored with the model, so that a
model with other tasks or statistics loads as well. A steerable model takes a second tensor, the
channels of `Sequences`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gazediffusion.conditioning import response
from gazediffusion.conditioning.course import Course
from gazediffusion.conditioning.prior import Prior
from gazediffusion.conditioning.statistics import flipped, measure
from gazediffusion.conditioning.style import Style
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.device import sent
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, categorical_draw, sobol_points

# The tensors that a network takes after its input and noise level.
Condition = tuple[Tensor, ...]
Floats = NDArray[np.float64]
AUGMENTATIONS = ("flip_x", "flip_y", "reversal")
# Probability of dropping out the statistics of windows that are steered by sequences.
_STEERED_DROPOUT = 0.5
_ELAPSED_DROPOUT = 0.5  # windows of 8 s are generated without it
_PLAIN_WIDTH = 25  # Sobol dimensions of windows without statistics
# The channels of each part: values, then the mask.
SEQUENCES = {
    "known": ("x", "y", "v_x", "v_y", "mask"),
    "fixation": ("x", "y", "mask"),
    "target": ("x", "y", "mask"),
}
N_CHANNELS = sum(len(names) for names in SEQUENCES.values())


@dataclass(frozen=True, eq=False)
class Conditions:
    """What some windows are generated from.

    tasks, components: of each window, empty for an unconditional model. targets: (window,
    statistic), standardized, where there are statistics. steps, grids: (window, 2) resolution of
    the recordings they are drawn after, normalized; empty where there is none. style: whose
    statistics they have (style.py).
    """

    condition: Condition = ()
    tasks: tuple[int, ...] = ()
    components: tuple[int, ...] = ()
    targets: Tensor | None = None
    steps: Floats | None = None
    grids: Floats | None = None
    style: Style | None = None

    @classmethod
    def joined(cls, parts: Sequence[Conditions]) -> Conditions:
        """Draws of one model as that of one batch; they have no style."""

        def whole(values: list[Any]) -> Any:
            if isinstance(values[0], Tensor):
                return torch.cat(values)
            return np.concatenate(values) if isinstance(values[0], np.ndarray) else None

        found = {one.name: [getattr(part, one.name) for part in parts] for one in fields(cls)}
        return cls(
            condition=tuple(map(torch.cat, zip(*found.pop("condition"), strict=True))),
            tasks=tuple(chain(*found.pop("tasks"))),
            components=tuple(chain(*found.pop("components"))),
            **{name: whole(values) for name, values in found.items()},
        )


@dataclass(frozen=True, eq=False)
class Sequences:
    """What some windows are steered by, NaN where nothing is given; None steers by nothing.

    known: (batch, 4, time), channels of the joint representation. fixation, target: (batch, 2,
    time), positions in its scale.
    """

    known: Tensor | None = None
    fixation: Tensor | None = None
    target: Tensor | None = None

    def to(self, device: torch.device) -> Sequences:
        """The same on another device."""
        every = (getattr(self, part.name) for part in fields(self))
        return Sequences(*(None if one is None else one.to(device) for one in every))

    def channels(self) -> Tensor | None:
        """(batch, N_CHANNELS, time) float32; None if nothing is given."""
        given = [
            tensor for part in fields(self) if (tensor := getattr(self, part.name)) is not None
        ]
        if not given:
            return None
        batch, _, time = given[0].shape
        parts = []
        for name, entries in SEQUENCES.items():
            values = getattr(self, name)
            if values is None:
                parts.append(given[0].new_zeros(batch, len(entries), time))
                continue
            # A sample is given where its position is; a velocity also needs the sample before.
            mask = values[:, :1].isfinite().to(values)
            parts += [values.nan_to_num(0.0), mask]
        return torch.cat(parts, dim=1).float()


def known_channels(channels: Tensor, is_known: Tensor) -> Tensor:
    """Channels (batch, 4, time) of a joint representation, NaN where they do not follow.

    is_known (batch, time): whose samples are given. A velocity follows from a sample and the one
    before; the first of a window is zero by definition.
    """
    before = torch.cat([is_known[:, :1], is_known[:, :-1]], dim=1)
    mask = torch.stack([is_known, is_known, is_known & before, is_known & before], dim=1)
    return channels.masked_fill(~mask, torch.nan)


@dataclass(frozen=True, eq=False)
class Conditioning:
    """The parts of a model's condition, their distribution and their calibration.

    tasks: in the order of the one-hot part; task_shares: of the training windows; task_screens: on
    which each was recorded. augmentations: the labels. prior: of the summary statistics, None for
    a model without them. sequences: the parts of the sequence condition, none for a model that
    cannot be steered. course: what long gaze depends on. All are empty for an unconditional model.
    """

    tasks: tuple[str, ...] = ()
    task_shares: tuple[float, ...] = ()
    task_screens: tuple[Screen, ...] = ()
    augmentations: tuple[str, ...] = ()
    prior: Prior | None = None
    sequences: tuple[str, ...] = ()
    course: Course = field(default_factory=Course)

    @classmethod
    def fit(
        cls, parts: Sequence[Windows], statistics: Sequence[str] = (), is_steerable: bool = False
    ) -> Conditioning:
        """From the training participants of all the windows files together.

        statistics: names of the summary statistics, none by default.
        """
        tasks = tuple(dict.fromkeys(task for part in parts for task in part.tasks))
        n_windows = dict.fromkeys(tasks, 0)
        screens: dict[str, Screen] = {}
        for part in parts:
            for number, task in enumerate(part.tasks):
                n_windows[task] += int((part.train.task == number).sum())
                of_task = part.segment_screen[part.segment_task == number]
                used = {part.screens[k] for k in of_task.tolist()}
                if used and used != {screens.setdefault(task, next(iter(used)))}:
                    raise GazeError(
                        f"task {task!r} was recorded on two screens",
                        remedy="give the tasks different names with `task_names` of prepare",
                    )
        total = sum(n_windows.values())
        return cls(
            tasks=tasks,
            task_shares=tuple(n_windows[task] / total for task in tasks),
            task_screens=tuple(screens[task] for task in tasks),
            augmentations=AUGMENTATIONS,
            prior=Prior.fit(parts, tasks, statistics) if statistics else None,
            sequences=tuple(SEQUENCES) if is_steerable else (),
            course=Course.fit(parts, tasks) if is_steerable else Course(),
        )

    @property
    def schema(self) -> dict[str, tuple[str, ...]]:
        """The parts of the condition vector in order: name -> the names of its entries."""
        parts = {"task": self.tasks, "augmentation": self.augmentations}
        if self.prior is not None:
            parts |= {"statistics": self.prior.names, "statistics_known": ("known",)}
        if self.course.knots_s:
            parts |= {"elapsed": self.course.names}
        return parts if self.tasks else {}

    @property
    def width(self) -> int:
        """Length of the condition vector; 0 for an unconditional model."""
        return sum(len(names) for names in self.schema.values())

    def columns(self, part: str) -> slice:
        """Where a part lies in the condition vector."""
        first = 0
        for name, entries in self.schema.items():
            if name == part:
                return slice(first, first + len(entries))
            first += len(entries)
        raise KeyError(part)

    def encode(
        self,
        task: Tensor,
        augmentation: Tensor | None = None,
        statistics: Tensor | None = None,
        is_known: Tensor | None = None,
        elapsed_s: Tensor | None = None,
    ) -> Condition:
        """The condition of windows.

        task (batch, task): one-hot or zeros. augmentation (batch, label): none if left out.
        statistics (batch, statistic), standardized, none if left out; is_known (batch, 1): of which
        windows they are given, all if left out. elapsed_s (batch,): NaN where it is not given.
        """
        if not self.tasks:
            return ()
        labels = task.new_zeros(len(task), len(self.augmentations))
        parts = [task, labels if augmentation is None else augmentation.to(task)]
        if self.prior is not None:
            if statistics is None:
                statistics = task.new_zeros(len(task), len(self.prior.names))
                is_known = task.new_zeros(len(task), 1)
            is_known = task.new_ones(len(task), 1) if is_known is None else is_known.to(task)
            parts += [statistics * is_known, is_known]
        if self.course.knots_s:
            parts.append(self.course.encode(elapsed_s, task))
        return (torch.cat(parts, dim=1),)

    def one_hot(self, tasks: Tensor) -> Tensor:
        """Task numbers (batch,) as float columns (batch, task)."""
        return functional.one_hot(tasks, len(self.tasks)).float()

    def task_numbers(self, parts: Sequence[Windows]) -> NDArray[np.int64]:
        """Each window's task as a number of this model; zeros for an unconditional one."""
        if not self.tasks:
            return np.zeros(sum(len(part) for part in parts), dtype=np.int64)
        numbers = [
            np.array([self.tasks.index(task) for task in part.tasks])[part.task] for part in parts
        ]
        return np.concatenate(numbers).astype(np.int64)

    def measure(self, gaze: Tensor, rate_hz: float) -> Tensor | None:
        """Raw statistics (batch, statistic) of gaze (batch, 2, time); None without a prior."""
        return None if self.prior is None else measure(gaze, rate_hz, self.prior.names)

    def of_windows(
        self, tasks: Tensor, statistics: Tensor | None, elapsed_s: Tensor | None = None
    ) -> Condition:
        """The condition of recorded windows.

        tasks (batch,); raw statistics (batch, statistic); elapsed_s (batch,).
        """
        if not self.tasks:
            return ()
        standardized = None
        if self.prior is not None and statistics is not None:
            standardized = self.prior.standardized(statistics)
        return self.encode(self.one_hot(tasks), statistics=standardized, elapsed_s=elapsed_s)

    def of_training_windows(
        self,
        tasks: Tensor,
        statistics: Tensor | None,
        augmentation: Tensor,
        dropout: float,
        uniform: Callable[..., Tensor],
        is_steered: Tensor | None = None,
        elapsed_s: Tensor | None = None,
    ) -> Condition:
        """The condition of augmented windows, with its parts dropped out independently.

        tasks (batch,); raw statistics (batch, statistic) before augmentation; augmentation (batch,
        label) bool; uniform(*shape) draws the random numbers. is_steered (batch, 1) bool: windows
        that are given sequences, which decide some statistics, are more often given no others.
        elapsed_s (batch,).
        """
        if not self.tasks:
            return ()
        shape = (len(tasks), 1)
        task = self.one_hot(tasks) * (uniform(*shape) >= dropout)
        if self.course.knots_s and elapsed_s is not None:
            is_dropped = uniform(*shape)[:, 0] < _ELAPSED_DROPOUT
            elapsed_s = elapsed_s.masked_fill(is_dropped, torch.nan)
        if self.prior is None or statistics is None:
            return self.encode(task, augmentation, elapsed_s=elapsed_s)
        is_dropped = uniform(*shape) < dropout
        if is_steered is not None:
            is_dropped |= is_steered & (uniform(*shape) < _STEERED_DROPOUT)
        is_known = ~is_dropped
        turned = flipped(statistics, self.prior.names, augmentation[:, :2])
        return self.encode(task, augmentation, self.prior.standardized(turned), is_known, elapsed_s)

    def without_task(self, condition: Condition) -> Condition:
        """The same condition with the task dropped out."""
        return self._without(condition, "task")

    def without_statistics(self, condition: Condition) -> Condition:
        """The same condition with the summary statistics dropped out."""
        if self.prior is None:
            return condition
        return self._without(condition, "statistics", "statistics_known")

    def _without(self, condition: Condition, *parts: str) -> Condition:
        vector, *rest = condition
        dropped = vector.clone()
        for part in parts:
            dropped[:, self.columns(part)] = 0
        return (dropped, *rest)

    def task_number(self, task: str) -> int:
        """The number of a task; one that the model does not have is refused."""
        if task not in self.tasks:
            known = list(self.tasks)
            raise GazeError(
                f"the model has no task {task!r}",
                remedy=suggestion(task, known) if known else "it is not conditioned on tasks",
            )
        return self.tasks.index(task)

    def screen_of(self, task: str) -> Screen:
        """The screen of a task; one that the model does not have is refused."""
        return self.task_screens[self.task_number(task)]

    def draw(
        self,
        first: int,
        stop: int,
        seed: int,
        task: str | None = None,
        style: Style | None = None,
    ) -> Conditions:
        """What windows first..stop-1 of a seed are generated from.

        task: of all of them; None draws each window's with the shares of the training windows.
        style: whose statistics they have, of that task. Window k depends on the seed and k alone.
        """
        return self.draw_by(self.uniforms(first, stop, seed), task, style)

    def uniforms(self, first: int, stop: int, seed: int) -> Floats:
        """The Sobol points of windows first..stop-1 of a seed, (window, dimension)."""
        if not self.tasks:
            return np.empty((stop - first, 0))
        width = _PLAIN_WIDTH if self.prior is None else len(self.prior.names)
        return sobol_points(first, stop, 2 + width, seed, Stream.CONDITION)

    def draw_by(
        self,
        uniforms: Floats,
        task: str | None = None,
        style: Style | None = None,
    ) -> Conditions:
        """What windows are generated from, by inverse transform of their Sobol points."""
        if not self.tasks:
            return Conditions()
        if task is not None:
            tasks = [self.task_number(task)] * len(uniforms)
        else:
            numbers, _ = categorical_draw(np.array(self.task_shares), uniforms[:, 0])
            tasks = [int(number) for number in numbers]
        if self.prior is None:
            return Conditions(self.encode(self.one_hot(torch.tensor(tasks))), tuple(tasks))
        if style is None:
            targets, components = self.prior.draw(tasks, uniforms[:, 1:])
        else:
            targets, components = style.draw(self.prior, uniforms[:, 2:])
        chosen = self.prior.of(tasks, components)
        drawn = Conditions(
            tasks=tuple(tasks),
            components=tuple(components),
            steps=np.array([one.step for one in chosen]),
            grids=np.array([one.grid for one in chosen]),
            style=style,
        )
        return self._with_targets(drawn, targets)

    def of_part(
        self, drawn: Conditions, number: int, elapsed_s: float | None, first: int, seed: int
    ) -> Conditions:
        """What the number-th 8 s of long windows are generated from, beginning with 0.

        drawn: of windows first.. of the seed. elapsed_s: since the beginning; None leaves it open.
        Later parts leave the statistics to the gaze before, since others would show at the joint;
        with a style they are new ones of the participant. A part with the elapsed time has no
        statistics either: they are drawn for windows of any time.
        """
        if self.prior is None or drawn.targets is None or drawn.style is None:
            if self.course.knots_s and elapsed_s is not None:
                times = self.course.elapsed_of(self.names_of(drawn), elapsed_s)
                one_hot = self.one_hot(torch.tensor(drawn.tasks, dtype=torch.long))
                return replace(drawn, condition=self.encode(one_hot, elapsed_s=times))
            if number == 0:
                return drawn
            return replace(drawn, condition=self.without_statistics(drawn.condition))
        if number == 0:
            return drawn
        targets = drawn.targets.clone()
        for k, (task, component) in enumerate(zip(drawn.tasks, drawn.components, strict=True)):
            own = Style.of_targets(self.prior, task, component, targets[k].double().numpy())
            style = drawn.style.joined(own)
            targets[k] = style.draw_further(self.prior, seed, first + k, number)
        return self._with_targets(drawn, targets)

    def names_of(self, drawn: Conditions) -> list[str]:
        """The task of each window by name; none for an unconditional model."""
        return [self.tasks[number] for number in drawn.tasks]

    def _with_targets(self, drawn: Conditions, targets: Tensor) -> Conditions:
        """The same draw with other target statistics."""
        assert self.prior is not None
        statistics = self.prior.calibrated_condition(drawn.tasks, drawn.components, targets)
        one_hot = self.one_hot(torch.tensor(drawn.tasks, dtype=torch.long))
        condition = self.encode(one_hot, statistics=statistics)
        return replace(drawn, condition=condition, targets=targets)

    @property
    def is_calibrated(self) -> bool:
        """Whether nothing is left to calibrate: calibrated, or without statistics."""
        return self.prior is None or self.prior.is_calibrated

    def uncalibrated(self) -> Conditioning:
        """The same without calibration."""
        return replace(self, prior=None if self.prior is None else self.prior.uncalibrated())

    def calibrate(self, draws: Sequence[Conditions], generated: Sequence[Tensor]) -> Conditioning:
        """The same, calibrated by generated raw statistics (window, statistic) of each task."""
        assert self.prior is not None
        prior, targets = self.prior, [one.targets for one in draws if one.targets is not None]
        components = [one.components for one in draws]
        measured = [prior.standardized(one) for one in generated]
        return replace(self, prior=response.calibrated(prior, components, targets, measured))

    def initialised_from(self, source: Conditioning) -> Conditioning:
        """This conditioning on the scales of a model that a new run is initialised from."""
        if self.prior is None or source.prior is None:
            return replace(self, prior=None)
        return replace(self, prior=self.prior.on_scales_of(source.prior))

    def to_json(self) -> dict[str, Any]:
        """The schema and the tasks as plain values; the prior's tables are tensors."""
        return {
            "schema": {part: list(names) for part, names in self.schema.items()},
            **({"sequences": list(self.sequences)} if self.sequences else {}),
            "task_shares": list(self.task_shares),
            "task_screens": [asdict(screen) for screen in self.task_screens],
            **({"course": self.course.to_json()} if self.sequences else {}),
        }

    def to_tensors(self) -> dict[str, Tensor]:
        """The prior's tables; empty without statistics."""
        return {} if self.prior is None else self.prior.to_tensors()

    @classmethod
    def from_json(
        cls, values: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None
    ) -> Conditioning:
        """Read what `to_json` and `to_tensors` wrote."""
        schema = {part: tuple(names) for part, names in values["schema"].items()}
        prior = None
        if "statistics" in schema:
            if not tensors:
                raise GazeError("the tables of the conditioning prior are missing")
            prior = Prior.from_tensors(schema["statistics"], tensors)
        return cls(
            tasks=schema.get("task", ()),
            task_shares=tuple(values["task_shares"]),
            task_screens=tuple(Screen(**one) for one in values["task_screens"]),
            augmentations=schema.get("augmentation", ()),
            prior=prior,
            sequences=tuple(values.get("sequences", ())),
            course=Course.from_json(values["course"]) if "course" in values else Course(),
        )


def quantized(gaze: Tensor, steps: Floats, grids: Floats, uniforms: Tensor) -> Tensor:
    """Gaze (batch, 2, time) rounded to steps (batch, 2); a step of 0 leaves it unchanged.

    As training recordings are, rounded gaze is dequantized over the cells of the grids (batch, 2)
    by uniforms (batch, 2, time) in [0, 1].
    """
    if not steps.any():
        return gaze
    step, grid = (
        sent(torch.from_numpy(one).float()[..., None], gaze.device) for one in (steps, grids)
    )
    is_coarse = step > 0
    cells = (gaze / torch.where(is_coarse, step, 1.0)).round_()
    rounded = cells.mul_(step).add_((uniforms - 0.5) * grid).clamp_(-CLIP, CLIP)
    return torch.where(is_coarse, rounded, gaze)
