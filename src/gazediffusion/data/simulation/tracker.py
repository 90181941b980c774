"""The tracker's view: lid artefacts, losses, fixational movement and noise laid over the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export import Event
from gazediffusion.data.recordings import Eye
from gazediffusion.data.simulation.movements import LID_MS, Array, Participant

if TYPE_CHECKING:
    from gazediffusion.settings import SimulationConfig

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
