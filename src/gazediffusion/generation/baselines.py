"""Baselines: the four simple generators a model must beat (paper, "Evaluation protocols").

Two are first-order Markov chains on a square grid, of increments and of positions; two draw every
sample on its own, reading "draw samples from uniform and Gaussian distributions" as independent
positions. All are fitted on the training participants only, each recorded sample counted once
however many windows overlap it. Left open by the paper and chosen here: the smoothing (see
SMOOTHING_CELLS), a uniform draw within a cell, and the first increment (drawn
from all training increments).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.data.writers.sets import format_of
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.generation.scheduling import Progress
from gazediffusion.generation.sets import Sampling, write_set
from gazediffusion.jobs import Show, nothing
from gazediffusion.network.pretrained import pretrained_models
from gazediffusion.plugins import Plugin, find_plugins
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng

# Open choice: the paper says "Gaussian-smoothed" and no more. It decides much: a fixation lives in
# one cell, and a Gaussian of one cell would leave it there 16 % of the time. A width of 0.3 leaves
# 98 % where it was counted and still gives every neighbour a share, which is what it is for.
SMOOTHING_CELLS = 0.3


@dataclass(frozen=True)
class Grid:
    """side x side equal cells over [-extent, extent]^2; cell number = side * x cell + y cell."""

    side: int
    extent: float

    @property
    def n_cells(self) -> int:
        """All cells."""
        return self.side**2

    def cells(self, points: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """The cell of each point (2, ...); points outside go to the border cells."""
        place = (points.astype(np.float64) + self.extent) * (self.side / (2 * self.extent))
        x, y = np.clip(np.floor(place), 0, self.side - 1).astype(np.int64)
        return np.asarray(self.side * x + y)

    def points(
        self, cells: NDArray[np.int64], within: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """A point (2, ...) of each cell, at `within` (2, ...) in [0, 1); 0.5 is the middle."""
        place = np.stack(np.divmod(cells, self.side)) + within
        return np.asarray(place * (2 * self.extent / self.side) - self.extent)


INCREMENT_GRID = Grid(51, 0.1)  # paper: "51 x 51 grid over [-0.1, 0.1]^2"
POSITION_GRID = Grid(32, CLIP)  # paper: "32 x 32 grid over [-1.2, 1.2]^2"


@dataclass(frozen=True, eq=False)
class Chain:
    """A first-order, time-homogeneous Markov chain on the cells of a grid.

    transition: (cell + 1, cell) float64, M_ab = Pr(c_{i+1} = b | c_i = a). The last row is the
    share of each cell in the training set: the chain stands there before its first cell, and
    cells it never left in training have that row too.
    """

    grid: Grid
    transition: NDArray[np.float64]

    @classmethod
    def fit(
        cls, grid: Grid, before: NDArray[np.int64], after: NDArray[np.int64], smoothing: float
    ) -> Chain:
        """Count the pairs of cells (pair,), smooth over the target's grid, normalize the rows."""
        if len(before) == 0:
            raise GazeError("the windows are too short to hold one transition")
        n = grid.n_cells
        counts = np.bincount(before * n + after, minlength=n * n).reshape(n, n)
        shares = counts.sum(axis=0)
        rows = np.where(counts.any(axis=1, keepdims=True), counts, shares)
        smoothed = smooth(np.concatenate([rows, shares[None]]), grid.side, smoothing)
        return cls(grid, smoothed / smoothed.sum(axis=1, keepdims=True))

    def walk(self, start: int, uniforms: NDArray[np.float32]) -> NDArray[np.int64]:
        """Cells (window, step) reached from `start` with these draws (window, step) in [0, 1)."""
        state = np.full(len(uniforms), start, dtype=np.int64)
        path = np.empty(uniforms.shape[::-1], dtype=np.int64)
        for step, draws in enumerate(np.ascontiguousarray(uniforms.T)):
            found = np.searchsorted(self._ladder, state + draws.astype(np.float64), side="right")
            state = path[step] = found - state * self.grid.n_cells
        return path.T

    @cached_property
    def _ladder(self) -> NDArray[np.float64]:
        """All rows' cumulative shares in one rising array: row a climbs from a to a + 1.

        So one search serves windows in different states. A 24-bit draw plus a row number is exact
        in float64, hence never rounded up into the next row.
        """
        climb = np.cumsum(self.transition, axis=1)
        climb /= climb[:, -1:]
        climb += np.arange(len(climb))[:, None]
        return climb.ravel()


def smooth(rows: NDArray[Any], side: int, sigma: float) -> NDArray[np.float64]:
    """Spread each row (row, side * side) over its grid by a Gaussian of `sigma` cells.

    What would leave the grid is shared among the cells inside, so every row keeps its sum.
    """
    if sigma == 0:
        return rows.astype(np.float64)
    steps = np.arange(side)
    kernel = np.exp(-0.5 * ((steps[:, None] - steps) / sigma) ** 2)
    kernel /= kernel.sum(axis=1, keepdims=True)
    spread = kernel.T @ rows.reshape(-1, side, side).astype(np.float64) @ kernel
    return np.asarray(spread.reshape(rows.shape))


def covered(windows: Windows, span: int) -> NDArray[np.int64]:
    """Every index i, once, such that samples i ... i + span - 1 lie together in some window."""
    n, last = windows.gaze.shape[1], windows.starts + max(windows.length - span + 1, 0)
    edges = np.bincount(windows.starts, minlength=n + 1) - np.bincount(last, minlength=n + 1)
    return np.flatnonzero(np.cumsum(edges) > 0)


class Process:
    """How one kind of baseline is fitted and draws windows."""

    @classmethod
    def fit(cls, train: Windows, smoothing: float) -> Process:
        """Fit on training windows; nothing to fit unless a kind says so."""
        return cls()

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """One window per stream, (window, 2, length), each from its own stream only."""
        raise NotImplementedError


@dataclass(frozen=True)
class KinematicMarkov(Process):
    """A chain of increments u_i = r_i - r_{i-1}, summed from r_0 = 0; nothing bounds the sum."""

    chain: Chain

    @classmethod
    def fit(cls, train: Windows, smoothing: float) -> KinematicMarkov:
        """Transitions between consecutive increments; those beyond ±0.1 count at the border."""
        first, grid = covered(train, 3), INCREMENT_GRID
        one, two, three = (train.gaze[:, first + k] for k in (0, 1, 2))
        return cls(Chain.fit(grid, grid.cells(two - one), grid.cells(three - two), smoothing))

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """Increments one from the other, then their running sum."""
        steps, _ = _walked_points(self.chain, self.chain.grid.n_cells, streams, length - 1)
        return np.cumsum(steps, axis=2)


@dataclass(frozen=True)
class PositionalMarkov(Process):
    """A chain of positions from r_0 = 0.

    The paper's "increments are sampled and integrated" is read as r_i = r_{i-1} + (r_i - r_{i-1}):
    a point is drawn in the cell the chain moves to, and held while the chain stays in it.
    """

    chain: Chain

    @classmethod
    def fit(cls, train: Windows, smoothing: float) -> PositionalMarkov:
        """Transitions between the cells of consecutive positions."""
        first, grid = covered(train, 2), POSITION_GRID
        before, after = (grid.cells(train.gaze[:, first + k]) for k in (0, 1))
        return cls(Chain.fit(grid, before, after, smoothing))

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """From the cell of zero, one cell from the other."""
        start = int(self.chain.grid.cells(np.zeros(2)))
        points, cells = _walked_points(self.chain, start, streams, length - 1)
        has_moved = np.diff(cells, axis=1, prepend=start) != 0
        entered = np.maximum.accumulate(np.where(has_moved, np.arange(1, length), 0), axis=1)
        held = np.pad(entered, ((0, 0), (1, 0)))[:, None]
        return np.take_along_axis(points, held, axis=2)


@dataclass(frozen=True)
class Uniform(Process):
    """Every sample anywhere on the screen, [-1, 1]^2."""

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """Independent positions."""
        return np.stack([stream.uniform(-1, 1, (2, length)) for stream in streams])


@dataclass(frozen=True, eq=False)
class Gaussian(Process):
    """Every sample from one normal distribution, not clipped: mean (2,), covariance (2, 2)."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def fit(cls, train: Windows, smoothing: float) -> Gaussian:
        """Mean and covariance of the training positions."""
        gaze = train.gaze[:, covered(train, 1)].astype(np.float64)
        return cls(gaze.mean(axis=1), np.cov(gaze))

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """Independent positions."""
        normal = (self.mean, self.covariance, length)
        return np.stack([stream.multivariate_normal(*normal).T for stream in streams])


BASELINES: dict[str, type[Process]] = {
    "kinematic-markov": KinematicMarkov,
    "positional-markov": PositionalMarkov,
    "uniform": Uniform,
    "gaussian": Gaussian,
}


@dataclass(frozen=True, eq=False)
class Baseline:
    """A fitted baseline with a seed, used as a `Sampler` is.

    `batch_size` changes speed, never the windows.

    >>> import gazediffusion as gd
    >>> gaze = np.random.default_rng(0).normal(0, 0.1, (8, 2, 500))
    >>> windows = gd.Windows.from_array(gaze, rate_hz=250, screen=gd.Screen(1280, 720))
    >>> baseline = fit_baseline("gaussian", windows)
    >>> [path.name for path in baseline.sample_to("gaussian.npz", 4)]
    ['gaussian.npz', 'gaussian.json', 'gaussian.md']
    """

    process: Process
    length: int
    rate_hz: float
    screen: Screen
    settings: dict[str, Any]
    data: dict[str, Any]
    batch_size: int = 256
    seed: int = 0

    def pieces(
        self, first: int, stop: int, progress: Progress = lambda done: None
    ) -> Iterator[NDArray[np.float32]]:
        """Batches (window, 2, time); `progress` receives how many windows are done."""
        for start in range(first, stop, self.batch_size):
            end = min(start + self.batch_size, stop)
            streams = [rng(self.seed, Stream.BASELINE, k) for k in range(start, end)]
            yield self.process.draw(streams, self.length).astype(np.float32)
            progress(end)

    def sample(self, n: int, seed: int = 0) -> Windows:
        """The first n windows of this seed, in memory."""
        sampling = Sampling(replace(self, seed=seed), n)
        return sampling.windows(np.concatenate(list(sampling.pieces())))

    def sample_to(
        self,
        path: Path | str,
        n: int,
        seed: int = 0,
        *,
        format: str | None = None,
        screen: Screen | None = None,
        grid_px: float | None = None,
        seconds: float | None = None,
        progress: Show = nothing,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write the first n windows of this seed to a file or a folder, streamed.

        The same bytes as `sample(n, seed).save(path)`, unless screen, grid_px or seconds are given
        (see `sets.Sampling`). overwrite: replace a set that is there. Returns the set, its card
        (JSON) and its README.
        """
        format = format_of(Path(path), format)
        sampling = Sampling(replace(self, seed=seed), n, format, screen, grid_px, seconds)
        return write_set(sampling, path, progress, overwrite=overwrite)

    def describe(self) -> dict[str, Any]:
        """What a card says: length and rate of windows, screens by task, sampling and model."""
        return {
            "window_samples": self.length,
            "rate_hz": self.rate_hz,
            "screens": {"synthetic": self.screen},
            "sampling": {},
            "model": {**self.settings, "trained_on": self.data},
        }

    def as_windows(self, gaze: NDArray[np.float32], first: int = 0) -> Windows:
        """Generated gaze (window, 2, time) of windows first.., with its origin."""
        return Windows.from_array(
            gaze, self.rate_hz, self.screen, provenance={"seed": self.seed, **self.settings}
        )


@dataclass(frozen=True)
class _PluginProcess(Process):
    """A fitted generator of another package, whose failures name it."""

    plugin: Plugin
    fitted: Any

    def draw(self, streams: Sequence[np.random.Generator], length: int) -> NDArray[np.float64]:
        """The plug-in's windows, refused where they are not (window, 2, length)."""
        drawn = self.plugin.call(self.fitted.draw, streams, length)
        gaze = self.plugin.call(np.asarray, drawn, np.float64)
        if gaze.shape != (len(streams), 2, length) or not np.isfinite(gaze).all():
            needed = f"finite gaze of the shape {(len(streams), 2, length)} is needed"
            raise self.plugin.failure(ValueError(f"{needed}, not {gaze.shape}"))
        return np.asarray(gaze)


def generators() -> dict[str, Plugin]:
    """The generators of plug-ins, by name."""
    return find_plugins("generators", (*BASELINES, "default", *pretrained_models()))


def is_baseline(name: Path | str) -> bool:
    """Whether this is the name of a baseline or of a plug-in's generator, and no file."""
    is_ours = str(name) in BASELINES
    return not Path(name).exists() and (is_ours or str(name) in generators())


def fit_baseline(name: str, windows: Windows, smoothing: float = SMOOTHING_CELLS) -> Baseline:
    """Fit a baseline, or the generator of a plug-in, on the training participants.

    smoothing: in cells, of the Markov ones.

    >>> import gazediffusion as gd
    >>> gaze = np.random.default_rng(0).normal(0, 0.01, (8, 2, 500)).cumsum(axis=-1)
    >>> windows = gd.Windows.from_array(gaze, rate_hz=250, screen=gd.Screen(1280, 720))
    >>> fit_baseline("kinematic-markov", windows).sample(3, seed=0)
    Windows(3 of 2 s at 250 Hz, participants: 1, tasks: synthetic)
    """
    plugin = None if name in BASELINES else generators().get(name)
    if name not in BASELINES and plugin is None:
        known = [*BASELINES, *generators()]
        raise GazeError(f"no baseline {name!r}", remedy=suggestion(name, known))
    if not smoothing >= 0:
        raise GazeError(f"the smoothing must be 0 cells or more, not {smoothing:g}")
    train = windows.train
    if len(train) == 0:
        raise GazeError(
            "there is no window of a training participant to fit a baseline on",
            remedy="prepare with a smaller `validation_fraction`",
        )
    if not np.isfinite(train.gaze[:, covered(train, 1)]).all():
        raise GazeError("some training windows hold gaze that is not a number")
    settings = {"baseline": name, "data_sha256": windows.provenance.get("data_sha256")}
    if name.endswith("markov"):
        settings["smoothing_cells"] = smoothing
    if plugin is None:
        process = BASELINES[name].fit(train, smoothing)
    else:
        settings["plugin"] = plugin.package
        process = _PluginProcess(plugin, plugin.call(plugin.value.fit, train))
    held_out = windows.held_out
    data = {
        "sha256": windows.provenance.get("data_sha256"),
        "tasks": [train.tasks[k] for k in np.unique(train.task)],
        "n_participants": len(np.unique(windows.participant)),
        "n_held_out_participants": len(np.unique(held_out.participant)),
        "n_windows": len(train),
        "n_held_out_windows": len(held_out),
    }
    return Baseline(process, windows.length, windows.rate_hz, train.screen, settings, data)


def _walked_points(
    chain: Chain, start: int, streams: Sequence[np.random.Generator], n_steps: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points (window, 2, 1 + step), zero and then uniform within the cells (window, step)."""
    uniforms = np.stack([stream.random((3, n_steps), dtype=np.float32) for stream in streams])
    cells = chain.walk(start, uniforms[:, 0])
    points = chain.grid.points(cells, uniforms[:, 1:].swapaxes(0, 1)).swapaxes(0, 1)
    return np.pad(points, ((0, 0), (0, 0), (1, 0))), cells
