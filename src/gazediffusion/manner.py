"""Manner: how a window is looked at, in nine numbers that the network is told beside the task.

A denoiser learns soon what follows from nearby samples, and late what holds for a whole window: how
noisy the tracker was, how often the eye jumped, how far it went. Left to find that by itself it
makes too many middling windows. So these numbers are measured on every training window and told;
for a new window they are drawn first, from what the training people did in its task.

The draw: each number has the quantiles of the training windows, and how numbers go together is a
mixture of a few Gaussians. Quantiles and Gaussians are all that is kept of the people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.seeds import seed_for
from gazediffusion.windows import Windows

# Logarithms of: median speed and median change of velocity over it (the tracker's noise and its
# colour), mean speed, fast samples, saccades, spread; and the mean place.
NAMES = (
    "noise",
    "roughness",
    "speed",
    "fast samples",
    "saccades",
    "spread in x",
    "spread in y",
    "place in x",
    "place in y",
)
FAST = 5.0  # screen half-widths a second: the paper's threshold of 0.02 a sample at 250 Hz
# Quantiles are kept at these values of a standard normal; what lies outside is cut.
_NODES = np.linspace(-2.5, 2.5, 21)
_MOST = 5.0  # standard deviations that the network is told at most
_CHUNK = 512
_STREAM = 4  # names the stream of random numbers that manners are drawn from


def measure(gaze: Tensor, rate_hz: float) -> Tensor:
    """The numbers of `NAMES`, (batch, 9), of normalized gaze (batch, 2, time)."""
    velocity = gaze.diff(dim=-1) * rate_hz
    speed = velocity.square().sum(dim=1).sqrt()
    change = velocity.diff(dim=-1).square().sum(dim=1).sqrt()
    noise = speed.median(dim=-1).values.clamp_min(1e-6)
    is_fast = speed > FAST
    begins = is_fast[:, 1:] & ~is_fast[:, :-1]
    n_saccades = begins.sum(dim=-1) + is_fast[:, 0]
    spread = gaze.std(dim=-1).clamp_min(1e-4).log()
    columns = [
        noise.log(),
        (change.median(dim=-1).values.clamp_min(1e-6) / noise).log(),
        speed.mean(dim=-1).clamp_min(1e-6).log(),
        is_fast.sum(dim=-1).log1p(),
        n_saccades.log1p(),
    ]
    return torch.cat([torch.stack(columns, dim=1), spread, gaze.mean(dim=-1)], dim=1)


@dataclass(frozen=True)
class Gaussian:
    """One of a mixture: its share, its mean, and a triangle that turns white noise into it."""

    share: float
    mean: tuple[float, ...]
    factor: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Manners:
    """The manners of the training windows, task by task.

    mean, std: of each number over all of them; the network is told numbers scaled by these.
    quantiles: (task, node, number). mixtures: of the numbers as normal scores, for each task.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    quantiles: tuple[tuple[tuple[float, ...], ...], ...]
    mixtures: tuple[tuple[Gaussian, ...], ...]

    @classmethod
    def fit(cls, parts: Sequence[Windows], tasks: Sequence[str]) -> Manners:
        """From the training participants of all the windows files together."""
        from scipy.special import ndtr

        found: dict[str, list[NDArray[np.float64]]] = {task: [] for task in tasks}
        for part in parts:
            train = part.train.dequantized(seed=0)
            measured = np.concatenate(list(_measured(train)))
            for number, task in enumerate(part.tasks):
                found[task].append(measured[train.task == number])
        everyone = np.concatenate([one for task in tasks for one in found[task]])
        # A task without training windows is looked at as the others are.
        of_task = [np.concatenate(found[task]) for task in tasks]
        of_task = [one if len(one) else everyone for one in of_task]
        return cls(
            mean=_plain(everyone.mean(axis=0)),
            std=_plain(np.maximum(everyone.std(axis=0), 1e-6)),
            quantiles=tuple(
                tuple(_plain(row) for row in np.quantile(one, ndtr(_NODES), axis=0))
                for one in of_task
            ),
            mixtures=tuple(_mixture(one) for one in of_task),
        )

    def told(self, gaze: Tensor, rate_hz: float) -> Tensor:
        """What the network hears of gaze (batch, 2, time): (batch, 9), about unit variance."""
        return self._scaled(measure(gaze, rate_hz))

    def drawn(self, task: int, seed: int, index: int) -> Tensor:
        """What the network hears for window `index` of a seed, in a task: (9,)."""
        rng = np.random.default_rng(seed_for(seed, index, _STREAM))
        table, shares, means, factors = self._arrays[task]
        one = int(np.searchsorted(shares, rng.uniform(0, shares[-1]), side="right"))
        scores = means[one] + factors[one] @ rng.standard_normal(len(NAMES))
        values = [np.interp(score, _NODES, table[:, k]) for k, score in enumerate(scores)]
        return self._scaled(torch.tensor(values, dtype=torch.float32)[None])[0]

    @cached_property
    def _arrays(self) -> list[tuple[NDArray[np.float64], ...]]:
        """For each task: quantiles, and of its Gaussians the summed shares, means and factors."""
        return [
            (
                np.array(table),
                np.cumsum([one.share for one in mixture]),
                np.array([one.mean for one in mixture]),
                np.array([one.factor for one in mixture]),
            )
            for table, mixture in zip(self.quantiles, self.mixtures, strict=True)
        ]

    def scaled_as(self, other: Manners) -> Manners:
        """These manners, told on the scale of a model that is to learn them."""
        return replace(self, mean=other.mean, std=other.std)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Manners:
        """Read what `to_json` wrote."""
        return cls(
            mean=tuple(values["mean"]),
            std=tuple(values["std"]),
            quantiles=tuple(tuple(map(tuple, table)) for table in values["quantiles"]),
            mixtures=tuple(
                tuple(
                    Gaussian(one["share"], tuple(one["mean"]), tuple(map(tuple, one["factor"])))
                    for one in mixture
                )
                for mixture in values["mixtures"]
            ),
        )

    def _scaled(self, measured: Tensor) -> Tensor:
        mean, std = measured.new_tensor(self.mean), measured.new_tensor(self.std)
        return ((measured - mean) / std).clamp(-_MOST, _MOST)


def _measured(windows: Windows) -> Iterator[NDArray[np.float64]]:
    """The numbers of all windows, (window, 9), in pieces."""
    for first in range(0, len(windows), _CHUNK):
        gaze = torch.from_numpy(windows.cut(np.arange(first, min(first + _CHUNK, len(windows)))))
        yield measure(gaze, windows.rate_hz).double().numpy()


def _mixture(values: NDArray[np.float64]) -> tuple[Gaussian, ...]:
    """Gaussians for the columns' normal scores, one for every few hundred windows."""
    from scipy.special import ndtri
    from scipy.stats import rankdata
    from sklearn.mixture import GaussianMixture

    n = len(values)
    if n < 2:
        whole = tuple(_plain(row) for row in np.eye(values.shape[1]))
        return (Gaussian(1.0, _plain(np.zeros(values.shape[1])), whole),)
    scores = ndtri((rankdata(values, axis=0) - 0.5) / n)
    # The little that is added to the variances lets a number be the same in all windows.
    found = GaussianMixture(int(np.clip(n // 200, 1, 8)), reg_covar=1e-3, random_state=0)
    found.fit(scores)
    return tuple(
        Gaussian(
            float(f"{share:.5g}"), _plain(mean), tuple(_plain(row) for row in np.linalg.cholesky(c))
        )
        for share, mean, c in zip(found.weights_, found.means_, found.covariances_, strict=True)
    )


def _plain(values: NDArray[np.float64]) -> tuple[float, ...]:
    """Numbers as they are written down, in five digits."""
    return tuple(float(f"{value:.5g}") for value in values)
