"""Sets in parts for an evaluation: an index of the windows, and any of them read from the parts.

The gaze of a set is never in memory whole. A part is read alone, by any process, as the folder
would be (recorded_sets.py); its windows are the same. The index has the task and the number of each
window. What an evaluation needs of whole windows is a sample drawn by the index, the windows that
it would draw of the whole set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export.card import read_card
from gazediffusion.data.quantization import GRIDS_PX, is_on_grid
from gazediffusion.data.resampling import windows_at
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import MAX_WINDOWS, is_thinned, require_rate, stream
from gazediffusion.evaluation.recorded_sets import (
    as_it_is,
    expected_windows,
    left_out_of,
    mixed_order,
    with_task_names,
)
from gazediffusion.evaluation.set_tests import Progress
from gazediffusion.evaluation.summary import UNLABELLED, Like
from gazediffusion.files import read_json
from gazediffusion.generation.journal import FORMAT, MANIFEST
from gazediffusion.geometry import Screen
from gazediffusion.parallel import in_order, is_in_this_process

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Engine:
    """Who reads the parts, as in `parallel.in_order`."""

    name: str = "local"
    n_workers: int | None = None
    address: str | None = None

    @property
    def given(self) -> str:
        """The setting that is not the default."""
        return "engine" if self.name != "local" else "n_workers" if self.n_workers else "address"

    def require_possible(self) -> None:
        """Refuse settings that do not fit together."""
        is_in_this_process(self.name, self.n_workers, self.address)

    def over(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Sequence[Any]
    ) -> closing[Any]:
        """function(shared, item) for each item, in their order; a context to leave early."""
        how = self.name, self.n_workers, self.address
        return closing(in_order(function, shared, items, *how))


def is_in_parts(path: Path | str) -> bool:
    """Whether a folder is a set in parts that is complete."""
    manifest = Path(path) / MANIFEST
    if not manifest.is_file():
        return False
    fields = read_json(manifest)
    return isinstance(fields, dict) and fields.get("format") == FORMAT


@dataclass(frozen=True)
class PartReader:
    """How a part becomes windows: what of the real side and the card decides it.

    length, rate_hz, is_thinned: of the real windows. own_hz: of the set. tasks: as they are
    spelled. task: of windows that name none. grid_px: of the whole set.
    """

    files: tuple[Path, ...]
    length: int
    rate_hz: float
    is_thinned: bool
    own_hz: float
    screen: Screen | None
    tasks: tuple[str, ...]
    task: str | None
    grid_px: float | None
    is_whole: bool

    @classmethod
    def of(
        cls, folder: Path, like: Like, known_tasks: Sequence[str], screen: Screen | None
    ) -> PartReader:
        """Of the parts in a folder; known_tasks: names as the real side and the card spell them."""
        card, manifest = read_card(folder) or {}, read_json(folder / MANIFEST)
        try:
            files = tuple(folder / one["file"] for one in manifest["parts"])
            own_hz, n_samples = float(card["rate_hz"]), int(card["window_samples"])
        except (KeyError, TypeError, ValueError) as error:
            raise GazeError(f"card or manifest is damaged ({error})", path=folder) from error
        for file in files:
            if not file.is_file():
                raise GazeError(
                    "a part of the set is missing", path=file, remedy="generate the set again"
                )
        require_rate(like, folder.name, own_hz)
        grid_px = card.get("grid_px")
        seconds = like.length / like.rate_hz
        return cls(
            files=files,
            length=like.length,
            rate_hz=like.rate_hz,
            is_thinned=is_thinned(like),
            own_hz=own_hz,
            screen=screen,
            tasks=tuple(known_tasks),
            task=card.get("sampling", {}).get("task"),
            grid_px=None if grid_px is None else _grid_of(float(grid_px)),
            is_whole="losses" not in card and n_samples == round(seconds * own_hz),
        )

    def read(self, number: int) -> tuple[Windows | None, int, int]:
        """The windows of a part in their order, None where it has none; how many were expected.

        Last the recordings that are shorter than a window.
        """
        from gazediffusion.data.building import Cuts, NoWindowError, WindowBuilder
        from gazediffusion.data.readers import ReadOptions, find_sources

        seconds = self.length / self.rate_hz
        is_thinned = self.is_thinned and self.own_hz > self.rate_hz
        config = as_it_is(self.rate_hz if is_thinned else self.own_hz, seconds)
        piece, n_expected, n_short = Cuts(config), 0, 0
        for source in find_sources([self.files[number]], ReadOptions(fallback_screen=self.screen)):
            for recording in source.read():
                piece.add(recording)
                n_whole = expected_windows(recording, seconds)
                n_expected, n_short = n_expected + max(1, n_whole), n_short + (n_whole == 0)
        piece.looked_at = []  # our own set states unit and screen, and one part is not all of it
        piece.grids = [grid for grid in piece.grids if grid == self.grid_px]
        builder = WindowBuilder(config)
        builder.add(piece)
        try:
            windows = builder.build([])
        except NoWindowError:
            return None, n_expected, n_short
        if self.task and set(windows.tasks) <= set(UNLABELLED):
            windows = replace(windows, tasks=(self.task,) * len(windows.tasks))
        windows = with_task_names(windows, self.tasks)
        return windows_at(windows, self.rate_hz, self.is_thinned), n_expected, n_short


def _grid_of(grid_px: float) -> float | None:
    """The grid that reading finds in gaze on a grid."""
    one = np.array([[grid_px]], dtype=np.float32)
    return next((grid for grid in GRIDS_PX if is_on_grid(one, grid)), None)


@dataclass(frozen=True, eq=False)
class Index:
    """The windows of a set in the order of the parts: task and number of each, (window,).

    n_of_part: (part,). number: that of the trial; -1 where trials have other names. names: of the
    tasks. left_out: windows that were not read, as in the provenance of windows.
    """

    n_of_part: Ints
    task: NDArray[np.int16]
    number: NDArray[np.int32]
    names: tuple[str, ...]
    left_out: dict[str, Any] | None


@dataclass(frozen=True, eq=False)
class PartedSet:
    """Windows of a set in parts; order: (window,) indices of the index, as they are evaluated."""

    name: str
    reader: PartReader
    index: Index
    order: Ints

    @classmethod
    def open(
        cls, name: str, reader: PartReader, engine: Engine, progress: Progress = lambda name: None
    ) -> PartedSet:
        """Look at all parts for tasks and numbers of their windows."""
        names: dict[str, int] = {}
        sizes, tasks, numbers = [], [], []
        n_expected = n_short = 0
        items = range(len(reader.files))
        with engine.over(_indexed, reader, items) as found:
            for done, (of_task, number, expected, short) in enumerate(found, 1):
                codes = [names.setdefault(one, len(names)) for one in of_task]
                sizes.append(len(codes))
                tasks.append(np.array(codes, dtype=np.int16))
                numbers.append(number)
                n_expected, n_short = n_expected + expected, n_short + short
                progress(f"indexing {name}: {done} of {len(items)} parts")
        index = Index(
            np.array(sizes, dtype=np.int64),
            np.concatenate([np.empty(0, np.int16), *tasks]),
            np.concatenate([np.empty(0, np.int32), *numbers]),
            tuple(names),
            left_out_of(n_expected, sum(sizes), n_short, reader.length / reader.rate_hz),
        )
        order = mixed_order(index.task, index.names, index.number)
        return cls(name, reader, index, order)

    def __len__(self) -> int:
        return len(self.order)

    def of_tasks(self, tasks: Sequence[str]) -> PartedSet:
        """The windows of some tasks, in their order."""
        codes = [self.index.names.index(one) for one in tasks if one in self.index.names]
        return replace(self, order=self.order[np.isin(self.index.task[self.order], codes)])

    def drawn(self, seed: int, n: int = MAX_WINDOWS) -> Ints:
        """Indices of the windows that an evaluation draws, as of a set in memory."""
        chosen = stream(seed, f"{self.name}, all").permutation(len(self.order))[:n]
        return np.asarray(self.order[np.sort(chosen)])

    def windows(
        self, chosen: Ints, engine: Engine, progress: Progress = lambda name: None
    ) -> Windows:
        """These windows, read from the parts that have them."""
        stops = np.cumsum(self.index.n_of_part)
        part = np.searchsorted(stops, chosen, side="right")
        row = chosen - (stops - self.index.n_of_part)[part]
        items = [(int(one), row[part == one]) for one in np.unique(part)]
        gaze = np.empty((len(chosen), 2, self.reader.length), np.float32)
        screens: list[Any] = [None] * len(chosen)
        tasks: list[Any] = [None] * len(chosen)
        found_in: dict[str, Any] = {}
        grid_px = None
        with engine.over(_rows_of, self.reader, items) as found:
            for (one, _), (of_part, on, of_task, grid, said) in zip(items, found, strict=True):
                places = np.flatnonzero(part == one)
                gaze[places] = of_part
                found_in, grid_px = {**found_in, **said}, grid
                for place, screen, task in zip(places, on, of_task, strict=True):
                    screens[place], tasks[place] = screen, task
                progress(f"reading {self.name}: part {one + 1} of {len(stops)}")
        if self.index.left_out:
            found_in["left_out"] = self.index.left_out
        windows = Windows.from_array(
            gaze, self.reader.rate_hz, screens, tasks=tasks, provenance=found_in
        )
        return replace(windows, grid_px=grid_px)


def _indexed(reader: PartReader, number: int) -> tuple[Any, NDArray[np.int32], int, int]:
    """Task and number of each window of a part, and how many were expected and too short."""
    if not reader.is_whole:
        windows, n_expected, n_short = reader.read(number)
        if windows is None:
            return [], np.empty(0, np.int32), n_expected, n_short
        identity = windows.identity
        return identity["task"].tolist(), _numbers(identity["trial"].tolist()), n_expected, n_short
    import polars as pl

    rows = pl.read_parquet(reader.files[number], columns=["task", "trial"])
    trials = rows.unique(maintain_order=True)
    empty = np.zeros((len(trials), 2, 2), np.float32)
    of_task = [reader.task if one in UNLABELLED and reader.task else one for one in trials["task"]]
    named = Windows.from_array(empty, 1.0, Screen(1, 1), tasks=of_task)
    spelled = np.array(with_task_names(named, reader.tasks).tasks, dtype=object)[named.task]
    return spelled.tolist(), _numbers(trials["trial"].to_list()), len(trials), 0


def _numbers(trials: Sequence[str]) -> NDArray[np.int32]:
    """Trials as numbers; -1 where one is none."""
    is_number = all(one.isdecimal() for one in trials)
    return np.array([int(one) if is_number else -1 for one in trials], dtype=np.int32)


def _rows_of(reader: PartReader, item: tuple[int, Ints]) -> tuple[Any, ...]:
    """Gaze, screens, tasks, grid and rates of some windows of a part."""
    number, rows = item
    windows, *_ = reader.read(number)
    assert windows is not None
    chosen = windows.select(rows)
    tasks = [chosen.tasks[k] for k in chosen.task]
    screens = [chosen.screens[k] for k in chosen.screen_index]
    known = chosen.provenance
    said = {word: known[word] for word in ("rates", "resampled") if word in known}
    return chosen.cut(), screens, tasks, chosen.grid_px, said
