"""Reading recordings: files, folders or public datasets as one lazy collection.

Nothing is read before the collection is iterated, and memory then holds one file. How they are
read is stated by options, or once for all by a `study.yaml` beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from gazediffusion.data.interop import frames, mne, pymovements
from gazediffusion.data.plausibility import Plausibility
from gazediffusion.data.readers import ReadOptions, Source, find_sources
from gazediffusion.data.recordings import Recording
from gazediffusion.data.study import with_study
from gazediffusion.errors import GazeError
from gazediffusion.options import grouped
from gazediffusion.screen import Floats
from gazediffusion.settings import Augmenting, Filling, Labelling, PrepareConfig, Reading, names_of

Cleaned = TypeVar("Cleaned", PrepareConfig, Filling, Augmenting, Labelling)


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
    reading: Reading = field(default_factory=Reading)
    paths: tuple[str | Path, ...] = ()  # as they were named
    study: Path | None = None  # the study.yaml that was used

    def __iter__(self) -> Iterator[Recording]:
        plausibility = Plausibility()
        for source in self.sources:
            for recording in source.read():
                if not isinstance(source, _InMemory):  # whose unit was not found out
                    plausibility.add(recording)
                yield recording
        plausibility.finish()

    def __repr__(self) -> str:
        n, formats = len(self.sources), sorted({source.reader.NAME for source in self.sources})
        if n and all(isinstance(source, _InMemory) for source in self.sources):
            n = sum(1 for source in self.sources for _ in source.read())
            return f"Recordings({n} in memory: {', '.join(formats)})"
        return f"Recordings({n} file{'s' if n != 1 else ''}: {', '.join(formats)})"

    @classmethod
    def of(cls, recordings: Iterable[Recording], format: str = "memory") -> Recordings:
        """Recordings in memory, which everything takes that takes recordings in files.

        format: the format that they come from.
        """
        held = tuple(recordings)
        if not held:
            raise GazeError("there are no recordings")
        return cls((_InMemory(Path(format), _Held(format, held), ReadOptions()),))

    to_frame = frames.to_frame
    to_pandas = frames.to_pandas
    to_pymovements = pymovements.to_pymovements
    to_mne = mne.to_mne


@dataclass(frozen=True)
class _Held:
    """The reader of recordings in memory."""

    NAME: str
    held: tuple[Recording, ...]

    def matches(self, path: Path, head: bytes, options: ReadOptions) -> bool:
        """No file is of this format."""
        return False

    def read(self, path: Path, options: ReadOptions) -> Iterator[Recording]:
        """The recordings, again each time."""
        return iter(self.held)


class _InMemory(Source):
    """Recordings in memory in place of a file."""

    def described(self) -> dict[str, Any]:
        """Name, format, size and hash of the samples."""
        digest, n_bytes = hashlib.sha256(), 0
        for one in self.read():
            digest.update(repr((one.participant, one.task, one.trial, one.screen)).encode())
            arrays: list[Floats] = [one.time_ms, *(one.gaze_px[eye] for eye in sorted(one.gaze_px))]
            for array in arrays:
                digest.update(array.tobytes())
                n_bytes += array.nbytes
        name = self.reader.NAME
        return {"name": name, "format": name, "bytes": n_bytes, "sha256": digest.hexdigest()}


def read(
    paths: str | Path | Sequence[str | Path], reading: Reading | None = None, **given: Any
) -> Recordings:
    """Find recordings at files, folders, globs or `pymovements:NAME`; they are read when iterated.

    URLs (`s3://`, `gs://`, `memory://`) are fetched first, into a temporary folder. given: options
    of reading, as `screen`, `columns`, `unit` and `origin`; see `Reading`. A `study.yaml` in the
    folder of the recordings states them by the same names; options given here override it.

    >>> import tempfile
    >>> from gazediffusion.data.simulation import SimulationConfig, write_simulation
    >>> config = SimulationConfig(n_participants=2, minutes=0.1, trial_seconds=6, rate_hz=250)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_simulation(config, f"{folder}/study", "asc")
    ...     recordings = read(f"{folder}/study")
    ...     print(recordings, [(one.participant, len(one)) for one in recordings])
    Recordings(2 files: eyelink-asc) [('01', 1500), ('02', 1500)]
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    (reading,) = grouped([reading] if reading else [], given, Reading)
    reading, study = with_study(listed, reading, given)
    sources = find_sources(listed, read_options(reading), reading.input_format)
    return Recordings(tuple(sources), reading, tuple(listed), study)


def read_options(reading: Reading) -> ReadOptions:
    """What is stated of the files, as readers take it."""
    return ReadOptions(
        screen=reading.given_screen(),
        override_screen=reading.override_screen,
        columns=names_of(reading.columns or {}),
        unit=reading.unit,
        origin=reading.origin,
        source_rate_hz=reading.source_rate_hz,
        participant_pattern=reading.participant_pattern,
        data_dir=None if reading.data_dir is None else Path(reading.data_dir),
    )


def cleaned_as(config: Cleaned, recordings: Recordings | Sequence[Source]) -> Cleaned:
    """Settings whose cleaning is that of the recordings, where they state none themselves."""
    reading = recordings.reading if isinstance(recordings, Recordings) else Reading()
    return replace(config, cleaning=config.cleaning or reading.cleaning)


def sources_of(recordings: Recordings | Sequence[Source]) -> Sequence[Source]:
    """The files of recordings."""
    return recordings.sources if isinstance(recordings, Recordings) else recordings
