"""Manner: how a window is looked at, in twelve numbers that the network is told beside the task.

A denoiser learns soon what follows from nearby samples, and late what holds for a whole window: how
noisy the tracker was, how often the eye jumped, how far it went. Left to find that by itself it
makes too many middling windows. So these numbers are measured on every training window and told;
for a new window they are drawn first, from what the training people did in its task.

How the numbers go together is a mixture of a few Gaussians, each of a hundred windows or more; then
each number is brought to the quantiles of the training windows. Gaussians and quantiles are all
that is kept of the people. Recordings in whole pixels have manners of their own (resolution.py).
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

from gazediffusion.resolution import recorded_steps
from gazediffusion.seeds import evenly_spread, fallen_on
from gazediffusion.windows import Windows

# Logarithms of: median speed and median change of velocity over it (the tracker's noise and its
# colour), the odds of resting (many where a tracker gives whole pixels), the power of the change of
# velocity over that of velocity, mean speed, fast samples, saccades, spread; and the mean place.
NAMES = (
    "noise",
    "roughness",
    "rest",
    "jitter in x",
    "jitter in y",
    "speed",
    "fast samples",
    "saccades",
    "spread in x",
    "spread in y",
    "place in x",
    "place in y",
)
TRACKERS, MEDIANS = NAMES[:3], NAMES[:2]
REST = 0.08  # screen half-widths a second: a tenth of a pixel from one sample to the next
FAST = 5.0  # screen half-widths a second: the paper's threshold of 0.02 a sample at 250 Hz
# Quantiles are kept at these places of a standard normal; what lies outside is cut.
_NODES = np.linspace(-3, 3, 25)
_MOST_GAUSSIANS, _WINDOWS_EACH = 16, 100
_MANY = 10_000  # draws that tell a mixture's own quantiles
_MOST = 5.0  # standard deviations that the network is told at most
_CHUNK = 512
_NOTHING = ((0.0, 0.0),) * len(NAMES)  # is missed
_EDGE = 1e-6  # a place this near to 0 or 1 is taken for it


def measure(gaze: Tensor, rate_hz: float) -> Tensor:
    """The numbers of `NAMES`, (batch, 12), of normalized gaze (batch, 2, time)."""
    velocity = gaze.diff(dim=-1) * rate_hz
    squares, changes = velocity.square(), velocity.diff(dim=-1).square()
    speed, change = squares.sum(dim=1).sqrt(), changes.sum(dim=1).sqrt()
    noise = speed.median(dim=-1).values.clamp_min(1e-6)
    rest = (speed < REST).float().mean(dim=-1)
    jitter = changes.mean(dim=-1).clamp_min(1e-9) / squares.mean(dim=-1).clamp_min(1e-9)
    is_fast = speed > FAST
    begins = is_fast[:, 1:] & ~is_fast[:, :-1]
    n_saccades = begins.sum(dim=-1) + is_fast[:, 0]
    spread = gaze.std(dim=-1).clamp_min(1e-4).log()
    columns = [
        noise.log(),
        (change.median(dim=-1).values.clamp_min(1e-6) / noise).log(),
        ((rest + 0.01) / (1.01 - rest)).log(),
        *jitter.log().unbind(dim=1),
        speed.mean(dim=-1).clamp_min(1e-6).log(),
        is_fast.sum(dim=-1).log1p(),
        n_saccades.log1p(),
    ]
    return torch.cat([torch.stack(columns, dim=1), spread, gaze.mean(dim=-1)], dim=1)


def mirrored(numbers: Tensor) -> Tensor:
    """The numbers (batch, 12) of windows of which both axes are mirrored; only places change."""
    return torch.cat([numbers[:, :-2], -numbers[:, -2:]], dim=1)


@dataclass(frozen=True)
class Kind:
    """The manners of one task's training windows of one resolution, as a distribution to draw from.

    share: of the task's windows. step, grid: in which its recordings give x and y (zeros where that
    is fine), and that of their file, normalized.
    shares (Gaussian), means (Gaussian, number), factors (Gaussian, number, number): of the mixture;
    a factor turns white noise into a Gaussian's spread. drawn, real: quantiles (node, number) of
    what the mixture gives, and of the windows.
    missed: for each number, by how much a trained network misses what it is told, as a constant and
    a share of it; it is told that much less. Zeros before that is known.
    """

    share: float
    step: tuple[float, float]
    grid: tuple[float, float]
    shares: tuple[float, ...]
    means: tuple[tuple[float, ...], ...]
    factors: tuple[tuple[tuple[float, ...], ...], ...]
    drawn: tuple[tuple[float, ...], ...]
    real: tuple[tuple[float, ...], ...]
    missed: tuple[tuple[float, float], ...] = _NOTHING

    @classmethod
    def fit(
        cls,
        values: NDArray[np.float64],
        share: float = 1.0,
        step: Sequence[float] = (0.0, 0.0),
        grid: Sequence[float] = (0.0, 0.0),
    ) -> Kind:
        """From the numbers (window, 12) of at least one window."""
        from scipy.special import ndtr
        from sklearn.mixture import GaussianMixture

        n = int(np.clip(len(values) // _WINDOWS_EACH, 1, _MOST_GAUSSIANS))
        # The little that is added to the variances lets a number be the same in all windows.
        mixture = GaussianMixture(n, reg_covar=1e-4, random_state=0)
        mixture.fit(values if len(values) > 1 else np.repeat(values, 2, axis=0))
        shares, means = mixture.weights_, mixture.means_
        factors = np.linalg.cholesky(mixture.covariances_)
        even = evenly_spread(0, 0, _MANY, 1 + means.shape[1])
        many = _of_mixture(shares, means, factors, even[:, 0], even[:, 1:])
        return cls(
            share=_plain(np.asarray(share)),
            step=_plain(np.asarray(step)),
            grid=_plain(np.asarray(grid)),
            shares=_plain(shares),
            means=_plain(means),
            factors=_plain(factors),
            drawn=_plain(np.quantile(many, ndtr(_NODES), axis=0)),
            real=_plain(np.quantile(values, ndtr(_NODES), axis=0)),
        )

    def numbers(
        self, which: NDArray[np.float64], places: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Manners (window, 12) from numbers between 0 and 1.

        which (window,): of the Gaussian; places (window, 12): within it.
        """
        shares, means, factors, drawn, real = self._tables
        values = _of_mixture(shares, means, factors, which, places)
        columns = [np.interp(values[:, k], drawn[:, k], real[:, k]) for k in range(len(values.T))]
        return np.stack(columns, axis=1)

    @cached_property
    def _tables(self) -> list[NDArray[np.float64]]:
        names = ("shares", "means", "factors", "drawn", "real")
        return [np.array(getattr(self, name)) for name in names]


@dataclass(frozen=True)
class Manners:
    """The manners of the training windows: of each task, one kind or more.

    mean, std: of each number over all of them; the network is told numbers scaled by these.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    tasks: tuple[tuple[Kind, ...], ...]

    @classmethod
    def fit(cls, parts: Sequence[Windows], tasks: Sequence[str]) -> Manners:
        """From the training participants of all the windows files together."""
        numbers: dict[str, list[NDArray[np.float64]]] = {task: [] for task in tasks}
        steps: dict[str, list[NDArray[np.float64]]] = {task: [] for task in tasks}
        for part in parts:
            train = part.train
            measured = np.concatenate(list(_measured(train.dequantized(seed=0))))
            grid = np.broadcast_to(part.grid_normalized[:, 0], (len(train), 2))
            recorded = np.concatenate([recorded_steps(train), grid], axis=1)
            for number, task in enumerate(part.tasks):
                numbers[task].append(measured[train.task == number])
                steps[task].append(recorded[train.task == number])
        everyone = np.concatenate([one for task in tasks for one in numbers[task]])
        every_step = np.concatenate([one for task in tasks for one in steps[task]])
        std = everyone.std(axis=0)
        kinds = []
        for task in tasks:
            values, recorded = np.concatenate(numbers[task]), np.concatenate(steps[task])
            # A task without training windows is looked at as the others are.
            kinds.append(_kinds(values, recorded) if len(values) else _kinds(everyone, every_step))
        return cls(
            mean=_plain(everyone.mean(axis=0)),
            # A number that is the same in all windows is told as it is.
            std=_plain(np.where(std < 1e-3, 1.0, std)),
            tasks=tuple(kinds),
        )

    def told(self, gaze: Tensor, rate_hz: float) -> Tensor:
        """What the network hears of gaze (batch, 2, time): (batch, 12), about unit variance."""
        return self.scaled(measure(gaze, rate_hz))

    def scaled(self, measured: Tensor) -> Tensor:
        """What the network hears of measured numbers (batch, 12)."""
        mean, std = measured.new_tensor(self.mean), measured.new_tensor(self.std)
        return ((measured - mean) / std).clamp(-_MOST, _MOST)

    def drawn(self, tasks: Sequence[int], places: NDArray[np.float64]) -> tuple[Tensor, list[int]]:
        """What is wanted of windows in these tasks, by places (window, 13) between 0 and 1.

        (window, 12) of about unit variance, and which kind of its task each window is.
        """
        kinds = np.zeros(len(tasks), dtype=np.int64)
        values = np.empty((len(tasks), len(self.mean)))
        which = places[:, 0].copy()
        for task in set(tasks):
            of_task = np.flatnonzero(np.equal(tasks, task))
            shares = np.array([kind.share for kind in self.tasks[task]])
            kinds[of_task], which[of_task] = fallen_on(shares, which[of_task])
            for number, kind in enumerate(self.tasks[task]):
                rows = of_task[kinds[of_task] == number]
                values[rows] = kind.numbers(which[rows], places[rows, 1:])
        return self.scaled(torch.from_numpy(values).float()), kinds.tolist()

    def heard(self, tasks: Sequence[int], kinds: Sequence[int], wanted: Tensor) -> Tensor:
        """What the network must hear to make what is wanted of these kinds, (window, 12)."""
        missed = [self.tasks[task][kind].missed for task, kind in zip(tasks, kinds, strict=True)]
        constant, share = wanted.new_tensor(missed).unbind(dim=-1)
        return wanted - (constant + share * wanted)

    def corrected(
        self, kinds: Sequence[Sequence[int]], wanted: Sequence[Tensor], made: Sequence[Tensor]
    ) -> Manners:
        """These manners, knowing what a network made of what was wanted, task by task.

        For each task: the windows' kinds, and wanted and made (window, 12), wanted having been told
        as it was. Of the tracker's numbers only the constant is corrected: recordings are of a few
        kinds, and what is asked for beyond the noisiest is none of them. Medians are not, where the
        eye moves in whole steps: they jump from one step to the next.
        """
        tasks = []
        for of_task, numbers, x, y in zip(self.tasks, kinds, wanted, made, strict=True):
            corrected = list(of_task)
            for number, kind in enumerate(of_task):
                rows = torch.tensor(numbers) == number
                if rows.sum() > 2:  # fewer tell nothing
                    missed = _missed(x[rows], y[rows], in_whole_steps=any(kind.step))
                    corrected[number] = replace(kind, missed=missed)
            tasks.append(tuple(corrected))
        return replace(self, tasks=tuple(tasks))

    def uncorrected(self) -> Manners:
        """These manners, as if nothing were known of what a network misses."""
        tasks = tuple(tuple(replace(kind, missed=_NOTHING) for kind in task) for task in self.tasks)
        return replace(self, tasks=tasks)

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
                tuple(Kind(**{key: _tuples(table) for key, table in kind.items()}) for kind in task)
                for task in values["tasks"]
            ),
        )


def _kinds(values: NDArray[np.float64], recorded: NDArray[np.float64]) -> tuple[Kind, ...]:
    """The kinds of numbers (window, 12) with step and grid of their recordings (window, 4).

    Steps that differ by less than a twentieth are one; a kind of few windows joins the largest.
    """
    different, of_window = np.unique(recorded, axis=0, return_inverse=True)
    near = np.isclose(different[:, None], different[None], rtol=0.05, atol=0).all(axis=-1)
    number = near.argmax(axis=1)[of_window.ravel()]
    count = np.bincount(number)
    number = np.where(count[number] < min(_WINDOWS_EACH, count.max()), count.argmax(), number)
    kinds = []
    for one in np.unique(number):
        of_kind = number == one
        step_and_grid = np.median(recorded[of_kind], axis=0)
        share = float(of_kind.mean())
        kinds.append(Kind.fit(values[of_kind], share, step_and_grid[:2], step_and_grid[2:]))
    return tuple(kinds)


def _measured(windows: Windows) -> Iterator[NDArray[np.float64]]:
    """The numbers of all windows, (window, 12), in pieces."""
    for first in range(0, len(windows), _CHUNK):
        gaze = torch.from_numpy(windows.cut(np.arange(first, min(first + _CHUNK, len(windows)))))
        yield measure(gaze, windows.rate_hz).double().numpy()


def _of_mixture(
    shares: NDArray[np.float64],
    means: NDArray[np.float64],
    factors: NDArray[np.float64],
    which: NDArray[np.float64],
    places: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Draws (window, number) from a mixture of Gaussians, by numbers between 0 and 1."""
    number, _ = fallen_on(shares, which)
    inside = torch.from_numpy(places).clamp(_EDGE, 1 - _EDGE)
    normal = torch.special.ndtri(inside).numpy()
    drawn: NDArray[np.float64] = means[number] + np.einsum("wij,wj->wi", factors[number], normal)
    return drawn


def _missed(wanted: Tensor, made: Tensor, in_whole_steps: bool) -> tuple[tuple[float, float], ...]:
    """Constant and slope of the straight line through what is missed, for each number."""
    x, y = wanted.double().numpy(), (made - wanted).double().numpy()
    lines = []
    for k, name in enumerate(NAMES):
        if in_whole_steps and name in MEDIANS:
            lines.append((0.0, 0.0))
            continue
        slope = 0.0 if name in TRACKERS else float(np.polyfit(x[:, k], y[:, k], 1)[0])
        lines.append((float(y[:, k].mean()) - slope * float(x[:, k].mean()), slope))
    return _plain(np.array(lines))  # type: ignore[no-any-return]


def _plain(values: NDArray[np.float64]) -> Any:
    """Numbers as they are written down, nested as in the array, in five digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.5g}")
    return tuple(_plain(value) for value in values)


def _tuples(values: Any) -> Any:
    return tuple(map(_tuples, values)) if isinstance(values, list | tuple) else values
