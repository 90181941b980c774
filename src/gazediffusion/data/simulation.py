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
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.events import Event
from gazediffusion.data.recordings import EVENT_CLASSES, Eye, Recording
from gazediffusion.data.writers import Labelled, require_format, write_into
from gazediffusion.errors import GazeError
from gazediffusion.jobs import Show, nothing
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream, rng
from gazediffusion.settings import SimulationConfig
from gazediffusion.storage import written_whole

if TYPE_CHECKING:
    from gazediffusion.settings import SimulationConfig

Array = NDArray[np.float64]

LID_MS = 40.0  # time for which a moving lid shifts the measured pupil before and after the loss
MIN_SACCADE_DEG = 1.0
_MAX_MICROSACCADE_DEG = 0.9  # so that the two kinds do not overlap
_MIN_FIXATION_MS = 80.0
_MAIN_SEQUENCE_SCATTER = 0.06  # of the log peak velocity, from saccade to saccade
# Peak over mean velocity: 1.65 over most of the range (Becker 1989), about 2 for small saccades;
# 1.875 is the minimum-jerk movement.
_MIN_PEAK_RATIO, _MAX_PEAK_RATIO = 1.65, 2.1
_GLISSADE_MS = 25.0


@dataclass(frozen=True)
class Participant:
    """One participant's eyes. Durations and amplitudes are medians of lognormal distributions."""

    fixation_ms: float
    fixation_spread: float
    amplitude_deg: float
    amplitude_spread: float
    horizontal_share: float
    max_velocity_deg_s: float
    velocity_scale_deg: float
    drift_deg_s: float
    tremor_deg: float
    noise_deg: float
    microsaccades_per_s: float
    blinks_per_min: float
    blink_ms: float
    losses_per_min: float
    vergence_x_deg: float
    vergence_y_deg: float


def draw_participant(rng: np.random.Generator) -> Participant:
    """Draw a participant from a population whose medians are those of healthy adults."""

    def around(median: float, spread: float) -> float:
        return median * math.exp(spread * rng.standard_normal())

    return Participant(
        # Scene viewing: fixations of 200 to 300 ms, saccades of 4 to 5 deg (Rayner 2009).
        fixation_ms=around(250.0, 0.12),
        fixation_spread=around(0.4, 0.1),
        amplitude_deg=around(5.0, 0.12),
        amplitude_spread=around(0.7, 0.08),
        # More saccades are horizontal than vertical than oblique (Foulsham et al. 2008).
        horizontal_share=float(np.clip(rng.normal(0.5, 0.07), 0.3, 0.7)),
        # Main sequence (Bahill et al. 1975; Collewijn et al. 1988).
        max_velocity_deg_s=around(500.0, 0.08),
        velocity_scale_deg=around(5.5, 0.06),
        # Fixational drift and tremor (Martinez-Conde et al. 2004; Rolfs 2009).
        drift_deg_s=around(0.35, 0.2),
        tremor_deg=around(0.004, 0.2),
        microsaccades_per_s=around(0.8, 0.3),
        # Video trackers: 0.01 to 0.03 deg RMS (Holmqvist et al. 2012).
        noise_deg=around(0.012, 0.25),
        # Blinks: 10 to 17 a minute, less while viewing; 100 to 200 ms (Bentivoglio et al. 1997).
        blinks_per_min=around(10.0, 0.35),
        blink_ms=around(150.0, 0.12),
        losses_per_min=around(3.0, 0.4),
        vergence_x_deg=float(rng.normal(0.0, 0.3)),
        vergence_y_deg=float(rng.normal(0.0, 0.15)),
    )


class Move(NamedTuple):
    """A straight or slightly curved movement between two places in degrees."""

    onset_ms: float
    duration_ms: float
    start_deg: Array
    end_deg: Array
    peak_velocity_deg_s: float
    curvature: float

    @property
    def amplitude_deg(self) -> float:
        """How far the movement goes."""
        return math.hypot(*(self.end_deg - self.start_deg))

    def event(self, kind: Literal["saccade", "microsaccade"]) -> Event:
        """The movement as a true event."""
        offset_ms = self.onset_ms + self.duration_ms
        return Event(kind, self.onset_ms, offset_ms, self.amplitude_deg, self.peak_velocity_deg_s)


def timeline(
    participant: Participant, reach_deg: Array, length_ms: float, rng: np.random.Generator
) -> tuple[list[Move], list[Event]]:
    """Fixations joined by saccades or blinks until the trial ends, in the last fixation."""
    gaze_deg = np.clip(rng.normal(0.0, 1.5, 2), -reach_deg, reach_deg)
    moves = [Move(0.0, 1.0, gaze_deg, gaze_deg, 0.0, 0.0)]
    events: list[Event] = []
    now_ms = 0.0
    while True:
        fixation_ms = max(
            _MIN_FIXATION_MS,
            rng.lognormal(math.log(participant.fixation_ms), participant.fixation_spread),
        )
        next_ms = now_ms + fixation_ms
        is_blink = rng.random() < 1.0 - math.exp(
            -participant.blinks_per_min * fixation_ms / 60_000.0
        )
        blink_ms = rng.lognormal(math.log(participant.blink_ms), 0.3)
        micro = _microsaccade(participant, gaze_deg, now_ms, fixation_ms, reach_deg, rng)
        resting_deg = gaze_deg if micro is None else micro.end_deg
        saccade, target_deg = _saccade(participant, resting_deg, next_ms, reach_deg, rng)
        resumes_ms = next_ms + (blink_ms + 2 * LID_MS if is_blink else saccade.duration_ms)
        if resumes_ms + _MIN_FIXATION_MS > length_ms:
            events.append(Event("fixation", now_ms, length_ms))
            return moves, events
        events.append(Event("fixation", now_ms, next_ms))
        if micro is not None:
            moves.append(micro)
            events.append(micro.event("microsaccade"))
        gaze_deg = resting_deg
        if is_blink:
            events.append(Event("blink", next_ms + LID_MS, resumes_ms - LID_MS))
        else:
            moves += [saccade, _glissade(saccade, target_deg)]
            events.append(saccade.event("saccade"))
            gaze_deg = target_deg
        now_ms = resumes_ms


def _saccade(
    participant: Participant,
    from_deg: Array,
    onset_ms: float,
    reach_deg: Array,
    rng: np.random.Generator,
) -> tuple[Move, Array]:
    """A saccade, and the target the eye settles on just after it."""
    target_deg = _target(participant, from_deg, reach_deg, rng)
    way_deg = target_deg - from_deg
    amplitude_deg = math.hypot(*way_deg)
    # Large saccades over- or undershoot by a little and settle in a glissade (Nystrom &
    # Holmqvist 2010).
    missed_deg = rng.normal(0.05, 0.12) * min(1.0, amplitude_deg / 8.0)
    landing_deg = from_deg + way_deg * (1.0 + missed_deg / amplitude_deg)
    return _ballistic(participant, onset_ms, from_deg, landing_deg, rng), target_deg


def _ballistic(
    participant: Participant,
    onset_ms: float,
    start_deg: Array,
    end_deg: Array,
    rng: np.random.Generator,
) -> Move:
    """A movement on the participant's main sequence.

    Peak velocity is Vmax (1 - exp(-A/c)) (Bahill et al. 1975). The duration is 2.2 ms/deg +
    21 ms (Carpenter 1988), as far as a saccade's peak and mean velocity go together.
    """
    amplitude_deg = math.hypot(*(end_deg - start_deg))
    rise = 1.0 - math.exp(-amplitude_deg / participant.velocity_scale_deg)
    scatter = math.exp(_MAIN_SEQUENCE_SCATTER * rng.standard_normal())
    peak_deg_s = participant.max_velocity_deg_s * rise * scatter
    mean_deg_s = amplitude_deg / (0.0022 * amplitude_deg + 0.021)
    ratio = min(max(peak_deg_s / mean_deg_s, _MIN_PEAK_RATIO), _MAX_PEAK_RATIO)
    duration_ms = 1000.0 * ratio * amplitude_deg / peak_deg_s
    return Move(onset_ms, duration_ms, start_deg, end_deg, peak_deg_s, rng.normal(0.0, 0.02))


def _glissade(saccade: Move, target_deg: Array) -> Move:
    """The slow minimum-jerk settling from where the saccade landed to its target."""
    onset_ms = saccade.onset_ms + saccade.duration_ms
    way_deg = math.hypot(*(target_deg - saccade.end_deg))
    peak_deg_s = 1.875 * way_deg / _GLISSADE_MS * 1000.0
    return Move(onset_ms, _GLISSADE_MS, saccade.end_deg, target_deg, peak_deg_s, 0.0)


def _microsaccade(
    participant: Participant,
    from_deg: Array,
    fixation_onset_ms: float,
    fixation_ms: float,
    reach_deg: Array,
    rng: np.random.Generator,
) -> Move | None:
    """At most one per fixation, in its inner part, mostly horizontal and 0.1 to 0.9 deg large."""
    chance = 1.0 - math.exp(-participant.microsaccades_per_s * fixation_ms / 1000.0)
    inner_ms = fixation_ms - 200.0
    size_deg = float(np.clip(rng.lognormal(math.log(0.3), 0.5), 0.1, _MAX_MICROSACCADE_DEG))
    angle = rng.integers(2) * math.pi + rng.normal(0.0, 0.5)
    onset_ms = fixation_onset_ms + 100.0 + inner_ms * rng.random()
    end_deg = from_deg + size_deg * np.array([math.cos(angle), math.sin(angle)])
    if rng.random() >= chance or inner_ms <= 0.0 or np.any(np.abs(end_deg) > reach_deg):
        return None
    return _ballistic(participant, onset_ms, from_deg, end_deg, rng)


def _target(
    participant: Participant,
    from_deg: Array,
    reach_deg: Array,
    rng: np.random.Generator,
    n_tries: int = 16,
) -> Array:
    """The first of some drawn places that is on the screen, the centre likelier (Tatler 2007).

    Where none is, a place near the centre is looked at.
    """
    size_deg = rng.lognormal(
        math.log(participant.amplitude_deg), participant.amplitude_spread, n_tries
    )
    # The rest of the saccades are half vertical, half in any direction.
    kind = rng.random(n_tries)
    is_vertical = (kind - participant.horizontal_share) * 2.0 > 1.0 - participant.horizontal_share
    angle = rng.integers(2, size=n_tries) * np.pi + rng.normal(0.0, 0.25, n_tries)
    angle = np.where(is_vertical, angle + np.pi / 2.0, angle)
    is_oblique = (kind > participant.horizontal_share) & ~is_vertical
    angle = np.where(is_oblique, rng.uniform(0.0, 2.0 * np.pi, n_tries), angle)
    way_deg = size_deg * np.stack([np.cos(angle), np.sin(angle)])
    places_deg = from_deg[:, None] + way_deg
    relative = places_deg / reach_deg[:, None]
    is_taken = (np.abs(relative) < 1.0).all(axis=0) & (size_deg > 1.1 * MIN_SACCADE_DEG)
    is_taken &= rng.random(n_tries) < np.exp(-1.2 * (relative**2).sum(axis=0))
    if is_taken.any():
        return np.asarray(places_deg[:, int(np.argmax(is_taken))])
    central_deg = reach_deg * rng.uniform(-0.2, 0.2, 2)
    if math.hypot(*(central_deg - from_deg)) > 1.1 * MIN_SACCADE_DEG:
        return central_deg
    return np.asarray(central_deg - np.sign(from_deg) * np.array([0.3, 0.0]) * reach_deg)


def positions(moves: list[Move], relative_ms: Array) -> Array:
    """Where the movements bring the eye at each time, (2, time) in degrees."""
    onset, duration, start, end, _, curvature = map(np.array, zip(*moves, strict=True))
    start = start.T
    way = end.T - start
    current = np.searchsorted(onset, relative_ms, side="right") - 1
    elapsed = np.clip((relative_ms - onset[current]) / duration[current], 0.0, 1.0)
    done = _progress(moves, current, elapsed)
    # Bends the path sideways, most at half way and not at all at its ends.
    sideways = np.stack([-way[1], way[0]])[:, current] * curvature[current]
    bend = 4.0 * done * (1.0 - done)
    return np.asarray(start[:, current] + way[:, current] * done + sideways * bend)


def _progress(moves: list[Move], current: NDArray[np.intp], elapsed: Array) -> Array:
    """The share of the way done after a share of the time, for each sample's current movement.

    Velocity follows s^a (1-s)^b, which holds the minimum-jerk profile (a = b = 2). Its shape is
    chosen so that its peak is the movement's peak velocity; it rises faster than it falls, the
    more so the larger the saccade (Van Opstal & Van Gisbergen 1987; Collewijn et al. 1988).
    """
    amplitude = np.array([move.amplitude_deg for move in moves])
    mean_deg_s = amplitude / np.array([move.duration_ms for move in moves]) * 1000.0
    peak = np.array([move.peak_velocity_deg_s for move in moves])
    ratio = np.divide(peak, mean_deg_s, out=np.full(len(moves), 1.875), where=mean_deg_s > 0)
    peak_time = np.clip(0.5 - 0.006 * amplitude, 0.3, 0.5)
    times, orders, ratios = _profile_table()
    row = np.abs(peak_time[:, None] - times).argmin(axis=1)
    order = np.array([np.interp(r, ratios[i], orders) for r, i in zip(ratio, row, strict=True)])
    grid = np.linspace(0.0, 1.0, 257)
    rise = (order * times[row])[:, None]
    velocity = grid**rise * (1.0 - grid) ** (order[:, None] - rise)
    done = np.cumsum((velocity[:, 1:] + velocity[:, :-1]) / 2.0, axis=1)
    table = np.concatenate([np.zeros((len(moves), 1)), done / done[:, -1:]], axis=1)
    place = elapsed * (len(grid) - 1)
    left = np.minimum(place.astype(np.intp), len(grid) - 2)
    before, after = table[current, left], table[current, left + 1]
    return np.asarray(before + (after - before) * (place - left))


@lru_cache(maxsize=1)
def _profile_table() -> tuple[Array, Array, Array]:
    """Peak times (rows), orders a + b (columns), and the peak over mean velocity they give."""
    times = np.linspace(0.3, 0.5, 41)
    orders = np.linspace(1.5, 8.0, 66)
    grid = np.linspace(0.0, 1.0, 513)[1:-1]
    rise = times[:, None] * orders
    log_peak = rise * np.log(times[:, None]) + (orders - rise) * np.log(1.0 - times[:, None])
    shape = grid ** rise[..., None] * (1.0 - grid) ** (orders - rise)[..., None]
    return times, orders, np.exp(log_peak) / (shape.sum(axis=-1) / 512)


Spectrum = Callable[[Array], Array]

# Gives eyes that agree about as in the paper's dataset, where they correlate at 0.99 and more.
_VERGENCE_WANDER_DEG = 0.12


def lid_artefact(blinks: list[Event], relative_ms: Array, rng: np.random.Generator) -> Array:
    """The closing lid covers the pupil from above: measured gaze dips by degrees, (2, time)."""
    shift_deg = np.zeros((2, len(relative_ms)))
    for blink in blinks:
        depth_deg = rng.uniform(2.0, 7.0) * np.array([rng.normal(0.0, 0.2), 1.0])
        closing = 1.0 - (blink.onset_ms - relative_ms) / LID_MS
        opening = 1.0 - (relative_ms - blink.offset_ms) / LID_MS
        around = np.clip(np.where(relative_ms < blink.onset_ms, closing, opening), 0.0, 1.0)
        shift_deg += depth_deg[:, None] * around**2
    return shift_deg


def losses(
    participant: Participant,
    blinks: list[Event],
    config: SimulationConfig,
    rng: np.random.Generator,
) -> list[Event]:
    """Short dropouts of the tracker in one eye or both, apart from the blinks."""
    step_ms = 1000.0 / config.rate_hz
    length_ms = config.n_samples * step_ms
    n = rng.poisson(participant.losses_per_min * length_ms / 60_000.0)
    onsets = np.sort(rng.uniform(0.0, length_ms, n))
    durations = np.maximum(rng.lognormal(math.log(20.0), 0.6, n), 1.5 * step_ms)
    offsets = np.minimum(onsets + durations, length_ms)
    sides = np.array(["left", "right", "both"])[rng.integers(3, size=n)].tolist()
    losses: list[Event] = []
    for onset_ms, offset_ms, side in zip(onsets.tolist(), offsets.tolist(), sides, strict=True):
        if all(
            offset_ms < blink.onset_ms - LID_MS or onset_ms > blink.offset_ms + LID_MS
            for blink in blinks
        ):
            losses.append(
                Event("loss", onset_ms, offset_ms, eye=side if config.binocular else "both")
            )
    return losses


def covered(events: list[Event], relative_ms: Array) -> NDArray[np.bool_]:
    """Whether each sample lies in one of the events, (time,)."""
    mask = np.zeros(len(relative_ms), dtype=np.bool_)
    for event in events:
        mask[event.samples(relative_ms)] = True
    return mask


def drift(speed_deg_s: float, config: SimulationConfig, rng: np.random.Generator) -> Array:
    """Slow wandering bound to the target, (2, time), whose root mean square speed is given."""

    def spectrum(hz: Array) -> Array:
        # A random walk (1/f), held below 0.5 Hz and smoothed by the eye's inertia above 8 Hz.
        return np.asarray(1.0 / np.sqrt((0.5**2 + hz**2) * (1.0 + (hz / 8.0) ** 4)))

    wander = _noise(spectrum, config, rng)
    hz = np.linspace(0.0, config.rate_hz / 2.0, 4097)
    speed = spectrum(hz) * 2.0 * np.pi * hz
    speed_per_size = math.sqrt(2.0 * np.sum(speed**2) / np.sum(spectrum(hz) ** 2))
    return wander * (speed_deg_s / speed_per_size)


def one_eye(
    participant: Participant, eye: Eye, config: SimulationConfig, rng: np.random.Generator
) -> Array:
    """What is an eye's own, (2, time): vergence, part of the drift, tremor, tracker noise."""

    def tremor(hz: Array) -> Array:
        return np.asarray(np.exp(-(((hz - 84.0) / 15.0) ** 2) / 2.0))  # 84 Hz (Bolger et al. 1999)

    def tracker(hz: Array) -> Array:
        return np.asarray(np.cos(np.pi * hz / config.rate_hz) ** 2)  # its [1 2 1]/4 sample filter

    def vergence(hz: Array) -> Array:
        return np.asarray(1.0 / (0.2**2 + hz**2))  # wanders over seconds

    side = 0.5 if eye == "left" else -0.5
    apart = side * np.array([[participant.vergence_x_deg], [participant.vergence_y_deg]])
    own = apart + _VERGENCE_WANDER_DEG * _noise(vergence, config, rng)
    own = own + drift(participant.drift_deg_s / 3.0, config, rng)
    own = own + participant.noise_deg * _noise(tracker, config, rng)
    if config.rate_hz > 200.0:  # slower trackers do not see tremor
        own = own + participant.tremor_deg * _noise(tremor, config, rng)
    return np.asarray(own)


def _noise(spectrum: Spectrum, config: SimulationConfig, rng: np.random.Generator) -> Array:
    """Gaussian noise (2, time) of standard deviation 1 with an amplitude spectrum over Hz."""
    # A second more than needed, because noise made this way joins its own beginning.
    n = 1 << (config.n_samples + math.ceil(config.rate_hz)).bit_length()
    hz = np.arange(n // 2 + 1, dtype=np.float64) * (config.rate_hz / n)
    gain = spectrum(hz)
    gain = gain / math.sqrt(2.0 * np.sum(gain[1:-1] ** 2) + gain[0] ** 2 + gain[-1] ** 2)
    white = np.fft.rfft(rng.standard_normal((2, n)))
    shaped = np.fft.irfft(white * gain * math.sqrt(n), n)
    return np.asarray(shaped[:, : config.n_samples])


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
        draws = rng(config.seed, Stream.SIMULATION, number)
        participant = draw_participant(draws)
        for trial in range(config.n_trials):
            yield _simulate_trial(config, participant, f"{number + 1:02d}", trial, draws)


def write_simulation(
    config: SimulationConfig,
    folder: Path | str,
    format: str,
    progress: Show = nothing,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Simulate into a folder, with the truth beside the recordings; return the files.

    The truth is `events.csv` and `config.json` in `truth/`, or in `sourcedata/truth/` for BIDS,
    which validators pass over. progress: counts participants.
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
    progress: Show,
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
            progress("simulating", number // config.n_trials, config.n_participants, "")


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
