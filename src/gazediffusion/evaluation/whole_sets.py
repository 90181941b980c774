"""All windows of a set in parts, counted part by part in the bins of an evaluation.

Distances depend on the number of windows. So next to the distances of all windows at once, windows
are taken in blocks as large as the sets of the evaluation: the mean of the blocks' distances is
compared with the floor of the evaluation. No number depends on how the set is divided into parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.quantization import spread_over_grid
from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.distances import FARTHEST, share
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.headline import (
    FAMILIES,
    Counted,
    percentages,
    ratio,
    summarised_ratios,
    titles_of,
)
from gazediffusion.evaluation.metrics import histogram_counts, js_from_counts
from gazediffusion.evaluation.parted_sets import Engine, PartedSet, PartReader
from gazediffusion.evaluation.quantities import SCALARS, Measured, Protocol
from gazediffusion.evaluation.result import Results
from gazediffusion.evaluation.set_tests import Progress
from gazediffusion.evaluation.summary import Sketch, Summary
from gazediffusion.evaluation.tallies import Bins, Cells, Tally, grid_of, ks_of, w1_of
from gazediffusion.geometry import Screen
from gazediffusion.seeds import seed_for

Floats = NDArray[np.float64]

_CHUNK = 256  # windows measured at once; of so many all are examined in degrees
ABOUT = (
    "Every window of a set in parts, counted in the bins of the floor. JS, KS and W1 are of all "
    "windows at once: they have no floor, since distances shrink with the number of windows. In "
    "blocks: the mean JS of blocks of as many windows as the sets above have, which has the same "
    "floor; in brackets its standard deviation over blocks."
)


@dataclass(frozen=True, eq=False)
class Against:
    """The real side of a comparison: bins, counts and curves, and what counts are relative to.

    counts: (bin,) of the real windows, or shares; cells: where there is a grid.
    """

    bins: dict[str, Bins]
    counts: dict[str, Floats]
    cells: dict[str, Cells]
    curves: dict[str, Floats]
    reference: dict[str, float]
    screen: Screen | None

    @classmethod
    def of_windows(
        cls, results: Results, real: Windows, base: Windows, measured: Measured
    ) -> Against:
        """Of real windows and their measures; base: the training participants', or the real."""
        bins, counts, cells = {}, {}, {}
        for row in results["quantities"]:
            key = f"{row['family']}.{row['name']}"
            values = measured.quantities[key].values
            edges, grid = np.array(row["histogram"]["edges"]), grid_of(values)
            bins[key] = Bins(edges, grid)
            counts[key] = histogram_counts(values, edges).astype(float)
            cells[key] = Cells.of(share(values), grid)
        curves = {name: one.mean() for name, one in measured.curves.items()}
        reference = Counted.of(GazeSet.of("reference", base.dequantized(seed=0))).values
        known = {one for k in np.unique(real.screen_index) if (one := real.screens[k]).has_degrees}
        screen = known.pop() if len(known) == 1 else None
        return cls(bins, counts, cells, curves, reference, screen)

    @classmethod
    def of_summary(cls, results: Results, summary: Summary) -> Against:
        """Of a summary: its bins are all there is."""
        keys = [f"{row['family']}.{row['name']}" for row in results["quantities"]]
        bins = {key: Bins(summary.edges(key)) for key in keys}
        sketch = summary.sketch
        counts = {key: sketch.shares[key] for key in keys}
        return cls(bins, counts, {}, sketch.curves, summary.counts, summary.screen)

    def distances(self, tally: Tally, key: str) -> dict[str, float]:
        """JS, KS and W1 of a quantity; with a grid, their largest errors too."""
        counts = tally.counts[key]
        if not counts.any():
            return dict(FARTHEST)
        if key not in self.cells:
            edges = {key: self.bins[key].edges}
            ours = Sketch({key: counts / counts.sum()}, {})
            return Sketch({key: self.counts[key]}, {}).distances(ours, edges)[key]
        ks, ks_error = ks_of(self.cells[key], tally.cells[key])
        grid = self.bins[key].grid
        assert grid is not None
        w1, w1_error = w1_of(self.cells[key], tally.cells[key], grid)
        js = self.js(tally, key)
        return {"js": js, "ks": ks, "ks_error": ks_error, "w1": w1, "w1_error": w1_error}

    def js(self, tally: Tally, key: str) -> float:
        """JS of a quantity in the bins of the floor."""
        counts = tally.counts[key]
        return float(js_from_counts(self.counts[key], counts)) if counts.any() else FARTHEST["js"]

    def l1(self, tally: Tally, name: str) -> float:
        """A temporal distance."""
        return float(np.abs(self.curves[name] - tally.curve(name)).mean())


@dataclass(frozen=True)
class _Work:
    """What every worker knows: the bins by group of windows (ALL, or a task), and block sizes."""

    reader: PartReader
    bins: dict[str, dict[str, Bins]]
    tasks: dict[str, tuple[str, ...] | None]
    n_block: dict[str, int]
    screens: dict[str, Screen | None]
    protocols: tuple[Protocol, ...]


def _tallied(work: _Work, item: tuple[int, int, dict[str, int]]) -> dict[str, Any]:
    """Tallies of a part by group, none of windows of two blocks.

    item: the part, the number of its first window, and how many windows of each group are before.
    """
    number, first, n_before = item
    windows, *_ = work.reader.read(number)
    found: dict[str, list[Tally]] = {group: [] for group in work.bins}
    if windows is None:
        return found
    of_window = np.array(windows.tasks, dtype=object)[windows.task]
    for group, bins in work.bins.items():
        tasks = work.tasks[group]
        rows = np.arange(len(windows))
        if tasks is not None:
            rows = np.flatnonzero(np.isin(of_window.astype(str), tasks))
        for some in _by_block(rows, n_before[group], work.n_block[group]):
            one = _smoothed(windows.select(some), first + some)
            gaze = GazeSet.of(work.reader.files[number].name, one, True, work.screens[group])
            measured = replace(gaze, group=np.zeros(len(some), np.int64)).measure(work.protocols)
            found[group].append(Tally.of(measured, bins))
    return found


def _by_block(rows: NDArray[np.int64], n_before: int, n_block: int) -> Iterator[NDArray[np.int64]]:
    """Rows of a part in their order, at most _CHUNK at once and none of two blocks."""
    block = (n_before + np.arange(len(rows))) // n_block
    for one in np.unique(block):
        of_block = rows[block == one]
        for first in range(0, len(of_block), _CHUNK):
            yield of_block[first : first + _CHUNK]


def _smoothed(windows: Windows, numbers: NDArray[np.int64]) -> Windows:
    """Windows off their grid, each by draws of its own number."""
    if windows.grid_px is None:
        return windows
    pairs = zip(windows.cut(), windows.grid_of_window, numbers, strict=True)
    gaze = [spread_over_grid(one, grid, seed_for(0, int(number))) for one, grid, number in pairs]
    screens = [windows.screens[k] for k in windows.screen_index]
    tasks = [windows.tasks[k] for k in windows.task]
    return Windows.from_array(np.stack(gaze), windows.rate_hz, screens, tasks=tasks)


@dataclass(eq=False)
class _Group:
    """All windows of a group so far, the block at work, and the distances of complete blocks."""

    against: Against
    n_block: int
    total: Tally = field(default_factory=Tally)
    block: Tally = field(default_factory=Tally)
    of_blocks: list[dict[str, float]] = field(default_factory=list)

    def add(self, tally: Tally) -> None:
        """The next windows, of the block at work."""
        self.block = self.block + tally
        if self.block.n_windows == self.n_block:
            js = {key: self.against.js(self.block, key) for key in self.against.bins}
            l1 = {name: self.against.l1(self.block, name) for name in SCALARS}
            self.of_blocks.append(js | l1)
            self.total, self.block = self.total + self.block, Tally()

    def found(self, results: Results) -> Results:
        """What is known of all windows; results: of the evaluation, for floors and titles."""
        total = self.total + self.block
        quantities, scalars, ratios = [], [], {}
        for row in results["quantities"]:
            key, floor = f"{row['family']}.{row['name']}", row["distances"]["js"]["floor"]
            mean, deviation = total.mean_and_deviation(key, self.against.bins[key].centre)
            block = self._block(key, floor)
            if row["family"] in FAMILIES:
                ratios[row["name"]] = block["ratio"]
            words = {word: row[word] for word in ("name", "title", "family", "unit")}
            found = {"n_values": int(total.moments[key][0]), "mean": mean, "deviation": deviation}
            distances = self.against.distances(total, key)
            quantities.append({**words, **found, **distances, "block": block})
        for row in results["scalars"]:
            block = self._block(row["name"], row["floor"])
            ratios[row["name"]] = block["ratio"]
            words = {word: row[word] for word in ("name", "title", "family", "unit")}
            l1 = self.against.l1(total, row["name"])
            scalars.append({**words, "l1": l1, "block": block})
        known = {key: one for key, one in ratios.items() if one is not None}
        return {
            "n_windows": total.n_windows,
            "n_block": self.n_block,
            "n_blocks": len(self.of_blocks),
            "headline": {
                **summarised_ratios(known, {}, titles_of(results)),
                **percentages(total.values, self.against.reference),
                "n_windows": total.n_windows,
            },
            "quantities": quantities,
            "scalars": scalars,
        }

    def _block(self, key: str, floor: float) -> Results:
        values = [one[key] for one in self.of_blocks]
        mean = float(np.mean(values))
        return {"mean": mean, "deviation": float(np.std(values)), "ratio": ratio(mean, floor)}


def add_whole(
    parts: Mapping[str, Results],
    given: PartedSet,
    against: Mapping[str, Against],
    tasks: Mapping[str, tuple[str, ...] | None],
    protocols: tuple[Protocol, ...],
    engine: Engine,
    progress: Progress = lambda name: None,
) -> None:
    """Count all windows of a set and add what is found to the results of each part.

    tasks: of the windows of each part of the evaluation; None is all.
    """
    index, counted = given.index, {
        part: one for part, one in against.items() if given.name in parts[part]["sets"]["synthetic"]
    }  # fmt: skip
    groups = {
        part: _Group(one, int(parts[part]["about"]["n_common"])) for part, one in counted.items()
    }
    work = _Work(
        given.reader,
        {part: one.bins for part, one in counted.items()},
        {part: tasks[part] for part in counted},
        {part: one.n_block for part, one in groups.items()},
        {part: one.screen for part, one in counted.items()},
        protocols,
    )
    before = {part: _before(given, tasks[part]) for part in counted}
    firsts = np.cumsum(index.n_of_part) - index.n_of_part
    items = [
        (k, int(firsts[k]), {part: int(one[k]) for part, one in before.items()})
        for k in range(len(index.n_of_part))
    ]
    n_done, begun = 0, time.monotonic()
    with engine.over(_tallied, work, items) as found:
        for k, of_part in enumerate(found):
            for part, tallies in of_part.items():
                for tally in tallies:
                    groups[part].add(tally)
            n_done += int(index.n_of_part[k])
            rate = n_done / max(time.monotonic() - begun, 1e-9)
            left_s = (len(index.task) - n_done) / max(rate, 1e-9)
            progress(
                f"counting {given.name}: {n_done:,} of {len(index.task):,} windows, "
                f"{rate:.0f} windows/s, {left_s / 60:.0f} min left"
            )
    for part, group in groups.items():
        results = parts[part]
        results.setdefault("whole", {"about": ABOUT, "synthetic": {}})
        results["whole"]["synthetic"][given.name] = group.found(results)


def _before(given: PartedSet, tasks: tuple[str, ...] | None) -> NDArray[np.int64]:
    """How many windows of these tasks are in the parts before each, (part,)."""
    index = given.index
    codes = [k for k, name in enumerate(index.names) if tasks is None or name in tasks]
    is_of = np.isin(index.task, codes)
    stops = np.cumsum(index.n_of_part)
    n_until = np.append(0, np.cumsum(is_of))
    return np.asarray(n_until[stops - index.n_of_part])
