"""Data quality by participant: completeness and calibration error, and selection by them.

Completeness is the share of valid samples after cleaning. The calibration error is what the
tracker measured in its validation, of the eye that is used, in degrees of visual angle.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import astuple, dataclass

from gazediffusion.data.cleaning import CleanRecording
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError


@dataclass(frozen=True)
class Quality:
    """The quality of the recordings of one participant."""

    n_valid: int = 0
    n_samples: int = 0
    n_stated: int = 0  # samples of recordings that state a calibration error
    error_sum: float = 0.0  # of that error over these samples

    @classmethod
    def of(cls, recording: Recording, cleaned: CleanRecording) -> Quality:
        """Of one recording."""
        error = recording.calibration_error_deg.get(cleaned.eye)
        n_stated = 0 if error is None else len(recording)
        counts = cleaned.counts
        return cls(counts.valid, counts.total, n_stated, (error or 0.0) * n_stated)

    def __add__(self, other: Quality) -> Quality:
        return Quality(*map(operator.add, astuple(self), astuple(other)))

    @property
    def completeness(self) -> float:
        """The share of valid samples."""
        return self.n_valid / max(self.n_samples, 1)

    @property
    def calibration_error_deg(self) -> float | None:
        """The mean calibration error over samples; None where no recording states one."""
        return self.error_sum / self.n_stated if self.n_stated else None


@dataclass(frozen=True)
class Selection:
    """The participants excluded, each with the reason, and those whose calibration is unknown."""

    excluded: dict[str, str]
    unknown: list[str]

    @property
    def warnings(self) -> list[str]:
        """That participants were kept whose calibration error is not known."""
        if not self.unknown:
            return []
        names = ", ".join(self.unknown)
        return [f"kept, though no recording states their calibration error: {names}"]


def select_participants(
    quality: Mapping[str, Quality], min_valid: float, max_error_deg: float | None
) -> Selection:
    """Exclude participants below a completeness or above a calibration error (None: any)."""
    errors = {name: one.calibration_error_deg for name, one in quality.items()}
    unknown = sorted(name for name, error in errors.items() if error is None)
    if max_error_deg is None:
        unknown = []
    elif quality and len(unknown) == len(quality):
        raise GazeError(
            "no recording states its calibration error, so `max_calibration_error_deg` selects "
            "nobody",
            remedy="leave it out; EyeLink ASC files with validation messages state it",
        )
    excluded = {}
    for name, one in sorted(quality.items()):
        reasons = []
        if one.completeness < min_valid:
            # Rounded down, so that a share below the limit never reads as the limit.
            share = math.floor(1000 * one.completeness) / 10
            reasons.append(f"{share:.1f} % of the samples valid")
        error = errors[name]
        if max_error_deg is not None and error is not None and error > max_error_deg:
            reasons.append(f"calibration error {error:.2f} deg")
        if reasons:
            excluded[name] = ", ".join(reasons)
    if excluded and len(excluded) == len(quality):
        listed = "; ".join(f"{name} {why}" for name, why in list(excluded.items())[:3])
        raise GazeError(
            f"every participant is excluded: {listed}" + (" ..." if len(excluded) > 3 else ""),
            remedy="choose another `min_valid` or `max_calibration_error_deg`",
        )
    return Selection(excluded, unknown)
