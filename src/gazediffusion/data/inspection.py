"""Inspection: what is in these files, before anything is made of them.

For each task and format: participants, trials, rate, screen, minutes, where each of these was
found, what cleaning drops, and how many windows each of the paper's protocols would give. What
`prepare` would refuse is a note here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from gazediffusion.data.cleaning import CleaningCounts, clean
from gazediffusion.data.plausibility import ImplausibleError, Plausibility
from gazediffusion.data.preparing import Quality, clean_segments, window_starts
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, cleaned_as, sources_of
from gazediffusion.data.recordings import Fact, Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.errors import GazeError
from gazediffusion.jobs import Show, files_read, nothing
from gazediffusion.screen import Screen
from gazediffusion.settings import PrepareConfig


@dataclass
class TaskSummary:
    """What one task of one format holds. Times in minutes, counts in samples.

    facts: what the readers found out, by name (participant, columns, unit, origin, screen).
    eyes: those recorded; eyes_used: those that cleaning chose.
    off_screen_windows: position windows that the off-screen rule drops.
    quality: completeness and calibration error by participant.
    """

    task: str
    format: str
    participants: set[str] = field(default_factory=set)
    n_trials: int = 0
    rates: set[str] = field(default_factory=set)
    eyes: set[str] = field(default_factory=set)
    eyes_used: set[str] = field(default_factory=set)
    screens: set[Screen | None] = field(default_factory=set)
    facts: dict[str, set[Fact]] = field(default_factory=dict)
    minutes: float = 0.0
    longest_segment_s: float = 0.0
    counts: CleaningCounts = field(default_factory=CleaningCounts)
    position_windows: int = 0
    velocity_windows: int = 0
    off_screen_windows: int = 0
    quality: dict[str, Quality] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)


def inspect(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig | None = None,
    progress: Show = nothing,
) -> list[TaskSummary]:
    """Read everything once and summarise it by format and task.

    >>> import tempfile
    >>> from gazediffusion.data.reading import read
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> study = SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(study, f"{folder}/study", "parquet")
    ...     (found,) = inspect(read(f"{folder}/study"), PrepareConfig(seconds=2))
    >>> found.task, len(found.participants), found.n_trials, found.minutes
    ('free_viewing', 3, 3, 1.5)
    """
    config = cleaned_as(config or PrepareConfig(), recordings)
    summaries: dict[tuple[str, str], TaskSummary] = {}
    plausibility = Plausibility()
    notes: set[str] = set()
    sources = sources_of(recordings)
    read = files_read(progress, len(sources))
    for source in sources:
        for recording in source.read():
            key = (recording.format, recording.task)
            summary = summaries.setdefault(key, TaskSummary(recording.task, recording.format))
            _add(summary, recording, config)
            with _noted(notes):
                plausibility.add(recording)
            read(recording.path, len(recording))
    with _noted(notes):
        plausibility.finish()
    for summary in summaries.values():
        summary.notes |= {*notes, *plausibility.warnings}
    return [summaries[key] for key in sorted(summaries)]


@contextmanager
def _noted(notes: set[str]) -> Iterator[None]:
    """Keep what `prepare` would refuse as a note."""
    try:
        yield
    except ImplausibleError as error:
        notes.add(f"prepare will refuse this: {error}")


def _add(summary: TaskSummary, recording: Recording, config: PrepareConfig) -> None:
    cleaned, screen, length = clean(recording, config.cleaning), recording.screen, config.length
    sliding = replace(config, protocol="position", stride_s=None)
    for name, fact in recording.facts.items():
        summary.facts.setdefault(name, set()).add(fact)
    summary.eyes_used.add(cleaned.eye)
    summary.participants.add(recording.participant)
    summary.n_trials += 1
    summary.eyes.update(recording.gaze_px)
    summary.screens.add(screen)
    summary.counts += cleaned.counts
    who = recording.participant
    summary.quality[who] = summary.quality.get(who, Quality()) + Quality.of(recording, cleaned)
    if len(cleaned.time_ms) < 3:
        return
    clock = read_clock(cleaned.time_ms, recording.rate_hz)
    summary.rates.add(f"{clock.rate_hz:.4g}" + ("" if clock.is_steady else " unsteady"))
    summary.minutes += len(cleaned.time_ms) / clock.rate_hz / 60
    summary.longest_segment_s = max(summary.longest_segment_s, cleaned.longest_s)
    try:
        for segment in clean_segments(cleaned, clock, config.rate_hz, length):
            # Without a screen no sample is known to be off it.
            gaze = segment.gaze_px * 0 if screen is None else screen.to_normalized(segment.gaze_px)
            kept, n_dropped = window_starts(gaze, length, sliding.step)
            summary.position_windows += len(kept)
            summary.off_screen_windows += n_dropped
            summary.velocity_windows += len(window_starts(gaze, length, length)[0])
            if screen is None:
                note = "screen unknown: windows are counted before the off-screen rule"
                summary.notes.add(note)
    except GazeError as error:
        summary.notes.add(str(error))
