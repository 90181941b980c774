"""Whole studies through a model: gaps filled, events labelled, synthetic recordings of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.generation.recording_sets import (
    AugmentedSet,
    FilledSet,
    LabelledSet,
    write_augmented,
    write_filled,
    write_labelled,
)
from gazediffusion.jobs import Show, nothing
from gazediffusion.model import Model, load
from gazediffusion.options import Options, grouped
from gazediffusion.settings import Augmenting, Computing, Filling, Labelling, Sampled

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


def fill(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *options: Options,
    progress: Show = nothing,
    overwrite: bool = False,
    **given: Any,
) -> FilledSet:
    """Write recordings with their gaps filled by a steerable model; known samples are kept.

    recordings: what `read` gives, or a path. output: a .parquet or .csv file, or a folder in the
    recordings' own format where that is bids, asc, csv or parquet, and parquet elsewhere; several
    draws are the folders draw-1, draw-2 ... in it. progress: called with the phase of the work,
    what is done, of how much, and a note. A stopped call resumes; a complete set of the same
    recordings and settings is left as it is.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> filled = gd.fill("study", "filled")
    >>> filled.counts.gaps, filled.counts.filled
    (6, 6)
    """
    from gazediffusion.data.reading import cleaned_as

    filling, sampled = grouped(options, given, Filling, Sampled)
    recordings, loaded = _given(recordings, model)
    filler = loaded.filler(cleaned_as(filling, recordings), sampled)
    return write_filled(filler, recordings, output, progress, overwrite)


def augment(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *options: Options,
    progress: Show = nothing,
    overwrite: bool = False,
    **given: Any,
) -> AugmentedSet:
    """Write synthetic recordings in the style of each participant of a study who is not held out.

    recordings: what `read` gives, or a path. output: as for `fill`; it holds no recording of the
    study. Recording T of participant P becomes T of `P-synthetic-1`, `P-synthetic-2` ..., of its
    length, rate and screen. progress, and a stopped call: as for `fill`.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.8, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> more = gd.augment("study", "more", task="movies", times=1)
    >>> {one.participant for one in gd.read("more")}  # participant 02 is held out
    {'01-synthetic-1'}
    """
    from gazediffusion.data.reading import cleaned_as

    augmenting, sampled = grouped(options, given, Augmenting, Sampled)
    recordings, loaded = _given(recordings, model)
    augmenter = loaded.augmenter(cleaned_as(augmenting, recordings), sampled)
    return write_augmented(augmenter, recordings, output, progress, overwrite)


def label(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *options: Options,
    progress: Show = nothing,
    overwrite: bool = False,
    **given: Any,
) -> LabelledSet:
    """Write recordings with the event class of every sample, by a model with labels.

    recordings, output, progress: as for `fill`. Gaze is kept.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> labelled = gd.label("study", "labelled")
    >>> next(iter(gd.read("labelled"))).labels.shape  # 1 fixation, 2 saccade, 3 pursuit, 4 noise
    (4500,)
    """
    from gazediffusion.data.reading import cleaned_as

    labelling, computing = grouped(options, given, Labelling, Computing)
    recordings, loaded = _given(recordings, model)
    labeller = loaded.labeller(cleaned_as(labelling, recordings), computing)
    return write_labelled(labeller, recordings, output, progress, overwrite)


def _given(
    recordings: Recordings | Path | str, model: Model | Path | str
) -> tuple[Recordings, Model]:
    """Recordings and a model, read and loaded where a path or a name is given."""
    from gazediffusion.data.reading import read

    found = read(recordings) if isinstance(recordings, Path | str) else recordings
    return found, model if isinstance(model, Model) else load(model)
