"""Percentiles of scores: how those of held-out participants are distributed, by task.

A table (JSON, beside the weights) holds quantiles of every score over windows of held-out
participants, and mean and covariance of the profile over windows of training participants. A
profile is the logarithm of the denoising errors by noise level and channel, and the contrasts; its
Mahalanobis distance from the training participants' is a score that also sees errors that are too
small (compare Mahmood et al. 2021; the covariance is shared by tasks as in Lee et al. 2018). Tasks
with few held-out windows are compared with all tasks together, and windows without a task with all
windows scored without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import Run
from gazediffusion.network.pretrained import SCORES
from gazediffusion.scoring.scorer import CONTRASTS, Floats, Progress, RawScores, Scorer
from gazediffusion.settings import Scoring
from gazediffusion.storage import read_json, write_json

FORMAT = "gazediffusion-scores"
ALL_TASKS, NO_TASK = "all tasks", "no task"
# Shares of held-out windows of which quantiles are kept; 0 and 1 are the extremes.
_TAIL = np.array([0.0, 0.001, 0.005, 0.01, 0.02, 0.05])
SHARES = np.concatenate([_TAIL, np.arange(1, 10) / 10, 1 - _TAIL[::-1]])
MOST_WINDOWS = 500  # of each task, for quantiles and for profiles
_FEWEST_WINDOWS, _FEWEST_PARTICIPANTS = 30, 2
_RIDGE = 0.02  # of its variance, added to that of each number of a profile


@dataclass(frozen=True, eq=False)
class Group:
    """The held-out windows that others are compared with.

    quantiles: score -> its quantiles at SHARES; scores are those of `values_of`. mean: (profile,)
    of training participants.
    """

    n_windows: int
    n_participants: int
    mean: Floats
    quantiles: Mapping[str, Floats]

    @classmethod
    def of(cls, scored: Sequence[_Scored], covariance: Floats) -> Group:
        """Mean profile of training participants, quantiles of held-out ones."""
        held_out = [one for one in scored if one.is_held_out]
        mean = np.concatenate([one.raw.profiles for one in scored if not one.is_held_out]).mean(0)
        values = [values_of(one.raw, _distances(one.raw, mean, covariance)) for one in held_out]
        every = {name: np.concatenate([one[name].ravel() for one in values]) for name in values[0]}
        quantiles = {
            name: np.quantile(one, SHARES) for name, one in every.items() if np.isfinite(one).all()
        }
        participants = {name for one in held_out for name in one.participants}
        return cls(len(every["profile_distance"]), len(participants), mean, quantiles)

    def percentile(self, score: str, values: Floats) -> Floats:
        """The percentage of the held-out windows below each value; NaN without quantiles."""
        if score not in self.quantiles:
            return np.full(np.shape(values), np.nan)
        found = np.interp(values, self.quantiles[score], SHARES, left=0.0, right=1.0)
        return np.asarray(100 * found)


@dataclass(frozen=True, eq=False)
class Percentiles:
    """The groups by name: tasks, ALL_TASKS and NO_TASK.

    covariances: (profile, profile) of profiles with a task and without one. settings: those of the
    scores, the hash of the weights, and where the windows come from.
    """

    groups: Mapping[str, Group]
    covariances: Mapping[str, Floats]
    settings: Mapping[str, Any]

    def group_of(self, task: str) -> str:
        """The name of the group that windows which were given this task are compared with."""
        if not task:
            return NO_TASK
        return task if task in self.groups else ALL_TASKS

    def distances(self, raw: RawScores) -> Floats:
        """Mahalanobis distances of the profiles per square root of their length, (window,)."""
        found = np.empty(len(raw.tasks))
        for name, chosen in self._by_group(raw):
            covariance = self.covariances[NO_TASK if name == NO_TASK else ALL_TASKS]
            found[chosen] = _distances(raw.select(chosen), self.groups[name].mean, covariance)
        return found

    def percentiles(self, raw: RawScores, distances: Floats) -> dict[str, Floats]:
        """The percentile of every score of `values_of`, each (window,) or (window, span)."""
        values = values_of(raw, distances)
        found = {score: np.full(one.shape, np.nan) for score, one in values.items()}
        for name, chosen in self._by_group(raw):
            for score, one in values.items():
                found[score][chosen] = self.groups[name].percentile(score, one[chosen])
        return found

    def _by_group(self, raw: RawScores) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """The groups that windows are compared with, and the windows of each."""
        of = np.array([self.group_of(task) for task in raw.tasks], dtype=object)
        yield from ((name, of == name) for name in dict.fromkeys(of))

    def mismatch(self, run: Run, config: Scoring) -> str | None:
        """Why scores of a run with these settings cannot be compared; None where they can."""
        if self.settings["weights_sha256"] != run.weights_sha256:
            return "it was made for other weights of this model"
        ours, theirs = config.decisive, self.settings["scores"]
        other = [name for name, value in ours.items() if _plain(value) != theirs.get(name)]
        return f"it was made with other {', '.join(other)}" if other else None

    def save(self, path: Path) -> None:
        """Write the tables."""
        groups = {name: _short(vars(one)) for name, one in self.groups.items()}
        lower = {name: one[np.tril_indices(len(one))] for name, one in self.covariances.items()}
        values = {"format": FORMAT, **self.settings, "shares": _short(SHARES)}
        write_json(path, {**values, "groups": groups, "covariances": _short(lower)})

    @classmethod
    def load(cls, folder: Path) -> Percentiles | None:
        """The tables in the folder of a model; None where there are none."""
        path = folder / SCORES
        if not path.is_file():
            return None
        values = read_json(path)
        try:
            if values.pop("format") != FORMAT or values.pop("shares") != _short(SHARES):
                raise GazeError("this is no table of scores of this version", path=path)
            groups = {}
            for name, one in values.pop("groups").items():
                tables = {score: np.array(table) for score, table in one["quantiles"].items()}
                groups[name] = Group(**{**one, "mean": np.array(one["mean"]), "quantiles": tables})
            covariances = {name: _square(one) for name, one in values.pop("covariances").items()}
            return cls(groups, covariances, values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise GazeError(f"the tables of scores are damaged ({error!r})", path=path) from error

    @classmethod
    def fit(
        cls,
        scorer: Scorer,
        parts: Sequence[Windows],
        n: int = MOST_WINDOWS,
        progress: Progress = lambda done: None,
    ) -> Percentiles:
        """From windows files with training and held-out participants, n windows a task of each.

        progress: called with the windows done, of `n_to_score`. Training windows are scored
        without the likelihood, which their profiles do not have.
        """
        done = 0.0

        def show(n_scored: float) -> None:
            progress(done + n_scored)

        cheap = replace(scorer, config=replace(scorer.config, has_likelihood=False))
        with_task: list[_Scored] = []
        taskless: list[_Scored] = []
        for windows, is_held_out in _chosen(parts, n):
            names = [windows.participants[k] for k in windows.participant]
            for scored, tasks in ((with_task, None), (taskless, [""] * len(windows))):
                own = scorer if is_held_out else cheap
                raw = own.scores(windows, show, tasks)
                scored.append(_Scored(raw, names, is_held_out))
                done += len(windows)
        covariances: dict[str, Floats] = {}
        groups: dict[str, Group] = {}
        for name, scored in ((ALL_TASKS, with_task), (NO_TASK, taskless)):
            covariances[name] = _covariance([one for one in scored if not one.is_held_out])
            groups[name] = Group.of(scored, covariances[name])
        for task in dict.fromkeys(task for one in with_task for task in one.raw.tasks if task):
            of_task = [one.of_task(task) for one in with_task if task in one.raw.tasks]
            held_out = [one for one in of_task if one.is_held_out]
            participants = {name for one in held_out for name in one.participants}
            n_windows = sum(len(one.participants) for one in held_out)
            is_enough = n_windows >= _FEWEST_WINDOWS and len(participants) >= _FEWEST_PARTICIPANTS
            if is_enough and any(not one.is_held_out for one in of_task):
                groups[task] = Group.of(of_task, covariances[ALL_TASKS])
        settings = {
            "gazediffusion_version": __version__,
            "weights_sha256": scorer.run.weights_sha256,
            "scores": {name: _plain(value) for name, value in asdict(scorer.config).items()},
            "data_sha256": [part.provenance.get("data_sha256") for part in parts],
        }
        return cls(groups, covariances, settings)


def n_to_score(parts: Sequence[Windows], n: int = MOST_WINDOWS) -> int:
    """How many windows `Percentiles.fit` scores; each counts with and without its task."""
    return 2 * sum(len(windows) for windows, _ in _chosen(parts, n))


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of some windows, and whose they are."""

    raw: RawScores
    participants: list[str]
    is_held_out: bool

    def of_task(self, task: str) -> _Scored:
        chosen = np.array([one == task for one in self.raw.tasks])
        names = [name for name, is_in in zip(self.participants, chosen, strict=True) if is_in]
        return _Scored(self.raw.select(chosen), names, self.is_held_out)


def _chosen(parts: Sequence[Windows], n: int) -> list[tuple[Windows, bool]]:
    """At most n windows of each task, of training and of held-out participants."""
    found = []
    for part in parts:
        for side, is_held_out in ((part.train, False), (part.held_out, True)):
            if len(side) == 0:
                who = "held-out" if is_held_out else "training"
                raise GazeError(
                    f"percentiles of scores need windows of {who} participants",
                    remedy="prepare with a `validation_fraction` between 0 and 1",
                )
            tasks = [part.tasks[k] for k in np.unique(side.task)]
            found += [(side.of_task(task).subsample(n), is_held_out) for task in tasks]
    return found


def _covariance(scored: Sequence[_Scored]) -> Floats:
    """Of profiles about the mean of their task, with a ridge."""
    off = []
    tasks = {task for one in scored for task in one.raw.tasks}
    for task in tasks:
        of_task = [one.of_task(task) for one in scored if task in one.raw.tasks]
        profiles = np.concatenate([one.raw.profiles for one in of_task])
        off.append(profiles - profiles.mean(axis=0))
    together = np.concatenate(off)
    covariance = together.T @ together / max(len(together) - len(tasks), 1)
    # Each number by its own variance: contrasts vary far less than errors do.
    return np.asarray(covariance + _RIDGE * np.diag(np.maximum(np.diag(covariance), 1e-6)))


def values_of(raw: RawScores, distances: Floats) -> dict[str, Floats]:
    """Every score that is compared, each (window,) or (window, span), by name."""
    return {
        "log_likelihood": raw.log_likelihood,
        "denoising_error": raw.denoising_error,
        "profile_distance": distances,
        "span_error": raw.by_span,
        **{f"level_{k}": column for k, column in enumerate(raw.by_level.T)},
        **dict(zip(CONTRASTS, raw.contrasts.T, strict=True)),
    }


def _distances(raw: RawScores, mean: Floats, covariance: Floats) -> Floats:
    off = raw.profiles - mean
    squared = (off * np.linalg.solve(covariance, off.T).T).sum(axis=1)
    return np.asarray(np.sqrt(squared / off.shape[1]))


def _short(values: Any) -> Any:
    """Numbers of five digits, which are far below the differences of windows."""
    if isinstance(values, Mapping):
        return {key: _short(one) for key, one in values.items()}
    if isinstance(values, np.ndarray):
        return [float(f"{value:.5g}") for value in values.tolist()]
    return values


def _square(lower: Sequence[float]) -> Floats:
    """A symmetric matrix from its lower triangle."""
    size = int((np.sqrt(8 * len(lower) + 1) - 1) / 2)
    matrix = np.zeros((size, size))
    matrix[np.tril_indices(size)] = lower
    return np.asarray(matrix + np.tril(matrix, -1).T)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
