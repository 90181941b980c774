"""How a page is read: the pace at which gaze goes down it, and where it ends.

Within a recording readers go down the page at a constant pace, which differs between recordings,
and begin again at the top when they have reached its end. A window does not show the pace, so that
long gaze is given waypoints on a path that is drawn for each recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.conditioning.beginnings import POSITION_S, TIMES_S
from gazediffusion.data.windows import Windows
from gazediffusion.seeds import quantile_draw

_LEVELS = np.linspace(0.02, 0.98, 13)  # without the extremes of single recordings
JITTER_S = 4.0  # of waypoints, so that no moment of long gaze is special
_AROUND_S = 0.4  # before and after a return to the top gaze is given a position
_APART_S = 1.5  # of these from others
_EVERY_S = 1.0  # at which positions of recordings are taken
_RETURN = 0.5  # normalized: gaze that is so far above the lowest position reads the page again
_LEAST_POSITIONS, _LEAST_RECORDINGS, _LEAST_PARTICIPANTS = 12, 20, 5
_LEAST_EXPLAINED = 0.8  # of the variance of y by a constant pace, for a task to be reading
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Page:
    """Quantiles at equal levels of the pace (normalized y per second) of recordings, and of x.

    end: y at which a page ends.
    """

    pace: tuple[float, ...]
    x: tuple[float, ...]
    end: float

    @classmethod
    def fit(cls, parts: Sequence[Windows], task: str) -> Page | None:
        """From the training participants of windows files; None where no page is read."""
        paces, explained, places, names = [], [], [], set()
        for part in parts:
            for name, time_s, place in _recordings(part, task):
                first = slice(_return(place[1]))
                time_s, place = time_s[first], place[:, first]
                if len(time_s) < _LEAST_POSITIONS:
                    continue
                slope, intercept = np.polyfit(time_s, place[1], 1)
                rest = place[1] - slope * time_s - intercept
                paces.append(slope)
                explained.append(1 - rest.var() / place[1].var())
                places.append(place)
                names.add(name)
        if len(paces) < _LEAST_RECORDINGS or len(names) < _LEAST_PARTICIPANTS:
            return None
        if np.median(explained) < _LEAST_EXPLAINED or np.quantile(paces, _LEVELS[0]) <= 0:
            return None
        x, y = np.concatenate(places, axis=1)
        return cls(
            tuple(np.quantile(paces, _LEVELS).round(6).tolist()),
            tuple(np.quantile(x, _LEVELS).round(6).tolist()),
            round(float(np.quantile(y, _LEVELS[-1])), 6),
        )

    def draw(self, time_s: Floats, top: float, seed: int) -> tuple[Floats, Floats]:
        """Times (time,) and positions (2, time) on the path of a recording.

        It reads from y = top after a second. Times are up to JITTER_S later than those given, or
        shortly before and after a return to the top.
        """
        rng = np.random.default_rng(seed)
        pace = float(quantile_draw(self.pace, rng.random(1))[0])
        height = max(self.end - top, _RETURN)
        time_s = time_s + JITTER_S * rng.random(len(time_s))
        n_returns = int(pace * max(time_s.max(initial=0.0) - TIMES_S[-1], 0.0) / height)
        return_s = TIMES_S[-1] + np.arange(1, n_returns + 1) * height / pace
        is_apart = (np.abs(time_s[:, None] - return_s) > _APART_S).all(axis=1)
        around = [return_s - _AROUND_S, return_s + _AROUND_S]
        time_s = np.sort(np.concatenate([time_s[is_apart], *around]))
        x = quantile_draw(self.x, rng.random(len(time_s)))
        y = top + np.mod(pace * np.maximum(time_s - TIMES_S[-1], 0.0), height)
        return time_s, np.stack([x, y])

    def to_json(self) -> dict[str, Any]:
        """All of it by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Page:
        """Read what `to_json` wrote."""
        return cls(tuple(values["pace"]), tuple(values["x"]), values["end"])


def _recordings(part: Windows, task: str) -> Iterator[tuple[str, Floats, Floats]]:
    """Participant, times (s) and positions (2, time) of the training recordings of a task."""
    elapsed_ms = part.segment_elapsed_ms
    if task not in part.tasks or elapsed_ms is None:
        return
    stops = np.append(part.segment_starts[1:], part.gaze.shape[1])
    every, n_samples = (max(1, round(one * part.rate_hz)) for one in (_EVERY_S, POSITION_S))
    trials: dict[tuple[str, str], list[int]] = {}
    for k in np.unique(part.of_task(task).train.segment_of_window).tolist():
        name = part.participants[part.segment_participant[k]]
        trials.setdefault((name, part.segment_trial[k]), []).append(k)
    for (name, _), segments in trials.items():
        times, places = [], []
        for k in sorted(segments, key=elapsed_ms.__getitem__):
            gaze = part.gaze[:, part.segment_starts[k] : stops[k]]
            firsts = np.arange(0, gaze.shape[1] - n_samples + 1, every)
            times.append(elapsed_ms[k] / 1000 + firsts / part.rate_hz)
            spans = gaze[:, firsts[:, None] + np.arange(n_samples)]
            places.append(np.median(spans, axis=2).astype(np.float64))
        time_s, place = np.concatenate(times), np.concatenate(places, axis=1)
        is_read = time_s >= TIMES_S[-1]  # before, gaze is elsewhere
        yield name, time_s[is_read], place[:, is_read]


def _return(y: Floats) -> int | None:
    """The number of positions before gaze returns to the top of the page; None without a return."""
    above = np.flatnonzero(y < np.maximum.accumulate(y) - _RETURN)
    return int(above[0]) if len(above) else None
