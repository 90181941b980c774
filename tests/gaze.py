"""Simulated windows for the tests of evaluation: many participants, known defects."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from gazediffusion.data.preparing import prepare
from gazediffusion.data.readers import ReadOptions, Source
from gazediffusion.data.simulation import simulate
from gazediffusion.data.windows import Windows
from gazediffusion.settings import PrepareConfig, SimulationConfig
from tests.conftest import SCREEN
from tests.data.test_preparing import Given


@lru_cache(maxsize=4)
def simulated_windows(n_participants: int = 10, minutes: float = 2.0, seed: int = 0) -> Windows:
    """Windows of 2 s (500 samples at 250 Hz) of simulated participants, a third held out."""
    config = SimulationConfig(
        n_participants=n_participants, minutes=minutes, rate_hz=250, seed=seed, screen=SCREEN,
        binocular=False,
    )  # fmt: skip
    recordings = [one.recording for one in simulate(config)]
    source = Source(Path(__file__), Given(recordings), ReadOptions())
    return prepare([source], PrepareConfig(seconds=2.0, stride_s=1, validation_fraction=0.3))


def as_synthetic(windows: Windows, seed: int = 0) -> Windows:
    """Real windows under the name of synthetic ones."""
    gaze = windows.dequantized(seed).cut()
    return Windows.from_array(gaze, windows.rate_hz, windows.screen)


def with_noise(windows: Windows, std: float) -> Windows:
    """Synthetic windows with independent noise on every sample."""
    gaze = windows.dequantized(0).cut()
    gaze = gaze + np.random.default_rng(0).normal(0, std, gaze.shape).astype(np.float32)
    return Windows.from_array(gaze, windows.rate_hz, windows.screen)
