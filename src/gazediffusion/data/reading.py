"""Reading recordings: files, folders or public datasets as one lazy collection.

Nothing is read before the collection is iterated, and memory then holds one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from gazediffusion.data.plausibility import Plausibility
from gazediffusion.data.readers import ReadOptions, Source, find_sources
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Origin, Screen, Unit


class ReadSettings(TypedDict, total=False):
    """What is said of files that are read.

    screen: of files that do not state theirs; override_screen: also of those that state another.
    columns: names of a table's columns, as {"x": "GazeX"} or "x=GazeX". unit: px, deg or norm.
    origin: top-left, center, center-up or bottom-left. source_rate_hz: of tables without a time
    column.
    participant_pattern: a regular expression that finds the participant in a path. data_dir: where
    public datasets are kept.
    """

    screen: Screen | None
    override_screen: bool
    columns: Mapping[str, str] | str | None
    unit: Unit | None
    origin: Origin | None
    source_rate_hz: float | None
    participant_pattern: str | None
    data_dir: Path | str | None


@dataclass(frozen=True, repr=False)
class Recordings:
    """Recordings in files, read file by file each time they are iterated.

    Gaze that cannot be in the unit and on the screen that were found is an error, at the latest
    after the last recording (`data.plausibility`).

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> recordings = gd.read("study")
    >>> recordings
    Recordings(1 file: table)
    >>> [(one.participant, len(one)) for one in recordings]
    [('01', 4500), ('02', 4500)]
    """

    sources: tuple[Source, ...]

    def __iter__(self) -> Iterator[Recording]:
        plausibility = Plausibility()
        for source in self.sources:
            for recording in source.read():
                plausibility.add(recording)
                yield recording
        plausibility.finish()

    def __repr__(self) -> str:
        n, formats = len(self.sources), sorted({source.reader.NAME for source in self.sources})
        return f"Recordings({n} file{'s' if n != 1 else ''}: {', '.join(formats)})"


def read(
    paths: str | Path | Sequence[str | Path],
    *,
    format: str = "auto",
    **settings: Unpack[ReadSettings],
) -> Recordings:
    """Find recordings at files, folders, globs or `pymovements:NAME`; they are read when iterated.

    format: of all files; auto recognises each. settings: what is said of the files, as `screen`,
    `columns`, `unit` and `origin`; see `ReadSettings`.

    >>> import tempfile
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> config = SimulationConfig(n_participants=2, minutes=0.1, trial_seconds=6, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(config, f"{folder}/study", "asc")
    ...     recordings = read(f"{folder}/study")
    ...     print(recordings, [(one.participant, len(one)) for one in recordings])
    Recordings(2 files: eyelink-asc) [('01', 1500), ('02', 1500)]
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    return Recordings(tuple(find_sources(given, read_options(settings), format)))


def read_options(settings: ReadSettings) -> ReadOptions:
    """The settings of `read`, checked."""
    data_dir, columns = settings.get("data_dir"), settings.get("columns") or {}
    return ReadOptions(
        screen=settings.get("screen"),
        override_screen=settings.get("override_screen", False),
        columns=_column_names(columns) if isinstance(columns, str) else columns,
        unit=settings.get("unit"),
        origin=settings.get("origin"),
        source_rate_hz=settings.get("source_rate_hz"),
        participant_pattern=settings.get("participant_pattern"),
        data_dir=None if data_dir is None else Path(data_dir),
    )


def _column_names(text: str) -> dict[str, str]:
    """`x=GazeX,y=GazeY` as a mapping."""
    names: dict[str, str] = {}
    for pair in text.split(","):
        if not pair.strip():
            continue
        word, equals, column = pair.partition("=")
        if not equals or not word.strip() or not column.strip():
            raise GazeError(f"`columns` must look like x=GazeX,y=GazeY,t=Time, not {text!r}")
        names[word.strip()] = column.strip()
    return names


def sources_of(recordings: Recordings | Sequence[Source]) -> Sequence[Source]:
    """The files of recordings."""
    return recordings.sources if isinstance(recordings, Recordings) else recordings
