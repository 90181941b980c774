"""Trials of a two-sample test: who is trained on, who stops the training, who is tested.

A trial has two sides in each of three parts, of as many windows and the same shares of tasks. No
participant (of synthetic windows: no block) is in two parts. The first side is real gaze. The
second is a synthetic set; or other real participants, for the floor; or the same participants with
a planted defect, which the test must find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.evaluation.classifier import participant_folds
from gazediffusion.evaluation.gaze_sets import GazeSet, stream

WHAT = "the deep two-sample test"
N_FOLDS = 5  # of participants; one stops the training, another one in each trial
MIN_PARTICIPANTS = 4  # of the training participants: two groups, each to train on and to stop at
MIN_TESTED = 2
MIN_WINDOWS = 20  # of a side in each part
# Shares of a synthetic set's blocks in the three parts.
_SHARES = {"train": 0.55, "stop": 0.15, "test": 0.3}
# So many windows stop the training, as a share of those trained on.
_STOPPING = 0.25

# Windows with a defect in their gaze.
Defect = Callable[[GazeSet, np.random.Generator], GazeSet]


@dataclass(frozen=True, eq=False)
class Trial:
    """Two sides (first, second) of each part."""

    train: tuple[GazeSet, GazeSet]
    stop: tuple[GazeSet, GazeSet]
    test: tuple[GazeSet, GazeSet]


@dataclass(frozen=True, eq=False)
class RealSets:
    """The real side: training participants, held-out participants, windows of a part at most."""

    training: GazeSet
    held_out: GazeSet
    n_windows: int
    seed: int

    def __post_init__(self) -> None:
        n_training, n_tested = (len(np.unique(one.group)) for one in (self.training, self.held_out))
        if n_training < MIN_PARTICIPANTS or n_tested < MIN_TESTED:
            raise GazeError(
                f"{WHAT} is not computable: {n_training} training and {n_tested} held-out "
                f"participants, at least {MIN_PARTICIPANTS} and {MIN_TESTED} are needed"
            )

    def against(self, synthetic: GazeSet, number: int) -> Trial:
        """Trial `number` of a synthetic set."""
        rng = stream(self.seed, f"synthetic, deep {number}")
        blocks = rng.permutation(np.unique(synthetic.group))
        stops = np.round(np.cumsum([0.0, *_SHARES.values()]) * len(blocks)).astype(int)
        other = {
            part: synthetic.select(np.isin(synthetic.group, blocks[first:stop]))
            for part, first, stop in zip(_SHARES, stops[:-1], stops[1:], strict=True)
        }
        train, stop = _without_fold(self.training, number)
        real = {"train": train, "stop": stop, "test": self.held_out}
        return self._trial(number, real, other)

    def between_participants(self, number: int) -> Trial:
        """Trial `number` of the floor: two groups of participants, in training and in test."""
        rng = stream(self.seed, f"floor, deep {number}")
        first: dict[str, GazeSet] = {}
        second: dict[str, GazeSet] = {}
        for side, half in zip((first, second), _by_participant(self.training, rng), strict=True):
            side["train"], side["stop"] = _without_fold(half, number)
        first["test"], second["test"] = _by_participant(self.held_out, rng)
        return self._trial(number, first, second)

    def with_defect(self, name: str, defect: Defect, number: int) -> Trial:
        """Trial `number` of half of the windows against the other half with a defect."""
        rng = stream(self.seed, f"{name}, deep {number}")
        train, stop = _without_fold(self.training, number)
        first: dict[str, GazeSet] = {}
        second: dict[str, GazeSet] = {}
        for part, one in {"train": train, "stop": stop, "test": self.held_out}.items():
            is_first = rng.permutation(len(one.gaze)) % 2 == 0
            first[part], other = one.select(is_first), one.select(~is_first)
            second[part] = defect(other, rng)
        return self._trial(number, first, second)

    def _trial(self, number: int, first: dict[str, GazeSet], second: dict[str, GazeSet]) -> Trial:
        """Both sides cut to the same numbers of windows of each task."""
        most = {"train": self.n_windows, "stop": round(_STOPPING * self.n_windows)}
        found = {}
        for part in _SHARES:
            # Streams of their own, so that sets are tested against the same real windows.
            rngs = [stream(self.seed, f"deep {number}, {part} {side}") for side in (0, 1)]
            sides = first[part], second[part]
            found[part] = _matched(part, sides, most.get(part, self.n_windows), rngs)
        return Trial(**found)


def jitter(share: float, median_step: float) -> Defect:
    """White noise on every sample: a standard deviation of `share` of the median step."""

    def add(one: GazeSet, rng: np.random.Generator) -> GazeSet:
        noise = rng.standard_normal(one.gaze.shape, dtype=np.float32)
        return replace(one, gaze=one.gaze + noise * np.float32(share * median_step))

    return add


def scaled(factor: float) -> Defect:
    """Each window about its mean times `factor`: so are all its speeds and amplitudes."""

    def scale(one: GazeSet, rng: np.random.Generator) -> GazeSet:
        mean = one.gaze.mean(axis=-1, keepdims=True)
        return replace(one, gaze=mean + (one.gaze - mean) * np.float32(factor))

    return scale


def median_step(gaze: NDArray[np.float32]) -> float:
    """Median length of the step from a sample to the next, normalized units."""
    step = np.diff(gaze, axis=-1)
    return float(np.median(np.hypot(step[:, 0], step[:, 1])))


def _without_fold(one: GazeSet, number: int) -> tuple[GazeSet, GazeSet]:
    """The windows without a fold of participants, and those of this fold."""
    n_folds = min(N_FOLDS, len(np.unique(one.group)))
    is_left_out = participant_folds(one.group, n_folds) == number % n_folds
    return one.select(~is_left_out), one.select(is_left_out)


def _by_participant(one: GazeSet, rng: np.random.Generator) -> tuple[GazeSet, GazeSet]:
    """Two groups of as many participants, drawn at random."""
    participants = rng.permutation(np.unique(one.group))
    is_first = np.isin(one.group, participants[: len(participants) // 2])
    return one.select(is_first), one.select(~is_first)


def _matched(
    part: str, sides: tuple[GazeSet, GazeSet], most: int, rngs: Sequence[np.random.Generator]
) -> tuple[GazeSet, GazeSet]:
    """At most so many windows of each side, as many of one as of the other, of every task.

    Sets that share no task are cut to the same number alone.
    """
    first, second = sides
    shared = sorted(set(first.tasks) & set(second.tasks))
    tasks = [[str(one) if shared else "" for one in side.tasks] for side in sides]
    rows = [_by_task(of_side, rng) for of_side, rng in zip(tasks, rngs, strict=True)]
    n_task = {task: min(len(of[task]) for of in rows) for task in shared or [""]}
    n_all = sum(n_task.values())
    share = min(1.0, most / max(n_all, 1))
    n_kept = {task: round(n * share) for task, n in n_task.items()}
    if sum(n_kept.values()) < MIN_WINDOWS:
        words = {"train": "to train on", "stop": "to stop at", "test": "to test"}[part]
        raise GazeError(
            f"{WHAT} is not computable: {sum(n_kept.values())} windows a side {words}, of "
            f"{len(first.gaze)} of {first.name} and {len(second.gaze)} of {second.name}; at least "
            f"{MIN_WINDOWS} are needed"
        )
    chosen = [np.sort(np.concatenate([of[task][:n] for task, n in n_kept.items()])) for of in rows]
    return first.select(chosen[0]), second.select(chosen[1])


def _by_task(tasks: Sequence[str], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The rows of each task in a random order."""
    order, names = rng.permutation(len(tasks)), np.array(tasks, dtype=object)
    return {task: order[names[order] == task] for task in set(tasks)}
