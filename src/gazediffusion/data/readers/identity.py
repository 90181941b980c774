"""Who was recorded, in which task and trial, as far as the path of a file tells."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from gazediffusion.data.recordings import UNKNOWN_TASK
from gazediffusion.errors import GazeError, shown
from gazediffusion.storage import unpacked

BY_NAME, BY_FOLDER, BY_BIDS, BY_PATTERN = "file name", "folder", "BIDS name", "given pattern"


@dataclass(frozen=True)
class Identity:
    """Who was recorded and in which task, as far as a file's path tells."""

    participant: str
    task: str = UNKNOWN_TASK
    trial: str = "0"
    source: str = BY_NAME


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


def identity_of(
    path: Path, pattern: str | None = None, by_folder: Mapping[Path, Identity] | None = None
) -> Identity:
    """Participant, task and trial from a path.

    pattern: a regular expression of the user. by_folder: of `identities_by_folder`. In this order:
    the pattern; BIDS entities (`sub-01_task-reading_run-2`); a word for a participant in
    the file name; the folder, where it names a participant or files of one name stand in several;
    else the file name.
    """
    if pattern is not None:
        return _by_pattern(pattern, path)
    entities = dict(re.findall(r"(?:^|_)([a-z]+)-([A-Za-z0-9]+)", path.name))
    if "sub" in entities:
        trial = "-".join(entities[key] for key in ("ses", "run") if key in entities)
        task = entities.get("task", UNKNOWN_TASK)
        return Identity(entities["sub"], task, trial or "0", BY_BIDS)
    folder = _TASK_FOLDER.match(path.parent.name)
    task = folder["task"] if folder else UNKNOWN_TASK
    stem = _OF_EXPORT.sub("", unpacked(path).stem)
    match = _GAZEBASE.match(stem)
    if match is not None:
        return Identity(match["participant"], match["task"], f"{match['round']}-{match['session']}")
    match = _WITH_WORD.match(stem)
    if match is not None:
        first, *others = re.split("[_-]", match["rest"] or "") or [""]
        is_task = first.isalpha() and not _NO_TASK.fullmatch(first)
        trial = "-".join(others if is_task else filter(None, [first, *others]))
        return Identity(match["participant"], first if is_task else task, trial or "0")
    if by_folder is not None and path in by_folder:
        return replace(by_folder[path], task=task)
    match = _AFTER_TASK.match(stem)
    if match is not None:
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
            depth = next(iter([*named[-1:], *differing]), None)
            if depth is not None:
                below = [folders[k] for k in differing if k > depth]
                trial = "-".join([*below, unpacked(path).stem])
                found[path] = Identity(folders[depth], trial=trial, source=BY_FOLDER)
    return found


def _differing(paths: Sequence[Path]) -> list[int]:
    """The levels at which the folders of these paths differ."""
    levels = zip_longest(*(path.parent.parts for path in paths))
    return [k for k, level in enumerate(levels) if len(set(level)) > 1]
