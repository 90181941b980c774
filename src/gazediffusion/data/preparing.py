"""From recordings to windows: read, clean, bring to one rate, cut, split, document.

What one file gives is computed alone (`_CutFile`), by this process, by several or by a Ray
cluster, and taken in the order of the files. So the windows do not depend on who read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gazediffusion.data.building import (
    OFF_SCREEN_BEYOND,
    Cuts,
    NoWindowError,
    WindowBuilder,
    fit_velocity_scale,
    window_starts,
)
from gazediffusion.data.readers import Source
from gazediffusion.data.reading import Recordings, cleaned_as, sources_of
from gazediffusion.data.recordings import Recording
from gazediffusion.data.targets import RecordedTargets
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.parallel import in_order, is_in_this_process
from gazediffusion.settings import OFF_SCREEN_SHARE, POSITION_STRIDE_S, PrepareConfig
from gazediffusion.storage import origin_of

__all__ = [
    "OFF_SCREEN_BEYOND",
    "OFF_SCREEN_SHARE",
    "POSITION_STRIDE_S",
    "FileRead",
    "NoWindowError",
    "PrepareConfig",
    "fit_velocity_scale",
    "prepare",
    "style_windows",
    "window_starts",
]


@dataclass(frozen=True)
class FileRead:
    """A file that was read, and the samples in it."""

    path: Path
    n_samples: int


def prepare(
    recordings: Recordings | Sequence[Source],
    config: PrepareConfig | None = None,
    progress: Callable[[Recording], None] = lambda recording: None,
    *,
    targets: Path | str | None = None,
    engine: str = "local",
    n_workers: int | None = None,
    address: str | None = None,
    on_file: Callable[[FileRead], None] = lambda file: None,
) -> Windows:
    """Read, clean, cut and split; `progress` is called after each recording.

    engine: local, or ray for a cluster whose nodes see the files; the windows are the same.
    n_workers: processes that read files, for `local` one by default, for `ray` one for each core of
    the cluster; only with one process is `progress` called. address: of the cluster. on_file:
    called after each file.
    targets: a table of the columns participant, trial, time, x and y: when the target on the screen
    jumped where. Unit and origin are those of the recordings where its column names state none.

    >>> import tempfile
    >>> from gazediffusion.data.reading import read
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> study = SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(study, f"{folder}/study", "parquet")
    ...     prepare(read(f"{folder}/study"), PrepareConfig(seconds=2))
    Windows(54 of 2 s at 250 Hz, participants: 3, tasks: free_viewing)
    """
    config = cleaned_as(config or PrepareConfig(), recordings)
    sources = sources_of(recordings)
    given = None
    if targets is not None:
        options = sources[0].options
        given = RecordedTargets(targets, options.unit, options.origin)
    builder = WindowBuilder(config, given)
    files: list[dict[str, Any]] = []
    if is_in_this_process(engine, n_workers, address):
        for source in sources:
            n_samples = 0
            for recording in source.read():
                _take(builder, recording, Cuts(config, given))
                n_samples += len(recording)
                progress(recording)
            on_file(FileRead(source.path, n_samples))
        return builder.build(source.described() for source in sources)
    work, numbers = _CutFile(tuple(sources), config, given), range(len(sources))
    with closing(in_order(work, numbers, engine, n_workers, address)) as found:
        for source, (piece, file, error) in zip(sources, found, strict=True):
            builder.add(piece)
            if error is not None:
                raise error
            files.append({**file, **origin_of(source.path)})  # a worker does not know the URL
            on_file(FileRead(source.path, piece.n_samples))
    return builder.build(files)


def _take(builder: WindowBuilder, recording: Recording, piece: Cuts) -> None:
    """Add a recording; that it cannot be gaze on its screen is the first thing said."""
    try:
        piece.add(recording)
    finally:
        builder.add(piece)


@dataclass(frozen=True)
class _CutFile:
    """What a file gives, by its number: segments, what is known and what is wrong."""

    sources: tuple[Source, ...]
    config: PrepareConfig
    targets: RecordedTargets | None

    def __call__(self, number: int) -> tuple[Cuts, dict[str, Any], GazeError | None]:
        source, piece = self.sources[number], Cuts(self.config, self.targets)
        error, file = None, {}
        try:
            for recording in source.read():
                piece.add(recording)
            file = source.described()
        except GazeError as found:
            error = found
        piece.targets = None  # the one who asked has them
        return piece, file, error


def style_windows(
    recordings: Recordings,
    rate_hz: float,
    seconds: float,
    config: PrepareConfig | None = None,
    progress: Callable[[Recording], None] = lambda recording: None,
) -> Windows:
    """The windows that `like` of `Model.sample` takes from recordings, one a second.

    rate_hz, seconds: of the model's windows. config: cleaning and split; by default nobody is held
    out.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=1, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> gd.style_windows(gd.read("study"), rate_hz=250, seconds=8)
    Windows(6 of 8 s at 250 Hz, participants: 1, tasks: free_viewing)
    """
    config = config or PrepareConfig(validation_fraction=0)
    try:
        return prepare(recordings, replace(config, rate_hz=rate_hz, seconds=seconds), progress)
    except NoWindowError as error:
        raise GazeError(
            f"a style needs {seconds:g} s of valid gaze in a row; the longest valid segment is "
            f"{error.longest_s:.2f} s",
            path=recordings.sources[0].path,
            remedy="give a longer recording",
        ) from error
