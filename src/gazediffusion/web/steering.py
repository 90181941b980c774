"""What generated windows are to keep to: read from tables and recordings by the worker.

The functions that take a `Report` run in the worker. Scanpaths and targets come from it as JSON,
the windows of a recording in a file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.bounds import require_all_bounds
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.worker import Report, TooLargeError

MAX_ROWS = 100_000  # of a table of fixations or jumps
MAX_LIKE = 2000  # windows of a recording, a second apart
_SHORTEST_S = 0.04  # of a fixation whose duration is left free
_ARRAYS = {"scanpath": ("x", "y", "onset_ms", "duration_ms"), "targets": ("time_ms", "x", "y")}


def read_table(
    kind: str, path: Path, screen: gd.Screen, place: dict[str, Any], max_bytes: int, report: Report
) -> bytes:
    """The scanpaths or targets of a table as JSON; null where a time is left free.

    kind: scanpath or targets. place: unit and origin of positions.
    """
    require_all_bounds(path, max_bytes)
    read = gd.read_scanpaths if kind == "scanpath" else gd.read_targets
    found: list[Any] = list(read(path, screen, **place))
    n_rows = sum(len(one.x) for one in found)
    if n_rows > MAX_ROWS:
        raise TooLargeError(f"more than {MAX_ROWS:,} rows", path=path.name)
    return json.dumps(
        [{"name": one.name, **{name: _plain(one, name) for name in _ARRAYS[kind]}} for one in found]
    ).encode()


def _plain(one: Any, name: str) -> list[float | None]:
    return [None if value != value else value for value in getattr(one, name).tolist()]


def scanpaths_of(content: bytes) -> list[gd.Scanpath]:
    """The scanpaths that `read_table` returned."""
    return [gd.Scanpath(**_arrays(one)) for one in json.loads(content)]


def targets_of(content: bytes) -> list[gd.Targets]:
    """The targets that `read_table` returned."""
    return [gd.Targets(**_arrays(one)) for one in json.loads(content)]


def _arrays(one: dict[str, Any]) -> dict[str, Any]:
    kinds = {"x": np.float32, "y": np.float32}
    arrays = {
        name: np.array(values, dtype=kinds.get(name, np.float64))
        for name, values in one.items()
        if name != "name"
    }
    return {"name": one["name"], **arrays}


def read_style(
    source: Path,
    settings: dict[str, Any],
    rate_hz: float,
    seconds: float,
    kept: Path,
    max_bytes: int,
    report: Report,
) -> bytes:
    """The windows of `like`, from recordings or a windows file, written to `kept`.

    rate_hz, seconds: of the model's windows.
    """
    require_all_bounds(source, max_bytes)
    if source.suffix == ".safetensors":
        windows = gd.Windows.load(source)
        if np.isnan(windows.gaze).any():
            raise GazeError(
                "these windows have losses", path=source, remedy="cut between them with `prepare`"
            )
        windows = replace(windows, provenance={"sources": _sources(windows, source)})
    else:
        windows = gd.style_windows(gd.read(source, **settings), rate_hz, seconds)
    if len(windows) > MAX_LIKE:
        raise TooLargeError(
            f"`like` has {len(windows):,} windows, and {MAX_LIKE:,} are the most here",
            path=source.name,
            remedy="give a shorter recording",
        )
    windows.save(kept)
    return b""


def _sources(windows: gd.Windows, path: Path) -> list[dict[str, str]]:
    """The recordings that a windows file names, as a card does."""
    try:
        listed = windows.provenance.get("sources", [])
        return [{key: str(one[key]) for key in ("name", "sha256")} for one in listed]
    except (TypeError, KeyError, IndexError) as error:
        raise GazeError("the sources of this windows file are damaged", path=path) from error


@dataclass(frozen=True)
class Steering:
    """What a request gives beside its fields.

    screen: of positions in pixels; None is that of the task. like: windows of one participant.
    """

    scanpath: tuple[gd.Scanpath, ...] = ()
    targets: tuple[gd.Targets, ...] = ()
    like: gd.Windows | None = None
    screen: gd.Screen | None = None

    @property
    def n_entries(self) -> int:
        """How many windows are to be different."""
        return max(len(self.scanpath), len(self.targets))

    def require_short(self, n: int, max_s: float) -> None:
        """Refuse scanpaths and targets that would take more than `max_s` seconds of gaze.

        Checked before arrays of that length are made.
        """
        lengths = [*map(_least_s, self.scanpath), *(one.time_ms[-1] / 1000 for one in self.targets)]
        n_all = max(n, self.n_entries)
        if n_all * max(lengths, default=0.0) > max_s:
            raise GazeError(
                f"{n_all} windows of {max(lengths):.0f} s or more are asked for, and {max_s:.0f} s "
                "in all are the most here",
                remedy="give fewer or shorter ones, with times in milliseconds; the limit is "
                "`max_windows` of the server",
            )

    def settings(self, model: gd.Model, fields: GenerationFields) -> dict[str, Any]:
        """The settings of `Model.sample` that this and the fields state."""
        found: dict[str, Any] = {}
        if fields.at or fields.start:
            screen = self.screen or model.screen_of(fields.task)
            found["at"] = [gd.parse_waypoint(one, screen) for one in fields.at]
            if fields.start:
                found["start"] = gd.parse_position(fields.start, screen)
        given = {"scanpath": self.scanpath, "targets": self.targets}
        found |= {name: list(value) for name, value in given.items() if value}
        return found if self.like is None else {**found, "like": self.like}


def _least_s(scanpath: gd.Scanpath) -> float:
    """What a scanpath lasts at the least."""
    lasts = np.nan_to_num(scanpath.duration_ms / 1000, nan=_SHORTEST_S).sum()
    return float(max(lasts, np.nan_to_num(scanpath.onset_ms).max() / 1000))
