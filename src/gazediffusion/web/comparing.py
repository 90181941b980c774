"""Real recordings beside synthetic windows: what they are, how near they come, the whole report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.web.orders import coordinates

if TYPE_CHECKING:
    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.result import Evaluation
    from gazediffusion.web.models import Offer

MAX_SHOWN = 40
# More windows change little that is drawn, and would keep everybody waiting.
MAX_REAL = 1000
_KEPT = ("name", "title", "family", "unit", "level", "mean", "histogram", "distances")


@dataclass(frozen=True)
class Real:
    """Windows of people, and of those a model may have been trained on, where a file has both."""

    windows: Windows
    train: Windows | None
    n_recordings: int


def read_real(paths: Sequence[Path], screen: Screen | None, offer: Offer) -> Real:
    """Recordings cleaned and cut as the model's windows are, or a windows file as it is."""
    from gazediffusion.data.preparing import PrepareConfig, prepare
    from gazediffusion.data.readers import ReadOptions, find_sources
    from gazediffusion.data.windows import Windows

    if len(paths) == 1 and paths[0].suffix == ".safetensors":
        windows = Windows.load(paths[0])
        n_recordings = len(
            set(zip(windows.segment_participant, windows.segment_trial, strict=True))
        )
        if not windows.validation:
            return Real(windows, None, n_recordings)
        return Real(windows.held_out, windows.train, n_recordings)
    n_recordings = 0

    def count(recording: object) -> None:
        nonlocal n_recordings
        n_recordings += 1

    config = PrepareConfig(
        rate_hz=offer.rate_hz, seconds=offer.length / offer.rate_hz, validation_fraction=0.0
    )
    # Several files may belong together, as those of BIDS do: then the folder is read.
    given = paths[0] if len(paths) == 1 else paths[0].parent
    windows = prepare(find_sources([given], ReadOptions(screen=screen)), config, count)
    return Real(windows, None, n_recordings)


def describe(real: Real, seconds: float | None = None) -> dict[str, Any]:
    """What the recordings are, with some windows to look at, the first seconds of each."""
    from gazediffusion.evaluation.features import kinematic_features
    from gazediffusion.evaluation.quantities import FEATURES

    windows = evenly(real.windows, MAX_REAL)
    rate_hz = windows.rate_hz
    if seconds is not None and not 1 <= seconds <= windows.length / rate_hz:
        most = f"{windows.length / rate_hz:g}"
        raise GazeError(f"--seconds must lie between 1 and {most} here, not {seconds:g}")
    n_samples = windows.length if seconds is None else round(seconds * rate_hz)
    shown = evenly(windows, MAX_SHOWN)
    found = kinematic_features(windows.cut())
    return {
        "n_windows": len(real.windows),
        "n_recordings": real.n_recordings,
        "participants": [windows.participants[k] for k in np.unique(real.windows.participant)],
        "tasks": [windows.tasks[k] for k in np.unique(real.windows.task)],
        "rate_hz": rate_hz,
        "screen": vars(windows.screen),
        "windows": [
            {"task": windows.tasks[task], **coordinates(gaze[:, :n_samples])}
            for task, gaze in zip(shown.task, shown.cut(), strict=True)
        ],
        "features": {
            name: {
                "title": title,
                "unit": unit,
                "mean": float(found[name].mean()),
                "std": float(found[name].std()),
            }
            for name, (title, unit) in FEATURES.items()
        },
    }


def evaluate_both(real: Real, synthetic: Windows) -> Evaluation:
    """The evaluation without intervals and slow tests."""
    from gazediffusion.evaluation.evaluation import evaluate
    from gazediffusion.evaluation.result import EvaluationConfig

    held_out = evenly(real.windows, MAX_REAL)
    train = None if real.train is None else evenly(real.train, MAX_REAL)
    found = evaluate(held_out, synthetic, train, EvaluationConfig(quick=True))
    if len(held_out) < len(real.windows):
        found.results["about"]["notes"].append(
            f"{len(held_out)} of the {len(real.windows)} real windows were taken, evenly spaced"
        )
    return found


def trimmed(evaluation: Evaluation) -> dict[str, Any]:
    """The part of the results that is drawn."""
    results = evaluation.results
    sets = results["sets"]
    return {
        "n_real": sets["real"]["n_windows"],
        "n_synthetic": sets["synthetic"]["synthetic"]["n_windows"],
        "quantities": [{key: row[key] for key in _KEPT} for row in results["quantities"]],
        "scalars": results["scalars"],
        "headline": results["headline"],
        "compared": results["about"]["compared"],
        "warnings": results["about"]["warnings"],
        "ratios": results["ratios"],
        "main_sequence": results["main_sequence"],
        "notes": results["about"]["notes"],
    }


def report_page(evaluation: Evaluation) -> str:
    """The full report as one page."""
    import matplotlib

    matplotlib.use("Agg")  # drawn beside the main thread, where no window may open
    return evaluation.to_html()


def evenly(windows: Windows, most: int) -> Windows:
    """At most so many of the windows, evenly spaced."""
    from gazediffusion.data.subsampling import evenly_spaced

    return windows.select(evenly_spaced(len(windows), most))
