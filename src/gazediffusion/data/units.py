"""Units of windows: normalized, pixels or degrees, each window on its own screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Floats, Screen

Unit = Literal["normalized", "px", "deg"]
Convert = Callable[[Screen, Any], Any]
# Unit -> from normalized to it, and back.
_CONVERSIONS: dict[str, tuple[Convert, Convert]] = {
    "normalized": (lambda screen, gaze: gaze, lambda screen, gaze: gaze),
    "px": (Screen.to_pixels, Screen.to_normalized),
    "deg": (
        lambda screen, gaze: screen.to_degrees(screen.to_pixels(gaze)),
        lambda screen, gaze: screen.to_normalized(screen.from_degrees(gaze)),
    ),
}


def conversions_of(unit: str) -> tuple[Convert, Convert]:
    """How normalized gaze becomes gaze in a unit, and how that becomes normalized again."""
    if unit not in _CONVERSIONS:
        raise GazeError(f"unit must be normalized, px or deg, not {unit!r}")
    return _CONVERSIONS[unit]


def by_screen(
    gaze: Floats, screens: Sequence[Screen], of_window: NDArray[np.int32], convert: Convert
) -> NDArray[np.float32]:
    """Gaze (window, 2, time) through `convert(screen, gaze)` of each window's own screen."""
    converted = np.empty_like(gaze)
    for number in np.unique(of_window):
        chosen = of_window == number
        converted[chosen] = convert(screens[number], gaze[chosen])
    return np.asarray(converted, dtype=np.float32)
