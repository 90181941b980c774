"""A study that is augmented: its recordings without their gaze, the windows of styles, the split.

Held-out participants are those of `prepare`, or as they are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import LowRateError, read_clock
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.geometry import Screen
from gazediffusion.settings import Augmenting

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

OnRecording = Callable[[Recording], None]


@dataclass(frozen=True)
class Original:
    """A recording of the study without its gaze.

    rate_hz: of its clock. n_samples: at this rate from its first to its last sample.
    """

    participant: str
    task: str
    trial: str
    start_ms: float
    n_samples: int
    rate_hz: float
    screen: Screen
    path: Path
    has_labels: bool

    @classmethod
    def of(cls, recording: Recording) -> Original:
        """What is known of a recording."""
        assert recording.screen is not None
        rate_hz = read_clock(recording.time_ms, recording.rate_hz).rate_hz
        first, last = float(recording.time_ms[0]), float(recording.time_ms[-1])
        return cls(
            recording.participant,
            recording.task,
            recording.trial,
            first,
            math.floor((last - first) * rate_hz / 1000.0 + 0.5) + 1,
            rate_hz,
            recording.screen,
            recording.path,
            recording.labels is not None and bool(recording.labels.any()),
        )

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.n_samples / self.rate_hz

    def samples_at(self, rate_hz: float) -> int:
        """How many samples of a rate reach from its first to its last sample."""
        return math.ceil((self.n_samples - 1) * rate_hz / self.rate_hz - 1e-9) + 1


@dataclass(frozen=True, eq=False)
class Study:
    """The recordings of a study, the windows that styles are taken from, and who is augmented."""

    originals: tuple[Original, ...]
    windows: Windows
    augmented: frozenset[str]

    @classmethod
    def read(
        cls,
        recordings: Recordings,
        config: Augmenting,
        rate_hz: float,
        seconds: float,
        on_recording: OnRecording = lambda recording: None,
    ) -> Study:
        """Read recordings once; rate_hz, seconds: of the model's windows."""
        from gazediffusion.data.preparing import style_windows

        originals: list[Original] = []

        def add(recording: Recording) -> None:
            if len(recording) >= 3:
                originals.append(Original.of(recording))
            on_recording(recording)

        try:
            windows = style_windows(recordings, rate_hz, seconds, config.preparing, add)
        except GazeError as error:
            if not isinstance(slow := error.__cause__, LowRateError):
                raise
            raise GazeError(
                f"the rate of {slow.rate_hz:g} Hz is below the model's {rate_hz:g} Hz",
                path=error.path,
                remedy=f"augment recordings of {rate_hz:g} Hz or more",
            ) from error
        names = _augmented(windows, {one.participant for one in originals}, config)
        return cls(_with_own_trials(originals), windows, frozenset(names))

    @property
    def held_out(self) -> list[str]:
        """Participants with windows who are not augmented."""
        return sorted(set(self.windows.participants) - self.augmented)

    @property
    def has_labels(self) -> bool:
        """Whether any recording has event labels."""
        return any(one.has_labels for one in self.originals)

    @cached_property
    def with_windows(self) -> set[tuple[str, str]]:
        """The participants and tasks that there are windows of."""
        found = self.windows.identity
        return set(zip(found["participant"], found["task"], strict=True))

    def has_style(self, original: Original) -> bool:
        """Whether a recording is augmented: its participant is, and has windows of its task."""
        pair = original.participant, original.task
        return original.participant in self.augmented and pair in self.with_windows

    def windows_of(self, participant: str, task: str) -> Windows:
        """The windows of a participant in a task, without the gaze of others."""
        windows = self.windows
        is_own = windows.participant == windows.participants.index(participant)
        return windows.select(is_own & (windows.task == windows.tasks.index(task))).alone()


def _augmented(windows: Windows, recorded: set[str], config: Augmenting) -> set[str]:
    """The participants with windows who are not held out; none is refused."""
    held_out, present = config.held_out, set(windows.participants)
    if held_out is None:
        names = present - windows.validation
    elif isinstance(held_out, Windows):
        names = present & (set(held_out.participants) - held_out.validation)
    else:
        for name in held_out:
            if name not in recorded:
                raise GazeError(
                    f"`held_out` names {name!r}, who was not recorded",
                    remedy=suggestion(name, sorted(recorded)),
                )
        groups = [set(one) for one in config.same_participant]
        names = present - set(held_out).union(*(one for one in groups if one & set(held_out)))
    if not names:
        raise GazeError(
            "no participant is left to augment: all are held out",
            remedy="hold fewer out, or nobody with a `validation_fraction` of 0",
        )
    return names


def _with_own_trials(originals: Sequence[Original]) -> tuple[Original, ...]:
    """Trials by their names; numbered from 1 where a participant has a name twice in a task."""
    names: dict[tuple[str, str], list[str]] = {}
    for one in originals:
        names.setdefault((one.participant, one.task), []).append(one.trial)
    is_numbered = {pair: len(set(trials)) < len(trials) for pair, trials in names.items()}
    seen = dict.fromkeys(names, 0)
    found = []
    for one in originals:
        pair = one.participant, one.task
        seen[pair] += 1
        found.append(replace(one, trial=str(seen[pair])) if is_numbered[pair] else one)
    return tuple(found)
