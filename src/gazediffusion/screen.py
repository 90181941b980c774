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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.errors import GazeError

Floats = NDArray[np.floating[Any]]
# Of recorded gaze. `norm` is a fraction of the screen: 0 to 1, or -0.5 to 0.5 from the centre.
Unit = Literal["px", "deg", "norm"]
# y points down from `top-left` and `center`, up from `center-up` and `bottom-left`.
Origin = Literal["top-left", "center", "center-up", "bottom-left"]


@dataclass(frozen=True)
class Screen:
    """A screen in pixels and, where known, in centimetres with the viewer's distance.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> screen = gd.Screen(1280, 720, width_cm=40, height_cm=22.5, distance_cm=45)
    >>> gaze_px = np.array([[640.0, 1280.0], [360.0, 360.0]])  # (2, time): centre, right edge
    >>> screen.to_normalized(gaze_px).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    >>> screen.to_degrees(gaze_px).round(1).tolist()
    [[0.0, 24.0], [0.0, 0.0]]
    """

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

    def is_comparable_with(self, other: Screen) -> bool:
        """Whether gaze on both has a size in degrees, or the screens are the same."""
        return self == other or (self.has_degrees and other.has_degrees)

    def pixels_from(self, other: Screen, normalized: Floats) -> Floats:
        """Pixels here of gaze (..., 2, time) normalized to another screen.

        Gaze keeps its size in degrees where both screens have one, else its share of the screen.
        """
        if self != other and self.is_comparable_with(other):
            return self.from_degrees(other.to_degrees(other.to_pixels(normalized)))
        return self.to_pixels(normalized)

    def has_pixels_of(self, other: Screen) -> bool:
        """Whether both screens have the same width and height in pixels."""
        return (self.width_px, self.height_px) == (other.width_px, other.height_px)

    def agrees_with(self, other: Screen) -> bool:
        """Whether nothing that both state differs; sizes and distances may by 1 %."""
        mine, theirs = asdict(self), asdict(other)
        return self.has_pixels_of(other) and all(
            math.isclose(mine[name], theirs[name], rel_tol=0.01)
            for name in ("width_cm", "height_cm", "distance_cm")
            if mine[name] is not None and theirs[name] is not None
        )

    def completed_by(self, other: Screen) -> Screen:
        """This screen, with what it does not state taken from another."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return Screen(**{**asdict(other), **known})

    def in_words(self) -> str:
        """As `1280x720 px, 40x22.5 cm at 45 cm`; without what is not known."""
        words = f"{self.width_px}x{self.height_px} px"
        if self.has_degrees:
            words += f", {self.width_cm:g}x{self.height_cm:g} cm at {self.distance_cm:g} cm"
        return words

    def doubts(self) -> list[str]:
        """What is unusual of a screen, a line each: distance, density, shape of pixels.

        Screens are 20 to 300 cm away and have 5 (a projector) to 250 (a telephone) pixels per cm.
        """
        doubts = []
        distance_cm = self.distance_cm
        if distance_cm is not None and not 20 <= distance_cm <= 300:
            doubts.append(f"a viewing distance of {distance_cm:g} cm is implausible")
        if self.width_cm is not None and self.height_cm is not None:
            per_cm = self.width_px / self.width_cm, self.height_px / self.height_cm
            size = f"{self.width_px}x{self.height_px} px on {self.width_cm:g}x{self.height_cm:g} cm"
            if not all(5 <= one <= 250 for one in per_cm):
                doubts.append(f"{size} is implausible ({per_cm[0]:.3g} pixels per cm)")
            elif not 0.8 <= per_cm[0] / per_cm[1] <= 1.25:
                doubts.append(f"{size} has pixels that are not square")
        return doubts

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

    def as_given(self) -> dict[str, Any]:
        """What `parse` makes this screen of, by the names of the options."""
        is_known = self.width_cm is not None and self.height_cm is not None
        return {
            "screen": f"{self.width_px}x{self.height_px}",
            "screen_cm": f"{self.width_cm:g}x{self.height_cm:g}" if is_known else None,
            "distance_cm": self.distance_cm,
        }

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


def top_left_pixels(gaze: Floats, unit: Unit, origin: Origin, screen: Screen | None) -> Floats:
    """Pixels from the top left, y down, for gaze (..., 2, time) in another unit or origin."""
    if (unit, origin) == ("px", "top-left"):
        return gaze
    if screen is None or (unit == "deg" and not screen.has_degrees):
        needed = "size in cm and the viewing distance are" if unit == "deg" else "size is"
        raise GazeError(
            f"the gaze is in {unit} from {origin}, and the screen's {needed} not known",
            remedy="give `screen`" + (" with `screen_cm` and `distance_cm`" * (unit == "deg")),
        )
    if unit == "deg" and origin not in ("center", "center-up"):
        raise GazeError(
            f"degrees are measured from the centre of the screen, not from {origin}",
            remedy="give the `origin` center (y down) or center-up (y up)",
        )
    size = np.ones((2, 1)) if unit == "norm" else screen.size_px - 1.0
    sign = np.array([[1.0], [-1.0 if origin in ("center-up", "bottom-left") else 1.0]])
    if unit == "deg":
        return screen.from_degrees(gaze * sign)
    corner = {"top-left": (0.0, 0.0), "bottom-left": (0.0, 1.0)}.get(origin, (0.5, 0.5))
    placed = gaze * sign + np.array(corner)[:, None] * size
    return np.asarray(placed * screen.size_px if unit == "norm" else placed)


def parse_size(text: str, argument: str) -> tuple[float, float]:
    """Read `1280x720` or `47.4x29.7` as a user writes it."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*[xX,]\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None:
        raise GazeError(f"`{argument}` must look like 1280x720, not {text!r}")
    return float(match[1]), float(match[2])
