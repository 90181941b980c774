"""Scanpaths: the fixations that generated gaze shall make, and waypoints on the command line."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import CLIP
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen, Unit

if TYPE_CHECKING:
    from gazediffusion.data.readers.positions import Positions

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
    from gazediffusion.data.readers.positions import read_positions

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
