"""What is known about a file apart from its samples: by the user, its path and files beside it.

A path tells who was recorded, in which task and trial. A JSON sidecar, the card in a Parquet file
and the `experiment.yaml` that pymovements saves beside samples tell the screen.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, get_args

from gazediffusion.data.recordings import UNKNOWN_TASK, Fact
from gazediffusion.errors import GazeError, shown
from gazediffusion.screen import Origin, Screen, Unit
from gazediffusion.storage import decode_text, read_bytes, read_parquet_header, unpacked

# Where something known about a recording comes from.
BY_NAME, BY_FOLDER, BY_BIDS, BY_PATTERN = "file name", "folder", "BIDS name", "given pattern"
ASSUMED, GIVEN, STATED = "assumed", "given", "stated by the file"

# `participant_01`, `P01_reading`, `sub-3_trial2`: a word for a participant and a number.
_WITH_WORD = re.compile(
    r"^(?:participant|subject|subj|sub|vp|p)[_-]?(?P<participant>\d[A-Za-z0-9]*)"
    r"(?:[_-](?P<rest>.+))?$",
    re.IGNORECASE,
)
# `S_1001_S1_TEX`: round 1, participant 001, session 1 of GazeBase.
_GAZEBASE = re.compile(r"^S_(?P<round>\d)(?P<participant>\d{3})_S(?P<session>\d)_(?P<task>\w{3})$")
# What Gazepoint and SMI append to the name of a recording.
_OF_EXPORT = re.compile(r"(?<=.)(?:_all_gaze|[ _-]Samples)$", re.IGNORECASE)
# `Waldo_Ruj12`, as in the public code of the paper's group.
_AFTER_TASK = re.compile(r"^(?P<task>[A-Za-z]+)_(?P<participant>[A-Za-z]+\d+)$")
_TASK_FOLDER = re.compile(r"^extracted[_-](?P<task>\w+)$", re.IGNORECASE)
_NO_TASK = re.compile(
    "trial|run|ses(sion)?|block|gaze|eyes?|data|raw|samples|recording|export", re.IGNORECASE
)
# Where pymovements says that pixels are counted from; elsewhere it is the top left.
ORIGINS: dict[str | None, Origin] = {
    "center": "center",
    "lower left": "bottom-left",
    "bottom left": "bottom-left",
}


@dataclass(frozen=True)
class Identity:
    """Who was recorded and in which task, as far as a file's path tells."""

    participant: str
    task: str = UNKNOWN_TASK
    trial: str = "0"
    source: str = BY_NAME


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

    def described(self) -> dict[str, Any]:
        """What decides the recordings that a file gives, as JSON; no place of this machine."""
        screens = {
            name: None if screen is None else vars(screen)
            for name, screen in (("screen", self.screen), ("fallback", self.fallback_screen))
        }
        others = ("participant_pattern", "override_screen", "unit", "origin", "source_rate_hz")
        named = {name: getattr(self, name) for name in others}
        return {"columns": dict(self.columns), **screens, **named}

    def __post_init__(self) -> None:
        for name, kind in (("unit", Unit), ("origin", Origin)):
            value, known = getattr(self, name), get_args(kind)
            if value is not None and value not in known:
                raise GazeError(f"`{name}` must be one of {', '.join(known)}, not {value!r}")
        rate, pattern = self.source_rate_hz, self.participant_pattern
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise GazeError(f"`source_rate_hz` must be a positive number of Hz, not {rate}")
        try:
            n_groups = 1 if pattern is None else re.compile(pattern).groups
        except re.error as error:
            raise GazeError(f"`participant_pattern` is no regular expression ({error})") from error
        if n_groups == 0:
            raise GazeError(
                f"`participant_pattern` {pattern!r} has no group",
                remedy="mark the participant with brackets, as in 'sub(\\d+)'",
            )

    def screen_of(
        self, path: Path, stated: Screen | None, assumed: Screen | None = None
    ) -> tuple[Screen | None, str]:
        """The screen of a recording, and where it comes from.

        What the file states, completed by what the user gives; then what the user gives, the
        fallback, or what the format assumes.
        """
        given, fallback = self.screen, self.fallback_screen
        if stated is None or (given is not None and self.override_screen):
            found = given or fallback or assumed
            return found, GIVEN if found is not None and found is given else ASSUMED
        if given is None:
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
    """Participant, task and trial as far as a file's path tells.

    In this order: the user's pattern; BIDS entities (`sub-01_task-reading_run-2`); a word for a
    participant in the file name; the folder, where it names a participant or files of one name
    stand in several; else the file name.
    """
    if options.participant_pattern is not None:
        return _by_pattern(options.participant_pattern, path)
    entities = dict(re.findall(r"(?:^|_)([a-z]+)-([A-Za-z0-9]+)", path.name))
    if "sub" in entities:
        trial = "-".join(entities[key] for key in ("ses", "run") if key in entities)
        task = entities.get("task", UNKNOWN_TASK)
        return Identity(entities["sub"], task, trial or "0", BY_BIDS)
    folder = _TASK_FOLDER.match(path.parent.name)
    task = folder["task"] if folder else UNKNOWN_TASK
    stem = _OF_EXPORT.sub("", unpacked(path).stem)
    if match := _GAZEBASE.match(stem):
        return Identity(match["participant"], match["task"], f"{match['round']}-{match['session']}")
    if match := _WITH_WORD.match(stem):
        first, *others = re.split("[_-]", match["rest"] or "")
        is_task = first.isalpha() and not _NO_TASK.fullmatch(first)
        trial = "-".join(others if is_task else filter(None, [first, *others]))
        return Identity(match["participant"], first if is_task else task, trial or "0")
    if path in options.by_folder:
        return replace(options.by_folder[path], task=task)
    if match := _AFTER_TASK.match(stem):
        return Identity(match["participant"], match["task"])
    return Identity(stem, task)


def _by_pattern(pattern: str, path: Path) -> Identity:
    match = re.search(pattern, shown(path))
    if match is None:
        raise GazeError(f"`participant_pattern` {pattern!r} does not match", path=path)
    groups = match.groupdict()
    return Identity(
        participant=groups.get("participant") or match[1] or unpacked(path).stem,
        task=groups.get("task") or UNKNOWN_TASK,
        trial=groups.get("trial") or "0",
        source=BY_PATTERN,
    )


def identities_by_folder(paths: Sequence[Path]) -> dict[Path, Identity]:
    """Who was recorded, for files whose folder tells it: `p1/gaze.csv` and `p2/gaze.csv`.

    A folder named like a participant is one, if it holds the file or is not the folder of all. Of
    files of one name, the first folder in which their paths differ is the participant, and the
    folders below it are the trial.
    """
    same_name: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        same_name[path.name].append(path)
    of_all = _differing(paths)
    found: dict[Path, Identity] = {}
    for same in same_name.values():
        of_name = _differing(same)
        for path in same:
            folders = path.parent.parts
            known = [k for k in {*of_all, len(folders) - 1} if 0 <= k < len(folders)]
            named = [k for k in sorted(known) if _WITH_WORD.match(folders[k])]
            differing = [k for k in of_name if k < len(folders)]
            if depths := [*named[-1:], *differing]:
                below = [folders[k] for k in differing if k > depths[0]]
                trial = "-".join([*below, unpacked(path).stem])
                found[path] = Identity(folders[depths[0]], trial=trial, source=BY_FOLDER)
    return found


def _differing(paths: Sequence[Path]) -> list[int]:
    """The levels at which the folders of these paths differ."""
    levels = zip_longest(*(path.parent.parts for path in paths))
    return [k for k, level in enumerate(levels) if len(set(level)) > 1]


def recording_facts(
    identity: Identity, screen: Screen | None, screen_source: str, **gaze: Fact
) -> dict[str, Fact]:
    """What was found out about a recording, and where."""
    return {
        "participant": Fact(identity.participant, identity.source),
        "unit": Fact("px", STATED),
        "origin": Fact("top-left", STATED),
        "screen": Fact(screen.in_words(), screen_source) if screen else Fact("unknown", ""),
        **gaze,
    }


def read_sidecar(path: Path) -> dict[str, Any]:
    """A JSON file that must hold an object."""
    try:
        found = json.loads(decode_text(read_bytes(path), path))
    except (ValueError, RecursionError) as error:
        raise GazeError(f"this is no JSON ({error})", path=path) from error
    if not isinstance(found, dict):
        raise GazeError("the JSON holds no object of fields", path=path)
    return found


def presented_on(stated: Mapping[str, Any]) -> Screen | None:
    """The screen in a sidecar's `StimulusPresentation`, or at its top level."""
    presentation = stated.get("StimulusPresentation")
    return Screen.from_bids(presentation if isinstance(presentation, dict) else stated)


def sidecar_screens(path: Path) -> Screen | dict[str, Screen] | None:
    """The screen in the JSON file of the same name beside a file, or its `Screens` by task.

    A Parquet file without one may contain a card that states them.
    """
    sidecar = unpacked(path).with_suffix(".json")
    if sidecar.is_file():
        stated = read_sidecar(sidecar)
        by_task = stated.get("Screens")
        if not isinstance(by_task, dict):
            return presented_on(stated)
        screens = {task: Screen.from_bids(one) for task, one in by_task.items()}
        return {task: screen for task, screen in screens.items() if screen is not None}
    card = read_parquet_header(path) if path.suffix.lower() == ".parquet" else None
    try:
        if card is not None and "screens" in card:
            return {task: Screen(**one) for task, one in card["screens"].items()}
        return None if card is None else Screen(**card["screen"])
    except (TypeError, KeyError, AttributeError, GazeError):
        return None


class Experiment(NamedTuple):
    """Screen, origin of its pixels and rate in Hz, each None where it is not stated."""

    screen: Screen | None = None
    origin: Origin | None = None
    rate_hz: float | None = None


def saved_experiment(path: Path) -> Experiment:
    """The experiment of `samples.feather` or `samples.csv`, where pymovements saved it."""
    beside = path.with_name("experiment.yaml")
    if path.stem != "samples" or not beside.is_file():
        return Experiment()
    import yaml

    try:
        saved = yaml.safe_load(decode_text(read_bytes(beside), beside))
        screen = saved.get("screen") or {}
        sizes: list[Any] = [screen.get(one.name) for one in fields(Screen)]
        rate_hz = (saved.get("eyetracker") or {}).get("sampling_rate")
        return Experiment(
            screen=Screen(*sizes) if sizes[0] and sizes[1] else None,
            origin=ORIGINS.get(screen.get("origin")),
            rate_hz=None if rate_hz is None else float(rate_hz),
        )
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise GazeError("this is no experiment of pymovements", path=beside) from error
