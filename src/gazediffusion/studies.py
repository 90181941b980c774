"""Whole studies through a model: gaps filled, events labelled, synthetic recordings of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from gazediffusion.generation.augmented_sets import AugmentedSet, write_augmented
from gazediffusion.generation.filled_sets import FilledSet, write_filled
from gazediffusion.generation.labelled_sets import LabelledSet, write_labelled
from gazediffusion.generation.recording_sets import Total
from gazediffusion.generation.settings import (
    AugmentingSettings,
    FillingSettings,
    LabellingSettings,
)
from gazediffusion.generation.study import OnRecording
from gazediffusion.model import Model, load

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


def fill(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *,
    begin: Total = lambda n_windows: lambda done: None,
    overwrite: bool = False,
    **settings: Unpack[FillingSettings],
) -> FilledSet:
    """Write recordings with their gaps filled by a steerable model; known samples are kept.

    recordings: what `read` gives, or a path. output: a .parquet or .csv file, or a folder in the
    recordings' own format where that is bids, asc, csv or parquet, and parquet elsewhere; several
    draws are the folders draw-1, draw-2 ... in it. begin: called with the number of windows to
    generate; what it returns is called with the number done. A stopped call resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> filled = gd.fill("study", "filled")
    >>> filled.counts.gaps, filled.counts.filled
    (8, 8)
    """
    from gazediffusion.data.reading import read

    given = read(recordings) if isinstance(recordings, Path | str) else recordings
    loaded = model if isinstance(model, Model) else load(model)
    return write_filled(loaded.filler(**settings), given, output, begin, overwrite)


def augment(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *,
    begin: Total = lambda n_windows: lambda done: None,
    on_recording: OnRecording = lambda recording: None,
    overwrite: bool = False,
    **settings: Unpack[AugmentingSettings],
) -> AugmentedSet:
    """Write synthetic recordings in the style of each participant of a study who is not held out.

    recordings: what `read` gives, or a path. output: as for `fill`; it holds no recording of the
    study. Recording T of participant P becomes T of `P-synthetic-1`, `P-synthetic-2` ..., of its
    length, rate and screen. begin: called with the number of windows to generate; what it returns
    is called with the number done. on_recording: called with each recording read. A stopped call
    resumes.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> more = gd.augment("study", "more", task="movies", times=1)
    >>> {one.participant for one in gd.read("more")}  # participant 02 is held out
    {'01-synthetic-1'}
    """
    from gazediffusion.data.reading import read

    given = read(recordings) if isinstance(recordings, Path | str) else recordings
    loaded = model if isinstance(model, Model) else load(model)
    augmenter = loaded.augmenter(**settings)
    return write_augmented(augmenter, given, output, begin, on_recording, overwrite)


def label(
    recordings: Recordings | Path | str,
    output: Path | str,
    model: Model | Path | str = "default",
    *,
    begin: Total = lambda n_windows: lambda done: None,
    overwrite: bool = False,
    **settings: Unpack[LabellingSettings],
) -> LabelledSet:
    """Write recordings with the event class of every sample, by a model with labels.

    recordings, output, begin: as for `fill`; `begin` counts windows to label. Gaze is kept.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> labelled = gd.label("study", "labelled")
    >>> next(iter(gd.read("labelled"))).labels.shape  # 1 fixation, 2 saccade, 3 pursuit, 4 noise
    (4500,)
    """
    from gazediffusion.data.reading import read

    given = read(recordings) if isinstance(recordings, Path | str) else recordings
    loaded = model if isinstance(model, Model) else load(model)
    return write_labelled(loaded.labeller(**settings), given, output, begin, overwrite)
