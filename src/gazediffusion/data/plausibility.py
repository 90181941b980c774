"""Whether what was read can be gaze on its screen: unit, origin, screen and participants.

A table rarely states the unit of its gaze, and software cannot notice degrees that are labelled as
pixels. So the range of the gaze is checked. What looks like another unit or origin is refused
file by file. Gaze that is off the screen, in one corner or within a few pixels is refused over all
recordings, since a single participant may look away. Where the user has given the unit, the same
findings are warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.readers.options import BY_NAME, BY_PATTERN, GIVEN
from gazediffusion.data.recordings import Fact, Recording
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen

_KEPT_HZ = 25.0
_N_CHECKED = round(30 * _KEPT_HZ)  # points of one file, or of several short ones together
_N_FEWEST = round(2 * _KEPT_HZ)
_LARGEST_PX = 30_000.0  # larger numbers stand for lost samples
_LARGEST_DEG = 60.0  # farther to the side nobody looks without turning the head
_FEW_PX = 5.0
_CORNER = 0.2  # of the screen's width and height
_MARGIN = 0.1
_N_NAMED = 3
_CHECK = "check `screen`, `unit` and `origin`"


class ImplausibleError(GazeError):
    """What was read cannot be gaze on its screen."""


@dataclass(frozen=True)
class Observed:
    """What is looked at in a recording: points (2, time) in pixels, thinned to about 25 Hz."""

    path: Path
    who: Fact
    screen: Screen | None
    is_unit_given: bool
    points: NDArray[np.float32]


def observed(recording: Recording) -> Observed:
    """What is looked at in a recording."""
    who = recording.facts.get("participant", Fact(recording.participant, ""))
    is_given = recording.facts.get("unit", Fact("", "")).source == GIVEN
    return Observed(recording.path, who, recording.screen, is_given, _points(recording))


class Plausibility:
    """Looks at recordings one after another; `warnings` are what is odd but possible."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._seen: list[Observed] = []
        self._first_waiting = 0
        self._files_of: dict[Fact, set[Path]] = {}

    def add(self, recording: Recording) -> None:
        """Take in a recording; gaze that looks like another unit or origin is refused."""
        self.take(observed(recording))

    def take(self, one: Observed) -> None:
        """The same with what was looked at elsewhere."""
        self._files_of.setdefault(one.who, set()).add(one.path)
        for doubt in one.screen.doubts() if one.screen is not None else ():
            self._warn(f"{doubt}; check the size of the screen and the viewing distance")
        self._seen.append(one)
        waiting = self._seen[self._first_waiting :]
        if sum(one.points.shape[1] for one in waiting) >= _N_CHECKED:
            self._first_waiting = len(self._seen)
            self._check_unit(waiting)

    def finish(self) -> None:
        """Look at all recordings together."""
        self._check_unit(self._seen)
        self._check_place([one for one in self._seen if one.screen is not None])
        self._check_participants()

    def _check_unit(self, seen: list[Observed]) -> None:
        points = _joined(seen)
        if points.shape[1] < _N_FEWEST:
            return
        low, high = np.quantile(points, (0.01, 0.99), axis=1)
        farthest = float(np.abs([low, high]).max())
        share_below = np.mean(points < 0, axis=1)
        centred = "the `origin` center (center-up if y points up)"
        if low.min() >= -0.1 and 0 < farthest <= 1.6:
            remedy = "give the `unit` norm (and the `origin` bottom-left if y points up)"
            self._refuse(seen, "looks like fractions of the screen", remedy)
        elif 0 < farthest <= 1.6:
            first = "" if farthest <= 0.6 else "halve it and "
            remedy = f"{first}give the `unit` norm and {centred}"
            self._refuse(seen, "looks like fractions of the screen from its centre", remedy)
        elif farthest <= _LARGEST_DEG and low[0] < -1 and high[0] > 1:
            self._refuse(seen, "looks like degrees", f"give the `unit` deg and {centred}")
        elif (share_below > 0.15).all() and (share_below < 0.85).all():
            self._refuse(seen, "looks like pixels from the centre", f"give {centred}")

    def _check_place(self, seen: list[Observed]) -> None:
        points = _joined(seen)
        if points.shape[1] < _N_FEWEST:
            return
        place = np.concatenate([one.points / one.screen.size_px for one in seen if one.screen], 1)
        off = float(np.mean((np.abs(place - 0.5) > 0.5 + _MARGIN).any(axis=0)))
        corners = np.array(list(product((0.0, 1.0), repeat=2)))[:, :, None]
        in_corner = (np.abs(place - corners) < _CORNER).all(axis=1).mean(axis=1)
        low, high = np.quantile(points, (0.01, 0.99), axis=1)
        if off > 0.5:
            self._refuse(seen, f"is off the screen in {off:.0%} of the samples", _CHECK)
        elif (high - low).max() < _FEW_PX:
            self._refuse(seen, "stays within a few pixels", _CHECK)
        elif in_corner.max() > 0.95:
            self._refuse(seen, "stays in one corner of the screen", _CHECK)
        elif off > 0.1:
            self._warn(f"{off:.0%} of the gaze is off the screen; {_CHECK}")
        elif np.quantile(place, 0.995, axis=1).max() < 0.55:
            self._warn(f"the gaze stays in the top left quarter: {_range(seen)}; {_CHECK}")

    def _check_participants(self) -> None:
        """Say where every file is a participant of its own, or all are one."""
        files = set().union(*self._files_of.values())
        sources = {fact.source for fact in self._files_of}
        if len(files) < 2 or BY_PATTERN in sources:
            return
        names = [fact.value for fact in self._files_of]
        shown = ", ".join(names[:_N_NAMED]) + (" ..." if len(names) > _N_NAMED else "")
        pattern = "give a `participant_pattern` such as '(P[0-9]+)' to find it in the paths"
        if len(names) == 1:
            self._warn(
                f"all {len(files)} files are of one participant, {shown} (by {sources.pop()}); "
                f"if they are of several, {pattern}"
            )
        elif sources == {BY_NAME} and len(names) == len(files):
            self._warn(
                f"each of the {len(files)} files is a participant of its own ({shown}); "
                f"if several are of one, {pattern}"
            )

    def _refuse(self, seen: list[Observed], problem: str, remedy: str) -> None:
        if any(one.is_unit_given for one in seen):
            self._warn(f"the gaze {problem}: {_range(seen)}")
            return
        paths = list(dict.fromkeys(one.path for one in seen))
        more = f" (and {len(paths) - 1} more files)" if len(paths) > 1 else ""
        raise ImplausibleError(
            f"the gaze {problem}{more}: {_range(seen)}", path=paths[0], remedy=remedy
        )

    def _warn(self, line: str) -> None:
        if line not in self.warnings:
            self.warnings.append(line)


def _points(recording: Recording) -> NDArray[np.float32]:
    """The gaze (2, time) of the eye seen most, in pixels, at about 25 Hz, without losses."""
    time_ms = recording.time_ms
    if len(time_ms) < 2 or not recording.gaze_px:
        return np.empty((2, 0), np.float32)
    seconds = max(float(time_ms[-1] - time_ms[0]) / 1000, 1e-3)
    step = max(1, int(len(time_ms) / (seconds * _KEPT_HZ)))
    eyes = []
    for gaze in recording.gaze_px.values():
        thinned = gaze[:, ::step]
        is_seen = (np.abs(thinned) < _LARGEST_PX).all(axis=0) & (thinned != 0).any(axis=0)
        eyes.append(thinned[:, is_seen])
    return max(eyes, key=lambda one: one.shape[1])


def _joined(seen: list[Observed]) -> NDArray[np.float32]:
    return np.concatenate([np.empty((2, 0), np.float32), *(one.points for one in seen)], axis=1)


def _range(seen: list[Observed]) -> str:
    """The middle 98 % of the gaze, and the screen: `x from -24.1 to 23.8, y from ...`."""
    low, high = np.quantile(_joined(seen), (0.01, 0.99), axis=1)
    ranges = [f"{axis} from {a:.4g} to {b:.4g}" for axis, a, b in zip("xy", low, high, strict=True)]
    screens = sorted({one.screen.in_words() for one in seen if one.screen is not None})
    return ", ".join(ranges) + (f" on {screens[0]}" if len(screens) == 1 else "")
