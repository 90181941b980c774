"""Reading the sets of an evaluation: files, recordings, models and baselines become windows.

Real recordings are cleaned and cut as for training; those of a tracker slower than the models keep
their rate. Synthetic ones are taken as they are, because cleaning would hide the defects that are
looked for; windows with missing samples are left out, and said to be. The windows of a set are the
same, in the same order, whatever format and screen they were written for. A model generates its
windows on the fly, with the training participants' shares of the tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion import errors
from gazediffusion.data.recordings import Recording
from gazediffusion.data.resampling import LowRateError, read_clock
from gazediffusion.data.splits import split_participants
from gazediffusion.data.windows import Windows, evenly_spaced
from gazediffusion.data.writers.card import read_card
from gazediffusion.data.writers.npz import read_npz
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.deep_test import Progress
from gazediffusion.evaluation.evaluation import (
    evaluate,
    evaluate_windows,
    refuse_without_recordings,
    shown_windows,
)
from gazediffusion.evaluation.real_gaze import (
    DEFAULT,
    UNLABELLED,
    Like,
    find_summary,
    summary_tasks,
)
from gazediffusion.evaluation.result import ALL, MADE_OF, Evaluation
from gazediffusion.evaluation.sets import (
    MAX_WINDOWS,
    MIN_WINDOWS,
    at_rate_of,
    is_thinned,
    require_windows,
    whole_windows,
    with_left_out,
)
from gazediffusion.evaluation.two_sample import FeatureMap
from gazediffusion.jobs import Job
from gazediffusion.network.pretrained import HUB_PREFIX, load_model, pretrained_models
from gazediffusion.options import grouped
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig, EvaluationConfig, Reading
from gazediffusion.storage import (
    content_hash,
    fetched,
    is_file,
    is_remote,
    read_json,
    require_free,
    require_writable,
)

if TYPE_CHECKING:
    from gazediffusion.data.readers import Source
    from gazediffusion.data.reading import Recordings
    from gazediffusion.generation.sampler import Sampler
    from gazediffusion.network.checkpoint import Run

MIN_PARTICIPANTS = 3
Side = Literal["real", "reference", "synthetic"]
SECONDS, RATE_HZ = 8.0, 250.0
# Unsteady trackers have odd mean rates, another in every recording: these are rounded down to this.
_RATE_STEP_HZ = 5.0
# Removes nothing but missing samples.
_AS_IT_IS = CleaningConfig(
    blink_before_ms=0.0, blink_after_ms=0.0, frozen_ms=1e12, max_speed_deg_s=1e12
)
MAX_GENERATED = 2500


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
    output: Path | str | None = None,
    overwrite: bool = False,
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
    output: a folder for the report; a complete one of the same files and settings raises
        CompleteError, one of others is refused unless `overwrite` says so.
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
    real, reference = (None if one is None else _local_copy(one) for one in (real, reference))
    if output is not None:
        folder, how = Path(output), {**given, "summary": summary, "n": n, "by_task": by_task}
        how |= {"split_seed": split_seed, "with_membership": with_membership}
        inputs = {**synthetic, "real": real, "reference": reference, "features": feature_model}
        hashes = {name: one and content_hash(one) for name, one in inputs.items()}
        made_of = {"inputs": hashes, "config": asdict(config), "settings": how}
        file = folder / MADE_OF

        def there() -> Any:
            return read_json(file) if is_file(file) else None

        with Job(folder, made_of, there=there, overwrite=overwrite) as job:
            job.require_work()
            require_free(folder, overwrite, Evaluation.RESULTS)
            require_writable(folder)
            how |= {"feature_model": feature_model, "progress": progress}
            found = evaluate_files(synthetic, real, reference, config, **how)
            progress("report")
            found.save(folder, overwrite=overwrite, made_of=job.decisive)
        return found
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
        refuse_without_recordings(config, reference, feature_model)
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


def _membership(
    synthetic: Mapping[str, Path | str], held_out: Windows, training: Windows | None
) -> dict[str, Any]:
    """Membership inference on the models among the sets."""
    from gazediffusion.evaluation.privacy import membership

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


def load_set(
    path: Path | str,
    side: Side,
    like: Like | None = None,
    reading: Reading | None = None,
    n: int | None = None,
    reference: Windows | None = None,
    progress: Progress = lambda name: None,
) -> Windows:
    """Windows of a set; of a windows file the held-out participants are real, the others reference.

    like: the real windows, or a summary of them, whose rate and length recordings are brought to.
    n, reference: how many windows a model generates, and whose shares of tasks it follows; without
    a reference as many as are real. reading: how recordings are read.
    """
    if side != "synthetic":
        return _recorded(Path(path), side, like, reading)
    if like is None:
        raise GazeError("a synthetic set needs real windows to compare with", path=Path(path))
    if is_model(path):
        found = _generated(loaded_model(path), like, n, reference, progress)
        if isinstance(like, Windows):
            found = with_task_names(found, like.tasks)
    elif _is_baseline(path):
        found = _fitted(str(path), n, reference)
    else:
        found = _synthetic(Path(path), like, reading or Reading())
        path = Path(path).name
    return at_rate_of(like, str(path), found)


def _recorded(path: Path, side: Side, like: Like | None, reading: Reading | None) -> Windows:
    """Real windows, or those of the reference."""
    if is_model(path):
        raise GazeError("a model cannot be the real set", path=path)
    if path.suffix == ".safetensors":
        windows = Windows.load(path)
        if not windows.validation:
            return windows
        part = windows.held_out if side == "real" else windows.train
        if len(part) == 0:
            raise GazeError(f"there are no {side} windows in this file", path=path)
        return part
    if path.suffix == ".npz":
        return read_npz(path, _screen_of(like), like.rate_hz if like is not None else None)
    from gazediffusion.data.reading import read

    rate_hz, seconds = RATE_HZ, SECONDS
    if like is not None:
        rate_hz, seconds = like.rate_hz, like.length / like.rate_hz
    return real_windows(read(path, reading), rate_hz, seconds)


def _synthetic(path: Path, like: Like, reading: Reading) -> Windows:
    """Windows of a synthetic file or folder at their own rate, the same in every format."""
    card = read_card(path) or {}
    if path.suffix == ".safetensors":
        found = whole_windows(Windows.load(path))
    elif path.suffix == ".npz":
        found = whole_windows(read_npz(path, _screen_of(like), like.rate_hz))
    else:
        found = _synthetic_recordings(path, card, like, reading)
    # Windows without a task have that of the set's card, if it names one.
    task = card.get("sampling", {}).get("task")
    if task and set(found.tasks) <= set(UNLABELLED):
        found = replace(found, tasks=(task,) * len(found.tasks))
    if path.suffix == ".safetensors":
        return found
    of_real = like.tasks if isinstance(like, Windows) else summary_tasks()
    trained_on = card.get("model", {}).get("trained_on", {}).get("tasks", ())
    return in_one_order(with_task_names(found, [*of_real, *card.get("screens", ()), *trained_on]))


def _synthetic_recordings(
    path: Path, card: Mapping[str, Any], like: Like, reading: Reading
) -> Windows:
    """Windows of recordings as long as the real ones, at their own rate; of many parts a sample.

    Where the real windows were thinned, synthetic recordings are too.
    """
    from gazediffusion.data.preparing import prepare
    from gazediffusion.data.readers import ReadOptions, find_sources
    from gazediffusion.data.reading import read_options
    from gazediffusion.data.study import with_study
    from gazediffusion.settings import PrepareConfig

    options = read_options(with_study([path], reading)[0])
    fallback = options.screen or _screen_of(like)
    # A set of ours states columns, unit and screen itself: what is said is of the other files.
    options = ReadOptions() if card else replace(options, participant_pattern=None)
    options = replace(options, screen=None, override_screen=False, fallback_screen=fallback)
    every = find_sources([path], options)
    sources = _some_parts(every, card.get("n_windows", 0))
    own_hz = card.get("rate_hz")
    if own_hz is None:
        first = next(recording for source in sources for recording in source.read())
        own_hz = read_clock(first.time_ms, first.rate_hz).rate_hz
    seconds = like.length / like.rate_hz
    is_slower = is_thinned(like) and own_hz > like.rate_hz
    config = PrepareConfig(
        rate_hz=like.rate_hz if is_slower else own_hz,
        seconds=seconds,
        validation_fraction=0.0,
        cleaning=_AS_IT_IS,
        off_screen_share=math.inf,
    )
    n_expected, n_short = 0, 0

    def count(recording: Recording) -> None:
        nonlocal n_expected, n_short
        step_ms = float(np.median(np.diff(recording.time_ms))) if len(recording) > 1 else 0.0
        duration_s = float(recording.time_ms[-1] - recording.time_ms[0] + step_ms) / 1000
        n_whole = int(duration_s / seconds + 0.01)
        n_expected += max(1, n_whole)
        n_short += n_whole == 0

    windows = prepare(
        sources, replace(config, stride_s=config.length / config.rate_hz), on_recording=count
    )
    if len(sources) < len(every):
        warning = f"{len(sources)} of the {len(every)} parts of the set were read, evenly spaced"
        windows = replace(windows, provenance={**windows.provenance, "warnings": [warning]})
    n_left_out = n_expected - len(windows)
    reasons = {
        "with missing samples": n_left_out - n_short,
        f"shorter than {seconds:g} s": n_short,
    }
    return with_left_out(windows, n_left_out, n_expected, reasons)


def _some_parts(sources: Sequence[Source], n_windows: int) -> Sequence[Source]:
    """As many parts of a set as hold MAX_WINDOWS windows; a set that is not in parts whole."""
    if n_windows <= MAX_WINDOWS or not all(one.path.match("part-*.parquet") for one in sources):
        return sources
    n_parts = math.ceil(len(sources) * MAX_WINDOWS / n_windows)
    return [sources[k] for k in evenly_spaced(len(sources), n_parts)]


def _screen_of(like: Like | None) -> Screen | None:
    """The one screen of the real windows; None where there are several or none."""
    try:
        return like.screen if like is not None else None
    except GazeError:
        return None


def real_windows(
    recordings: Recordings | Sequence[Source],
    rate_hz: float = RATE_HZ,
    seconds: float = SECONDS,
    on_recording: Callable[[Recording], None] = lambda recording: None,
) -> Windows:
    """Real recordings cleaned and cut, at this rate or at their own where that is lower.

    A window begins every second; on_recording: called with each recording.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=60)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.real_windows(gd.read("study"))  # at the recordings' own rate, below 250 Hz
    Windows(2 of 8 s at 60 Hz, participants: 1, tasks: free_viewing)
    """
    from gazediffusion.data.preparing import prepare
    from gazediffusion.settings import PrepareConfig

    while True:
        config = PrepareConfig(
            rate_hz=rate_hz,
            seconds=seconds,
            stride_s=round(rate_hz) / rate_hz,
            validation_fraction=0.0,
        )
        try:
            return prepare(recordings, config, on_recording=on_recording)
        except GazeError as error:
            if not isinstance(error.__cause__, LowRateError):
                raise
            rate_hz = error.__cause__.rate_hz
            if rate_hz != round(rate_hz):
                rate_hz = _RATE_STEP_HZ * math.floor(rate_hz / _RATE_STEP_HZ)


def with_task_names(windows: Windows, known: Sequence[str]) -> Windows:
    """Tasks as they are spelled among the known ones; file names leave out all but letters.

    >>> from gazediffusion.screen import Screen
    >>> windows = Windows.from_array(np.zeros((2, 2, 9)), 250, Screen(9, 9), tasks="stopmotion")
    >>> with_task_names(windows, ["dots", "stop-motion"]).tasks
    ('stop-motion',)
    """
    spelled = {_letters(name): name for name in reversed(known)}
    names = tuple(spelled.get(_letters(name), name) for name in windows.tasks)
    return replace(windows, tasks=names) if len(set(names)) == len(names) else windows


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def in_one_order(windows: Windows) -> Windows:
    """The tasks evenly mixed, the windows of each by their number: so in every format.

    Some formats keep windows in one file for each task, numbered anew in every file. Windows of a
    task in which a number is missing or not the only one keep their order.
    """
    trials = np.array(windows.segment_trial, dtype=object)[windows.segment_of_window]
    number = np.array([int(one) if one.isdecimal() else -1 for one in trials])
    rank_of_name = np.argsort(np.argsort(np.array(windows.tasks, dtype=str), kind="stable"))
    rank, place = rank_of_name[windows.task], np.zeros(len(windows))
    for one in np.unique(rank):
        of_task = np.flatnonzero(rank == one)
        numbers = number[of_task]
        if (numbers >= 0).all() and len(np.unique(numbers)) == len(numbers):
            of_task = of_task[np.argsort(numbers)]
        place[of_task] = (np.arange(len(of_task)) + 0.5) / len(of_task)
    return windows.select(np.lexsort((rank, place)))


def named_sets(given: Sequence[Path | str]) -> dict[str, Path | str]:
    """Name -> path of sets given as in `name_of`; a name that is given twice is refused."""
    sets: dict[str, Path | str] = {}
    for name, path in (name_of(str(one)) for one in given):
        if name in sets:
            raise GazeError(f"two sets are named {name!r}", remedy="name one as NAME=PATH")
        sets[name] = path
    return sets


def name_of(given: str) -> tuple[str, str]:
    """(name, path) of `NAME=PATH`, or of a path, which is named by its file or folder."""
    name, equals, path = given.partition("=")
    if equals and name and not is_remote(given) and not Path(given).exists():
        return name, path
    return Path(given).stem or Path(given).name, given


def is_model(path: Path | str) -> bool:
    """Whether this is a run folder, or the name of a packaged model or of one of the hub."""
    if Path(path).exists():
        return (Path(path) / "config.json").is_file()
    return str(path) in ("default", *pretrained_models()) or str(path).startswith(HUB_PREFIX)


def loaded_model(path: Path | str) -> Run:
    """A model on the GPU where there is one."""
    from gazediffusion.device import choose_device

    return load_model(path, device=choose_device("auto"))


def _is_baseline(path: Path | str) -> bool:
    if Path(path).exists():  # torch is not loaded for a file
        return False
    from gazediffusion.generation.baselines import is_baseline

    return is_baseline(path)


def _generated(
    run: Run, like: Like, n: int | None, reference: Windows | None, progress: Progress
) -> Windows:
    """Windows of a model: of the tasks of the reference, of the real windows, or of a summary."""
    if reference is not None:
        like, n = reference, _n_beside(reference, n)
    if isinstance(like, Windows):
        return matched_windows(run, like, n or len(like), progress)
    from gazediffusion.generation.sampler import Sampler

    task = like.task if like.task in run.config.conditioning.tasks else None
    sampler = Sampler.of_quality(run, "default", task=task)
    return _sampled(sampler, n or len(like), progress)


def _fitted(name: str, n: int | None, reference: Windows | None) -> Windows:
    """Windows of a baseline or a plug-in's generator, fitted to the training participants."""
    if reference is None:
        raise GazeError(
            f"{name} is fitted to training participants, and there are none",
            remedy="give `reference`, or a windows file with held-out participants as `real`",
        )
    from gazediffusion.generation.baselines import fit_baseline

    return fit_baseline(name, reference).sample(_n_beside(reference, n))


def _n_beside(reference: Windows, n: int | None) -> int:
    """Windows that are generated: at most half as many as the reference has."""
    return max(MIN_WINDOWS, min(n or MAX_GENERATED, len(reference) // 2))


def matched_windows(
    run: Run,
    reference: Windows,
    n: int,
    progress: Progress = lambda name: None,
    quality: str = "default",
) -> Windows:
    """n generated windows with the reference windows' shares of tasks.

    A model that does not know one of the tasks generates its own mixture of tasks.
    """
    from gazediffusion.generation.sampler import Sampler

    known = run.config.conditioning.tasks
    reference = with_task_names(reference, known)
    n_task = np.bincount(reference.task, minlength=len(reference.tasks))
    stops = np.floor(np.cumsum(n_task) / n_task.sum() * n + 0.5).astype(int)
    is_matched = all(task in known for task, k in zip(reference.tasks, n_task, strict=True) if k)
    if known and not is_matched:
        stops = np.array([n])
    parts = []
    for number, (first, stop) in enumerate(pairwise([0, *stops.tolist()])):
        if stop > first:
            task = reference.tasks[number] if known and is_matched else None
            sampler = Sampler.of_quality(run, quality, seed=number, task=task)
            parts.append(_sampled(sampler, stop - first, progress))
    return Windows.from_array(
        np.concatenate([part.cut() for part in parts]),
        run.config.rate_hz,
        [part.screens[k] for part in parts for k in part.screen_index],
        tasks=[part.tasks[k] for part in parts for k in part.task],
    )


def _sampled(sampler: Sampler, n: int, progress: Progress) -> Windows:
    """The first n windows, with progress."""
    pieces: list[NDArray[Any]] = []
    for piece in sampler.pieces(0, n):
        pieces.append(piece)
        whose = f" of {sampler.task}" if sampler.task else ""
        progress(f"generating{whose}: {sum(map(len, pieces))} of {n} windows")
    return sampler.as_windows(np.concatenate(pieces))


def bottleneck_features(run: Run, batch_size: int = 16) -> FeatureMap:
    """Windows (window, 2, time) to bottleneck features (window, width) of a position network.

    The clean window is given to the network at the first diffusion step, t = 1, and the
    bottleneck's output is averaged over time: 512 numbers for the paper's network.
    """
    import torch

    if run.config.recipe.representation != "position":
        raise GazeError("`feature_model` must be a position model", path=run.path)
    device = next(run.network.parameters()).device

    @torch.no_grad()
    def features(gaze: np.ndarray) -> np.ndarray:
        rows = []
        for first in range(0, len(gaze), batch_size):
            x = torch.from_numpy(np.ascontiguousarray(gaze[first : first + batch_size])).to(device)
            t = torch.ones(len(x), dtype=torch.long, device=device)
            rows.append(run.network.features(x, t).mean(dim=2).double().cpu().numpy())
        return np.concatenate(rows)

    return features
