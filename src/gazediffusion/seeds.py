"""Seeds: independent streams of random numbers, each named by a few whole numbers."""

from __future__ import annotations

import numpy as np


def seed_for(*words: int) -> int:
    """A 63-bit seed for these numbers (0 or more), unrelated to that of any others."""
    state = np.random.SeedSequence(words).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))
