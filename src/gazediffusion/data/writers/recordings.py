"""What the formats share: recordings with events, by participant and task, on one clock."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from gazediffusion.data.events import Event
from gazediffusion.data.recordings import (
    Bools,
    Eye,
    Recording,
    eyes_of,
    name_of,
    require_forward_time,
    true_segments,
)
from gazediffusion.errors import GazeError

# Trials written one after another are separated by a jump of the clock; readers cut at 100 ms.
_GAP_MS = 1000.0


Labelled = tuple[Recording, Sequence[Event]]


def checked(labelled: Iterable[Labelled]) -> Iterator[Labelled]:
    """Pass on recordings that can be written; refuse an empty set or an empty recording."""
    recording = None
    for recording, events in labelled:
        if len(recording) == 0:
            problem = "a recording without samples cannot be written"
            raise GazeError(problem, place=name_of(recording))
        require_forward_time(recording.time_ms, recording.path, lambda i: f"sample {i}")
        eyes_of(recording)
        yield recording, events
    if recording is None:
        raise GazeError("there are no recordings to write")


def by_participant_and_task(
    labelled: Iterable[Labelled],
) -> Iterator[tuple[str, str, Iterator[Labelled]]]:
    """Group recordings that follow one another into (participant, task, their trials).

    Groups become files, so a group that comes twice, or whose name differs from another's only
    in characters that file names leave out, is refused.
    """
    seen: set[tuple[str, str]] = set()
    groups = groupby(labelled, key=lambda pair: (pair[0].participant, pair[0].task))
    for (participant, task), trials in groups:
        labels = plain(participant), plain(task)
        if labels in seen:
            raise GazeError(
                f"participant {participant!r} with task {task!r} comes twice",
                remedy="sort recordings by participant and task, and give participants names that "
                "differ in letters and digits",
            )
        seen.add(labels)
        yield participant, task, trials


def on_one_clock(trials: Iterable[Labelled]) -> Iterator[Labelled]:
    """Shift trials that start before the previous one ended to a second after its end."""
    end_ms = -math.inf
    for recording, events in trials:
        start_ms = float(recording.time_ms[0])
        if start_ms < end_ms + _GAP_MS / 2:
            shift_ms = math.ceil(end_ms + _GAP_MS - start_ms)
            recording = replace(recording, time_ms=recording.time_ms + shift_ms)
            events = [event.later(shift_ms) for event in events]
        end_ms = float(recording.time_ms[-1])
        yield recording, events


def spans_of(masks: Mapping[Eye, Bools], eye: Eye) -> list[slice]:
    """The samples of each stretch that a mask of an eye marks: its blinks, its filled gaps."""
    mask = masks.get(eye, np.zeros(0, dtype=np.bool_))
    return [slice(first, stop) for first, stop in true_segments(mask).tolist()]


def events_of(events: Iterable[Event], eye: Eye) -> list[Event]:
    """The fixations, saccades and pursuits of an eye, and what is labelled noise."""
    kinds = ("fixation", "saccade", "pursuit", "noise")
    return [event for event in events if event.event in kinds and event.eye in ("both", eye)]


def plain(text: str) -> str:
    """A name in letters and digits only, as BIDS entities want it."""
    label = re.sub(r"[^A-Za-z0-9]", "", text)
    if not label:
        raise GazeError(f"{text!r} has no letter or digit to name a file with")
    return label
