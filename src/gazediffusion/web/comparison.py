"""Real recordings beside synthetic windows: their description, the evaluation and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.requests import windows_json

if TYPE_CHECKING:
    from gazediffusion.models.listing import ModelDescription

MAX_SHOWN = 40
# More windows change little in the figures, and would delay other requests.
MAX_REAL = 1000
_KEPT = ("name", "title", "family", "unit", "level", "mean", "histogram", "distances")


@dataclass(frozen=True)
class RealWindows:
    """Windows of recordings; reference: those of the training participants, of a windows file."""

    windows: gd.Windows
    reference: gd.Windows | None
    n_recordings: int


def read_real(
    paths: Sequence[Path], screen: gd.Screen | None, like: ModelDescription
) -> RealWindows:
    """Recordings cleaned and cut as the model's windows are, or a windows file as it is."""
    if len(paths) == 1 and paths[0].suffix == ".safetensors":
        windows = gd.Windows.load(paths[0])
        trials = zip(windows.segment_participant, windows.segment_trial, strict=True)
        n_recordings = len(set(trials))
        if not windows.validation:
            return RealWindows(windows, None, n_recordings)
        return RealWindows(windows.held_out, windows.train, n_recordings)
    n_recordings = 0

    def count(recording: object) -> None:
        nonlocal n_recordings
        n_recordings += 1

    config = gd.PrepareConfig(rate_hz=like.rate_hz, seconds=like.seconds, validation_fraction=0.0)
    # Several files may belong together, as those of BIDS do: then the folder is read.
    given = paths[0] if len(paths) == 1 else paths[0].parent
    windows = gd.prepare(gd.read(given, screen=screen), config, count)
    return RealWindows(windows, None, n_recordings)


def describe(real: RealWindows, seconds: float | None = None) -> dict[str, Any]:
    """Counts and some windows of the recordings, the first seconds of each."""
    windows = real.windows
    rate_hz = windows.rate_hz
    if seconds is not None and not 1 <= seconds <= windows.length / rate_hz:
        most = f"{windows.length / rate_hz:g}"
        raise GazeError(f"`seconds` must lie between 1 and {most} here, not {seconds:g}")
    n_samples = windows.length if seconds is None else round(seconds * rate_hz)
    return {
        "n_windows": len(windows),
        "n_recordings": real.n_recordings,
        "participants": [windows.participants[k] for k in np.unique(windows.participant)],
        "tasks": [windows.tasks[k] for k in np.unique(windows.task)],
        "rate_hz": rate_hz,
        "screens": [asdict(windows.screens[k]) for k in np.unique(windows.screen_index)],
        "windows": [
            {**window, "x": window["x"][:n_samples], "y": window["y"][:n_samples]}
            for window in windows_json(windows.subsample(MAX_SHOWN))
        ],
    }


@dataclass(frozen=True)
class Comparison:
    """An evaluation of synthetic windows against recordings, without intervals and slow tests."""

    evaluation: gd.Evaluation

    @classmethod
    def of(cls, real: RealWindows, synthetic: gd.Windows) -> Comparison:
        """Of at most MAX_REAL real windows."""
        taken = real.windows.subsample(MAX_REAL)
        reference = None if real.reference is None else real.reference.subsample(MAX_REAL)
        config = gd.EvaluationConfig(quick=True)
        evaluation = gd.evaluate(taken, {"synthetic": synthetic}, reference, config)
        if len(taken) < len(real.windows):
            evaluation.results["about"]["notes"].append(
                f"{len(taken)} of the {len(real.windows)} real windows are compared, evenly spaced"
            )
        return cls(evaluation)

    def to_json(self) -> dict[str, Any]:
        """The part of the results that the page draws."""
        results = self.evaluation.results
        sets = results["sets"]
        return {
            "n_real": sets["real"]["n_windows"],
            "n_synthetic": sets["synthetic"]["synthetic"]["n_windows"],
            "quantities": [{key: row[key] for key in _KEPT} for row in results["quantities"]],
            "scalars": results["scalars"],
            "headline": results["headline"],
            "compared": results["about"]["compared"],
            "warnings": self.evaluation.warnings,
            "ratios": results["ratios"],
            "main_sequence": results["main_sequence"],
            "notes": results["about"]["notes"],
        }

    def to_html(self) -> str:
        """The full report as one page."""
        import matplotlib

        matplotlib.use("Agg")  # drawn outside the main thread, where no window may open
        return self.evaluation.to_html()
