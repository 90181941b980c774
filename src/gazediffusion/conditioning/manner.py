"""Manner: how a window is looked at, in twenty-five numbers told to the network beside the task.

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
from torch.nn import functional

from gazediffusion.data.quantization import recorded_steps
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.seeds import evenly_spread, fallen_on

# Saccades are counted by how long they last, at least; the size of those of LONG_S is told too.
DURATIONS_S = (0.012, 0.02, 0.028, 0.036, 0.044, 0.052)
LONG_S = 0.044
# Logarithms of: median speed of each axis (the tracker's noise), the odds of resting and of turning
# back from one sample to the next, the power of the change of velocity over that of velocity, mean
# speed, fast samples, saccades, those of one sample, those that last, how far long ones go, spread,
# how far the window reaches; and the mean place.
NAMES = (
    "noise in x",
    "noise in y",
    "rest in x",
    "rest in y",
    "turns in x",
    "turns in y",
    "jitter in x",
    "jitter in y",
    "speed",
    "fast samples",
    "saccades",
    "brief saccades",
    *(f"saccades of {1000 * seconds:.0f} ms" for seconds in DURATIONS_S),
    "size of long saccades",
    "spread in x",
    "spread in y",
    "reach in x",
    "reach in y",
    "place in x",
    "place in y",
)
TRACKERS, MEDIANS = NAMES[:6], NAMES[:2]
REST = 0.04  # screen half-widths a second: a tenth of a pixel from one sample to the next
FAST = 5.0  # screen half-widths a second: the paper's threshold of 0.02 a sample at 250 Hz
USUAL_SIZE = 0.5  # screen half-widths: of a long saccade, where a window has none
# Quantiles are kept at these places of a standard normal; what lies outside is cut.
_NODES = np.linspace(-3, 3, 25)
_MOST_GAUSSIANS, _WINDOWS_EACH = 16, 200
_ADDED = 1e-2  # to the variances, of about 1
_MANY = 10_000  # draws that tell a mixture's own quantiles
_MOST = 5.0  # standard deviations that the network is told at most
_CHUNK = 512
_NOTHING = ((0.0, 0.0),) * len(NAMES)  # is missed
_OBEYED, _STRETCHES = (0.5, 1.0), (0.8, 1.25)  # least and most that is believed
_FARTHEST = 1.5  # standard deviations from people's mean that a network is told at most
_EDGE = 1e-6  # a place this near to 0 or 1 is taken for it


def measure(gaze: Tensor, rate_hz: float) -> Tensor:
    """The numbers of `NAMES`, (batch, number), of normalized gaze (batch, 2, time)."""
    velocity = gaze.diff(dim=-1) * rate_hz
    squares, axial = velocity.square(), velocity.abs()
    noise = axial.median(dim=-1).values.clamp_min(1e-6)
    rest = (axial < REST).float().mean(dim=-1)
    turns = (velocity[..., 1:] * velocity[..., :-1] < 0).float().mean(dim=-1)
    changes = velocity.diff(dim=-1).square()
    jitter = changes.mean(dim=-1).clamp_min(1e-9) / squares.mean(dim=-1).clamp_min(1e-9)
    speed = squares.sum(dim=1).sqrt()
    is_fast = speed > FAST
    n_saccades, n_two, *n_lasting = (
        _n_runs(is_fast, length)
        for length in (1, 2, *(round(seconds * rate_hz) for seconds in DURATIONS_S))
    )
    counts = [is_fast.sum(dim=-1), n_saccades, n_saccades - n_two, *n_lasting]
    is_long = _in_runs(is_fast, round(LONG_S * rate_hz))
    covered = (speed * is_long).sum(dim=-1) / rate_hz
    # As if each window had one long saccade more, of the usual size.
    size = (covered + USUAL_SIZE) / (n_lasting[DURATIONS_S.index(LONG_S)] + 1)
    spread = gaze.std(dim=-1).clamp_min(1e-4)
    reach = (gaze.amax(dim=-1) - gaze.amin(dim=-1)).clamp_min(1e-4)
    return torch.cat(
        [
            noise.log(),
            _log_odds(rest),
            _log_odds(turns),
            jitter.log(),
            speed.mean(dim=-1, keepdim=True).clamp_min(1e-6).log(),
            torch.stack(counts, dim=1).log1p(),
            size[:, None].log(),
            spread.log(),
            reach.log(),
            gaze.mean(dim=-1),
        ],
        dim=1,
    )


def mirrored(numbers: Tensor) -> Tensor:
    """The numbers (batch, number) of windows with both axes mirrored; only places change."""
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
        """From the numbers (window, number) of at least one window."""
        from scipy.special import ndtr
        from sklearn.mixture import GaussianMixture

        n = int(np.clip(len(values) // _WINDOWS_EACH, 1, _MOST_GAUSSIANS))
        mean, std = values.mean(axis=0), values.std(axis=0)
        std = np.where(std < 1e-3, 1.0, std)  # a number may be the same in all windows
        mixture = GaussianMixture(n, reg_covar=_ADDED, random_state=0)
        mixture.fit(
            (values if len(values) > 1 else np.repeat(values, 2, axis=0)) / std - mean / std
        )
        shares, means = mixture.weights_, mean + std * mixture.means_
        factors = std[:, None] * np.linalg.cholesky(mixture.covariances_)
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
        """Manners (window, number) from numbers between 0 and 1.

        which (window,): of the Gaussian; places (window, number): within it.
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
            grid = train.grid_of_window[:, :, 0]
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
        """What the network hears of gaze (batch, 2, time): (batch, number), about unit variance."""
        return self.scaled(measure(gaze, rate_hz))

    def scaled(self, measured: Tensor) -> Tensor:
        """What the network hears of measured numbers (batch, number)."""
        mean, std = measured.new_tensor(self.mean), measured.new_tensor(self.std)
        return ((measured - mean) / std).clamp(-_MOST, _MOST)

    def drawn(self, tasks: Sequence[int], places: NDArray[np.float64]) -> tuple[Tensor, list[int]]:
        """What is wanted of windows in these tasks, by places (window, 1 + number) between 0 and 1.

        (window, number) of about unit variance, and which kind of its task each window is.
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
        """What the network must hear to make what is wanted of these kinds, (window, number)."""
        missed = [self.tasks[task][kind].missed for task, kind in zip(tasks, kinds, strict=True)]
        constant, share = wanted.new_tensor(missed).unbind(dim=-1)
        return wanted - (constant + share * wanted)

    def corrected(
        self, kinds: Sequence[Sequence[int]], wanted: Sequence[Tensor], made: Sequence[Tensor]
    ) -> Manners:
        """These manners, knowing what a network made of what was wanted, task by task.

        For each task: the windows' kinds, and wanted and made (window, number), told as these
        manners tell it. What is made is then to have the mean and the spread of what is wanted;
        what is told for that stays near to what people do. Of the tracker's numbers only the mean
        is corrected: recordings are of a few kinds, and what is asked for beyond the noisiest is
        none of them. Medians are not, where the eye moves in whole steps: they jump from one step
        to the next.
        """
        tasks = []
        for of_task, numbers, x, y in zip(self.tasks, kinds, wanted, made, strict=True):
            corrected = list(of_task)
            for number, kind in enumerate(of_task):
                rows = torch.tensor(numbers) == number
                if rows.sum() > 2:  # fewer tell nothing
                    corrected[number] = replace(kind, missed=_missed(kind, x[rows], y[rows]))
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
        if len(values["mean"]) != len(NAMES):
            raise GazeError(
                f"the model is told {len(values['mean'])} numbers of a window, and this version of "
                f"gazediffusion tells {len(NAMES)}",
                remedy="use the version that it was trained with; its config.json says which",
            )
        return cls(
            mean=_tuples(values["mean"]),
            std=_tuples(values["std"]),
            tasks=tuple(
                tuple(Kind(**{key: _tuples(table) for key, table in kind.items()}) for kind in task)
                for task in values["tasks"]
            ),
        )


def _n_runs(is_fast: Tensor, length: int) -> Tensor:
    """How many runs of at least so many fast samples, (batch,), are in is_fast (batch, time)."""
    before = functional.pad(is_fast, (1, 0))[:, :-1]
    return (_is_followed(is_fast, length) & ~before).sum(dim=-1)


def _in_runs(is_fast: Tensor, length: int) -> Tensor:
    """Which samples (batch, time) are in runs of at least so many fast ones."""
    padded = functional.pad(_is_followed(is_fast, length), (length - 1, 0))
    return padded.unfold(-1, length, 1).any(dim=-1)


def _is_followed(is_fast: Tensor, length: int) -> Tensor:
    """Which samples (batch, time) begin so many fast ones in a row, themselves the first."""
    padded = functional.pad(is_fast, (0, length - 1))
    return padded.unfold(-1, length, 1).all(dim=-1)


def _log_odds(share: Tensor) -> Tensor:
    return ((share + 0.01) / (1.01 - share)).log()


def _kinds(values: NDArray[np.float64], recorded: NDArray[np.float64]) -> tuple[Kind, ...]:
    """The kinds of numbers (window, number) with step and grid of their recordings (window, 4).

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
    """The numbers of all windows, (window, number), in pieces."""
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


def _missed(kind: Kind, wanted: Tensor, made: Tensor) -> tuple[tuple[float, float], ...]:
    """What is missed of each number, as a constant and a share, from windows of the kind."""
    lines = []
    x, y = wanted.double().numpy(), made.double().numpy()
    for k, (name, (constant, share)) in enumerate(zip(NAMES, kind.missed, strict=True)):
        if any(kind.step) and name in MEDIANS:
            lines.append((0.0, 0.0))
            continue
        mean, steepness = float(x[:, k].mean()), 1 - share
        obeyed, stretch = _response(x[:, k], y[:, k])
        lacking = mean - float(y[:, k].mean())
        farthest = _FARTHEST * float(x[:, k].std())
        shift = float(np.clip(-share * mean - constant + lacking / obeyed, -farthest, farthest))
        if name not in TRACKERS:
            steepness *= stretch
        lines.append(((steepness - 1) * mean - shift, 1 - steepness))
    return _plain(np.array(lines))  # type: ignore[no-any-return]


def _response(wanted: NDArray[np.float64], made: NDArray[np.float64]) -> tuple[float, float]:
    """How far a network does what it is told, and by how much that is to be spread.

    What is made follows what is told on a line, whose slope is the first, with a scatter of its
    own; both together are to have the spread of what is wanted.
    """
    covariance = np.cov(wanted, made)
    variance, together = float(covariance[0, 0]), float(covariance[0, 1])
    if variance < 1e-6 or together < 0.1 * variance:
        return 1.0, 1.0  # nothing to follow, or not followed
    slope = together / variance
    scatter = float(covariance[1, 1]) - slope * together
    left = max(variance - scatter, 0.0)
    stretch = (left / variance) ** 0.5 / slope
    return float(np.clip(slope, *_OBEYED)), float(np.clip(stretch, *_STRETCHES))


def _plain(values: NDArray[np.float64]) -> Any:
    """Numbers as they are written down, nested as in the array, in five digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.5g}")
    return tuple(_plain(value) for value in values)


def _tuples(values: Any) -> Any:
    return tuple(map(_tuples, values)) if isinstance(values, list | tuple) else values
