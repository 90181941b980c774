"""Inspection: what is in these files, before anything is made of them.

One row per task and format: participants, trials, rate, screen, minutes, what is lost, and how many
windows each of the paper's protocols would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gazediffusion.data.cleaning import CleaningCounts, clean
from gazediffusion.data.preparing import (
    POSITION_STRIDE,
    PrepareConfig,
    clean_segments,
    window_starts,
)
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, sources_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen


@dataclass
class TaskSummary:
    """What one task of one format holds. Times in minutes, counts in samples."""

    task: str
    format: str
    participants: set[str] = field(default_factory=set)
    n_trials: int = 0
    rates: set[str] = field(default_factory=set)
    eyes: set[str] = field(default_factory=set)
    screens: set[Screen | None] = field(default_factory=set)
    minutes: float = 0.0
    longest_segment_s: float = 0.0
    counts: CleaningCounts = field(default_factory=CleaningCounts)
    position_windows: int = 0
    velocity_windows: int = 0
    notes: set[str] = field(default_factory=set)


def inspect(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig | None = None,
    progress: Callable[[Recording], None] = lambda recording: None,
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
    config = config or PrepareConfig()
    summaries: dict[tuple[str, str], TaskSummary] = {}
    for recording in Recordings(tuple(sources_of(recordings))):
        key = (recording.format, recording.task)
        summary = summaries.setdefault(key, TaskSummary(recording.task, recording.format))
        _add(summary, recording, config)
        progress(recording)
    return [summaries[key] for key in sorted(summaries)]


def _add(summary: TaskSummary, recording: Recording, config: PrepareConfig) -> None:
    cleaned, screen, length = clean(recording, config.cleaning), recording.screen, config.length
    summary.participants.add(recording.participant)
    summary.n_trials += 1
    summary.eyes.update(recording.gaze_px)
    summary.screens.add(screen)
    summary.counts += cleaned.counts
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
            summary.position_windows += len(window_starts(gaze, length, POSITION_STRIDE)[0])
            summary.velocity_windows += len(window_starts(gaze, length, length)[0])
            if screen is None:
                note = "screen unknown: windows are counted before the off-screen rule"
                summary.notes.add(note)
    except GazeError as error:
        summary.notes.add(str(error))
