"""The screen, and the three units of gaze: pixels, normalized, degrees.

Pixels have their origin at the top left and y pointing down. Normalized coordinates map the
screen linearly to [-1, 1] on both axes (paper, section "Dataset"). Degrees of visual angle are
measured from the screen's centre with pymovements' formula, so both packages agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Screen:
    """A screen in pixels and, where known, in centimetres with the viewer's distance."""

    width_px: int
    height_px: int
    width_cm: float | None = None
    height_cm: float | None = None
    distance_cm: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not (math.isfinite(value) and value > 0):
                raise GazeError(f"screen {name} must be a positive number, not {value}")

    @property
    def has_degrees(self) -> bool:
        """Whether size and distance are known, so that degrees can be computed."""
        return None not in (self.width_cm, self.height_cm, self.distance_cm)

    @property
    def width_deg(self) -> float:
        """The visual angle of the width, taken to be 40 degrees where it is not known.

        A common viewing angle, so that limits in degrees per second still mean something.
        """
        if self.width_cm is None or self.distance_cm is None:
            return 40.0
        return 2 * math.degrees(math.atan(self.width_cm / 2 / self.distance_cm))

    @property
    def size_px(self) -> NDArray[np.float64]:
        """Width and height in pixels, shape (2, 1) to broadcast over (2, time)."""
        return np.array([[self.width_px], [self.height_px]], dtype=np.float64)

    def to_normalized(self, gaze_px: Floats) -> Floats:
        """Map pixels (..., 2, time) to [-1, 1], keeping the float type."""
        return (gaze_px * (2.0 / self.size_px) - 1.0).astype(gaze_px.dtype, copy=False)

    def to_pixels(self, normalized: Floats) -> Floats:
        """Map normalized coordinates (..., 2, time) to pixels, keeping the float type."""
        return ((normalized + 1.0) * (self.size_px / 2.0)).astype(normalized.dtype, copy=False)

    def to_degrees(self, gaze_px: Floats) -> Floats:
        """Degrees of visual angle from the centre for pixels (..., 2, time)."""
        centered = gaze_px - (self.size_px - 1.0) / 2.0
        return np.degrees(np.arctan2(centered, self._distance_px())).astype(
            gaze_px.dtype, copy=False
        )

    def degrees_if_known(self, gaze_px: Floats) -> Floats:
        """Degrees (..., 2, time), NaN where size and distance are not known."""
        return self.to_degrees(gaze_px) if self.has_degrees else np.full_like(gaze_px, np.nan)

    def from_degrees(self, degrees: Floats) -> Floats:
        """Pixels for degrees of visual angle (..., 2, time) measured from the centre."""
        centered = np.tan(np.radians(degrees)) * self._distance_px()
        return (centered + (self.size_px - 1.0) / 2.0).astype(degrees.dtype, copy=False)

    def _distance_px(self) -> NDArray[np.float64]:
        """The viewing distance in horizontal and in vertical pixels, shape (2, 1)."""
        if self.width_cm is None or self.height_cm is None or self.distance_cm is None:
            raise GazeError(
                "degrees need the screen's size and distance",
                remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
            )
        size_cm = np.array([[self.width_cm], [self.height_cm]])
        return np.asarray(self.distance_cm * self.size_px / size_cm)

    def has_pixels_of(self, other: Screen) -> bool:
        """Whether both screens have the same width and height in pixels."""
        return (self.width_px, self.height_px) == (other.width_px, other.height_px)

    def in_words(self) -> str:
        """As `1280x720 px, 40x22.5 cm at 45 cm`; without what is not known."""
        words = f"{self.width_px}x{self.height_px} px"
        if self.has_degrees:
            words += f", {self.width_cm:g}x{self.height_cm:g} cm at {self.distance_cm:g} cm"
        return words

    def to_bids(self) -> dict[str, Any]:
        """The `StimulusPresentation` fields of BIDS (metres); unknown ones are left out."""
        fields: dict[str, Any] = {
            "ScreenOrigin": ["top", "left"],
            "ScreenResolution": [self.width_px, self.height_px],
        }
        if self.width_cm is not None and self.height_cm is not None:
            fields["ScreenSize"] = [round(self.width_cm / 100, 6), round(self.height_cm / 100, 6)]
        if self.distance_cm is not None:
            fields["ScreenDistance"] = round(self.distance_cm / 100, 6)
        return fields

    @classmethod
    def parse(cls, px: str | None, cm: str | None, distance_cm: float | None) -> Screen | None:
        """The screen that a user gives as `1280x720`, `40x22.5` and 45; None where none is given.

        >>> Screen.parse("1280x720", "40x22.5", 45).in_words()
        '1280x720 px, 40x22.5 cm at 45 cm'
        """
        if px is None:
            if cm is not None or distance_cm is not None:
                raise GazeError("`screen_cm` and `distance_cm` need `screen` in pixels as well")
            return None
        width_px, height_px = parse_size(px, "screen")
        width_cm, height_cm = parse_size(cm, "screen_cm") if cm is not None else (None, None)
        return cls(round(width_px), round(height_px), width_cm, height_cm, distance_cm)

    @classmethod
    def from_bids(cls, fields: Mapping[str, Any]) -> Screen | None:
        """Read what `to_bids` writes; None when the resolution is missing or not two numbers."""
        try:
            width_px, height_px = (int(value) for value in fields["ScreenResolution"])
            size = [round(float(value) * 100, 4) for value in fields.get("ScreenSize") or ()]
            distance = fields.get("ScreenDistance")
            width_cm, height_cm = (size[0], size[1]) if len(size) == 2 else (None, None)
            return cls(
                width_px,
                height_px,
                width_cm,
                height_cm,
                round(float(distance) * 100, 4) if distance is not None else None,
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return None


def parse_size(text: str, argument: str) -> tuple[float, float]:
    """Read `1280x720` or `47.4x29.7` as a user writes it."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*[xX,]\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None:
        raise GazeError(f"`{argument}` must look like 1280x720, not {text!r}")
    return float(match[1]), float(match[2])
