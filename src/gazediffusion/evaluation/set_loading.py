"""One set of an evaluation: the windows of a file, of recordings, of a model or of a baseline.

Real recordings are cleaned and cut as for training. Synthetic ones are taken as they are, because
cleaning would hide the defects that are looked for; windows with missing samples are left out, and
said to be. How recordings of either side become windows: recorded_sets.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gazediffusion.data.export.card import read_card
from gazediffusion.data.export.npz import read_npz
from gazediffusion.data.subsampling import evenly_spaced
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.gaze_sets import MAX_WINDOWS, at_rate_of
from gazediffusion.evaluation.generated import fitted_windows, generated_windows, is_model
from gazediffusion.evaluation.recorded_sets import (
    RATE_HZ,
    SECONDS,
    in_one_order,
    real_windows,
    synthetic_windows,
    whole_windows,
    with_task_names,
)
from gazediffusion.evaluation.set_tests import Progress
from gazediffusion.evaluation.summary import UNLABELLED, Like, summary_tasks
from gazediffusion.geometry import Screen
from gazediffusion.models.pretrained import load_model
from gazediffusion.options import grouped
from gazediffusion.settings import Reading

if TYPE_CHECKING:
    from gazediffusion.data.readers import Source
    from gazediffusion.models.checkpoint import Run

Side = Literal["real", "reference", "synthetic"]


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
    if is_model(path):
        if like is None:
            raise GazeError("a model cannot be the real set", path=Path(path))
        generated = generated_windows(loaded_model(path), like, n, reference, progress)
        if isinstance(like, Windows):
            generated = with_task_names(generated, like.tasks)
        return at_rate_of(like, str(path), generated)
    if side == "synthetic" and like is not None and _is_baseline(path):
        return at_rate_of(like, str(path), fitted_windows(str(path), n, reference))
    path = Path(path)
    if side == "synthetic":
        if like is None:
            raise GazeError("a synthetic set needs real windows to compare with", path=path)
        return at_rate_of(like, path.name, _synthetic(path, like, reading or Reading()))
    if path.suffix == ".safetensors":
        return _part(Windows.load(path), side, path)
    if path.suffix == ".npz":
        return read_npz(path, screen_of(like), like.rate_hz if like is not None else None)
    from gazediffusion.data.reading import read

    rate_hz, seconds = RATE_HZ, SECONDS
    if like is not None:
        rate_hz, seconds = like.rate_hz, like.length / like.rate_hz
    return real_windows(read(path, reading), rate_hz, seconds)


def _synthetic(path: Path, like: Like, reading: Reading) -> Windows:
    """Windows of a synthetic file or folder at their own rate, the same in every format."""
    if path.suffix == ".safetensors":
        return _labelled(whole_windows(Windows.load(path)), path)
    if path.suffix == ".npz":
        found = whole_windows(read_npz(path, screen_of(like), like.rate_hz))
    else:
        found = _synthetic_recordings(path, like, reading)
    named = with_task_names(_labelled(found, path), known_tasks(path, like))
    return in_one_order(named)


def _synthetic_recordings(path: Path, like: Like, reading: Reading) -> Windows:
    from gazediffusion.data.readers import ReadOptions, find_sources
    from gazediffusion.data.reading import read_options
    from gazediffusion.data.study import with_study

    options, card = read_options(with_study([path], reading)[0]), read_card(path)
    fallback = options.screen or screen_of(like)
    # A set of ours states columns, unit and screen itself: what is said is of the other files.
    options = ReadOptions() if card else replace(options, participant_pattern=None)
    options = replace(options, screen=None, override_screen=False, fallback_screen=fallback)
    sources = find_sources([path], options)
    chosen = _sample(sources, (card or {}).get("n_windows", 0))
    found = synthetic_windows(chosen, like, (card or {}).get("rate_hz"))
    if len(chosen) == len(sources):
        return found
    warning = f"{len(chosen)} of the {len(sources)} parts of the set were read, evenly spaced"
    return replace(found, provenance={**found.provenance, "warnings": [warning]})


def _sample(sources: Sequence[Source], n_windows: int) -> Sequence[Source]:
    """As many parts of a set as hold MAX_WINDOWS windows; a set that is not in parts whole."""
    if n_windows <= MAX_WINDOWS or not all(one.path.match("part-*.parquet") for one in sources):
        return sources
    n_parts = math.ceil(len(sources) * MAX_WINDOWS / n_windows)
    return [sources[k] for k in evenly_spaced(len(sources), n_parts)]


def known_tasks(path: Path, like: Like) -> list[str]:
    """Names of tasks as the card, the real windows and the packaged summaries spell them."""
    card = read_card(path) or {}
    trained_on = card.get("model", {}).get("trained_on", {})
    of_real = like.tasks if isinstance(like, Windows) else summary_tasks()
    return [*of_real, *card.get("screens", ()), *trained_on.get("tasks", ())]


def read_synthetic(
    path: Path | str,
    like: Like,
    n: int | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress = lambda name: None,
) -> Windows:
    """Synthetic windows of a file, recordings or a model, at the rate of the real gaze `like`.

    n: windows that a model generates. reading: of recordings, as in `read`.
    """
    (options,) = grouped([], reading or {}, Reading)
    return load_set(path, "synthetic", like, options, n, progress=progress)


def loaded_model(path: Path | str) -> Run:
    """A model on the GPU where there is one."""
    from gazediffusion.device import choose_device

    return load_model(path, device=choose_device("auto"))


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


def screen_of(like: Like | None) -> Screen | None:
    """The one screen of the real windows; None where there are several or none."""
    try:
        return like.screen if like is not None else None
    except GazeError:
        return None


def _is_baseline(path: Path | str) -> bool:
    if Path(path).exists():  # torch is not loaded for a file
        return False
    from gazediffusion.generation.baselines import is_baseline

    return is_baseline(path)
