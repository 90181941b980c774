"""What is known about a file apart from its samples: by the user, its path and JSON sidecars."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from gazediffusion.data.recordings import UNKNOWN_TASK
from gazediffusion.errors import GazeError
from gazediffusion.files import decode_text, read_bytes, read_parquet_header
from gazediffusion.geometry import Screen

Found = TypeVar("Found", bound=Screen | dict[str, Screen] | None)
Unit = Literal["px", "deg", "norm"]
# Both `center` and `top-left` have y pointing down, `center-up` and `bottom-left` have it up.
Origin = Literal["top-left", "center", "center-up", "bottom-left"]


@dataclass(frozen=True)
class ReadOptions:
    """What the user says of files.

    columns: our word (x, y, t, participant, task, trial, blink, x_left, ...) -> column name.
    participant_pattern: a regular expression searched in each path, with a group named
        `participant` (or one plain group) and, optionally, groups named `task` and `trial`.
    screen: of files that do not state one. A file that states another is an error, unless
        `override_screen` says that `screen` is right.
    unit, origin: of the gaze; None takes what the column names state.
    source_rate_hz: of tables without a time column.
    fallback_screen: used where neither `screen` nor the file names one, and where the file states
        its pixels alone.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    participant_pattern: str | None = None
    screen: Screen | None = None
    data_dir: Path | None = None
    fallback_screen: Screen | None = None
    override_screen: bool = False
    unit: Unit | None = None
    origin: Origin | None = None
    source_rate_hz: float | None = None

    def __post_init__(self) -> None:
        for name, value, known in (
            ("unit", self.unit, get_args(Unit)),
            ("origin", self.origin, get_args(Origin)),
        ):
            if value is not None and value not in known:
                raise GazeError(f"`{name}` must be one of {', '.join(known)}, not {value!r}")
        rate = self.source_rate_hz
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise GazeError(f"`source_rate_hz` must be a positive number of Hz, not {rate}")
        if self.participant_pattern is None:
            return
        try:
            pattern = re.compile(self.participant_pattern)
        except re.error as error:
            raise GazeError(f"`participant_pattern` is no regular expression ({error})") from error
        if pattern.groups == 0:
            raise GazeError(
                f"`participant_pattern` {self.participant_pattern!r} has no group",
                remedy="mark the participant with brackets, as in 'sub(\\d+)'",
            )

    def screen_or(self, found: Found) -> Found | Screen:
        """The screen of the user, or that found in a file (by task, perhaps), or the fallback."""
        if self.screen is not None:
            return self.screen
        fallback = self.fallback_screen
        if fallback is None or isinstance(found, dict):
            return found
        is_enough = found is not None and (found.has_degrees or not found.has_pixels_of(fallback))
        return found if is_enough else fallback


@dataclass(frozen=True)
class Identity:
    """Who was recorded and in which task, as far as a file's path tells."""

    participant: str
    task: str = UNKNOWN_TASK
    trial: str = "0"


# Tried in this order on the file name without its ending. The first two are the names seen in
# the public code of the paper's group: participant_01.txt, Waldo_Ruj12.txt.
_NAME_PATTERNS = (
    re.compile(r"^(?:participant|subject|subj|sub|p)[_-]?(?P<participant>\d\w*)$", re.IGNORECASE),
    re.compile(r"^(?P<task>[A-Za-z]+)_(?P<participant>[A-Za-z]*\d+)$"),
)
_TASK_FOLDER = re.compile(r"^extracted[_-](?P<task>\w+)$", re.IGNORECASE)


def identify(path: Path, options: ReadOptions) -> Identity:
    """Participant, task and trial from a path: by the user's pattern, BIDS entities or the name.

    BIDS entities (`sub-01_task-reading_run-2`) are read from any file name. Without any of
    these the file name itself is the participant.
    """
    if options.participant_pattern is not None:
        match = re.search(options.participant_pattern, str(path))
        if match is None:
            raise GazeError(
                f"`participant_pattern` {options.participant_pattern!r} does not match", path=path
            )
        groups = match.groupdict()
        return Identity(
            participant=groups.get("participant") or match[1] or path.stem,
            task=groups.get("task") or UNKNOWN_TASK,
            trial=groups.get("trial") or "0",
        )
    entities = dict(re.findall(r"(?:^|_)([a-z]+)-([A-Za-z0-9]+)", path.name))
    if "sub" in entities:
        trial = "-".join(entities[key] for key in ("ses", "run") if key in entities)
        return Identity(entities["sub"], entities.get("task", UNKNOWN_TASK), trial or "0")
    folder = _TASK_FOLDER.match(path.parent.name)
    task = folder["task"] if folder else UNKNOWN_TASK
    for pattern in _NAME_PATTERNS:
        match = pattern.match(path.stem)
        if match is not None:
            groups = match.groupdict()
            return Identity(groups["participant"], groups.get("task") or task)
    return Identity(path.stem, task)


def read_sidecar(path: Path) -> dict[str, Any]:
    """A JSON file that must hold an object."""
    try:
        fields = json.loads(decode_text(read_bytes(path), path))
    except (ValueError, RecursionError) as error:
        raise GazeError(f"this is no JSON ({error})", path=path) from error
    if not isinstance(fields, dict):
        raise GazeError("the JSON holds no object of fields", path=path)
    return fields


def presented_on(fields: Mapping[str, Any]) -> Screen | None:
    """The screen in a sidecar's `StimulusPresentation`, or at its top level."""
    presentation = fields.get("StimulusPresentation")
    return Screen.from_bids(presentation if isinstance(presentation, dict) else fields)


def sidecar_screens(path: Path) -> Screen | dict[str, Screen] | None:
    """The screen in the JSON file of the same name beside a file, or its `Screens` by task.

    A Parquet file without one may contain a card that states them.
    """
    sidecar = path.with_suffix(".json")
    if not sidecar.is_file():
        return _screens_inside(path)
    fields = read_sidecar(sidecar)
    by_task = fields.get("Screens")
    if not isinstance(by_task, dict):
        return presented_on(fields)
    screens = {task: Screen.from_bids(one) for task, one in by_task.items()}
    return {task: screen for task, screen in screens.items() if screen is not None}


def _screens_inside(path: Path) -> Screen | dict[str, Screen] | None:
    card = read_parquet_header(path) if path.suffix.lower() == ".parquet" else None
    try:
        if card is not None and "screens" in card:
            return {task: Screen(**one) for task, one in card["screens"].items()}
        return None if card is None else Screen(**card["screen"])
    except (TypeError, KeyError, AttributeError, GazeError):
        return None
