"""Real recordings beside synthetic windows: read, described, compared and reported in the worker.

Every function returns bytes. Windows and evaluations stay in files and bytes that the server passes
on and does not open.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.web.bounds import require_all_bounds
from gazediffusion.web.requests import windows_json
from gazediffusion.web.tasks import model_tasks, recorded_counts, with_model_tasks
from gazediffusion.web.verdict import evaluated
from gazediffusion.web.worker import Report

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


def read(
    source: Path,
    settings: dict[str, Any],
    rate_hz: float,
    seconds: float,
    kept: Path,
    max_bytes: int | None,
    report: Report,
) -> bytes:
    """Recordings cleaned and cut, or a windows file as it is; written to `kept`.

    rate_hz: of the windows, where the recordings are not slower. seconds: their length.
    max_bytes: to which a file may expand; None sets no bounds.
    """
    report({"stage": "reading", "done": 0, "n": None})
    if max_bytes is not None:
        require_all_bounds(source, max_bytes)
    kept.write_bytes(pickle.dumps(_read(source, settings, rate_hz, seconds, report)))
    return b""


def _read(
    source: Path, settings: dict[str, Any], rate_hz: float, seconds: float, report: Report
) -> RealWindows:
    if source.suffix == ".safetensors":
        windows = gd.Windows.load(source)
        trials = zip(windows.segment_participant, windows.segment_trial, strict=True)
        n_recordings = len(set(trials))
        if not windows.validation:
            return RealWindows(windows, None, n_recordings)
        return RealWindows(windows.held_out, windows.train, n_recordings)
    found: set[tuple[Any, ...]] = set()

    def count(recording: gd.Recording) -> None:
        found.add((recording.path, recording.participant, recording.task, recording.trial))
        report({"stage": "reading", "done": len(found), "n": None})

    windows = gd.real_windows(gd.read(source, **settings), rate_hz, seconds, count)
    return RealWindows(windows, None, len(found))


def count_tasks(kept: Path, report: Report) -> bytes:
    """How many windows each recorded task has, as JSON."""
    return _json(recorded_counts(_kept(kept).windows))


def describe(kept: Path, seconds: float | None, tasks: tuple[str, ...], report: Report) -> bytes:
    """Counts and some windows of recordings, the first seconds of each, as JSON.

    tasks: those of the model.
    """
    real = _kept(kept)
    windows = real.windows
    rate_hz = windows.rate_hz
    if seconds is not None and not 1 <= seconds <= windows.length / rate_hz:
        most = f"{windows.length / rate_hz:g}"
        raise GazeError(f"`seconds` must lie between 1 and {most} here, not {seconds:g}")
    n_samples = windows.length if seconds is None else round(seconds * rate_hz)
    return _json(
        {
            "n_windows": len(windows),
            "n_recordings": real.n_recordings,
            "participants": [windows.participants[k] for k in np.unique(windows.participant)],
            "tasks": list(recorded_counts(windows)),
            "model_tasks": model_tasks(recorded_counts(windows), tasks),
            "rate_hz": rate_hz,
            "screens": [asdict(windows.screens[k]) for k in np.unique(windows.screen_index)],
            "windows": [
                {**window, "x": window["x"][:n_samples], "y": window["y"][:n_samples]}
                for window in windows_json(windows.subsample(MAX_SHOWN))
            ],
        }
    )


def compare(
    kept: Path,
    synthetic: gd.Windows,
    tasks: tuple[str, ...],
    task: str | None,
    evaluation: Path,
    report: Report,
) -> bytes:
    """Evaluate synthetic windows against recordings, without the slow tests.

    Of at most MAX_REAL real windows. tasks: those of the model; task: of recorded windows of none
    of these. The whole is written to `evaluation`; what the page draws is returned as JSON.
    """
    report({"stage": "comparing", "done": 0, "n": None})
    real = _kept(kept)
    taken, reference = (
        None if one is None else with_model_tasks(one.subsample(MAX_REAL), tasks, task)
        for one in (real.windows, real.reference)
    )
    assert taken is not None
    found = evaluated(taken, reference, synthetic)
    if len(taken) < len(real.windows):
        found.results["about"]["notes"].append(
            f"{len(taken)} of the {len(real.windows)} real windows are compared, evenly spaced"
        )
    shown = {name: _alone(windows) for name, windows in found.shown.items()}
    evaluation.write_bytes(pickle.dumps(replace(found, shown=shown)))
    return _json(_drawn(found))


def _drawn(evaluation: gd.Evaluation) -> dict[str, Any]:
    results = evaluation.results
    sets = results["sets"]
    return {
        "n_real": sets["real"]["n_windows"],
        "n_synthetic": sets["synthetic"]["synthetic"]["n_windows"],
        "quantities": [{key: row[key] for key in _KEPT} for row in results["quantities"]],
        "scalars": results["scalars"],
        "headline": results["headline"],
        "n_common": results["about"]["n_common"],
        "compared": results["about"]["compared"],
        "floor": results["about"]["floor"],
        "no_ratio": results["about"]["no_ratio"],
        "warnings": evaluation.warnings,
        "ratios": results["ratios"],
        "main_sequence": results["main_sequence"],
        "notes": results["about"]["notes"],
    }


def write_report(evaluation: bytes, report: Report) -> bytes:
    """The full report of an evaluation as one page."""
    import matplotlib

    matplotlib.use("Agg")  # No window may open.
    report({"stage": "writing", "done": 0, "n": None})
    found: gd.Evaluation = pickle.loads(evaluation)
    return found.to_html().encode()


def _kept(path: Path) -> RealWindows:
    found: RealWindows = pickle.loads(path.read_bytes())
    return found


def _alone(windows: gd.Windows) -> gd.Windows:
    """The same windows without the rest of their segments."""
    return gd.Windows.from_array(
        windows.cut(),
        windows.rate_hz,
        [windows.screens[k] for k in windows.screen_index],
        [windows.participants[k] for k in windows.participant],
        [windows.tasks[k] for k in windows.task],
    )


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False).encode()
