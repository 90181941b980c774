"""What a model adds to files of recordings: gaps are filled, events are labelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from gazediffusion.generation.filled_sets import FilledSet, write_filled
from gazediffusion.generation.labelled_sets import LabelledSet, write_labelled
from gazediffusion.generation.recording_sets import Total
from gazediffusion.generation.settings import FillingSettings, LabellingSettings
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
    """
    from gazediffusion.data.reading import read

    given = read(recordings) if isinstance(recordings, Path | str) else recordings
    loaded = model if isinstance(model, Model) else load(model)
    return write_filled(loaded.filler(**settings), given, output, begin, overwrite)


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
    """
    from gazediffusion.data.reading import read

    given = read(recordings) if isinstance(recordings, Path | str) else recordings
    loaded = model if isinstance(model, Model) else load(model)
    return write_labelled(loaded.labeller(**settings), given, output, begin, overwrite)
