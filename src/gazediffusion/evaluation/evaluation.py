"""Evaluate synthetic gaze against real gaze, with the real-vs-real floor.

The real side is windows of held-out participants, or a summary of real gaze inside the package.
`evaluate` takes windows or plain arrays and returns an `Evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.subsampling import evenly_spaced
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.comparison import compare
from gazediffusion.evaluation.gaze_sets import MIN_WINDOWS, at_rate_of, require_comparable
from gazediffusion.evaluation.recorded_sets import whole_windows
from gazediffusion.evaluation.result import (
    ALL,
    Evaluation,
    Results,
)
from gazediffusion.evaluation.set_tests import FeatureMap, Progress
from gazediffusion.evaluation.summary import (
    DEFAULT,
    UNLABELLED,
    compare_with,
    find_summary,
    summary_of_task,
)
from gazediffusion.geometry import Screen
from gazediffusion.settings import EvaluationConfig

__all__ = ["Evaluation", "EvaluationConfig", "evaluate", "evaluate_windows", "shown_windows"]

Gaze = Windows | NDArray[np.floating[Any]]

FEW_WINDOWS = 100
# Total variation distance between the shares of tasks, from 0 to 1, above which they differ much.
MAX_TASK_DIFFERENCE = 0.2


def evaluate(
    real: Gaze | str | None = None,
    synthetic: Mapping[str, Gaze] | Gaze | None = None,
    reference: Gaze | None = None,
    config: EvaluationConfig | None = None,
    *,
    rate_hz: float | None = None,
    screen: Screen | None = None,
    participants: Sequence[str] | None = None,
    reference_participants: Sequence[str] | None = None,
    feature_model: FeatureMap | None = None,
    progress: Progress = lambda name: None,
) -> Evaluation:
    """How close synthetic gaze is to real gaze, against how close real gaze is to real gaze.

    real: windows of held-out participants; or a summary inside the package, as "gazecom" or
        "bioeye/reading"; or None, for the packaged summary of each window's own task.
    synthetic: one set, or sets by name. reference: windows of the training participants, for the
        floor; without them the floor is between two halves of the real windows.
    Synthetic gaze of a higher rate than the real is low-passed and brought to the real one's.
    Sets are `Windows`, or arrays (window, 2, time) of positions normalized to [-1, 1], which need
    `rate_hz` and `screen`. participants, reference_participants: of each real and reference window
    of an array; without names every window counts as a participant of its own.
    feature_model: maps windows to features, for the Frechet Gaze Distance.
    progress: called with the name of each part of the work.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> rng = np.random.default_rng(0)
    >>> real, training, ours = rng.normal(0, 0.01, (3, 120, 2, 600)).cumsum(axis=-1).clip(-1, 1)
    >>> result = gd.evaluate(
    ...     real, {"ours": ours}, training, gd.EvaluationConfig(quick=True),
    ...     rate_hz=250, screen=gd.Screen(1280, 720, 40, 22.5, 45),
    ... )
    >>> 0.5 < result.ratio < 2
    True
    """
    config = config or EvaluationConfig()
    if synthetic is None:
        raise GazeError("there is no synthetic set to evaluate", remedy="give `synthetic`")
    given = synthetic if isinstance(synthetic, Mapping) else {"synthetic": synthetic}
    if isinstance(real, Windows):
        rate_hz = real.rate_hz if rate_hz is None else rate_hz
        screen = real.screens[0] if screen is None and len(real.screens) == 1 else screen
    sets = {name: _windows(one, name, rate_hz, screen) for name, one in given.items()}
    if real is None or isinstance(real, str):
        if config.deep is not None:
            raise GazeError("`deep` needs recordings", remedy="give them as `real`")
        if reference is not None or feature_model is not None:
            raise GazeError(
                "`reference` and `feature_model` need recordings", remedy="give them as `real`"
            )
        return _against_summaries(real, sets, config, progress)
    held_out = _windows(real, "real", rate_hz, screen, participants)
    training = None
    if reference is not None:
        training = _windows(reference, "reference", rate_hz, screen, reference_participants)
    sets = {name: at_rate_of(held_out, name, one) for name, one in sets.items()}
    results = evaluate_windows(held_out, sets, training, config, feature_model, progress)
    return Evaluation({ALL: results}, shown_windows(held_out, sets))


def evaluate_windows(
    real: Windows,
    synthetic: Mapping[str, Windows],
    reference: Windows | None,
    config: EvaluationConfig,
    feature_model: FeatureMap | None,
    progress: Progress,
) -> Results:
    """The plain results of one part, with its warnings."""
    require_comparable(real, synthetic, reference)
    results = compare(real, synthetic, reference, config, feature_model, progress)
    results["about"]["warnings"] += _few_windows(results)
    if "not_computable" in (deep := results["tests"].get("deep", {})):
        results["about"]["warnings"].append(deep["not_computable"])
    base = real if reference is None else reference
    for name, windows in synthetic.items():
        results["about"]["warnings"] += _other_tasks(name, windows, base)
    results["about"]["warnings"] += _reading_warnings({"the real windows": real, **synthetic})
    return results


def _windows(
    given: Gaze,
    name: str,
    rate_hz: float | None,
    screen: Screen | None,
    participants: Sequence[str] | None = None,
) -> Windows:
    """Windows as they are, those generated with losses without them, or of an array."""
    if isinstance(given, Windows):
        return whole_windows(given) if "losses" in given.provenance.get("card", {}) else given
    if rate_hz is None or screen is None:
        missing = "`rate_hz`" if rate_hz is None else "`screen`"
        raise GazeError(f"{name} is an array, and {missing} is not known", remedy=f"give {missing}")
    array = np.asarray(given, dtype=np.float32)
    if name in ("real", "reference") and participants is None:
        participants = [str(number) for number in range(len(array))]
    return Windows.from_array(array, rate_hz, screen, participants or "synthetic")


def _against_summaries(
    real: str | None, synthetic: dict[str, Windows], config: EvaluationConfig, progress: Progress
) -> Evaluation:
    if not synthetic:
        raise GazeError("there is no synthetic set to evaluate")
    warnings = _reading_warnings(synthetic)
    summary = find_summary(real or DEFAULT)
    synthetic = {name: at_rate_of(summary, name, one) for name, one in synthetic.items()}
    if real is None:
        parts, left_out = _compare_by_task(synthetic, config, progress)
        warnings += left_out
    else:
        parts = {summary.task or ALL: compare_with(summary, synthetic, config, progress)}
    for results in parts.values():
        results["about"]["warnings"] += [*warnings, *_few_windows(results)]
    return Evaluation(parts, shown_windows(None, synthetic))


def _compare_by_task(
    synthetic: Mapping[str, Windows], config: EvaluationConfig, progress: Progress
) -> tuple[dict[str, Results], list[str]]:
    """Compare each window with the summary of its own task: results by task, and warnings.

    Windows without a known task are compared with the default summary. Windows of a task that no
    summary holds, or too few of a task, are left out and named in a warning.
    """
    parts: dict[str, Results] = {}
    warnings: list[str] = []
    for task, sets in _by_task(synthetic).items():
        summary = find_summary(DEFAULT) if task == ALL else summary_of_task(task)
        if summary is None:
            warnings.append(f"no summary holds the task {task!r}: {_counted_words(sets)} left out")
            continue
        few = {name: one for name, one in sets.items() if len(one) < MIN_WINDOWS}
        if few:
            warnings.append(
                f"the summary {summary.name} needs {MIN_WINDOWS} windows: "
                f"{_counted_words(few)} left out"
            )
        kept = {name: one for name, one in sets.items() if name not in few}
        if kept:
            if task == ALL:
                warnings.append(
                    f"the task of {_counted_words(kept)} is not known: compared with {DEFAULT}"
                )
            parts[task] = compare_with(summary, kept, config, progress)
    if not parts:
        raise GazeError(
            "nothing can be compared with the packaged summaries: " + "; ".join(warnings),
            remedy="generate more windows, or give `real`",
        )
    return parts, warnings


def _by_task(synthetic: Mapping[str, Windows]) -> dict[str, dict[str, Windows]]:
    """Windows by task and set; those of no known task under ALL."""
    found: dict[str, dict[str, Windows]] = {}
    for name, windows in synthetic.items():
        if len(windows) == 0:
            raise GazeError(f"{name} holds no windows")
        labels = np.array(
            [ALL if task in UNLABELLED else task for task in windows.tasks], dtype=object
        )
        of_window = labels[windows.task]
        for task in dict.fromkeys(of_window.tolist()):
            found.setdefault(task, {})[name] = windows.select(of_window == task)
    return found


def _counted_words(sets: Mapping[str, Windows]) -> str:
    return ", ".join(f"{len(windows)} windows of {name}" for name, windows in sets.items())


def shown_windows(real: Windows | None, synthetic: Mapping[str, Windows]) -> dict[str, Windows]:
    """Four windows of each set for the gallery of the report."""
    sets = ({} if real is None else {"real, held out": real}) | dict(synthetic)
    return {name: one.select(evenly_spaced(len(one), 4)) for name, one in sets.items()}


def _reading_warnings(sets: Mapping[str, Windows]) -> list[str]:
    """What reading had to say of the sets, and the windows that it left out."""
    found = []
    for name, windows in sets.items():
        found += [f"{name}: {one}" for one in windows.provenance.get("warnings", ())]
        left_out = windows.provenance.get("left_out")
        if left_out:
            n, total, reasons = left_out["n"], left_out["of"], left_out["reasons"]
            found.append(f"{n} of {total} windows of {name!r} were left out: {reasons}")
    return found


def _few_windows(results: Results) -> list[str]:
    sets = results["sets"]
    sizes = {"the real set": sets["real"], "the reference": sets["train"], **sets["synthetic"]}
    return [
        f"{name} has {found['n_windows']} windows; below {FEW_WINDOWS} chance dominates distances"
        for name, found in sizes.items()
        if found and found["n_windows"] < FEW_WINDOWS
    ]


def _other_tasks(name: str, windows: Windows, real: Windows) -> list[str]:
    """A warning where the tasks of a set are not those of the real windows."""
    shares = {who: _task_shares(one) for who, one in ((name, windows), ("real gaze", real))}
    if any(set(one) & set(UNLABELLED) for one in shares.values()):
        return []
    ours, theirs = shares.values()
    apart = sum(abs(ours.get(t, 0.0) - theirs.get(t, 0.0)) for t in {*ours, *theirs}) / 2
    if apart <= MAX_TASK_DIFFERENCE and set(ours) <= set(theirs):
        return []
    words = "; ".join(
        f"{who}: {', '.join(f'{task} {share:.0%}' for task, share in one.items())}"
        for who, one in shares.items()
    )
    return [f"the tasks do not match ({words}), and distances between tasks count as errors"]


def _task_shares(windows: Windows) -> dict[str, float]:
    """The share of each task that windows have."""
    counts = np.bincount(windows.task, minlength=len(windows.tasks)) / len(windows)
    return {task: float(one) for task, one in zip(windows.tasks, counts, strict=True) if one}
