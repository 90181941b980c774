"""What is known about a file apart from its samples: by the user, its path and JSON sidecars."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from gazediffusion.data.readers.identity import Identity, identity_of
from gazediffusion.data.recordings import Fact
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen, Unit
from gazediffusion.storage import decode_text, read_bytes, read_parquet_header, unpacked

# Where something known about a recording comes from.
ASSUMED, GIVEN, STATED = "assumed", "given", "stated by the file"


@dataclass(frozen=True)
class ReadOptions:
    """What the user says of files.

    columns: our word (x, y, t, participant, task, trial, blink, label, ...) -> column name.
    participant_pattern: a regular expression searched in each path, with a group named
        `participant` (or one plain group) and, optionally, groups named `task` and `trial`.
    screen: of files that do not state one. A file that states another is an error, unless
        `override_screen` says that `screen` is right.
    unit, origin: of the gaze; None takes what the column names state.
    source_rate_hz: of tables without a time column.
    by_folder: who was recorded in files whose folder tells it (`identities_by_folder`).
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
    by_folder: Mapping[Path, Identity] = field(default_factory=dict)

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

    def screen_of(
        self, path: Path, stated: Screen | None, assumed: Screen | None = None
    ) -> tuple[Screen | None, str]:
        """The screen of a recording, and where it comes from.

        What the file states, completed by what the user gives; then what the user gives, the
        fallback, or what the format assumes.
        """
        given = self.screen
        if stated is None or (given is not None and self.override_screen):
            found = given or self.fallback_screen or assumed
            return found, GIVEN if found is not None and found is given else ASSUMED
        if given is None:
            fallback = self.fallback_screen
            is_enough = fallback is None or stated.has_degrees or not stated.has_pixels_of(fallback)
            return (stated if is_enough else fallback), STATED
        if not stated.agrees_with(given):
            raise GazeError(
                f"the file states a screen of {stated.in_words()}, and `screen` is "
                f"{given.in_words()}",
                path=path,
                remedy="leave `screen` out, or give `override_screen` if the file is wrong",
            )
        completed = stated.completed_by(given)
        return completed, STATED if completed == stated else f"{STATED}, size {GIVEN}"


def identify(path: Path, options: ReadOptions) -> Identity:
    """Participant, task and trial as far as a file's path tells."""
    return identity_of(path, options.participant_pattern, options.by_folder)


def recording_facts(
    identity: Identity, screen: Screen | None, screen_source: str, **gaze: Fact
) -> dict[str, Fact]:
    """What was found out about a recording, and where."""
    shown = Fact("unknown", "") if screen is None else Fact(screen.in_words(), screen_source)
    return {
        "participant": Fact(identity.participant, identity.source),
        "unit": Fact("px", STATED),
        "origin": Fact("top-left", STATED),
        "screen": shown,
        **gaze,
    }


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
    sidecar = unpacked(path).with_suffix(".json")
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
