"""Windows on their way to a file: in pixels and degrees of their own screens, or of a given one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.windows import Windows
from gazediffusion.geometry import Screen

Gaze = NDArray[np.float32]


@dataclass(frozen=True)
class Projection:
    """How windows become pixels.

    screen: the screen of all windows; None keeps each window on its own.
    grid_px: pixels are rounded to this grid; None keeps them as they are.
    n_samples: samples kept of every window from its start; None keeps all.
    """

    screen: Screen | None = None
    grid_px: float | None = None
    n_samples: int | None = None

    def screens(self, windows: Windows) -> tuple[tuple[Screen, ...], NDArray[np.int32]]:
        """The screens of windows, and which of them each window has, (window,)."""
        if self.screen is not None:
            return (self.screen,), np.zeros(len(windows), dtype=np.int32)
        return windows.screens, windows.screen_index

    def pixels(self, windows: Windows) -> Gaze:
        """Gaze in pixels, (window, 2, time)."""
        gaze = windows.cut()[:, :, : self.n_samples]
        pixels = np.empty_like(gaze)
        screens, of_window = self.screens(windows)
        for number in np.unique(of_window):
            chosen = of_window == number
            pixels[chosen] = screens[number].to_pixels(gaze[chosen])
        if self.grid_px is not None:
            pixels = np.rint(pixels / self.grid_px) * self.grid_px
        return np.asarray(pixels, dtype=np.float32)

    def normalized(self, windows: Windows) -> Gaze:
        """Gaze normalized to [-1, 1], (window, 2, time), of the pixels that are written."""
        return self._of_pixels(windows, lambda screen, pixels: screen.to_normalized(pixels))

    def degrees(self, windows: Windows) -> Gaze:
        """Gaze in degrees, (window, 2, time); NaN where the size of the screen is unknown."""

        def convert(screen: Screen, pixels: Gaze) -> Any:
            return screen.to_degrees(pixels) if screen.has_degrees else np.nan

        return self._of_pixels(windows, convert)

    def _of_pixels(self, windows: Windows, convert: Any) -> Gaze:
        pixels = self.pixels(windows)
        screens, of_window = self.screens(windows)
        for number in np.unique(of_window):
            chosen = of_window == number
            pixels[chosen] = convert(screens[number], pixels[chosen])
        return pixels

    def resolution_px(self, windows: Windows) -> NDArray[np.float64]:
        """The tracker's step in the pixels that are written, (window, 2); 0 where it is fine."""
        steps = windows.resolution_px
        if self.screen is None:
            return steps
        sizes = np.array([screen.size_px[:, 0] for screen in windows.screens])
        return np.asarray(steps * self.screen.size_px[:, 0] / sizes[windows.screen_index])
