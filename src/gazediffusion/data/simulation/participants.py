"""Participants: parameters of eye movements, drawn from a population of healthy adults."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


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
