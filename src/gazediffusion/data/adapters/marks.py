"""Blinks and labels of recordings whose objects state them as events.

An object without a blink or a labelled event does not say whether any were looked for. Among others
that have some, it has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gazediffusion.data.recordings import Recording


def alike(recordings: Iterable[Recording]) -> list[Recording]:
    """Recordings all with masks of blinks, and all with labels, where any has them."""
    held = list(recordings)
    if any(one.is_blink for one in held):
        held = [
            replace(
                one,
                is_blink={
                    eye: one.is_blink.get(eye, np.zeros(len(one), dtype=np.bool_))
                    for eye in one.gaze_px
                },
            )
            for one in held
        ]
    if any(one.labels is not None for one in held):
        held = [
            replace(one, labels=np.zeros(len(one), dtype=np.uint8)) if one.labels is None else one
            for one in held
        ]
    return held
