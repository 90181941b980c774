"""Manner: how a window is looked at, in nine numbers that the network is told beside the task.

A denoiser learns soon what follows from nearby samples, and late what holds for a whole window: how
noisy the tracker was, how often the eye jumped, how far it went. Left to find that by itself it
makes too many middling windows. So these numbers are measured on every training window and told;
for a new window they are drawn first, from what the training people did in its task.

How the numbers go together is a mixture of a few Gaussians, each of a hundred windows or more; then
each number is brought to the quantiles of the training windows. Gaussians and quantiles are all
that is kept of the people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
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
TRACKERS = NAMES[:2]
FAST = 5.0  # screen half-widths a second: the paper's threshold of 0.02 a sample at 250 Hz
# Quantiles are kept at these places of a standard normal; what lies outside is cut.
_NODES = np.linspace(-3, 3, 25)
_MOST_GAUSSIANS, _WINDOWS_EACH = 8, 100
_MANY = 10_000  # draws that tell a mixture's own quantiles
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
class TaskManners:
    """The manners of one task's training windows, as a distribution to draw from.

    shares (Gaussian), means (Gaussian, number), factors (Gaussian, number, number): of the mixture;
    a factor turns white noise into a Gaussian's spread. drawn, real: quantiles (node, number) of
    what the mixture gives, and of the windows.
    """

    shares: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    factors: tuple[tuple[tuple[float, ...], ...], ...]
    drawn: tuple[tuple[float, ...], ...]
    real: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, values: NDArray[np.float64]) -> TaskManners:
        """From the numbers (window, 9) of at least one window."""
        from scipy.special import ndtr
        from sklearn.mixture import GaussianMixture

        n = int(np.clip(len(values) // _WINDOWS_EACH, 1, _MOST_GAUSSIANS))
        # The little that is added to the variances lets a number be the same in all windows.
        mixture = GaussianMixture(n, reg_covar=1e-4, random_state=0)
        mixture.fit(values if len(values) > 1 else np.repeat(values, 2, axis=0))
        shares, means = mixture.weights_, mixture.means_
        factors = np.linalg.cholesky(mixture.covariances_)
        rng = np.random.default_rng(0)
        many = [_drawn(shares, means, factors, rng) for _ in range(_MANY)]
        return cls(
            shares=_plain(shares),
            means=_plain(means),
            factors=_plain(factors),
            drawn=_plain(np.quantile(many, ndtr(_NODES), axis=0)),
            real=_plain(np.quantile(values, ndtr(_NODES), axis=0)),
        )

    def draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """The numbers of one window, (9,)."""
        shares, means, factors, drawn, real = self._arrays
        values = _drawn(shares, means, factors, rng)
        return np.array([np.interp(v, drawn[:, k], real[:, k]) for k, v in enumerate(values)])

    @cached_property
    def _arrays(self) -> list[NDArray[np.float64]]:
        return [np.array(getattr(self, one.name)) for one in fields(self)]


@dataclass(frozen=True)
class Manners:
    """The manners of the training windows, task by task.

    mean, std: of each number over all of them; the network is told numbers scaled by these.
    missed: for each task and number, by how much a trained network misses what it is told, as a
        constant and a share of it; it is told that much less (`corrected`). Empty before that is
        known.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    tasks: tuple[TaskManners, ...]
    missed: tuple[tuple[tuple[float, float], ...], ...] = ()

    @classmethod
    def fit(cls, parts: Sequence[Windows], tasks: Sequence[str]) -> Manners:
        """From the training participants of all the windows files together."""
        found: dict[str, list[NDArray[np.float64]]] = {task: [] for task in tasks}
        for part in parts:
            train = part.train.dequantized(seed=0)
            measured = np.concatenate(list(_measured(train)))
            for number, task in enumerate(part.tasks):
                found[task].append(measured[train.task == number])
        everyone = np.concatenate([one for task in tasks for one in found[task]])
        # A task without training windows is looked at as the others are.
        of_task = [np.concatenate(found[task]) for task in tasks]
        std = everyone.std(axis=0)
        return cls(
            mean=_plain(everyone.mean(axis=0)),
            # A number that is the same in all windows is told as it is.
            std=_plain(np.where(std < 1e-3, 1.0, std)),
            tasks=tuple(TaskManners.fit(one if len(one) else everyone) for one in of_task),
        )

    def told(self, gaze: Tensor, rate_hz: float) -> Tensor:
        """What the network hears of gaze (batch, 2, time): (batch, 9), about unit variance."""
        return self._scaled(measure(gaze, rate_hz))

    def drawn(self, task: int, seed: int, index: int) -> Tensor:
        """What is wanted of window `index` of a seed, in a task: (9,), about unit variance."""
        rng = np.random.default_rng(seed_for(seed, index, _STREAM))
        values = torch.from_numpy(self.tasks[task].draw(rng)).float()
        return self._scaled(values[None])[0]

    def heard(self, task: int, wanted: Tensor) -> Tensor:
        """What the network must hear to make what is wanted, (..., 9)."""
        if not self.missed:
            return wanted
        constant, share = wanted.new_tensor(self.missed[task]).unbind(dim=-1)
        return wanted - (constant + share * wanted)

    def corrected(self, wanted: Sequence[Tensor], made: Sequence[Tensor]) -> Manners:
        """These manners, knowing what a network made of what was wanted, task by task.

        wanted, made: (window, 9) for each task, wanted having been told as it was. The tracker's
        noise and its colour stay as they are: recordings are of a few kinds, and what is asked for
        beyond the noisiest kind is none of them.
        """
        return replace(
            self,
            missed=tuple(
                tuple(
                    (0.0, 0.0) if name in TRACKERS else _line(x[:, k], (y - x)[:, k])
                    for k, name in enumerate(NAMES)
                )
                for x, y in zip(wanted, made, strict=True)
            ),
        )

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
            mean=_tuples(values["mean"]),
            std=_tuples(values["std"]),
            tasks=tuple(
                TaskManners(**{key: _tuples(table) for key, table in one.items()})
                for one in values["tasks"]
            ),
            missed=_tuples(values["missed"]),
        )

    def _scaled(self, measured: Tensor) -> Tensor:
        mean, std = measured.new_tensor(self.mean), measured.new_tensor(self.std)
        return ((measured - mean) / std).clamp(-_MOST, _MOST)


def _measured(windows: Windows) -> Iterator[NDArray[np.float64]]:
    """The numbers of all windows, (window, 9), in pieces."""
    for first in range(0, len(windows), _CHUNK):
        gaze = torch.from_numpy(windows.cut(np.arange(first, min(first + _CHUNK, len(windows)))))
        yield measure(gaze, windows.rate_hz).double().numpy()


def _drawn(
    shares: NDArray[np.float64],
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """One draw from a mixture of Gaussians, (number,)."""
    edges = np.cumsum(shares)
    one = int(np.searchsorted(edges[:-1], rng.uniform(0, edges[-1]), side="right"))
    drawn: NDArray[np.float64] = means[one] + factors[one] @ rng.standard_normal(means.shape[1])
    return drawn


def _line(x: Tensor, y: Tensor) -> tuple[float, float]:
    """Constant and slope of the straight line through y against x."""
    slope, constant = np.polyfit(x.double().numpy(), y.double().numpy(), 1)
    return _plain(np.array([constant, slope]))  # type: ignore[no-any-return]


def _plain(values: NDArray[np.float64]) -> Any:
    """Numbers as they are written down, nested as in the array, in five digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.5g}")
    return tuple(_plain(value) for value in values)


def _tuples(values: Any) -> Any:
    return tuple(map(_tuples, values)) if isinstance(values, list | tuple) else values
