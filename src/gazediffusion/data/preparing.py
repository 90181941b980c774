"""From recordings to windows: read, clean, bring to one rate, cut, split, document.

Files are read by this process, by several or by a Ray cluster, and what each gives is merged in the
order of the files. So the windows do not depend on who read them.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.cleaning import CleaningCounts, CleanRecording, clean
from gazediffusion.data.plausibility import Observed, Plausibility, observed
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, cleaned_as, sources_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import (
    Clock,
    read_clock,
    resample_segment,
    source_samples,
    thinning_factor,
)
from gazediffusion.data.resolution import GRIDS_PX, is_on_grid
from gazediffusion.data.scanpaths import RecordedTargets
from gazediffusion.data.splits import split_participants, synthetic_groups
from gazediffusion.data.windows import CLIP, VELOCITY_QUANTILE, Windows, numbered
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.jobs import Job, Show, files_read, nothing, plain
from gazediffusion.parallel import in_order, is_in_this_process
from gazediffusion.screen import Screen
from gazediffusion.settings import OFF_SCREEN_SHARE, PrepareConfig
from gazediffusion.storage import (
    is_file,
    origin_of,
    require_free,
    require_writable,
    sha256_of,
)

OnRecording = Callable[[Recording], None]


@dataclass(frozen=True)
class Segment:
    """A gap-free stretch of clean gaze at the target rate.

    gaze_px, targets_px: (2, time); labels: (time,). The last two as in `Recording`.
    """

    onset_ms: float
    gaze_px: NDArray[np.float32]
    is_filtered: bool
    labels: NDArray[np.uint8] | None = None
    targets_px: NDArray[np.float32] | None = None


def clean_segments(
    cleaned: CleanRecording, clock: Clock, rate_hz: float, at_least: int
) -> Iterator[Segment]:
    """The valid segments that give `at_least` samples at the target rate."""
    is_filtered = thinning_factor(clock, rate_hz) is None
    for start, stop in cleaned.valid_segments():
        if stop - start < (at_least - 1) * clock.rate_hz / rate_hz:
            continue
        time_ms, labels, targets_px = (
            cleaned.time_ms[start:stop],
            cleaned.labels,
            cleaned.targets_px,
        )
        gaze_px = resample_segment(time_ms, cleaned.gaze_px[:, start:stop], clock, rate_hz)
        if gaze_px.shape[1] < at_least:
            continue
        nearest, held = source_samples(time_ms, clock, rate_hz, gaze_px.shape[1])
        # Copies, so that the recording it was cut from can be forgotten.
        yield Segment(
            float(time_ms[0]),
            gaze_px.copy(),
            is_filtered,
            None if labels is None else labels[start + nearest],
            None if targets_px is None else targets_px[:, start + held],
        )


def joined_labels(segments: Sequence[Segment]) -> NDArray[np.uint8] | None:
    """The event classes of segments end to end, (sample,); None where no sample is labelled."""
    if not any(one.labels is not None and one.labels.any() for one in segments):
        return None
    unlabelled = (np.zeros(one.gaze_px.shape[1], np.uint8) for one in segments)
    parts = zip(segments, unlabelled, strict=True)
    return np.concatenate([none if one.labels is None else one.labels for one, none in parts])


def joined_targets(
    segments: Sequence[Segment], screens: Sequence[Screen]
) -> NDArray[np.float32] | None:
    """Targets normalized to the segments' screens, (2, sample); None where there are none."""
    if all(one.targets_px is None or np.isnan(one.targets_px).all() for one in segments):
        return None
    targets_px = (
        np.full_like(one.gaze_px, np.nan) if one.targets_px is None else one.targets_px
        for one in segments
    )
    parts = zip(screens, targets_px, strict=True)
    return np.concatenate([screen.to_normalized(part) for screen, part in parts], axis=1)


@dataclass(frozen=True)
class Quality:
    """The quality of the recordings of one participant."""

    n_valid: int = 0
    n_samples: int = 0
    n_stated: int = 0  # samples of recordings that state a calibration error
    error_sum: float = 0.0  # of that error over these samples

    @classmethod
    def of(cls, recording: Recording, cleaned: CleanRecording) -> Quality:
        """Of one recording."""
        error = recording.calibration_error_deg.get(cleaned.eye)
        n_stated = 0 if error is None else len(recording)
        counts = cleaned.counts
        return cls(counts.valid, counts.total, n_stated, (error or 0.0) * n_stated)

    def __add__(self, other: Quality) -> Quality:
        return Quality(*map(operator.add, astuple(self), astuple(other)))

    @property
    def completeness(self) -> float:
        """The share of valid samples."""
        return self.n_valid / max(self.n_samples, 1)

    @property
    def calibration_error_deg(self) -> float | None:
        """The mean calibration error over samples; None where no recording states one."""
        return self.error_sum / self.n_stated if self.n_stated else None


@dataclass(frozen=True)
class Selection:
    """The participants excluded, each with the reason, and those whose calibration is unknown."""

    excluded: dict[str, str]
    unknown: list[str]

    @property
    def warnings(self) -> list[str]:
        """That participants were kept whose calibration error is not known."""
        if not self.unknown:
            return []
        names = ", ".join(self.unknown)
        return [f"kept, though no recording states their calibration error: {names}"]


def select_participants(
    quality: Mapping[str, Quality], min_valid: float, max_error_deg: float | None
) -> Selection:
    """Exclude participants below a completeness or above a calibration error (None: any)."""
    errors = {name: one.calibration_error_deg for name, one in quality.items()}
    unknown = sorted(name for name, error in errors.items() if error is None)
    if max_error_deg is None:
        unknown = []
    elif quality and len(unknown) == len(quality):
        raise GazeError(
            "no recording states its calibration error, so `max_calibration_error_deg` selects "
            "nobody",
            remedy="leave it out; EyeLink ASC files with validation messages state it",
        )
    excluded = {}
    for name, one in sorted(quality.items()):
        reasons = []
        if one.completeness < min_valid:
            # Rounded down, so that a share below the limit never reads as the limit.
            share = math.floor(1000 * one.completeness) / 10
            reasons.append(f"{share:.1f} % of the samples valid")
        error = errors[name]
        if max_error_deg is not None and error is not None and error > max_error_deg:
            reasons.append(f"calibration error {error:.2f} deg")
        if reasons:
            excluded[name] = ", ".join(reasons)
    if excluded and len(excluded) == len(quality):
        listed = "; ".join(f"{name} {why}" for name, why in list(excluded.items())[:3])
        raise GazeError(
            f"every participant is excluded: {listed}" + (" ..." if len(excluded) > 3 else ""),
            remedy="choose another `min_valid` or `max_calibration_error_deg`",
        )
    return Selection(excluded, unknown)


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


class CutSegment(NamedTuple):
    """A segment that has windows, and its participant."""

    participant: str
    task: str
    trial: str
    screen: Screen
    segment: Segment
    starts: NDArray[np.int64]
    elapsed_ms: float


@dataclass(eq=False)
class RecordedSegments:
    """The segments and counts of recordings, in the order they were added, and their windows.

    What some files give is a function of these alone; `merge` takes it from another process.
    targets: of the recordings; targets_of: which of these belong to one here. plausibility: None
    leaves the check to the one who merges. quality: by participant; counts: by task.
    """

    config: PrepareConfig
    targets: RecordedTargets | None = None
    plausibility: Plausibility | None = None
    cuts: list[CutSegment] = field(default_factory=list)
    grids: list[float] = field(default_factory=lambda: list(GRIDS_PX))
    counts: defaultdict[str, CleaningCounts] = field(
        default_factory=lambda: defaultdict(CleaningCounts)
    )
    eyes: Counter[str] = field(default_factory=Counter)
    rates: Counter[str] = field(default_factory=Counter)
    tasks_of: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    recorded_tasks: set[str] = field(default_factory=set)
    looked_at: list[Observed] = field(default_factory=list)
    quality: defaultdict[str, Quality] = field(default_factory=lambda: defaultdict(Quality))
    targets_of: set[int] = field(default_factory=set)
    n_off_screen: int = 0
    longest: tuple[float, str] = (0.0, "no valid sample at all")
    n_samples: int = 0

    def add(self, recording: Recording) -> None:
        """Clean and cut a recording; gaze that cannot be on its screen is refused first."""
        self.n_samples += len(recording)
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
        if self.targets is not None and (number := self.targets.number_of(recording)) is not None:
            self.targets_of.add(number)
            recording = self.targets.given_to(recording, number)
        self._look([observed(recording)])
        try:
            self._cut(replace(recording, task=task), screen, where)
        except GazeError as error:
            if error.path is not None:
                raise
            raise GazeError(str(error), path=recording.path, place=where) from error

    def _look(self, found: Iterable[Observed]) -> None:
        if self.plausibility is None:
            self.looked_at += found
            return
        for one in found:
            self.plausibility.take(one)

    def _cut(self, recording: Recording, screen: Screen, where: str) -> None:
        config = self.config
        cleaned = clean(recording, config.cleaning)
        self.counts[recording.task] += cleaned.counts
        self.quality[recording.participant] += Quality.of(recording, cleaned)
        self.eyes[cleaned.eye] += 1
        if cleaned.longest_s > self.longest[0]:
            self.longest = cleaned.longest_s, where
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
                self.cuts.append(CutSegment(*identity, screen, segment, starts, elapsed_ms))
                grids = [] if segment.is_filtered else self.grids
                self.grids = [grid for grid in grids if is_on_grid(segment.gaze_px, grid)]

    def merge(self, other: RecordedSegments) -> None:
        """Add what another process has made of the next recordings."""
        self._look(other.looked_at)
        self.cuts += other.cuts
        self.grids = [grid for grid in self.grids if grid in other.grids]
        self.eyes += other.eyes
        self.rates += other.rates
        self.recorded_tasks |= other.recorded_tasks
        self.targets_of |= other.targets_of
        for participant, tasks in other.tasks_of.items():
            self.tasks_of[participant] |= tasks
        for task, counts in other.counts.items():
            self.counts[task] += counts
        for participant, quality in other.quality.items():
            self.quality[participant] += quality
        self.longest = max(self.longest, other.longest, key=lambda one: one[0])
        self.n_off_screen += other.n_off_screen
        self.n_samples += other.n_samples

    def build(self, files: Iterable[dict[str, Any]]) -> Windows:
        """The windows of all recordings; files: what is known of each (`Source.described`)."""
        config, plausibility = self.config, self.plausibility or Plausibility()
        self._require_known_names()
        plausibility.finish()
        selection = select_participants(
            self.quality, config.min_valid, config.max_calibration_error_deg
        )
        self.cuts = [cut for cut in self.cuts if cut.participant not in selection.excluded]
        if not self.cuts:
            raise NoWindowError(config.seconds, *self.longest)
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
            provenance=self._provenance(list(files), participants, selection, plausibility),
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

    def _gaze_of(self, cut: CutSegment) -> NDArray[np.float32]:
        """A segment (2, time), normalized and clipped; exactly on the grid if there is one."""
        gaze = np.clip(cut.screen.to_normalized(cut.segment.gaze_px), -CLIP, CLIP)
        if self.grids:
            # Computed just as on loading, so that a saved file gives back the same numbers.
            step = (2.0 * self.grids[0] / cut.screen.size_px).astype(np.float32)
            gaze = np.rint(gaze / step).astype(np.float32) * step
        return gaze.astype(np.float32, copy=False)

    def _provenance(
        self,
        files: list[Any],
        with_windows: tuple[str, ...],
        selection: Selection,
        plausibility: Plausibility,
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
            "warnings": [*plausibility.warnings, *selection.warnings],
            "windows_dropped_off_screen": self.n_off_screen,
            "longest_valid_segment_s": round(self.longest[0], 3),
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


def prepare(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig | None = None,
    progress: Show = nothing,
    *,
    output: Path | str | None = None,
    overwrite: bool = False,
    targets: Path | str | None = None,
    engine: str = "local",
    n_workers: int | None = None,
    address: str | None = None,
    on_recording: OnRecording = lambda recording: None,
) -> Windows:
    """Read, clean, cut and split.

    output: a windows file to write; a complete one of the same recordings and settings is loaded
    instead, one of others is refused unless `overwrite` says so. progress: called with the phase,
    the files read, of how many, and a note.
    engine: local, or ray for a cluster whose nodes see the files; the windows are the same.
    n_workers: processes that read files, for `local` one by default, for `ray` one for each core of
    the cluster. address: of the cluster. on_recording: called with each recording that this process
    reads.
    targets: a table of the columns participant, trial, time, x and y: when the target on the screen
    jumped where. Unit and origin are those of the recordings where its column names state none.

    >>> import tempfile
    >>> from gazediffusion.data.reading import read
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> study = SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(study, f"{folder}/study", "parquet")
    ...     prepare(read(f"{folder}/study"), PrepareConfig(seconds=2))
    Windows(59 of 2 s at 250 Hz, participants: 3, tasks: free_viewing)
    """
    config = cleaned_as(config or PrepareConfig(), recordings)
    sources = sources_of(recordings)
    given = None
    if targets is not None:
        options = sources[0].options
        given = RecordedTargets(targets, options.unit, options.origin)
    is_here = is_in_this_process(engine, n_workers, address)
    workers = None if is_here else (engine, n_workers, address)
    if output is None:
        return _prepared(sources, config, given, progress, workers, on_recording)
    path = Path(output)
    if path.suffix != ".safetensors":
        raise GazeError("a windows file ends in .safetensors", path=path)
    decisive = {"config": asdict(config), **_inputs(sources, given)}
    with Job(path, decisive, progress, there=lambda: _made_of(path), overwrite=overwrite) as job:
        if not job.is_complete:
            require_free(path, overwrite)
            require_writable(path)
            windows = _prepared(sources, config, given, job.step, workers, on_recording)
            windows.save(path, overwrite=overwrite)
    return Windows.load(path)


def _inputs(sources: Sequence[Source], targets: RecordedTargets | None) -> dict[str, Any]:
    """What is prepared, by content: hashes of files, and how they are read."""
    found = {
        "sources_sha256": [sha256_of(one.path) for one in sources],
        "reading": sources[0].options.described(),
    }
    return found | ({} if targets is None else {"targets_sha256": sha256_of(targets.path)})


def _made_of(path: Path) -> dict[str, Any] | None:
    """What decided a windows file that `prepare` wrote; None where there is no such file."""
    try:
        provenance = Windows.load(path).provenance if is_file(path) else {}
    except GazeError:  # another's file
        return None
    if not {"config", "reading", "sources"} <= provenance.keys():
        return None
    found = {key: provenance[key] for key in ("config", "reading")}
    found["sources_sha256"] = [one["sha256"] for one in provenance["sources"]]
    return found | {"targets_sha256": provenance.get("targets", {}).get("sha256")}


def _prepared(
    sources: Sequence[Source],
    config: PrepareConfig,
    targets: RecordedTargets | None,
    progress: Show,
    workers: tuple[str, int | None, str | None] | None,
    on_recording: OnRecording,
) -> Windows:
    """workers: engine, number and address; None is this process alone."""
    found, read = (
        RecordedSegments(config, targets, Plausibility()),
        files_read(progress, len(sources)),
    )
    reading = {"reading": plain(sources[0].options.described())} if sources else {}
    files: list[dict[str, Any]] = []
    if workers is None:
        for source in sources:
            for recording in source.read():
                found.add(recording)
                read(recording.path, len(recording))
                on_recording(recording)
            files.append(source.described())
    else:
        work, numbers = _CutFile(tuple(sources), config, targets), range(len(sources))
        with closing(in_order(work, numbers, *workers)) as pieces:
            for source, (piece, file, error) in zip(sources, pieces, strict=True):
                found.merge(piece)
                if error is not None:
                    raise error
                files.append({**file, **origin_of(source.path)})  # a worker does not know the URL
                read(source.path, piece.n_samples)
    windows = found.build(files)
    return replace(windows, provenance={**windows.provenance, **reading})


@dataclass(frozen=True)
class _CutFile:
    """What a file gives, by its number: segments, what is known and what is wrong."""

    sources: tuple[Source, ...]
    config: PrepareConfig
    targets: RecordedTargets | None

    def __call__(self, number: int) -> tuple[RecordedSegments, dict[str, Any], GazeError | None]:
        source, piece = self.sources[number], RecordedSegments(self.config, self.targets)
        error, file = None, {}
        try:
            for recording in source.read():
                piece.add(recording)
            file = source.described()
        except GazeError as found:
            error = found
        piece.targets = None  # the one who asked has them
        return piece, file, error


def style_windows(
    recordings: Recordings,
    rate_hz: float,
    seconds: float,
    config: PrepareConfig | None = None,
    progress: Show = nothing,
    on_recording: OnRecording = lambda recording: None,
) -> Windows:
    """The windows that `like` of `Model.sample` takes from recordings, one a second.

    rate_hz, seconds: of the model's windows. config: cleaning and split; by default nobody is held
    out.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.style_windows(gd.read("study"), rate_hz=250, seconds=8)
    Windows(2 of 8 s at 250 Hz, participants: 1, tasks: free_viewing)
    """
    config = config or PrepareConfig(validation_fraction=0)
    try:
        config = replace(config, rate_hz=rate_hz, seconds=seconds)
        return prepare(recordings, config, progress, on_recording=on_recording)
    except NoWindowError as error:
        raise GazeError(
            f"a style needs {seconds:g} s of valid gaze in a row; the longest valid segment is "
            f"{error.longest_s:.2f} s",
            path=recordings.sources[0].path,
            remedy="give a longer recording",
        ) from error
