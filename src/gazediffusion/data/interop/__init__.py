"""Recordings and windows as objects of other packages, and back: frames, pymovements, MNE, torch.

One module per package, imported when a function is called. `to_*` takes recordings or windows,
`from_*` returns `Recordings` in memory, with screen, rate, participant, task, trial, blinks and
labels where the object has them. Nothing here knows how gaze is cleaned or generated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError

# Packages that an extra of ours brings along.
_EXTRA = {"huggingface_hub": "hub"}


def required(name: str) -> Any:
    """An installed package, or the error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        source = f"'gazediffusion[{_EXTRA[name]}]'" if name in _EXTRA else name
        raise GazeError(
            f"the package {name} is not installed", remedy=f"install it: pip install {source}"
        ) from error


def alike(recordings: Iterable[Recording]) -> list[Recording]:
    """Recordings all with masks of blinks, and all with labels, where any has them.

    An object without a blink or a labelled event does not say whether any were looked for. Among
    others that have some, it has none.
    """
    held = list(recordings)
    if any(one.is_blink for one in held):
        none = [np.zeros(len(one), dtype=np.bool_) for one in held]
        held = [
            replace(one, is_blink={eye: one.is_blink.get(eye, mask) for eye in one.gaze_px})
            for one, mask in zip(held, none, strict=True)
        ]
    if any(one.labels is not None for one in held):
        none_of = [np.zeros(len(one), dtype=np.uint8) for one in held]
        held = [
            one if one.labels is not None else replace(one, labels=labels)
            for one, labels in zip(held, none_of, strict=True)
        ]
    return held
