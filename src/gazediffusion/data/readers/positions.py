"""Tables of positions that are no samples: the fixations of a scanpath, the jumps of a target.

Text, Parquet and Arrow, with names, units and origins as in tables of samples. A unit in a column's
name holds; times without one are in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.readers.naming import (
    MS_PER,
    POSITIONS,
    TRIAL_WORDS,
    Column,
    listed,
    meaning,
    pair_of,
)
from gazediffusion.data.readers.samples import Values, grouped, index_of, places_of
from gazediffusion.data.readers.tabular import naming_damage, open_table
from gazediffusion.data.windows import CLIP
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen, Unit, top_left_pixels
from gazediffusion.storage import fetched

_NUMBERS = ("onset", "duration", "order")
_IDENTITY = ("participant", "task", "scanpath", *TRIAL_WORDS)
# Positions are further apart in time; a unit without this property is not the column's.
_SHORTEST_STEP_MS = 10.0


@dataclass(frozen=True)
class Positions:
    """Rows of one table that share their identity, in the order of the file.

    xy: (2, row), in `unit` from `origin`. onset_ms, duration_ms, order: (row,), NaN where a cell is
    empty, None where there is no column. identity: participant, task, trial, ... -> cell.
    """

    path: Path
    place: Callable[[int], str]
    identity: Mapping[str, str]
    xy: NDArray[np.float64]
    unit: Unit
    origin: Origin
    onset_ms: NDArray[np.float64] | None
    duration_ms: NDArray[np.float64] | None
    order: NDArray[np.float64] | None

    @property
    def name(self) -> str:
        """The identity in one word; the file's name where there are no columns of identity."""
        return "-".join(filter(None, self.identity.values())) or self.path.stem

    @property
    def trial(self) -> str:
        """The trial, as `Recording.trial` is made of these columns."""
        cells = (self.identity.get(word) for word in TRIAL_WORDS)
        return "-".join(filter(None, cells))

    def error(self, problem: str, row: int, remedy: str | None = None) -> GazeError:
        """What is wrong with a row."""
        return GazeError(problem, path=self.path, place=self.place(row), remedy=remedy)

    def in_order(self) -> Positions:
        """The rows sorted by their `order`."""
        if self.order is None:
            return self
        rows = np.argsort(self.order, kind="stable")
        is_bad = ~(np.diff(self.order[rows], prepend=-np.inf) > 0)
        if is_bad.any():
            row = int(rows[np.argmax(is_bad)])
            raise self.error("its place in the order is missing or taken", row, "number the rows")
        numbers = [
            None if one is None else one[rows]
            for one in (self.onset_ms, self.duration_ms, self.order)
        ]
        onset_ms, duration_ms, order = numbers
        return replace(
            self,
            place=lambda row: self.place(int(rows[row])),
            xy=self.xy[:, rows],
            onset_ms=onset_ms,
            duration_ms=duration_ms,
            order=order,
        )

    def on(self, screen: Screen | None) -> NDArray[np.float32]:
        """Positions normalized to the screen, (2, row); missing or far off it is an error."""
        is_missing = ~np.isfinite(self.xy).all(axis=0)
        if is_missing.any():
            raise self.error("the position is missing", int(np.argmax(is_missing)), "give x and y")
        if screen is None:
            raise GazeError("the screen is not known", path=self.path, remedy="give `screen`")
        try:
            pixels = top_left_pixels(self.xy, self.unit, self.origin, screen)
        except GazeError as error:
            raise GazeError(str(error), path=self.path) from error
        normalized = screen.to_normalized(pixels)
        is_off = (np.abs(normalized) > CLIP).any(axis=0)
        if is_off.any():
            row = int(np.argmax(is_off))
            x, y = self.xy[:, row]
            raise self.error(
                f"({x:g}, {y:g}) {self.unit} from {self.origin} is off the screen of "
                f"{screen.in_words()}",
                row,
                "check `screen`, `unit` and `origin`",
            )
        return normalized.astype(np.float32)


def read_positions(
    path: Path, unit: Unit | None, origin: Origin | None, requires: Sequence[str] = ()
) -> list[Positions]:
    """The positions in a table, by identity, in the order in which these begin.

    unit, origin: of positions whose columns state none. requires: of onset, duration and order.
    """
    path = fetched(path)
    if not path.is_file():
        raise GazeError("there is no such file", path=path)
    table = open_table(path)
    found: dict[str, list[Column]] = {}
    for name in table.names:
        word, stated = meaning(name, POSITIONS)
        if word is not None:
            found.setdefault(word, []).append(Column(name, stated))
    pair = pair_of(found.get("x", []), found.get("y", []), unit)
    lacking = [word for word in requires if word not in found]
    if pair is None or lacking:
        words = "x and y columns" if pair is None else f"{lacking[0]} column"
        raise GazeError(
            f"no {words} among {listed(table.names)}",
            path=path,
            remedy="name them x_px, y_px, onset_ms, duration_ms",
        )
    stated_unit = cast("Unit | None", pair[0].unit)
    # What is given for another unit than the names state is said of other files.
    origin = origin if unit in (None, stated_unit) or stated_unit is None else None
    unit = stated_unit or unit or "px"
    origin = origin or ("center" if unit == "deg" else "top-left")
    numeric = {word: found[word][0] for word in _NUMBERS if word in found}
    identity = {word: found[word][0].name for word in _IDENTITY if word in found}
    names = [column.name for column in (*pair, *numeric.values())]
    values, _, _, stretches = table.samples(
        list(dict.fromkeys(names)), identity=list(dict.fromkeys(identity.values()))
    )
    positions = []
    with naming_damage(path):
        groups = grouped(stretches)
    for cells, rows in groups:
        chosen = {name: array[index_of(rows)] for name, array in values.items()}
        positions.append(
            Positions(
                path,
                places_of(table, rows),
                {word: cells[name] for word, name in identity.items()},
                np.stack([chosen[axis.name] for axis in pair]).astype(np.float64),
                unit,
                origin,
                _times_ms(chosen, numeric.get("onset"), path, is_onset=True),
                _times_ms(chosen, numeric.get("duration"), path),
                chosen[numeric["order"].name].astype(np.float64) if "order" in numeric else None,
            )
        )
    return positions


def _times_ms(
    values: Values, column: Column | None, path: Path, is_onset: bool = False
) -> NDArray[np.float64] | None:
    """A column of times in milliseconds, NaN where a cell is empty."""
    if column is None:
        return None
    times = values[column.name].astype(np.float64)
    if is_onset and column.unit is None:
        steps = np.diff(times[np.isfinite(times)])
        step = float(np.median(steps)) if len(steps) else _SHORTEST_STEP_MS
        if 0 < step < _SHORTEST_STEP_MS:
            raise GazeError(
                f"column {column.name!r} does not tell its unit (its median step is {step:g})",
                path=path,
                remedy=f"name it {column.name}_s or {column.name}_ms",
            )
    return times * MS_PER.get(column.unit or "ms", 1.0)
