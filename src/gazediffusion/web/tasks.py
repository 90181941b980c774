"""The tasks of recordings in a model's words: which synthetic windows they are compared with.

Reading beside films gives itself away, so synthetic windows are of the recorded tasks, in the same
shares. Names are matched without case, spaces, dashes and underscores, and by known synonyms. A
task that the model does not have must be chosen; it is never replaced by the mixture of all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

import gazediffusion as gd
from gazediffusion.errors import GazeError, suggestion

# A model's task -> names of it in recordings: those of the packaged models' training data, the
# English singular, and what public datasets call the same.
_SYNONYMS = {
    "movies": ("movie", "film", "films", "video", "videos", "natural movies", "natural movie",
               "natural movies repeated", "movie viewing", "video viewing", "film viewing"),
    "trailers": ("trailer", "hollywood trailers", "movie trailers"),
    "stop-motion": ("stop motion movies", "stop motion movie"),
    "stills": ("still", "static images", "static image", "additional shuffled stills", "images",
               "pictures", "photos", "scenes", "scene viewing", "image viewing", "picture viewing"),
    "reading": ("reading text", "read", "text", "text reading"),
    "dots": ("dot", "random dot saccades", "random saccades", "jumping dots", "saccades"),
}  # fmt: skip


def model_tasks(recorded: Iterable[str], known: Sequence[str]) -> dict[str, str | None]:
    """The model's task for each recorded one; None where the model has none of that name.

    >>> model_tasks(["natural_movies", "Free Viewing"], ["movies", "reading"])
    {'natural_movies': 'movies', 'Free Viewing': None}
    """
    by_word = {_word(name): task for task in known for name in _SYNONYMS.get(task, ())}
    # The model's own names come first.
    by_word |= {_word(task): task for task in known}
    # The paper's models call films natural_movies: a synonym may itself be the model's task.
    for names in ((task, *others) for task, others in _SYNONYMS.items()):
        found = next((by_word[_word(name)] for name in names if _word(name) in by_word), None)
        for name in names if found else ():
            by_word.setdefault(_word(name), str(found))
    return {name: by_word.get(_word(name)) for name in recorded}


def _word(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def task_counts(
    recorded: Mapping[str, int], known: Sequence[str], task: str | None, n: int
) -> dict[str | None, int]:
    """How many of n synthetic windows are of each of the model's tasks.

    recorded: windows of each recorded task. task: of recorded windows whose own task the model does
    not have. A model without tasks generates windows of none.

    >>> task_counts({"natural_movies": 30, "reading_text": 10}, ["movies", "reading"], None, 8)
    {'movies': 6, 'reading': 2}
    """
    if not known:
        return {None: n}
    if task is not None and task not in known:
        raise GazeError(f"the model has no `task` {task!r}", remedy=suggestion(task, list(known)))
    found = model_tasks(recorded, known)
    missing = [name for name, match in found.items() if match is None]
    if missing and task is None:
        raise GazeError(
            f"the model has no task {_listed(missing)} of the recording",
            remedy=f"choose `task`: {', '.join(known)}",
        )
    if task is not None and not missing and task not in found.values():
        own = _listed(dict.fromkeys(str(match) for match in found.values()))
        raise GazeError(f"the recording's task is {own}, not {task}", remedy="leave out `task`")
    windows: dict[str | None, int] = {}
    for name, count in recorded.items():
        match = found[name] or task
        windows[match] = windows.get(match, 0) + count
    return _apportioned(windows, n)


def _listed(names: Iterable[str], at_most: int = 3) -> str:
    """Some names, and how many more there are."""
    named = list(names)
    more = f" and {len(named) - at_most} more" if len(named) > at_most else ""
    return ", ".join(repr(one) for one in named[:at_most]) + more


def _apportioned(weights: Mapping[str | None, int], n: int) -> dict[str | None, int]:
    """n divided by weights, rounded by largest remainders; those of none are left out."""
    exact = {key: n * weight / sum(weights.values()) for key, weight in weights.items()}
    whole = {key: math.floor(share) for key, share in exact.items()}
    by_remainder = sorted(exact, key=lambda key: whole[key] - exact[key])
    for key in by_remainder[: n - sum(whole.values())]:
        whole[key] += 1
    return {key: count for key, count in whole.items() if count}


def recorded_counts(windows: gd.Windows) -> dict[str, int]:
    """Windows of each recorded task."""
    numbers, counts = np.unique(windows.task, return_counts=True)
    return {windows.tasks[k]: int(n) for k, n in zip(numbers, counts, strict=True)}


def with_model_tasks(windows: gd.Windows, known: Sequence[str], task: str | None) -> gd.Windows:
    """Recorded windows whose tasks have the model's names, so that both sets agree in them."""
    found = model_tasks(windows.tasks, known)
    names = [found[name] or task or name for name in windows.tasks]
    unique = tuple(dict.fromkeys(names))
    number = np.array([unique.index(name) for name in names], dtype=np.int32)
    return replace(windows, tasks=unique, segment_task=number[windows.segment_task])


def joined(parts: Sequence[gd.Windows]) -> gd.Windows:
    """Generated windows of several tasks as one set."""
    if len(parts) == 1:
        return parts[0]
    steps = [one.segment_step for one in parts if one.segment_step is not None]
    return gd.Windows.from_array(
        np.concatenate([one.cut() for one in parts]),
        parts[0].rate_hz,
        [one.screens[k] for one in parts for k in one.screen_index],
        tasks=[one.tasks[k] for one in parts for k in one.task],
        protocol=parts[0].protocol,
        steps=np.concatenate(steps) if len(steps) == len(parts) else None,
        provenance=parts[0].provenance,
    )
