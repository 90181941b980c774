"""Evaluation of files and models: windows files, recordings, run folders and packaged models.

Real recordings are cleaned and cut as for training. Synthetic ones are taken as they are, because
cleaning would hide the defects that are looked for; windows with missing samples are left out, and
said to be. A model generates its windows on the fly, with the training participants' shares of the
tasks. How recordings of either side become windows: recorded_sets.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from gazediffusion.data.export.card import read_card
from gazediffusion.data.export.npz import read_npz
from gazediffusion.data.splits import split_participants
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.evaluation import evaluate, evaluate_windows, shown_windows
from gazediffusion.evaluation.gaze_sets import MIN_WINDOWS, at_rate_of, require_windows
from gazediffusion.evaluation.generated import (
    MAX_GENERATED,
    bottleneck_features,
    generated_windows,
    is_model,
    matched_windows,
)
from gazediffusion.evaluation.recorded_sets import (
    RATE_HZ,
    SECONDS,
    in_one_order,
    real_windows,
    synthetic_windows,
    whole_windows,
    with_task_names,
)
from gazediffusion.evaluation.result import ALL, Evaluation, EvaluationConfig
from gazediffusion.evaluation.set_tests import FeatureMap, Progress
from gazediffusion.evaluation.summary import (
    DEFAULT,
    UNLABELLED,
    Like,
    find_summary,
    summary_tasks,
)
from gazediffusion.geometry import Screen
from gazediffusion.models.pretrained import load_model

if TYPE_CHECKING:
    from gazediffusion.data.readers import ReadOptions
    from gazediffusion.data.reading import ReadSettings
    from gazediffusion.models.checkpoint import Run

Side = Literal["real", "reference", "synthetic"]
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
    **settings: Unpack[ReadSettings],
) -> Evaluation:
    """Evaluate files, run folders and packaged models against real gaze.

    synthetic: by name, or a list in which each is PATH or NAME=PATH.

    real: a windows file, whose held-out participants are real and the others the reference, or
        recordings; None compares with `summary`, or the packaged summary of each window's task.
    reference: the training participants' windows, where they are not in the real windows file.
    n: windows that a model generates; by default 2,500, at most half as many as the reference has.
    by_task: also each task by itself that three or more held-out participants did.
    split_seed: holds out other participants than the windows file does.
    feature_model: a position model, for the Frechet Gaze Distance.
    with_membership: also attack the models among the sets (`membership`).
    settings: of recordings, as in `read`; `participant_pattern` is of the real ones, and synthetic
        sets of this package, which state everything themselves, need none of them.
    """
    config = config or EvaluationConfig()
    synthetic = synthetic if isinstance(synthetic, Mapping) else _named(synthetic)
    if n is not None and n < MIN_WINDOWS:
        raise GazeError(f"`n` must be {MIN_WINDOWS} or more for an evaluation, not {n}")
    options = _options_of(settings)

    def read_sets(like: Like, base: Windows | None) -> dict[str, Windows]:
        sets = {}
        for name, path in synthetic.items():
            progress(f"reading {name}")
            sets[name] = load_set(path, "synthetic", like, options, n, base, progress)
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
    progress(f"reading {real}")
    held_out, training = _real_sides(real, reference, split_seed, options)
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

    models = {name: _model(path) for name, path in synthetic.items() if is_model(path)}
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
    read_options: ReadOptions | None,
) -> tuple[Windows, Windows | None]:
    """The held-out and the training participants' windows."""
    is_windows_file = Path(real).suffix == ".safetensors"
    if split_seed is not None:
        if not is_windows_file or reference is not None:
            raise GazeError("`split_seed` needs a windows file as `real`, and no `reference`")
        windows = split_again(Windows.load(real), split_seed)
        return windows.held_out, windows.train
    held_out = load_set(real, "real", read_options=read_options)
    if reference is None and is_windows_file and held_out.validation:
        reference = real
    if reference is None:
        return held_out, None
    return held_out, load_set(reference, "reference", held_out, read_options)


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
    config = windows.provenance["config"]
    tasks_of: dict[str, set[str]] = {}
    pairs = set(zip(windows.participant.tolist(), windows.task.tolist(), strict=True))
    for participant, task in pairs:
        tasks_of.setdefault(windows.participants[participant], set()).add(windows.tasks[task])
    # Files of the first version call it same_person.
    same = config.get("same_participant", config.get("same_person", ()))
    kept = split_participants(tasks_of, config["validation_fraction"], seed, same)
    provenance = {**windows.provenance, "config": {**config, "split_seed": seed}}
    return replace(windows, validation=frozenset(kept), provenance=provenance)


def load_set(
    path: Path | str,
    side: Side,
    like: Like | None = None,
    read_options: ReadOptions | None = None,
    n: int | None = None,
    reference: Windows | None = None,
    progress: Progress = lambda name: None,
) -> Windows:
    """Windows of a set; of a windows file the held-out participants are real, the others reference.

    like: the real windows, or a summary of them, whose rate and length recordings are brought to.
    n, reference: how many windows a model generates, and whose shares of tasks it follows; without
    a reference as many as are real. read_options: a `ReadOptions` for recordings.
    """
    if is_model(path):
        if like is None:
            raise GazeError("a model cannot be the real set", path=Path(path))
        generated = generated_windows(_model(path), like, n, reference, progress)
        if isinstance(like, Windows):
            generated = with_task_names(generated, like.tasks)
        return at_rate_of(like, str(path), generated)
    path = Path(path)
    if side == "synthetic":
        if like is None:
            raise GazeError("a synthetic set needs real windows to compare with", path=path)
        return at_rate_of(like, path.name, _synthetic(path, like, read_options))
    if path.suffix == ".safetensors":
        return _part(Windows.load(path), side, path)
    if path.suffix == ".npz":
        return read_npz(path, _screen_of(like), like.rate_hz if like is not None else None)
    from gazediffusion.data.readers import ReadOptions, find_sources

    rate_hz, seconds = RATE_HZ, SECONDS
    if like is not None:
        rate_hz, seconds = like.rate_hz, like.length / like.rate_hz
    return real_windows(find_sources([path], read_options or ReadOptions()), rate_hz, seconds)


def _synthetic(path: Path, like: Like, read_options: ReadOptions | None) -> Windows:
    """Windows of a synthetic file or folder at their own rate, the same in every format."""
    if path.suffix == ".safetensors":
        return _labelled(whole_windows(Windows.load(path)), path)
    if path.suffix == ".npz":
        found = whole_windows(read_npz(path, _screen_of(like), like.rate_hz))
    else:
        found = _synthetic_recordings(path, like, read_options)
    named = with_task_names(_labelled(found, path), _known_tasks(path, like))
    return in_one_order(named)


def _synthetic_recordings(path: Path, like: Like, read_options: ReadOptions | None) -> Windows:
    from gazediffusion.data.readers import ReadOptions, find_sources

    options, card = read_options or ReadOptions(), read_card(path)
    fallback = options.screen or _screen_of(like)
    # A set of ours states columns, unit and screen itself: the settings are of the other files.
    options = ReadOptions() if card else replace(options, participant_pattern=None)
    options = replace(options, screen=None, override_screen=False, fallback_screen=fallback)
    return synthetic_windows(find_sources([path], options), like, (card or {}).get("rate_hz"))


def _known_tasks(path: Path, like: Like) -> list[str]:
    """Names of tasks as the card, the real windows and the packaged summaries spell them."""
    card = read_card(path) or {}
    trained_on = card.get("model", {}).get("trained_on", {})
    of_real = like.tasks if isinstance(like, Windows) else summary_tasks()
    return [*of_real, *card.get("screens", ()), *trained_on.get("tasks", ())]


def read_synthetic(
    path: Path | str,
    like: Like,
    n: int | None = None,
    settings: ReadSettings | None = None,
    progress: Progress = lambda name: None,
) -> Windows:
    """Synthetic windows of a file, recordings or a model, at the rate of the real gaze `like`.

    n: windows that a model generates. settings: of recordings, as in `read`.
    """
    return load_set(path, "synthetic", like, _options_of(settings or {}), n, progress=progress)


def _options_of(settings: ReadSettings) -> ReadOptions | None:
    """How recordings are read; None where nothing was said."""
    if all(one is None or one is False for one in settings.values()):
        return None
    from gazediffusion.data.reading import read_options

    return read_options(settings)


def _named(given: Sequence[Path | str]) -> dict[str, Path | str]:
    sets: dict[str, Path | str] = {}
    for name, path in (name_of(str(one)) for one in given):
        if name in sets:
            raise GazeError(f"two sets are named {name!r}", remedy="name one as NAME=PATH")
        sets[name] = path
    return sets


def name_of(given: str) -> tuple[str, str]:
    """(name, path) of `NAME=PATH`, or of a path, which is named by its file or folder."""
    name, equals, path = given.partition("=")
    if equals and name and not Path(given).exists():
        return name, path
    return Path(given).stem or Path(given).name, given


def _model(path: Path | str) -> Run:
    from gazediffusion.device import choose_device

    return load_model(path, device=choose_device("auto"))


def _feature_model(
    given: Path | str | None, synthetic: Mapping[str, Path | str], rate_hz: float
) -> FeatureMap | None:
    """The network of the Frechet Gaze Distance: as given, or the first position model compared."""
    if given is not None:
        run = _model(given)
        if run.config.rate_hz != rate_hz:
            raise GazeError(
                f"`feature_model` is of {run.config.rate_hz:g} Hz, the real gaze of {rate_hz:g} Hz",
                remedy="leave `feature_model` out",
            )
        return bottleneck_features(run)
    for run in map(_model, filter(is_model, synthetic.values())):
        if run.config.recipe.representation == "position" and run.config.rate_hz == rate_hz:
            return bottleneck_features(run)
    return None


def _part(windows: Windows, side: Side, path: Path) -> Windows:
    if side == "synthetic" or not windows.validation:
        return windows
    part = windows.held_out if side == "real" else windows.train
    if len(part) == 0:
        raise GazeError(f"there are no {side} windows in this file", path=path)
    return part


def _labelled(windows: Windows, path: Path) -> Windows:
    """Windows without a task have that of the set's card, if it names one."""
    if not set(windows.tasks) <= set(UNLABELLED):
        return windows
    task = (read_card(path) or {}).get("sampling", {}).get("task")
    return replace(windows, tasks=(task,) * len(windows.tasks)) if task else windows


def _screen_of(like: Like | None) -> Screen | None:
    """The one screen of the real windows; None where there are several or none."""
    try:
        return like.screen if like is not None else None
    except GazeError:
        return None
