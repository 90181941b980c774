"""From recordings to windows: clean, bring to one rate, cut, split, document.

The two protocols are the paper's (section "Dataset"): position windows slide by 250 samples,
velocity windows do not overlap. Both take contiguous valid segments only and drop a window when
30 % or more of its samples leave [-1.1, 1.1] on either axis.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.cleaning import CleaningConfig, CleaningCounts, clean
from gazediffusion.data.plausibility import Plausibility
from gazediffusion.data.quality import Quality, Selection, select_participants
from gazediffusion.data.quantization import GRIDS_PX, is_on_grid
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, sources_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.segments import Segment, clean_segments, joined_labels, joined_targets
from gazediffusion.data.splits import require_fraction, split_participants, synthetic_groups
from gazediffusion.data.targets import RecordedTargets
from gazediffusion.data.windows import CLIP, VELOCITY_QUANTILE, Protocol, Windows, numbered
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import sha256_of
from gazediffusion.geometry import Screen
from gazediffusion.version import __version__

OFF_SCREEN_BEYOND = 1.1  # paper: "samples exceeding ±1.1 in either axis"
OFF_SCREEN_SHARE = 0.30  # paper: "less than 30% of samples"
POSITION_STRIDE_S = 1.0  # paper: "a 1 s sliding stride", 250 samples at its 250 Hz


class NoWindowError(GazeError):
    """No recording has a valid segment as long as a window; the longest has `longest_s`."""

    def __init__(self, seconds: float, longest_s: float, where: str) -> None:
        self.longest_s = longest_s
        super().__init__(
            f"no window of {seconds:g} s: the longest valid segment is {longest_s:.2f} s ({where})",
            remedy="choose smaller `seconds`, or inspect the recordings",
        )


@dataclass(frozen=True)
class PrepareConfig:
    """How windows are cut and participants are split; the defaults are the paper's.

    stride: samples between window starts; None is one second for position windows and the
        window's own length for velocity windows.
    tasks: keep these tasks only; empty keeps all.
    task_names: pairs of a task's name in the recordings and the name it gets here; two may get one.
    same_participant: groups of names of one participant, which stay on one side of the split.
    off_screen_share: a window with this share of its samples off the screen, or more, is dropped.
    min_valid: participants with a smaller share of valid samples are excluded.
    max_calibration_error_deg: participants with a larger calibration error, as the tracker's
        validation states it, are excluded; None excludes nobody.

    >>> PrepareConfig(rate_hz=120, seconds=4).length  # samples of a window
    480
    """

    protocol: Protocol = "position"
    rate_hz: float = 250.0
    seconds: float = 8.0
    stride: int | None = None
    tasks: tuple[str, ...] = ()
    task_names: tuple[tuple[str, str], ...] = ()
    validation_fraction: float = 0.2
    split_seed: int = 42
    same_participant: tuple[tuple[str, ...], ...] = ()
    cleaning: CleaningConfig = field(default_factory=CleaningConfig)
    off_screen_share: float = OFF_SCREEN_SHARE
    min_valid: float = 0.0
    max_calibration_error_deg: float | None = None

    def __post_init__(self) -> None:
        if self.protocol not in ("position", "velocity"):
            raise GazeError(f"`protocol` must be position or velocity, not {self.protocol!r}")
        if not (math.isfinite(self.rate_hz) and self.rate_hz > 0):
            raise GazeError(f"`rate_hz` must be a positive number of Hz, not {self.rate_hz}")
        if not (math.isfinite(self.seconds) and self.length >= 2):
            raise GazeError(f"`seconds` must give at least two samples, not {self.seconds}")
        if self.stride is not None and self.stride < 1:
            raise GazeError(f"`stride` must be at least one sample, not {self.stride}")
        require_fraction(self.validation_fraction)
        if not 0 <= self.min_valid <= 1:
            raise GazeError(f"`min_valid` must be a share from 0 to 1, not {self.min_valid}")
        error = self.max_calibration_error_deg
        if error is not None and not 0 < error < math.inf:
            raise GazeError(f"`max_calibration_error_deg` must be positive, not {error}")

    @property
    def length(self) -> int:
        """Samples per window."""
        return round(self.seconds * self.rate_hz)

    @property
    def step(self) -> int:
        """Samples between the starts of neighbouring windows."""
        if self.stride is not None:
            return self.stride
        is_sliding = self.protocol == "position"
        return max(1, round(POSITION_STRIDE_S * self.rate_hz)) if is_sliding else self.length


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


def prepare(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig | None = None,
    progress: Callable[[Recording], None] = lambda recording: None,
    *,
    targets: Path | str | None = None,
) -> Windows:
    """Read, clean, cut and split; `progress` is called after each recording.

    targets: a table of the columns participant, trial, time, x and y: when the target on the screen
    jumped where. Unit and origin are those of the recordings where its column names state none.

    >>> import tempfile
    >>> from gazediffusion.data.reading import read
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> study = SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(study, f"{folder}/study", "parquet")
    ...     prepare(read(f"{folder}/study"), PrepareConfig(seconds=2))
    Windows(54 of 2 s at 250 Hz, participants: 3, tasks: free_viewing)
    """
    sources = sources_of(recordings)
    given = None
    if targets is not None:
        options = sources[0].options
        given = RecordedTargets(targets, options.unit, options.origin)
    builder = _Builder(config or PrepareConfig(), given)
    for source in sources:
        for recording in source.read():
            builder.add(recording)
            progress(recording)
    return builder.build(sources)


def style_windows(
    recordings: Recordings,
    rate_hz: float,
    seconds: float,
    config: PrepareConfig | None = None,
    progress: Callable[[Recording], None] = lambda recording: None,
) -> Windows:
    """The windows that `like` of `Model.sample` takes from recordings, one a second.

    rate_hz, seconds: of the model's windows. config: cleaning and split; by default nobody is held
    out.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.style_windows(gd.read("study"), rate_hz=250, seconds=8)
    Windows(6 of 8 s at 250 Hz, participants: 1, tasks: free_viewing)
    """
    config = config or PrepareConfig(validation_fraction=0)
    try:
        return prepare(recordings, replace(config, rate_hz=rate_hz, seconds=seconds), progress)
    except NoWindowError as error:
        raise GazeError(
            f"a style needs {seconds:g} s of valid gaze in a row; the longest valid segment is "
            f"{error.longest_s:.2f} s",
            path=recordings.sources[0].path,
            remedy="give a longer recording",
        ) from error


class _Cut(NamedTuple):
    """A segment that has windows, and whose it is."""

    participant: str
    task: str
    trial: str
    screen: Screen
    segment: Segment
    starts: NDArray[np.int64]
    elapsed_ms: float


class _Builder:
    """Collects segments and counts, recording by recording."""

    def __init__(self, config: PrepareConfig, targets: RecordedTargets | None) -> None:
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
        self.n_off_screen = 0
        self.longest_s = 0.0
        self.longest_where = "no valid sample at all"

    def add(self, recording: Recording) -> None:
        self.recorded_tasks.add(recording.task)
        task = dict(self.config.task_names).get(recording.task, recording.task)
        self.tasks_of[recording.participant].add(task)
        if self.config.tasks and task not in self.config.tasks:
            return
        where = f"participant {recording.participant}, trial {recording.trial}"
        screen = recording.screen
        if screen is None:
            problem = "the file does not say how large the screen was"
            raise GazeError(problem, path=recording.path, remedy="give `screen`")
        if self.targets is not None:
            recording = self.targets.given_to(recording)
        self.plausibility.add(recording)
        try:
            self._add(replace(recording, task=task), screen, where)
        except GazeError as error:
            if error.path is not None:
                raise
            raise GazeError(str(error), path=recording.path, place=where) from error

    def _add(self, recording: Recording, screen: Screen, where: str) -> None:
        config = self.config
        cleaned = clean(recording, config.cleaning)
        self.counts[recording.task] += cleaned.counts
        self.quality[recording.participant].add(recording, cleaned)
        self.eyes[cleaned.eye] += 1
        if cleaned.longest_s > self.longest_s:
            self.longest_s, self.longest_where = cleaned.longest_s, where
        if len(cleaned.time_ms) < 3:
            return
        clock = read_clock(cleaned.time_ms, recording.rate_hz)
        self.rates[f"{clock.rate_hz:g} Hz" + ("" if clock.is_steady else " unsteady")] += 1
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

    def build(self, sources: Sequence[Source]) -> Windows:
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
            provenance=self._provenance(sources, participants, selection),
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
        self, sources: Sequence[Source], with_windows: tuple[str, ...], selection: Selection
    ) -> dict[str, Any]:
        total = sum(self.counts.values(), CleaningCounts())
        targets = {} if self.targets is None else {"targets": self.targets.described()}
        asked_for = set(self.config.tasks)
        return {
            "gazediffusion_version": __version__,
            "config": asdict(self.config),
            "sources": [
                {
                    "name": source.path.name,
                    "format": source.reader.NAME,
                    "bytes": source.path.stat().st_size,
                    "sha256": sha256_of(source.path),
                }
                for source in sources
            ],
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
