"""Augmentation: synthetic recordings in the style of each participant of a study.

The style of a participant in a task is that of all the recordings of both (conditioning/style.py).
Each recording gets synthetic ones of its own length, rate and screen. Recordings of one participant
and task that take as many windows of the model are generated in one batch. Held-out participants
are not augmented, so that what is trained with the synthetic recordings can be tested on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.conditioning.style import Style, style_of
from gazediffusion.data.cleaning import likely_blinks
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import LowRateError, read_clock
from gazediffusion.data.track_loss import LossModel
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.generation.labelling import Labeller, Labels, can_label, with_lost_labels
from gazediffusion.generation.long_gaze import window_starts
from gazediffusion.generation.sampler import Sampler
from gazediffusion.jobs import Show, nothing
from gazediffusion.screen import Floats, Screen
from gazediffusion.seeds import Stream, derived_seed
from gazediffusion.settings import Augmenting

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


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
        progress: Show = nothing,
    ) -> Study:
        """Read recordings once; rate_hz, seconds: of the model's windows."""
        from gazediffusion.data.preparing import style_windows

        originals: list[Original] = []

        def add(recording: Recording) -> None:
            if len(recording) >= 3:
                originals.append(Original.of(recording))

        try:
            windows = style_windows(recordings, rate_hz, seconds, config.preparing, progress, add)
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


@dataclass(frozen=True, eq=False)
class Batch:
    """Recordings of one participant and task whose synthetic ones are generated together.

    Window k of the sampler is copy k // n of recording k % n, n recordings in all.
    """

    sampler: Sampler
    originals: tuple[Original, ...]
    times: int

    @property
    def n(self) -> int:
        """Windows that are generated."""
        return self.times * len(self.originals)

    @property
    def windows_each(self) -> int:
        """How many windows of the model's length each of them takes."""
        return int(self.sampler.describe()["windows_each"])


@dataclass(frozen=True)
class Augmenter:
    """A model that generates recordings in the style of participants."""

    sampler: Sampler
    config: Augmenting

    def __post_init__(self) -> None:
        if self.sampler.run.config.conditioning.prior is None:
            raise GazeError(
                "this model is not conditioned on summary statistics, so that it has no styles",
                remedy="choose one that is, as the default model",
            )
        if self.config.labels:
            Labeller.of_generated(self.sampler)  # refuses what it has not

    @cached_property
    def loss_model(self) -> LossModel | None:
        """The model of blinks and losses, where they are requested."""
        return LossModel.load(self.sampler.run.path) if self.config.track_loss else None

    def labeller(self, study: Study) -> Labeller | None:
        """What labels the synthetic recordings of a study; None where they get no labels."""
        made, is_asked = self.sampler, self.config.labels
        if is_asked is None:
            is_asked = study.has_labels and can_label(made.run)
        return Labeller.of_generated(made) if is_asked else None

    def read(self, recordings: Recordings, progress: Show = nothing) -> Study:
        """A study, and who of it is augmented; one that cannot be augmented is refused."""
        config = self.sampler.run.config
        seconds = config.length / config.rate_hz
        study = Study.read(recordings, self.config, config.rate_hz, seconds, progress)
        self.tasks_of(study)
        return study

    def tasks_of(self, study: Study) -> dict[str, str]:
        """The model's task for each task of the study that is augmented."""
        own = dict.fromkeys(one.task for one in study.originals if study.has_style(one))
        given, known = self.config.task, self.sampler.run.config.conditioning.tasks
        if isinstance(given, Mapping):
            for task in given:
                if task not in own:
                    raise GazeError(
                        f"`task` names {task!r}, which is not augmented",
                        remedy=suggestion(task, list(own)),
                    )
        found = {task: self._task(task, known) for task in own}
        for task in found.values():
            self.sampler.run.config.conditioning.task_number(task)
        return found

    def _task(self, own: str, known: Sequence[str]) -> str:
        given = self.config.task
        if isinstance(given, Mapping) and own in given:
            return given[own]
        if own in known:
            return own
        if isinstance(given, str):
            return given
        raise GazeError(
            f"the model has no task {own!r}, which participants were recorded in",
            remedy=f"choose the most similar task with `task`: {', '.join(known)}",
        )

    def batches(self, study: Study) -> list[Batch]:
        """What is generated of a study, in the order of its participants and tasks."""
        tasks, run = self.tasks_of(study), self.sampler.run.config
        groups: dict[tuple[str, str, int], list[Original]] = {}
        for one in study.originals:
            if study.has_style(one):
                starts = window_starts(one.samples_at(run.rate_hz), run.length, run.rate_hz)
                groups.setdefault((one.participant, one.task, len(starts)), []).append(one)
        styles: dict[tuple[str, str], Style] = {}
        batches = []
        for (participant, task, n_starts), originals in groups.items():
            pair = participant, task
            if pair not in styles:
                windows = study.windows_of(*pair)
                styles[pair] = style_of(
                    windows, run.conditioning, run.rate_hz, run.length, tasks[task]
                )
            place = participant, task, n_starts
            seed = derived_seed(self.config.seed, Stream.AUGMENTATION, *place)
            sampler = replace(
                self.sampler,
                seed=seed,
                task=tasks[task],
                style=styles[pair],
                length=max(one.samples_at(run.rate_hz) for one in originals),
            )
            batches.append(Batch(sampler, tuple(originals), self.config.times))
        return batches

    def without_style(self, study: Study) -> list[tuple[str, str]]:
        """Participants and tasks that are not augmented for want of valid gaze."""
        names = study.augmented | {
            one.participant
            for one in study.originals
            if one.participant not in study.windows.participants
        }
        pairs = dict.fromkeys((one.participant, one.task) for one in study.originals)
        return [pair for pair in pairs if pair[0] in names and pair not in study.with_windows]

    def recording(
        self,
        batch: Batch,
        number: int,
        gaze: Floats,
        grid_px: float | None = None,
        labels: Labels | None = None,
    ) -> Recording:
        """Window `number` of a batch, gaze (2, time) as the model generates it, as a recording.

        It has the length, rate and screen of its original, and one eye. Above the model's rate,
        samples are joined monotonically. grid_px: pixels are rounded to it. labels: of the gaze,
        (time,); each sample takes that of the nearest one, and is noise where the eye is lost.
        """
        copy, k = divmod(number, len(batch.originals))
        original, run = batch.originals[k], batch.sampler.run.config
        assert batch.sampler.task is not None
        screen = original.screen
        own = run.conditioning.screen_of(batch.sampler.task)
        times_ms = np.arange(original.n_samples, dtype=np.float64) * (1000.0 / original.rate_hz)
        at_rate = _at_times(gaze, run.rate_hz, times_ms, original.rate_hz)
        gaze_px = screen.pixels_from(own, at_rate).astype(np.float32)
        if labels is not None:
            nearest = np.rint(times_ms * (run.rate_hz / 1000.0)).astype(np.int64)
            labels = labels[np.minimum(nearest, len(labels) - 1)]
        if self.loss_model is not None:
            gaze_px, labels = self._with_losses(gaze_px, labels, batch, number, original)
        if grid_px is not None:
            gaze_px = (np.rint(gaze_px / grid_px) * grid_px).astype(np.float32)
        blinks: dict[Any, NDArray[np.bool_]] = {}
        if self.loss_model is not None:
            blinks["cyclopean"] = likely_blinks(times_ms, np.isnan(gaze_px[0]))
        return Recording(
            participant=synthetic_name(original.participant, copy),
            task=original.task,
            trial=original.trial,
            time_ms=original.start_ms + times_ms,
            gaze_px={"cyclopean": gaze_px},
            path=original.path,
            format="synthetic",
            screen=screen,
            rate_hz=original.rate_hz,
            is_blink=blinks,
            labels=labels,
        )

    def _with_losses(
        self,
        gaze_px: NDArray[np.float32],
        labels: Labels | None,
        batch: Batch,
        number: int,
        original: Original,
    ) -> tuple[NDArray[np.float32], Labels | None]:
        assert self.loss_model is not None
        assert batch.sampler.task is not None
        screen = original.screen
        window = Windows.from_array(
            screen.to_normalized(gaze_px)[None],
            original.rate_hz,
            screen,
            tasks=batch.sampler.task,
            labels=None if labels is None else labels[None],
        )
        lossy = self.loss_model.add_to(window, batch.sampler.seed, number)
        if labels is not None:
            lossy = with_lost_labels(lossy, window)
        return np.asarray(screen.to_pixels(lossy.gaze), dtype=np.float32), lossy.labels


def synthetic_name(participant: str, copy: int) -> str:
    """The name of a synthetic participant: `P07-synthetic-3` is copy 2 of P07."""
    return f"{participant}-synthetic-{copy + 1}"


def _at_times(gaze: Floats, from_hz: float, times_ms: Floats, rate_hz: float) -> Floats:
    """Gaze (2, time) at a rate, at other times from 0 on; a multiple of the rate keeps samples."""
    if from_hz == rate_hz:
        return gaze[:, : len(times_ms)]
    from scipy.interpolate import PchipInterpolator

    own_ms = np.arange(gaze.shape[1]) * (1000.0 / from_hz)
    between: Floats = PchipInterpolator(own_ms, gaze.astype(np.float64), axis=1)(
        np.minimum(times_ms, own_ms[-1])
    )
    return between
