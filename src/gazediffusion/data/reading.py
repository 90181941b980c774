"""Reading recordings: files, folders or public datasets as one lazy collection.

Nothing is read before the collection is iterated, and memory then holds one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gazediffusion.data.readers import ReadOptions, Source, find_sources
from gazediffusion.data.recordings import Recording
from gazediffusion.geometry import Screen


@dataclass(frozen=True, repr=False)
class Recordings:
    """Recordings in files, read file by file each time they are iterated."""

    sources: tuple[Source, ...]

    def __iter__(self) -> Iterator[Recording]:
        for source in self.sources:
            yield from source.read()

    def __repr__(self) -> str:
        n, formats = len(self.sources), sorted({source.reader.NAME for source in self.sources})
        return f"Recordings({n} file{'s' if n != 1 else ''}: {', '.join(formats)})"


def read(
    paths: str | Path | Sequence[str | Path],
    *,
    screen: Screen | None = None,
    columns: Mapping[str, str] | None = None,
    participant_pattern: str | None = None,
    format: str = "auto",
    data_dir: Path | str | None = None,
) -> Recordings:
    """Find recordings at files, folders, globs or `pymovements:NAME`; they are read when iterated.

    screen: overrides what the files state. columns: names of a table's columns, as {"x": "GazeX"}.
    participant_pattern: a regular expression that finds the participant in a path.
    format: of all files; auto recognises each. data_dir: where public datasets are kept.

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
    options = ReadOptions(
        columns=columns or {},
        participant_pattern=participant_pattern,
        screen=screen,
        data_dir=None if data_dir is None else Path(data_dir),
    )
    return Recordings(tuple(find_sources(given, options, format)))


def sources_of(recordings: Recordings | Sequence[Source]) -> Sequence[Source]:
    """The files of recordings."""
    return recordings.sources if isinstance(recordings, Recordings) else recordings
