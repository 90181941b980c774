"""The conditioning prior: from which summary statistics of new windows are drawn.

Each task has one mixture component per resolution of its recordings. Within a component the
statistics follow a mixture of Gaussians, at least 200 windows each, whose margins are then mapped
to the quantiles of the training windows. Gaussians and quantiles are all that is kept of the
training participants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.statistics import STATISTICS, measure
from gazediffusion.data.resolution import recorded_steps
from gazediffusion.data.windows import Windows, not_overlapping
from gazediffusion.seeds import Stream, categorical_draw, sobol_points

Floats = NDArray[np.float64]
_LEAST = 1e-3  # of the total variance, in each direction
_MOST = 0.95  # of the total variance that is common to a participant's windows
# Quantiles are kept at these points of a standard normal; values outside are clipped.
_NODES = np.linspace(-3, 3, 25)
_MOST_GAUSSIANS, _WINDOWS_EACH = 16, 200
_ADDED_VARIANCE = 1e-2  # regularization, of variances of about 1
_N_QUANTILE_DRAWS = 10_000
_CLIP = 5.0  # standard deviations at which a condition is clipped
_CHUNK = 512
_MOST_PARTICIPANTS = 1_000_000  # of a windows file
_EDGE = 1e-6  # uniforms are kept this far from 0 and 1


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of a participant's common part p: mean (..., statistic) and covariance."""

    mean: Floats
    covariance: Floats


def fit_effects(z: Floats, participant: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Covariances between and within participants, (statistic, statistic) each.

    z (window, statistic): with normal margins, of windows that do not overlap. participant
    (window,). The covariance between is that of pairs of windows of one participant.
    """
    n_statistics = z.shape[1]
    total = z.T @ z / max(len(z), 1) + _LEAST * np.eye(n_statistics)
    pairs, n_pairs = np.zeros_like(total), 0.0
    for one in np.unique(participant):
        own = z[participant == one]
        if len(own) < 2:
            continue
        # All pairs of different windows; a participant counts as many times as windows.
        whole = own.sum(axis=0)
        pairs += (np.outer(whole, whole) - own.T @ own) / (len(own) - 1)
        n_pairs += len(own)
    between = pairs / n_pairs if n_pairs else np.zeros_like(total)
    # In the coordinates where the total is the identity, shares lie between 0 and _MOST.
    root = np.linalg.cholesky(total)
    whitened = np.linalg.solve(root, np.linalg.solve(root, (between + between.T) / 2).T)
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    shares = vectors @ np.diag(np.clip(values, 0.0, _MOST)) @ vectors.T
    between = root @ shares @ root.T
    return between, total - between


def posterior(between: Floats, within: Floats, mean: Floats, n_windows: float) -> Posterior:
    """The posterior of p, given the mean (..., statistic) of n independent windows."""
    gain = np.linalg.solve(between + within / n_windows, between).T
    return Posterior(np.asarray(mean @ gain.T), between - gain @ between)


def root_of(covariance: Floats) -> Floats:
    """A matrix R with R R^T the covariance, which may be singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root: Floats = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root


@dataclass(frozen=True, eq=False)
class Component:
    """The statistics of one task's training windows of one resolution.

    weight: share of the task's windows. step, grid: (2,) normalized step of its recordings (zeros
    where it is not coarse) and grid of their file.
    weights (Gaussian,), means (Gaussian, statistic), factors (Gaussian, statistic, statistic): the
    mixture, with Cholesky factors. drawn, real: quantiles (node, statistic) of the mixture and of
    the windows.
    deviation: (statistic, 2), intercept and slope of generated minus target statistics as a
    function of the target, both standardized; zeros before calibration.
    between, within: (statistic, statistic) covariances of the statistics with normal margins,
    between and within participants; of shape (0, 0) in tables without them.
    """

    weight: Floats
    step: Floats
    grid: Floats
    weights: Floats
    means: Floats
    factors: Floats
    drawn: Floats
    real: Floats
    deviation: Floats
    between: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    within: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def fit(
        cls,
        values: Floats,
        weight: float = 1.0,
        step: Sequence[float] | Floats = (0.0, 0.0),
        grid: Sequence[float] | Floats = (0.0, 0.0),
        participant: NDArray[np.int64] | None = None,
    ) -> Component:
        """From statistics (window, statistic) of at least one window.

        participant (window,): who made it, -1 where the window overlaps another.
        """
        from scipy.special import ndtr
        from sklearn.mixture import GaussianMixture

        n = int(np.clip(len(values) // _WINDOWS_EACH, 1, _MOST_GAUSSIANS))
        mean, std = values.mean(axis=0), values.std(axis=0)
        std = np.where(std < 1e-3, 1.0, std)  # a statistic may be constant
        mixture = GaussianMixture(n, reg_covar=_ADDED_VARIANCE, random_state=0)
        mixture.fit(
            (values if len(values) > 1 else np.repeat(values, 2, axis=0)) / std - mean / std
        )
        weights, means = mixture.weights_, mean + std * mixture.means_
        factors = std[:, None] * np.linalg.cholesky(mixture.covariances_)
        points = sobol_points(
            0, _N_QUANTILE_DRAWS, 1 + means.shape[1], 0, Stream.CONDITION, "quantiles"
        )
        drawn = _mixture_draw(weights, means, factors, points[:, 0], points[:, 1:])
        real = five_digits(np.quantile(values, ndtr(_NODES), axis=0))
        who = np.full(len(values), -1) if participant is None else participant
        between, within = fit_effects(_normal_margins(values[who >= 0], real), who[who >= 0])
        return cls(
            weight=five_digits(np.asarray(weight)),
            step=five_digits(np.asarray(step)),
            grid=five_digits(np.asarray(grid)),
            weights=five_digits(weights),
            means=five_digits(means),
            factors=five_digits(factors),
            drawn=five_digits(np.quantile(drawn, ndtr(_NODES), axis=0)),
            real=real,
            deviation=np.zeros((values.shape[1], 2)),
            between=five_digits(between),
            within=five_digits(within),
        )

    @property
    def has_effects(self) -> bool:
        """Whether it knows how participants differ."""
        return len(self.between) > 0

    def to_normal(self, values: Floats) -> Floats:
        """Statistics (window, statistic) mapped to normal margins."""
        return _normal_margins(values, self.real)

    def from_normal(self, z: Floats) -> Floats:
        """The inverse of `to_normal`."""
        columns = [np.interp(z[:, k], _NODES, self.real[:, k]) for k in range(z.shape[1])]
        return np.stack(columns, axis=1)

    def draw(self, gaussian: Floats, uniforms: Floats) -> Floats:
        """Statistics (window, statistic) by inverse transform.

        gaussian (window,): uniforms that choose the Gaussian; uniforms (window, statistic): within.
        """
        values = _mixture_draw(self.weights, self.means, self.factors, gaussian, uniforms)
        columns = [
            np.interp(values[:, k], self.drawn[:, k], self.real[:, k]) for k in range(len(values.T))
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Prior:
    """The distribution of summary statistics over tasks and mixture components.

    names: the statistics. mean, std: (statistic,) over all training windows; the network's
    condition is standardized by these. components: of each task, one or more.
    """

    names: tuple[str, ...]
    mean: Floats
    std: Floats
    components: tuple[tuple[Component, ...], ...]

    @classmethod
    def fit(
        cls, parts: Sequence[Windows], tasks: Sequence[str], names: Sequence[str] = STATISTICS
    ) -> Prior:
        """From the training participants of all the windows files together."""
        statistics: dict[str, list[Floats]] = {task: [] for task in tasks}
        resolutions: dict[str, list[Floats]] = {task: [] for task in tasks}
        participants: dict[str, list[NDArray[np.int64]]] = {task: [] for task in tasks}
        for number_of_part, part in enumerate(parts):
            train = part.train
            measured = np.concatenate(list(_measured(train.dequantized(seed=0), names)))
            grid = train.grid_of_window[:, :, 0]
            # Participants of different files are different.
            who = _apart(train)
            who = np.where(who >= 0, who + number_of_part * _MOST_PARTICIPANTS, -1)
            resolution = np.concatenate([recorded_steps(train), grid], axis=1)
            for number, task in enumerate(part.tasks):
                statistics[task].append(measured[train.task == number])
                resolutions[task].append(resolution[train.task == number])
                participants[task].append(who[train.task == number])
        everything = np.concatenate([one for task in tasks for one in statistics[task]])
        every_resolution = np.concatenate([one for task in tasks for one in resolutions[task]])
        std = everything.std(axis=0)
        components = []
        for task in tasks:
            values, resolution = np.concatenate(statistics[task]), np.concatenate(resolutions[task])
            # A task without training windows has the distribution of all tasks.
            if len(values):
                components.append(
                    _components(values, resolution, np.concatenate(participants[task]))
                )
            else:
                nobody = np.full(len(everything), -1)
                components.append(_components(everything, every_resolution, nobody))
        return cls(
            names=tuple(names),
            mean=five_digits(everything.mean(axis=0)),
            # A statistic that is constant is not scaled.
            std=five_digits(np.where(std < 1e-3, 1.0, std)),
            components=tuple(components),
        )

    def on_scales_of(self, other: Prior) -> Prior:
        """This prior with the mean and std of the statistics that another has too."""
        mean, std = self.mean.copy(), self.std.copy()
        for k, name in enumerate(self.names):
            if name in other.names:
                there = other.names.index(name)
                mean[k], std[k] = other.mean[there], other.std[there]
        return replace(self, mean=mean, std=std)

    def standardized(self, measured: Tensor) -> Tensor:
        """Measured statistics (batch, statistic) with about unit variance, clipped."""
        mean, std = measured.new_tensor(self.mean.tolist()), measured.new_tensor(self.std.tolist())
        return ((measured - mean) / std).clamp(-_CLIP, _CLIP)

    def draw(self, tasks: Sequence[int], uniforms: Floats) -> tuple[Tensor, list[int]]:
        """Target statistics of windows in these tasks, by uniforms (window, 1 + statistic).

        (window, statistic), standardized, and the component of its task each window is from.
        """
        components = np.zeros(len(tasks), dtype=np.int64)
        values = np.empty((len(tasks), len(self.mean)))
        left = uniforms[:, 0].copy()
        for task in set(tasks):
            of_task = np.flatnonzero(np.equal(tasks, task))
            weights = np.array([float(one.weight) for one in self.components[task]])
            components[of_task], left[of_task] = categorical_draw(weights, left[of_task])
            for number, component in enumerate(self.components[task]):
                rows = of_task[components[of_task] == number]
                values[rows] = component.draw(left[rows], uniforms[rows, 1:])
        return self.standardized(torch.from_numpy(values).float()), components.tolist()

    def calibrated_condition(
        self, tasks: Sequence[int], components: Sequence[int], targets: Tensor
    ) -> Tensor:
        """The condition that generates the target statistics, (window, statistic)."""
        chosen = [self.components[t][c].deviation for t, c in zip(tasks, components, strict=True)]
        intercept, slope = targets.new_tensor(np.array(chosen)).unbind(dim=-1)
        return targets - (intercept + slope * targets)

    def from_normal(self, component: Component, z: Floats) -> Tensor:
        """Standardized statistics (window, statistic) of a component's with normal margins."""
        return self.standardized(torch.from_numpy(component.from_normal(z)).float())

    def of(self, tasks: Sequence[int], components: Sequence[int]) -> list[Component]:
        """The component of each window."""
        return [self.components[t][c] for t, c in zip(tasks, components, strict=True)]

    @property
    def is_calibrated(self) -> bool:
        """Whether any component has a deviation."""
        return any(one.deviation.any() for task in self.components for one in task)

    def uncalibrated(self) -> Prior:
        """The same prior without deviations."""
        return self.with_components(
            [[replace(one, deviation=np.zeros_like(one.deviation)) for one in task]
             for task in self.components]
        )  # fmt: skip

    def with_components(self, components: Sequence[Sequence[Component]]) -> Prior:
        """The same prior with other components."""
        return replace(self, components=tuple(tuple(task) for task in components))

    def to_tensors(self) -> dict[str, Tensor]:
        """Every table by name, float32, which holds five digits."""
        tables = {"mean": self.mean, "std": self.std}
        for t, task in enumerate(self.components):
            for c, component in enumerate(task):
                for one in fields(component):
                    tables[f"{t}.{c}.{one.name}"] = getattr(component, one.name)
        return {name: torch.tensor(table, dtype=torch.float32) for name, table in tables.items()}

    @classmethod
    def from_tensors(cls, names: Sequence[str], tensors: Mapping[str, Tensor]) -> Prior:
        """Read what `to_tensors` wrote."""
        components: dict[int, dict[int, dict[str, Floats]]] = {}
        tables = {name: five_digits(tensor.double().numpy()) for name, tensor in tensors.items()}
        for key, table in tables.items():
            if key in ("mean", "std"):
                continue
            task, component, name = key.split(".")
            of_task = components.setdefault(int(task), {})
            of_task.setdefault(int(component), {})[name] = table
        return cls(
            names=tuple(names),
            mean=tables["mean"],
            std=tables["std"],
            components=tuple(
                tuple(Component(**components[t][c]) for c in sorted(components[t]))
                for t in sorted(components)
            ),
        )


def _components(
    values: Floats, resolution: Floats, participant: NDArray[np.int64]
) -> tuple[Component, ...]:
    """The components of statistics (window, statistic) with step and grid (window, 4).

    participant (window,): who made a window, -1 where it overlaps another.
    Steps within 5 % of each other are one; a component of few windows joins the largest.
    """
    different, of_window = np.unique(resolution, axis=0, return_inverse=True)
    near = np.isclose(different[:, None], different[None], rtol=0.05, atol=0).all(axis=-1)
    number = near.argmax(axis=1)[of_window.ravel()]
    count = np.bincount(number)
    number = np.where(count[number] < min(_WINDOWS_EACH, count.max()), count.argmax(), number)
    components = []
    for one in np.unique(number):
        chosen = number == one
        step_and_grid = np.median(resolution[chosen], axis=0)
        weight = float(chosen.mean())
        components.append(
            Component.fit(
                values[chosen],
                weight,
                step_and_grid[:2],
                step_and_grid[2:],
                participant[chosen],
            )
        )
    return tuple(components)


def _apart(windows: Windows) -> NDArray[np.int64]:
    """The participant of each window, -1 where it overlaps an earlier one that has one."""
    who = windows.participant.astype(np.int64)
    return np.where(not_overlapping(windows.starts, windows.length), who, -1)


def _normal_margins(values: Floats, quantiles: Floats) -> Floats:
    """Values (window, statistic) mapped so that these quantiles (node, statistic) become normal.

    Quantiles of a discrete statistic are equal in places. Such a value gets the normal of its mean
    rank.
    """
    # A slope makes the map unique: up from the first of equal quantiles, or down from the last.
    slope = 1e-9 * np.arange(len(quantiles))[:, None] * (1 + np.abs(quantiles).max(axis=0))
    edges = [
        np.stack([np.interp(*one, _NODES) for one in zip(values.T, rising.T, strict=True)], axis=1)
        for rising in (quantiles + slope, quantiles - slope[::-1])
    ]
    ranks = torch.special.ndtr(torch.from_numpy(np.stack(edges))).mean(dim=0)
    return np.asarray(torch.special.ndtri(ranks).numpy())


def _measured(windows: Windows, names: Sequence[str]) -> Iterator[Floats]:
    """The statistics of all windows, (window, statistic), in chunks."""
    for first in range(0, len(windows), _CHUNK):
        gaze = torch.from_numpy(windows.cut(np.arange(first, min(first + _CHUNK, len(windows)))))
        yield measure(gaze, windows.rate_hz, names).double().numpy()


def _mixture_draw(
    weights: Floats, means: Floats, factors: Floats, gaussian: Floats, uniforms: Floats
) -> Floats:
    """Draws (window, statistic) from a mixture of Gaussians, by inverse transform."""
    number, _ = categorical_draw(weights, gaussian)
    inside = torch.from_numpy(uniforms).clamp(_EDGE, 1 - _EDGE)
    normal = torch.special.ndtri(inside).numpy()
    drawn: Floats = means[number] + np.einsum("wij,wj->wi", factors[number], normal)
    return drawn


def five_digits(values: Floats) -> Floats:
    """Values rounded to five significant digits: a prior states no more than it knows."""
    flat = [float(f"{value:.5g}") for value in np.ravel(values).tolist()]
    return np.array(flat, dtype=np.float64).reshape(np.shape(values))
