"""Evaluation of files and models: windows files, recordings, run folders and packaged models.

A model generates its windows on the fly, with the training participants' shares of the tasks. How
each set becomes windows: set_loading.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion import errors
from gazediffusion.data.splits import split_participants
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import evaluate, evaluate_windows, shown_windows
from gazediffusion.evaluation.gaze_sets import MIN_WINDOWS, require_windows
from gazediffusion.evaluation.generated import (
    MAX_GENERATED,
    bottleneck_features,
    is_model,
    matched_windows,
)
from gazediffusion.evaluation.result import ALL, Evaluation
from gazediffusion.evaluation.set_loading import (
    load_set,
    loaded_model,
)
from gazediffusion.evaluation.set_names import named_sets
from gazediffusion.evaluation.set_tests import FeatureMap, Progress
from gazediffusion.evaluation.summary import (
    DEFAULT,
    Like,
    find_summary,
)
from gazediffusion.options import grouped
from gazediffusion.settings import EvaluationConfig, Reading
from gazediffusion.storage import fetched, is_remote

if TYPE_CHECKING:
    from gazediffusion.models.checkpoint import Run

MIN_PARTICIPANTS = 3


def evaluate_files(
    synthetic: Sequence[Path | str] | Mapping[str, Path | str],
    real: Path | str | None = None,
    reference: Path | str | None = None,
    config: EvaluationConfig | None = None,
    *,
    summary: str | None = None,
    n: int | None = None,
    by_task: bool = False,
    split_seed: int | None = None,
    feature_model: Path | str | None = None,
    with_membership: bool = False,
    progress: Progress = lambda name: None,
    **given: Any,
) -> Evaluation:
    """Evaluate files, run folders and packaged models against real gaze.

    synthetic: by name, or a list in which each is PATH or NAME=PATH. A baseline or a plug-in's
        generator is fitted to the reference and generates as a model does.

    real: a windows file, whose held-out participants are real and the others the reference, or
        recordings; None compares with `summary`, or the packaged summary of each window's task.
    reference: the training participants' windows, where they are not in the real windows file.
    n: windows that a model generates; by default 2,500, at most half as many as the reference has.
    by_task: also each task by itself that three or more held-out participants did.
    split_seed: holds out other participants than the windows file does.
    feature_model: a position model, for the Frechet Gaze Distance.
    with_membership: also attack the models among the sets (`membership`).
    given: of recordings, as in `read`; `participant_pattern` is of the real ones, and synthetic
        sets of this package, which state everything themselves, need none of them.

    >>> import gazediffusion as gd
    >>> walks = np.random.default_rng(0).normal(0, 0.01, (40, 2, 2000)).cumsum(axis=-1).clip(-1, 1)
    >>> gaze = gd.Windows.from_array(walks, 250, gd.Screen(1680, 1050, 47.4, 29.7, 55))
    >>> files = gaze.save("walk.npz")
    >>> quick = EvaluationConfig(quick=True)
    >>> result = gd.evaluate_files(["walk=walk.npz"], config=quick, summary="bioeye/reading")
    >>> result.ratio > 5  # far from the floor, which is 1
    True
    """
    config = config or EvaluationConfig()
    synthetic = synthetic if isinstance(synthetic, Mapping) else named_sets(synthetic)
    synthetic = {name: _local_copy(path) for name, path in synthetic.items()}
    real = None if real is None else _local_copy(real)
    reference = None if reference is None else _local_copy(reference)
    if n is not None and n < MIN_WINDOWS:
        raise GazeError(f"`n` must be {MIN_WINDOWS} or more for an evaluation, not {n}")
    (reading,) = grouped([], given, Reading)

    def read_sets(like: Like, base: Windows | None) -> dict[str, Windows]:
        sets = {}
        for name, path in synthetic.items():
            progress(f"reading {name}")
            sets[name] = load_set(path, "synthetic", like, reading, n, base, progress)
        return sets

    if real is None:
        if config.deep is not None:
            raise GazeError("`deep` needs recordings", remedy="give them as `real`")
        if reference is not None or feature_model is not None:
            raise GazeError(
                "`reference` and `feature_model` need recordings", remedy="give them as `real`"
            )
        sets = read_sets(find_summary(summary or DEFAULT), None)
        return evaluate(summary, sets, config=config, progress=progress)
    if summary is not None:
        raise GazeError("`summary` is for comparing without `real`", remedy="give one of them")
    progress(f"reading {errors.shown(real)}")
    held_out, training = _real_sides(real, reference, split_seed, reading)
    require_windows("the real windows", held_out)
    network = _feature_model(feature_model, synthetic, held_out.rate_hz)
    parts: dict[str, Any] = {}
    shown: dict[str, Windows] = {}
    for task, (one, base) in _parts(held_out, training, by_task).items():
        sets = read_sets(one, base)
        if task != ALL:
            of_task = {name: w.of_task(task) for name, w in sets.items() if task in w.tasks}
            sets = {name: w for name, w in of_task.items() if len(w) >= MIN_WINDOWS}
        if sets:
            # All tasks together: the deep test itself tells tasks apart.
            of_part = config if task == ALL else replace(config, deep=None)
            parts[task] = evaluate_windows(one, sets, base, of_part, network, progress)
            shown = shown or shown_windows(one, sets)
    if with_membership:
        progress("membership")
        parts[ALL]["tests"]["membership"] = _membership(synthetic, held_out, training)
    if by_task:
        parts[ALL]["about"]["warnings"] += [
            f"the task {task} is not a part of its own: fewer than {MIN_PARTICIPANTS} held-out "
            f"participants did it, or fewer than {MIN_WINDOWS} windows of a set are of it"
            for task in dict.fromkeys(held_out.tasks[k] for k in held_out.task)
            if task not in parts
        ]
    return Evaluation(parts, shown)


def evaluate_model(
    run: Run,
    windows: Windows,
    n: int = MAX_GENERATED,
    config: EvaluationConfig | None = None,
    progress: Progress = lambda name: None,
    **settings: Any,
) -> Evaluation:
    """A model against a windows file's held-out participants, with matched tasks.

    n: windows generated, at most half as many as the training participants have. settings: of
    sampling, as `quality`.
    """
    n = min(n, len(windows.train) // 2)
    generated = matched_windows(run, windows.train, n, progress=progress, **settings)
    return evaluate(windows.held_out, {"model": generated}, windows.train, config)


def _membership(
    synthetic: Mapping[str, Path | str], held_out: Windows, training: Windows | None
) -> dict[str, Any]:
    """Membership inference on the models among the sets."""
    from gazediffusion.evaluation.membership import membership

    models = {name: loaded_model(path) for name, path in synthetic.items() if is_model(path)}
    if training is None or not models:
        return {"not_computable": "membership needs a model and its training windows"}
    if any(run.config.rate_hz != held_out.rate_hz for run in models.values()):
        return {"not_computable": "membership needs windows at the rate of the model"}
    return {
        "about": "Area under the ROC curve of an attack that takes windows of low loss for "
        "training windows. 0.5 is chance; lower is better.",
        "floor": None,
        "synthetic": {
            name: asdict(membership(run, training, held_out)) for name, run in models.items()
        },
    }


def _real_sides(
    real: Path | str,
    reference: Path | str | None,
    split_seed: int | None,
    reading: Reading,
) -> tuple[Windows, Windows | None]:
    """The held-out and the training participants' windows."""
    is_windows_file = Path(real).suffix == ".safetensors"
    if split_seed is not None:
        if not is_windows_file or reference is not None:
            raise GazeError("`split_seed` needs a windows file as `real`, and no `reference`")
        windows = split_again(Windows.load(real), split_seed)
        return windows.held_out, windows.train
    held_out = load_set(real, "real", reading=reading)
    if reference is None and is_windows_file and held_out.validation:
        reference = real
    if reference is None:
        return held_out, None
    return held_out, load_set(reference, "reference", held_out, reading)


def _parts(
    real: Windows, reference: Windows | None, by_task: bool
) -> dict[str, tuple[Windows, Windows | None]]:
    """All tasks, and each that MIN_PARTICIPANTS held-out participants did."""
    parts: dict[str, tuple[Windows, Windows | None]] = {ALL: (real, reference)}
    for task in real.tasks if by_task else ():
        one = real.of_task(task)
        has_task = reference is not None and task in reference.tasks
        base = reference.of_task(task) if reference and has_task else None
        is_enough = min(len(one), len(one if base is None else base)) >= MIN_WINDOWS
        if is_enough and len(np.unique(one.participant)) >= MIN_PARTICIPANTS:
            parts[task] = one, base
    return parts


def split_again(windows: Windows, seed: int) -> Windows:
    """The same windows with other participants held out, as `prepare` does with another seed."""
    config = windows.provenance.get("config", {})
    if "same_participant" not in config:  # whoever is in the file twice would be on both sides
        raise GazeError(
            "the windows do not say which names are one participant",
            remedy="make them with gazediffusion prepare",
        )
    tasks_of: dict[str, set[str]] = {}
    pairs = set(zip(windows.participant.tolist(), windows.task.tolist(), strict=True))
    for participant, task in pairs:
        tasks_of.setdefault(windows.participants[participant], set()).add(windows.tasks[task])
    share, same = config["validation_fraction"], config["same_participant"]
    kept = split_participants(tasks_of, share, seed, same)
    provenance = {**windows.provenance, "config": {**config, "split_seed": seed}}
    return replace(windows, validation=frozenset(kept), provenance=provenance)


def _feature_model(
    given: Path | str | None, synthetic: Mapping[str, Path | str], rate_hz: float
) -> FeatureMap | None:
    """The network of the Frechet Gaze Distance: as given, or the first position model compared."""
    if given is not None:
        run = loaded_model(given)
        if run.config.rate_hz != rate_hz:
            raise GazeError(
                f"`feature_model` is of {run.config.rate_hz:g} Hz, the real gaze of {rate_hz:g} Hz",
                remedy="leave `feature_model` out",
            )
        return bottleneck_features(run)
    for run in map(loaded_model, filter(is_model, synthetic.values())):
        if run.config.recipe.representation == "position" and run.config.rate_hz == rate_hz:
            return bottleneck_features(run)
    return None


def _local_copy(path: Path | str) -> Path | str:
    """A local copy of a URL, with the card beside it; anything else as it is."""
    return fetched(path, (f"{Path(path).stem}.json",)) if is_remote(path) else path
