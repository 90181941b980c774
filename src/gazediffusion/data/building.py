"""How recordings become windows: settings, the segments of a piece of a study, and their union.

A piece (`Cuts`) is what one recording or one file gives, and depends on nothing else. So pieces may
be computed anywhere. `WindowBuilder` takes them in the order of the files and splits participants.

The two protocols are the paper's (section "Dataset"): position windows slide by 250 samples,
velocity windows do not overlap. Both take contiguous valid segments only and drop a window when
30 % or more of its samples leave [-1.1, 1.1] on either axis.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import CleaningCounts, clean
from gazediffusion.data.plausibility import Observed, Plausibility, observed
from gazediffusion.data.quality import Quality, Selection, select_participants
from gazediffusion.data.quantization import GRIDS_PX, is_on_grid
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.segments import Segment, clean_segments, joined_labels, joined_targets
from gazediffusion.data.splits import split_participants, synthetic_groups
from gazediffusion.data.targets import RecordedTargets
from gazediffusion.data.windows import CLIP, VELOCITY_QUANTILE, Windows, numbered
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.geometry import Screen
from gazediffusion.settings import OFF_SCREEN_SHARE, PrepareConfig
from gazediffusion.version import __version__

OFF_SCREEN_BEYOND = 1.1  # paper: "samples exceeding ±1.1 in either axis"


class NoWindowError(GazeError):
    """No recording has a valid segment as long as a window; the longest has `longest_s`."""

    def __init__(self, seconds: float, longest_s: float, where: str) -> None:
        self.longest_s = longest_s
        super().__init__(
            f"no window of {seconds:g} s: the longest valid segment is {longest_s:.2f} s ({where})",
            remedy="choose smaller `seconds`, or inspect the recordings",
        )


def window_starts(
    gaze: NDArray[np.float32], length: int, stride: int, off_screen_share: float = OFF_SCREEN_SHARE
) -> tuple[NDArray[np.int64], int]:
    """Starts of the windows kept in a segment, gaze (2, time) normalized; how many were not."""
    starts = np.arange(0, gaze.shape[1] - length + 1, stride, dtype=np.int64)
    is_off = (np.abs(gaze) > OFF_SCREEN_BEYOND).any(axis=0)
    n_off_before = np.concatenate([[0], np.cumsum(is_off)])
    n_off = n_off_before[starts + length] - n_off_before[starts]
    kept = n_off < off_screen_share * length
    return starts[kept], int(len(starts) - kept.sum())


class _Cut(NamedTuple):
    """A segment that has windows, and whose it is."""

    participant: str
    task: str
    trial: str
    screen: Screen
    segment: Segment
    starts: NDArray[np.int64]
    elapsed_ms: float


@dataclass(eq=False)
class Cuts:
    """The segments and counts of some recordings, in their order; a function of these alone.

    targets: of the recordings, or None; targets_of: which of these belong to a recording here.
    quality: participant and quality of each recording. files: as `Source.described` gives them.
    """

    config: PrepareConfig
    targets: RecordedTargets | None = None
    cuts: list[_Cut] = field(default_factory=list)
    grids: list[float] = field(default_factory=lambda: list(GRIDS_PX))
    counts: list[tuple[str, CleaningCounts]] = field(default_factory=list)
    eyes: list[str] = field(default_factory=list)
    rates: list[str] = field(default_factory=list)
    tasks_of: list[tuple[str, str]] = field(default_factory=list)
    recorded_tasks: set[str] = field(default_factory=set)
    looked_at: list[Observed] = field(default_factory=list)
    quality: list[tuple[str, Quality]] = field(default_factory=list)
    targets_of: set[int] = field(default_factory=set)
    n_off_screen: int = 0
    longest_s: float = 0.0
    longest_where: str = "no valid sample at all"
    n_samples: int = 0

    def add(self, recording: Recording) -> None:
        """Clean and cut a recording."""
        self.n_samples += len(recording)
        self.recorded_tasks.add(recording.task)
        task = dict(self.config.task_names).get(recording.task, recording.task)
        self.tasks_of.append((recording.participant, task))
        if self.config.tasks and task not in self.config.tasks:
            return
        where = f"participant {recording.participant}, trial {recording.trial}"
        screen = recording.screen
        if screen is None:
            problem = "the file does not say how large the screen was"
            raise GazeError(problem, path=recording.path, remedy="give `screen`")
        if self.targets is not None and (number := self.targets.number_of(recording)) is not None:
            self.targets_of.add(number)
            recording = self.targets.given_to(recording, number)
        self.looked_at.append(observed(recording))
        try:
            self._add(replace(recording, task=task), screen, where)
        except GazeError as error:
            if error.path is not None:
                raise
            raise GazeError(str(error), path=recording.path, place=where) from error

    def _add(self, recording: Recording, screen: Screen, where: str) -> None:
        config = self.config
        cleaned = clean(recording, config.cleaning)
        self.counts.append((recording.task, cleaned.counts))
        self.quality.append((recording.participant, Quality.of(recording, cleaned)))
        self.eyes.append(cleaned.eye)
        if cleaned.longest_s > self.longest_s:
            self.longest_s, self.longest_where = cleaned.longest_s, where
        if len(cleaned.time_ms) < 3:
            return
        clock = read_clock(cleaned.time_ms, recording.rate_hz)
        self.rates.append(f"{clock.rate_hz:g} Hz" + ("" if clock.is_steady else " unsteady"))
        identity = recording.participant, recording.task, recording.trial
        for segment in clean_segments(cleaned, clock, config.rate_hz, config.length):
            gaze = screen.to_normalized(segment.gaze_px)
            starts, n_dropped = window_starts(
                gaze, config.length, config.step, config.off_screen_share
            )
            self.n_off_screen += n_dropped
            if len(starts):
                elapsed_ms = segment.onset_ms - float(recording.time_ms[0])
                self.cuts.append(_Cut(*identity, screen, segment, starts, elapsed_ms))
                grids = [] if segment.is_filtered else self.grids
                self.grids = [grid for grid in grids if is_on_grid(segment.gaze_px, grid)]


class WindowBuilder:
    """Takes pieces in the order of their files, and makes windows of them."""

    def __init__(self, config: PrepareConfig, targets: RecordedTargets | None = None) -> None:
        self.config = config
        self.targets = targets
        self.cuts: list[_Cut] = []
        self.grids = list(GRIDS_PX)
        self.counts: defaultdict[str, CleaningCounts] = defaultdict(CleaningCounts)
        self.eyes: Counter[str] = Counter()
        self.rates: Counter[str] = Counter()
        self.tasks_of: defaultdict[str, set[str]] = defaultdict(set)
        self.recorded_tasks: set[str] = set()
        self.plausibility = Plausibility()
        self.quality: defaultdict[str, Quality] = defaultdict(Quality)
        self.targets_of: set[int] = set()
        self.n_off_screen = 0
        self.longest_s = 0.0
        self.longest_where = "no valid sample at all"

    def add(self, piece: Cuts) -> None:
        """Take the next piece; gaze that cannot be on its screen is refused."""
        for participant, task in piece.tasks_of:
            self.tasks_of[participant].add(task)
        self.recorded_tasks |= piece.recorded_tasks
        for one in piece.looked_at:
            self.plausibility.take(one)
        for task, counts in piece.counts:
            self.counts[task] += counts
        for participant, quality in piece.quality:
            self.quality[participant] += quality
        self.eyes.update(piece.eyes)
        self.rates.update(piece.rates)
        self.targets_of |= piece.targets_of
        if piece.longest_s > self.longest_s:
            self.longest_s, self.longest_where = piece.longest_s, piece.longest_where
        self.n_off_screen += piece.n_off_screen
        self.cuts += piece.cuts
        self.grids = [grid for grid in self.grids if grid in piece.grids]

    def build(self, files: Iterable[dict[str, Any]]) -> Windows:
        """The windows of all pieces; files: what is known of each file (`Source.described`)."""
        config = self.config
        self._require_known_names()
        self.plausibility.finish()
        selection = select_participants(
            self.quality, config.min_valid, config.max_calibration_error_deg
        )
        self.cuts = [cut for cut in self.cuts if cut.participant not in selection.excluded]
        if not self.cuts:
            raise NoWindowError(config.seconds, self.longest_s, self.longest_where)
        with_windows: defaultdict[str, set[str]] = defaultdict(set)
        for cut in self.cuts:
            with_windows[cut.participant].add(cut.task)
        who, which, _, on, segments, _, elapsed_ms = zip(*self.cuts, strict=True)
        of_participant, participants = numbered(who, len(who), "participants")
        of_task, tasks = numbered(which, len(which), "tasks")
        of_screen, screens = numbered(on, len(on), "screens", keeps_order=True)
        stops = np.cumsum([cut.segment.gaze_px.shape[1] for cut in self.cuts], dtype=np.int64)
        segment_starts = np.append(0, stops[:-1])
        starts = [cut.starts + first for cut, first in zip(self.cuts, segment_starts, strict=True)]
        validation = split_participants(
            with_windows,
            config.validation_fraction,
            config.split_seed,
            [*config.same_participant, *synthetic_groups(with_windows)],
        )
        windows = Windows(
            gaze=np.concatenate([self._gaze_of(cut) for cut in self.cuts], axis=1),
            starts=np.concatenate(starts),
            length=config.length,
            rate_hz=config.rate_hz,
            screens=screens,
            protocol=config.protocol,
            participants=participants,
            tasks=tasks,
            segment_starts=segment_starts,
            segment_participant=of_participant,
            segment_task=of_task,
            segment_screen=of_screen,
            segment_trial=tuple(cut.trial for cut in self.cuts),
            segment_onset_ms=np.array([cut.segment.onset_ms for cut in self.cuts]),
            validation=frozenset(validation),
            grid_px=self.grids[0] if self.grids else None,
            provenance=self._provenance(list(files), participants, selection),
            labels=joined_labels(segments),
            targets=joined_targets(segments, on),
            segment_elapsed_ms=np.array(elapsed_ms),
        )
        if config.protocol != "velocity":
            return windows
        return replace(windows, velocity_scale=fit_velocity_scale(windows))

    def _require_known_names(self) -> None:
        """Refuse tasks and participants that the user named but that were not recorded."""
        config, found = self.config, set().union(*self.tasks_of.values())
        same = [name for group in config.same_participant for name in group]
        for known, named, problem in (
            (found, config.tasks, "no recording of task {!r}"),
            (
                self.recorded_tasks,
                dict(config.task_names),
                "`task_names` names task {!r}, which was not recorded",
            ),
            (self.tasks_of, same, "`same_participant` names {!r}, who was not recorded"),
        ):
            for name in named:
                if name not in known:
                    raise GazeError(problem.format(name), remedy=suggestion(name, sorted(known)))

    def _gaze_of(self, cut: _Cut) -> NDArray[np.float32]:
        """A segment (2, time), normalized and clipped; exactly on the grid if there is one."""
        gaze = np.clip(cut.screen.to_normalized(cut.segment.gaze_px), -CLIP, CLIP)
        if self.grids:
            # Computed just as on loading, so that a saved file gives back the same numbers.
            step = (2.0 * self.grids[0] / cut.screen.size_px).astype(np.float32)
            gaze = np.rint(gaze / step).astype(np.float32) * step
        return gaze.astype(np.float32, copy=False)

    def _provenance(
        self, files: list[Any], with_windows: tuple[str, ...], selection: Selection
    ) -> dict[str, Any]:
        total = sum(self.counts.values(), CleaningCounts())
        targets = (
            {} if self.targets is None else {"targets": self.targets.described(self.targets_of)}
        )
        asked_for = set(self.config.tasks)
        return {
            "gazediffusion_version": __version__,
            "config": asdict(self.config),
            "sources": files,
            **targets,
            "cleaning": {
                "all": asdict(total),
                **{task: asdict(counts) for task, counts in sorted(self.counts.items())},
            },
            "eyes": dict(self.eyes),
            "rates": dict(self.rates),
            "warnings": [*self.plausibility.warnings, *selection.warnings],
            "windows_dropped_off_screen": self.n_off_screen,
            "longest_valid_segment_s": round(self.longest_s, 3),
            "participants_excluded": selection.excluded,
            "participants_without_windows": sorted(
                name
                for name, tasks in self.tasks_of.items()
                if name not in {*with_windows, *selection.excluded}
                and (not asked_for or tasks & asked_for)
            ),
        }


def fit_velocity_scale(windows: Windows) -> float:
    """c_v in normalized units per second, from the training participants' windows alone."""
    training = windows.train
    if len(training) == 0:
        raise GazeError("no training windows to take the velocity scale from")
    gaze = training.cut()
    # The first sample of a window has a velocity of 0, as in the representation of the model.
    velocity = np.diff(gaze, axis=2, prepend=gaze[:, :, :1]) * windows.rate_hz
    scale = float(np.quantile(np.abs(velocity), VELOCITY_QUANTILE))
    if not scale > 0:
        raise GazeError("the training gaze does not move, so its velocity has no scale")
    return scale
