"""Scanpaths: the fixations that generated gaze is to make, and waypoints on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import CLIP
from gazediffusion.errors import GazeError
from gazediffusion.screen import Origin, Screen, Unit, top_left_pixels
from gazediffusion.storage import fetched, origin_of, sha256_of

if TYPE_CHECKING:
    from gazediffusion.data.readers.columns import Column
    from gazediffusion.data.readers.samples import Values

SHORTEST_FIXATION_MS, LONGEST_FIXATION_MS = 40.0, 10_000.0
# The smallest saccades take 20 ms (main sequence: Bahill, Clark and Stark 1975).
SHORTEST_SACCADE_MS = 20.0


@dataclass(frozen=True, eq=False)
class Scanpath:
    """Fixations one after another.

    x, y: (fixation,) float32, normalized to the screen. onset_ms, duration_ms: (fixation,) float64,
    from the start of the gaze, NaN where they are left free.

    >>> import numpy as np
    >>> x, y = np.array([-0.5, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
    >>> free = np.full(2, np.nan)
    >>> len(Scanpath("left to right", x, y, onset_ms=free, duration_ms=free).x)
    2
    """

    name: str
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    onset_ms: NDArray[np.float64]
    duration_ms: NDArray[np.float64]


def read_scanpaths(
    path: Path | str,
    screen: Screen,
    *,
    unit: Unit | None = None,
    origin: Origin | None = None,
) -> list[Scanpath]:
    """Scanpaths in a table with a row per fixation: x and y, and onset, order or duration if known.

    Several scanpaths are distinguished by the columns scanpath, id, participant, trial or stimulus.
    unit, origin: of x and y where the column names state none, as for recordings.

    >>> import tempfile
    >>> from gazediffusion import Screen, read_scanpaths
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fixations.csv"
    ...     _ = path.write_text("id,x_px,y_px,duration_ms\\na,640,360,250\\na,960,180,\\nb,0,0,\\n")
    ...     first, second = read_scanpaths(path, Screen(1280, 720))
    >>> first.name, first.x.tolist(), first.y.tolist(), first.duration_ms.tolist()
    ('a', [0.0, 0.5], [0.0, -0.5], [250.0, nan])
    """

    return [
        _scanpath(fixations.in_order(), screen)
        for fixations in read_positions(Path(path), unit, origin)
    ]


def parse_waypoint(text: str, screen: Screen) -> tuple[float, float, float]:
    """Seconds, and x and y normalized to the screen, of a waypoint `SECONDS:X,Y` in pixels.

    >>> from gazediffusion import Screen, parse_waypoint
    >>> parse_waypoint("2.0:640,180", Screen(1280, 720))
    (2.0, 0.0, -0.5)
    """
    seconds, colon, position = text.partition(":")
    try:
        at_s = float(seconds) if colon else math.nan
    except ValueError:
        at_s = math.nan
    if not 0 <= at_s < math.inf:
        raise GazeError(f"`at` must look like 2.0:640,360 (seconds:x,y in pixels), not {text!r}")
    return at_s, *parse_position(position, screen, "at")


def parse_position(text: str, screen: Screen, argument: str = "start") -> tuple[float, float]:
    """x and y, normalized to the screen, of a position `X,Y` in pixels.

    >>> from gazediffusion import Screen, parse_position
    >>> parse_position("640,180", Screen(1280, 720))
    (0.0, -0.5)
    """
    number = r"\s*(-?\d+(?:\.\d*)?)\s*"
    match = re.fullmatch(f"{number},{number}", text)
    if match is None:
        raise GazeError(f"`{argument}` needs a position in pixels as 640,360, not {text!r}")
    pixels = np.array([[float(match[1])], [float(match[2])]])
    x, y = screen.to_normalized(pixels)[:, 0].tolist()
    if max(abs(x), abs(y)) > CLIP:
        raise GazeError(
            f"`{argument}` {text.strip()} is off the screen of {screen.in_words()}",
            remedy="give pixels from the top left corner",
        )
    return x, y


def _scanpath(fixations: Positions, screen: Screen) -> Scanpath:
    x, y = fixations.on(screen)
    free = np.full(len(x), np.nan)
    onset_ms = free if fixations.onset_ms is None else fixations.onset_ms
    duration_ms = free if fixations.duration_ms is None else fixations.duration_ms
    _require_durations(fixations, duration_ms)
    _require_onsets(fixations, onset_ms, duration_ms)
    return Scanpath(fixations.name, x, y, onset_ms, duration_ms)


def _require_durations(fixations: Positions, duration_ms: NDArray[np.float64]) -> None:
    is_bad = (duration_ms < SHORTEST_FIXATION_MS) | (duration_ms > LONGEST_FIXATION_MS)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise fixations.error(
            f"no fixation lasts {duration_ms[row]:g} ms",
            row,
            f"durations are {SHORTEST_FIXATION_MS:g} to {LONGEST_FIXATION_MS:g} ms; name a column "
            "in seconds duration_s",
        )


def _require_onsets(
    fixations: Positions, onset_ms: NDArray[np.float64], duration_ms: NDArray[np.float64]
) -> None:
    """Refuse onsets before the start, out of order, or before the fixation above can end."""
    latest_ms, end_ms, earliest_ms = 0.0, 0.0, 0.0
    is_end_given = False
    for row, (onset, duration) in enumerate(zip(onset_ms, duration_ms, strict=True)):
        if onset < 0 or math.isinf(onset):
            raise fixations.error(f"an onset of {onset:g} ms", row, "count from the start of gaze")
        if onset < latest_ms:
            problem = f"the onset of {onset:g} ms is before the one above, {latest_ms:g} ms"
            raise fixations.error(problem, row, "sort by onset, or name a column scanpath")
        if onset < end_ms and is_end_given:
            problem = f"it begins at {onset:g} ms, and the one above lasts to {end_ms:g} ms"
            raise fixations.error(problem, row, "shorten that one, or leave its duration empty")
        if onset < earliest_ms:
            problem = f"an onset of {onset:g} ms leaves no time for a fixation and a saccade"
            raise fixations.error(problem, row, f"begin at {earliest_ms:g} ms or later")
        begin_ms = end_ms if math.isnan(onset) else onset
        latest_ms = latest_ms if math.isnan(onset) else onset
        is_end_given = not math.isnan(duration)
        end_ms = begin_ms + (duration if is_end_given else SHORTEST_FIXATION_MS)
        earliest_ms = begin_ms + SHORTEST_FIXATION_MS + SHORTEST_SACCADE_MS


@dataclass(frozen=True, eq=False)
class Targets:
    """Where a target is: from time_ms[k] on at x[k], y[k].

    time_ms: (jump,) float64, increasing. x, y: (jump,) float32, normalized to the screen.

    >>> import numpy as np
    >>> x, y = np.array([-0.5, 0.5], dtype=np.float32), np.zeros(2, dtype=np.float32)
    >>> Targets("a jump after a second", np.array([0.0, 1000.0]), x, y).time_ms.tolist()
    [0.0, 1000.0]
    """

    name: str
    time_ms: NDArray[np.float64]
    x: NDArray[np.float32]
    y: NDArray[np.float32]


def read_targets(
    path: Path | str,
    screen: Screen,
    *,
    unit: Unit | None = None,
    origin: Origin | None = None,
) -> list[Targets]:
    """Targets in a table with the columns time, x and y; several by participant, trial or id.

    unit, origin: of x and y where the column names state none, as for recordings.

    >>> import tempfile
    >>> from gazediffusion import Screen, read_targets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "dots.csv"
    ...     _ = path.write_text("t_ms,x_px,y_px\\n0,640,360\\n1000,960,180\\n")
    ...     (targets,) = read_targets(path, Screen(1280, 720))
    >>> targets.name, targets.time_ms.tolist(), targets.x.tolist(), targets.y.tolist()
    ('dots', [0.0, 1000.0], [0.0, 0.5], [0.0, -0.5])
    """
    found = []
    for jumps in _read_jumps(Path(path), unit, origin):
        x, y = jumps.on(screen)
        found.append(Targets(jumps.name, _times_ms(jumps), x, y))
    return found


class RecordedTargets:
    """The targets of recordings, in a table with the columns participant, trial, time, x and y.

    A column of identity that the table lacks holds for all recordings: without a trial, for every
    trial of the participant.
    """

    def __init__(
        self, path: Path | str, unit: Unit | None = None, origin: Origin | None = None
    ) -> None:
        self.path = fetched(path)
        self.jumps = list(_read_jumps(self.path, unit, origin))
        self._given = self.path, unit, origin

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process reads the table itself.
        return RecordedTargets, self._given

    def number_of(self, recording: Recording) -> int | None:
        """Which targets are those of a recording; None where the table has none for it."""
        for number, jumps in enumerate(self.jumps):
            if _is_of(jumps, recording):
                return number
        return None

    def given_to(self, recording: Recording, number: int) -> Recording:
        """The recording with these targets."""
        return replace(recording, targets_px=_held(self.jumps[number], recording))

    def described(self, recorded: Collection[int]) -> dict[str, Any]:
        """The file, and how much of it belongs to no recording; all of it is an error.

        recorded: the numbers of targets that belong to a recording.
        """
        others = [one for k, one in enumerate(self.jumps) if k not in recorded]
        n_rows = sum(len(_times_ms(one)) for one in others)
        if not recorded:
            first = ", ".join(f"{word} {cell}" for word, cell in others[0].identity.items())
            raise GazeError(
                f"{n_rows} rows of targets, and none is of a recording; the first is of {first}",
                path=self.path,
                remedy="name participants and trials as the recordings do",
            )
        return {
            "name": self.path.name,
            **origin_of(self.path),
            "sha256": sha256_of(self.path),
            "recordings_without_gaze": len(others),
            "rows_without_gaze": n_rows,
        }


def _read_jumps(path: Path, unit: Unit | None, origin: Origin | None) -> list[Positions]:

    found = read_positions(path, unit, origin, requires=("onset",))
    for jumps in found:
        times_ms = _times_ms(jumps)
        is_bad = ~(np.diff(times_ms, prepend=-np.inf) > 0) | np.isinf(times_ms)
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise jumps.error(
                "the time is missing, infinite, or not after the one before",
                row,
                "sort by time, and tell several targets apart by a column named trial",
            )
    return found


def _times_ms(jumps: Positions) -> NDArray[np.float64]:
    assert jumps.onset_ms is not None  # required on reading
    return jumps.onset_ms


def _is_of(jumps: Positions, recording: Recording) -> bool:
    """Whether all that the table states agrees; a recording's trial may also begin with more."""
    known = {"participant": recording.participant, "task": recording.task}
    is_same = all(jumps.identity.get(word, own) == own for word, own in known.items())
    return is_same and f"-{recording.trial}".endswith(f"-{jumps.trial}" if jumps.trial else "")


def _held(jumps: Positions, recording: Recording) -> NDArray[np.float32]:
    """Where the target is at each sample, (2, time) in pixels; NaN before the first jump."""
    screen = recording.screen
    normalized = jumps.on(screen)
    assert screen is not None
    last = np.searchsorted(_times_ms(jumps), recording.time_ms, side="right")
    places = np.column_stack([np.full(2, np.nan, np.float32), screen.to_pixels(normalized)])
    return places[:, last]


_NUMBERS = ("onset", "duration", "order")
_IDENTITY = ("participant", "task", "scanpath")
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
        cells = (cell for word, cell in self.identity.items() if word not in _IDENTITY)
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
    # Loaded here: models sample where there is no polars.
    from gazediffusion.data.readers.columns import (
        POSITIONS,
        TRIAL_WORDS,
        Column,
        listed,
        meaning,
        pair_of,
    )
    from gazediffusion.data.readers.samples import grouped, index_of, places_of
    from gazediffusion.data.readers.tables import naming_damage, open_table

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
    identity = {word: found[word][0].name for word in (*_IDENTITY, *TRIAL_WORDS) if word in found}
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
                _table_times_ms(chosen, numeric.get("onset"), path, is_onset=True),
                _table_times_ms(chosen, numeric.get("duration"), path),
                chosen[numeric["order"].name].astype(np.float64) if "order" in numeric else None,
            )
        )
    return positions


def _table_times_ms(
    values: Values, column: Column | None, path: Path, is_onset: bool = False
) -> NDArray[np.float64] | None:
    """A column of times in milliseconds, NaN where a cell is empty."""
    from gazediffusion.data.readers.columns import MS_PER

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
