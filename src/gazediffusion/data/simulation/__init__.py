"""An oculomotor simulator with known ground truth: free data for tests and the demo.

It makes no claim about human viewing behaviour. It produces recordings with the well-known
regularities of eye movements (main sequence, fixation durations, blinks, tracker noise) whose
true events are known exactly, so that readers, cleaning, event detection and training can be
tested without anyone's data. Each trial is a timeline of fixations, saccades and blinks; the
eye's position follows in closed form, then fixational movements, losses and the tracker's
noise and grid are laid over it. Movements are in degrees of visual angle as `Screen` has them.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export import Event, Labelled, require_format, write_into
from gazediffusion.data.recordings import EVENT_CLASSES, Eye, Recording
from gazediffusion.data.simulation.movements import (
    MIN_SACCADE_DEG,
    Array,
    Participant,
    draw_participant,
    positions,
    timeline,
)
from gazediffusion.data.simulation.tracker import covered, drift, lid_artefact, losses, one_eye
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.settings import SimulationConfig
from gazediffusion.storage import written_whole
from gazediffusion.version import __version__

__all__ = [
    "Participant",
    "Simulated",
    "SimulationConfig",
    "draw_participant",
    "simulate",
    "write_simulation",
]

_GAP_MS = 1000.0  # between trials on the tracker's clock
_MARGIN_DEG = 1.0  # targets stay this far inside the screen


@dataclass(frozen=True)
class Simulated:
    """One simulated trial with the truth about it.

    events: fixations, saccades and blinks in order, with the microsaccades and losses that lie
        within them. A blink is the time without samples; the 40 ms of lid movement on either
        side, which shift the measured gaze, belong to no event. The settling after a saccade
        belongs to the fixation that follows.
    """

    recording: Recording
    events: tuple[Event, ...]
    participant: Participant

    @property
    def labels(self) -> NDArray[np.uint8]:
        """The true event class of each sample, (time,), 0 where there is no event.

        Blinks and losses are noise; a microsaccade is part of its fixation.
        """
        labels = np.zeros(len(self.recording), dtype=np.uint8)
        for event in self.events:
            kind = {"blink": "noise", "loss": "noise"}.get(event.event, event.event)
            if kind in EVENT_CLASSES:
                samples = event.samples(self.recording.time_ms)
                labels[samples] = EVENT_CLASSES.index(kind) + 1
        return labels


def simulate(config: SimulationConfig) -> Iterator[Simulated]:
    """Simulate trial after trial, participant after participant.

    Each participant has a random generator of their own, spawned from the seed, so the k-th
    participant is the same however many follow.

    >>> config = SimulationConfig(n_participants=1, minutes=0.1, trial_seconds=6, rate_hz=250)
    >>> for trial in simulate(config):
    ...     print(trial.recording.participant, len(trial.recording), trial.events[0].event)
    01 1500 fixation
    """
    if _reach_deg(config.screen).min() < 2.0 * MIN_SACCADE_DEG:
        raise GazeError("the simulator needs a screen of 5 degrees or more, seen from its distance")
    for number in range(config.n_participants):
        sequence = np.random.SeedSequence(config.seed, spawn_key=(number,))
        rng = np.random.default_rng(sequence)
        participant = draw_participant(rng)
        for trial in range(config.n_trials):
            yield _simulate_trial(config, participant, f"{number + 1:02d}", trial, rng)


def write_simulation(
    config: SimulationConfig,
    folder: Path | str,
    format: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Simulate into a folder, with the truth beside the recordings; return the files.

    The truth is `events.csv` and `config.json` in `truth/`, or in `sourcedata/truth/` for BIDS,
    which validators pass over. `progress(done, total)` is called after each participant.
    overwrite: replace a simulation that is there.

    >>> config = SimulationConfig(n_participants=1, minutes=0.1, rate_hz=250)
    >>> [path.name for path in write_simulation(config, "study", "csv")]
    ['recordings.csv', 'recordings.json', 'config.json', 'events.csv']
    """
    require_format(format)
    with written_whole(Path(folder), overwrite, "**/truth/config.json") as temporary:
        truth = temporary / ("sourcedata/truth" if format == "bids" else "truth")
        truth.mkdir(parents=True)
        participants: dict[str, Participant] = {}
        with open(truth / "events.csv", "w", encoding="utf-8", newline="") as stream:
            trials = _noting_truth(config, stream, participants, progress)
            write_into(temporary, trials, format)
        described = {
            "config": asdict(config),
            "seed": config.seed,
            "version": __version__,
            "participants": {name: asdict(one) for name, one in participants.items()},
        }
        (truth / "config.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        names = [one.relative_to(temporary) for one in temporary.rglob("*") if one.is_file()]
    return sorted(Path(folder) / name for name in names)


def _noting_truth(
    config: SimulationConfig,
    stream: TextIO,
    participants: dict[str, Participant],
    progress: Callable[[int, int], None],
) -> Iterator[Labelled]:
    """Pass trials on, writing their events to `stream` and parameters to `participants`."""
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(["participant", "task", "trial", *(column.name for column in fields(Event))])
    for number, simulated in enumerate(simulate(config), start=1):
        recording = simulated.recording
        whose = (recording.participant, recording.task, recording.trial)
        for event in simulated.events:
            rows.writerow([*whose, *(_cell(value) for value in astuple(event))])
        participants[recording.participant] = simulated.participant
        yield recording, simulated.events
        if number % config.n_trials == 0:
            progress(number // config.n_trials, config.n_participants)


def _cell(value: object) -> object:
    """Numbers to a microsecond; nothing where there is no number."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else round(value, 3)


def _simulate_trial(
    config: SimulationConfig,
    participant: Participant,
    name: str,
    trial: int,
    rng: np.random.Generator,
) -> Simulated:
    step_ms = 1000.0 / config.rate_hz
    length_ms = config.n_samples * step_ms
    start_ms = trial * (math.ceil(length_ms) + _GAP_MS)
    relative_ms = np.arange(config.n_samples, dtype=np.float64) * step_ms
    moves, events = timeline(participant, _reach_deg(config.screen), length_ms, rng)
    blinks = [event for event in events if event.event == "blink"]
    eyes: tuple[Eye, ...] = ("left", "right") if config.binocular else ("right",)
    dropouts = losses(participant, blinks, config, rng)

    shared_deg = positions(moves, relative_ms) + lid_artefact(blinks, relative_ms, rng)
    shared_deg += drift(participant.drift_deg_s, config, rng)
    is_blink = covered(blinks, relative_ms)
    gaze_px: dict[Eye, NDArray[np.float32]] = {}
    for eye in eyes:
        gaze_deg = shared_deg + one_eye(participant, eye, config, rng)
        pixels = config.screen.from_degrees(gaze_deg) / config.grid_px
        on_grid = (np.round(pixels) * config.grid_px).astype(np.float32)
        own = [loss for loss in dropouts if loss.eye in ("both", eye)]
        on_grid[:, is_blink | covered(own, relative_ms)] = np.nan
        gaze_px[eye] = on_grid
    recording = Recording(
        participant=name,
        task=config.task,
        trial=str(trial),
        time_ms=start_ms + relative_ms,
        gaze_px=gaze_px,
        path=Path("simulated"),
        format="simulated",
        screen=config.screen,
        rate_hz=config.rate_hz,
        is_blink=dict.fromkeys(eyes, is_blink),
    )
    truth = sorted(events + dropouts, key=lambda event: (event.onset_ms, -event.offset_ms))
    return Simulated(recording, tuple(event.later(start_ms) for event in truth), participant)


def _reach_deg(screen: Screen) -> Array:
    """How far targets may lie from the centre, (2,) in degrees."""
    corner = screen.to_degrees(screen.size_px - 1.0)[:, 0].astype(np.float64)
    return np.asarray(corner - np.minimum(_MARGIN_DEG, corner / 10.0))
