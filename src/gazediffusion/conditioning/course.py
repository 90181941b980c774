"""The course of a recording: what long gaze of a task depends on beside the gaze before.

Recordings are not stationary. Long gaze is given its elapsed time (elapsed.py), and either a target
that jumps as the task's targets do (targets.py), or where it begins (beginnings.py) and, where a
page is read, waypoints on the way down (pages.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.beginnings import POSITION_S, TIMES_S, Beginning
from gazediffusion.conditioning.elapsed import KNOTS_S, encode_elapsed
from gazediffusion.conditioning.pages import Page
from gazediffusion.conditioning.targets import TargetPrior
from gazediffusion.data.windows import Windows
from gazediffusion.seeds import seed_for

# Name the streams of random numbers.
_TARGETS, _BEGINNINGS, _PAGES = 7, 8, 9


@dataclass(frozen=True)
class Course:
    """What a model knows of the course of recordings; all empty for one that knows nothing.

    knots_s: of the elapsed time in the condition. latest_s: by task, the latest elapsed time at
    which a training window begins. targets, beginnings, pages: by task, where they are known.
    """

    knots_s: tuple[float, ...] = ()
    latest_s: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, TargetPrior] = field(default_factory=dict)
    beginnings: Mapping[str, Beginning] = field(default_factory=dict)
    pages: Mapping[str, Page] = field(default_factory=dict)

    @classmethod
    def fit(cls, parts: Sequence[Windows], tasks: Sequence[str]) -> Course:
        """From the training participants of windows files."""
        latest_s = {task: one for task in tasks if (one := _latest(parts, task)) is not None}
        targets = {task: TargetPrior.fit(parts, task) for task in tasks}
        beginnings = {task: Beginning.fit(parts, task) for task in tasks}
        pages = {task: Page.fit(parts, task) for task in tasks if targets[task] is None}
        return cls(
            KNOTS_S if latest_s else (),
            latest_s,
            {task: one for task, one in targets.items() if one is not None},
            {task: one for task, one in beginnings.items() if one is not None},
            {task: one for task, one in pages.items() if one is not None},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the entries of the elapsed time in the condition."""
        return tuple(f"{knot:g} s" for knot in self.knots_s)

    def encode(self, elapsed_s: Tensor | None, like: Tensor) -> Tensor:
        """Entries (batch, knot) of times (batch,), NaN where they are not given; None is no time.

        like: a tensor of the batch.
        """
        if elapsed_s is None:
            elapsed_s = like.new_full((len(like),), torch.nan)
        return encode_elapsed(elapsed_s.to(like), self.knots_s)

    def elapsed_of(self, tasks: Sequence[str], elapsed_s: float) -> Tensor:
        """The elapsed time of windows (window,); NaN where no training window is as late."""
        known = [elapsed_s <= self.latest_s.get(task, -1.0) for task in tasks]
        return torch.tensor([elapsed_s if one else torch.nan for one in known])

    def draw(
        self,
        tasks: Sequence[str],
        first: int,
        n_samples: int,
        rate_hz: float,
        seed: int,
        waypoints: Sequence[int] = (),
    ) -> dict[str, NDArray[np.float32]]:
        """What windows first.. of a seed are steered by: targets, or else positions.

        waypoints: the samples soon after which windows of a task that reads a page have a position.
        Arrays (window, 2, time) of `targets` and `fixations`, NaN where a task has none; an array
        without any value is left out.
        """
        shape = (len(tasks), 2, n_samples)
        found = {name: np.full(shape, np.nan, np.float32) for name in ("targets", "fixations")}
        n_fixated = max(1, round(POSITION_S * rate_hz))
        for k, task in enumerate(tasks):
            if task in self.targets:
                own = seed_for(seed, _TARGETS, first + k)
                found["targets"][k] = self.targets[task].draw(n_samples, rate_hz, own)
            elif task in self.beginnings:
                places = self.beginnings[task].draw(seed_for(seed, _BEGINNINGS, first + k))
                begins = [round(seconds * rate_hz) for seconds in TIMES_S[: len(places)]]
                if task in self.pages:
                    own, given_s = seed_for(seed, _PAGES, first + k), np.array(waypoints) / rate_hz
                    time_s, path = self.pages[task].draw(given_s, places[-1][1], own)
                    begins += np.rint(time_s * rate_hz).astype(int).tolist()
                    places += [(float(x), float(y)) for x, y in path.T]
                for begin, place in zip(begins, places, strict=True):
                    found["fixations"][k, :, begin : begin + n_fixated] = np.array(place)[:, None]
        return {name: array for name, array in found.items() if np.isfinite(array).any()}

    def compensated(
        self, targets: NDArray[np.float32], tasks: Sequence[str]
    ) -> NDArray[np.float32]:
        """Targets (window, 2, time) of windows as a network is given them."""
        known = [self.targets.get(task) for task in tasks]
        rows = zip(targets, known, strict=True)
        return np.stack([one if prior is None else prior.compensated(one) for one, prior in rows])

    def draws_for(self, tasks: Sequence[str]) -> bool:
        """Whether windows of any of the tasks are steered."""
        return not (self.targets.keys() | self.beginnings.keys()).isdisjoint(tasks)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "knots_s": list(self.knots_s),
            "latest_s": dict(self.latest_s),
            "targets": {task: one.to_json() for task, one in self.targets.items()},
            "beginnings": {task: one.to_json() for task, one in self.beginnings.items()},
            "pages": {task: one.to_json() for task, one in self.pages.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Course:
        """Read what `to_json` wrote."""
        return cls(
            tuple(values["knots_s"]),
            dict(values["latest_s"]),
            {task: TargetPrior.from_json(one) for task, one in values["targets"].items()},
            {task: Beginning.from_json(one) for task, one in values["beginnings"].items()},
            {task: Page.from_json(one) for task, one in values.get("pages", {}).items()},
        )


def _latest(parts: Sequence[Windows], task: str) -> float | None:
    """The latest elapsed time (s) at which a training window of a task begins, if it is known."""
    times = [part.of_task(task).train.elapsed_s for part in parts if task in part.tasks]
    known = np.concatenate(times)
    known = known[np.isfinite(known)]
    return float(known.max()) if len(known) else None
