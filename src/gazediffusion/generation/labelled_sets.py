"""Labelled sets: recordings with the event class of every sample, written as files that state it.

The network that generates gaze labels recordings too (`labelling`). A recording is cleaned and
brought to the rate and the screen of the model, and each of its samples takes the class of the
nearest one there. What cleaning takes for lost is noise.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.export import Labelled
from gazediffusion.data.export.card import screen_fields
from gazediffusion.data.export.windows import put_set_in_place, require_free_set
from gazediffusion.data.recordings import EVENT_CLASSES, Recording
from gazediffusion.data.resampling import read_clock
from gazediffusion.errors import GazeError
from gazediffusion.generation.gaps import FEWEST_SAMPLES, Gaps, find_gaps
from gazediffusion.generation.labelling import NOISE, Labeller, Labels, Progress
from gazediffusion.generation.model_grid import (
    OTHER_ANGLE,
    model_screen,
    on_model_grid,
    require_screen,
)
from gazediffusion.generation.recording_sets import (
    Total,
    describe_sources,
    format_of_recordings,
    require_size,
    with_events,
    work_folder,
    write_recordings,
)
from gazediffusion.generation.scheduling import after
from gazediffusion.geometry import Screen
from gazediffusion.settings import CleaningConfig
from gazediffusion.storage import require_writable, write_json, written_whole
from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


@dataclass(frozen=True)
class RecordingLabeller:
    """Labels recordings of any screen and of rates from 100 Hz on."""

    labeller: Labeller
    cleaning: CleaningConfig | None = None

    def labelled(self, recording: Recording, progress: Progress = lambda done: None) -> Recording:
        """The recording with labels of all samples; labels that it has are replaced."""
        return _with_labels(recording, self.labels(self.gaps(recording), progress))

    def gaps(self, recording: Recording) -> Gaps:
        """What of a recording is valid; one without a screen or below 100 Hz is refused."""
        try:
            require_screen(recording)
            return find_gaps(recording, self.cleaning, max_gap_s=0.0)
        except GazeError as error:
            if error.path is not None:
                raise
            where = f"participant {recording.participant}, trial {recording.trial}"
            raise GazeError(str(error), path=recording.path, place=where) from error

    def is_in_degrees(self, recording: Recording) -> bool:
        """Whether sizes on the recording's screen are those on the model's in degrees."""
        return require_screen(recording).is_comparable_with(self._screen(recording))

    def n_windows(self, gaps: Gaps) -> int:
        """Windows that a recording is labelled in."""
        if gaps.clock is None or not gaps.counts.valid:
            return 0
        time_ms, rate_hz = gaps.cleaned.time_ms, self.labeller.run.config.rate_hz
        n_samples = int((time_ms[-1] - time_ms[0]) * rate_hz / 1000 + 0.1) + 1
        return self.labeller.n_windows(n_samples)

    def labels(self, gaps: Gaps, progress: Progress = lambda done: None) -> Labels:
        """The event class of each sample of a recording, (time,)."""
        recording, cleaned = gaps.recording, gaps.cleaned
        labels = np.full(len(recording), NOISE, dtype=np.uint8)
        if not self.n_windows(gaps):
            return labels
        rate_hz = self.labeller.run.config.rate_hz
        gaze = on_model_grid(gaps, rate_hz, self._screen(recording))
        found = self.labeller.labels(gaze[None], progress)[0]
        place = (recording.time_ms - cleaned.time_ms[0]) * (rate_hz / 1000)
        nearest = np.clip(np.rint(place).astype(np.int64), 0, len(found) - 1)
        # Repeated times were taken out by cleaning.
        own = np.searchsorted(cleaned.time_ms, recording.time_ms, side="right") - 1
        return np.where(cleaned.is_valid[own], found[nearest], labels)

    def _screen(self, recording: Recording) -> Screen:
        """The model's screen of the recording's task, where it has that task."""
        config = self.labeller.run.config
        is_known = recording.task in config.conditioning.tasks
        return model_screen(config, recording.task if is_known else None)


@dataclass(frozen=True)
class LabelledSet:
    """What was written: the set, its card (JSON) and its README; samples by class; what to know."""

    paths: list[Path]
    n_samples: dict[str, int]
    warnings: list[str]


def write_labelled(
    labeller: RecordingLabeller,
    recordings: Recordings,
    output: Path | str,
    begin: Total = lambda n_windows: lambda done: None,
    overwrite: bool = False,
) -> LabelledSet:
    """Label recordings into a folder, or a table where `output` ends in .parquet or .csv.

    begin: called with the number of windows to label, before the first; what it returns is called
    with the number done.
    """
    output = Path(output)
    format = format_of_recordings(output, recordings)
    require_free_set(output, format, overwrite)
    require_writable(output)
    card: dict[str, Any] = {
        "format": "gazediffusion-labelled",
        "synthetic": False,
        "gazediffusion_version": __version__,
        "labels": labeller.labeller.describe(),
        "cleaning": asdict(labeller.cleaning or CleaningConfig()),
        "sources": describe_sources(recordings),
    }
    n_windows, screens, warnings = _counted(labeller, recordings, format)
    work = work_folder(output, card)
    n_samples = _label(labeller, recordings, work, n_windows, begin(sum(n_windows)))
    card |= {"format_written": format, "n_samples": n_samples, **screen_fields(screens)}
    with written_whole(work / "set") as folder:
        folder.mkdir(parents=True)
        write_recordings(folder, _labelled(recordings, work), format, card)
        (folder / "README.md").write_text(readme_of_labelled(card), encoding="utf-8")
        write_json(folder / "card.json", card)
        if format == "bids":
            (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")
    written = put_set_in_place(work / "set", output, format, overwrite)
    shutil.rmtree(work, ignore_errors=True)
    return LabelledSet(written, n_samples, warnings)


def _counted(
    labeller: RecordingLabeller, recordings: Recordings, format: str
) -> tuple[list[int], dict[str, Screen], list[str]]:
    """Windows by recording, screens by task, warnings; bad input is refused."""
    n_windows, n_valid = [], 0
    screens, warnings = dict[str, Screen](), set[str]()
    for recording in recordings:
        gaps = labeller.gaps(recording)
        n_windows.append(labeller.n_windows(gaps))
        n_valid += gaps.counts.valid
        screen = require_screen(recording)
        screens.setdefault(recording.task, screen)
        require_size(screen, format, recording.path)
        if not labeller.is_in_degrees(recording):
            warnings.add(OTHER_ANGLE.format(done="labelled"))
    if not n_valid:
        raise GazeError(
            "nothing to label: no sample is valid",
            path=recordings.sources[0].path,
            remedy="see why with gazediffusion inspect",
        )
    return n_windows, screens, sorted(warnings)


def _label(
    labeller: RecordingLabeller,
    recordings: Recordings,
    work: Path,
    n_windows: list[int],
    progress: Progress,
) -> dict[str, int]:
    """Store the labels (time,) of each recording, those there stay; samples by class."""
    done, counts = 0, np.zeros(1 + len(EVENT_CLASSES), dtype=np.int64)
    work.mkdir(parents=True, exist_ok=True)
    for number, (recording, n) in enumerate(zip(recordings, n_windows, strict=True)):
        path = _stored(work, number)
        if not path.is_file():
            labels = labeller.labels(labeller.gaps(recording), after(done, progress))
            with written_whole(path) as temporary, open(temporary, "wb") as stream:
                np.save(stream, labels)
        counts += np.bincount(np.load(path), minlength=len(counts))
        done += n
        progress(done)
    return dict(zip(EVENT_CLASSES, counts[1:].tolist(), strict=True))


def _stored(work: Path, number: int) -> Path:
    return work / f"{number:09d}.npy"


def _labelled(recordings: Recordings, work: Path) -> Iterator[Labelled]:
    """The recordings with their labels and events, one at a time."""
    for number, recording in enumerate(recordings):
        yield with_events(_with_labels(recording, np.load(_stored(work, number))), True)


def _with_labels(recording: Recording, labels: Labels) -> Recording:
    """The recording with labels, and with the rate that its clock tells where it states none."""
    rate_hz = recording.rate_hz
    if rate_hz is None and len(recording) >= FEWEST_SAMPLES:
        rate_hz = read_clock(recording.time_ms).rate_hz
    return replace(recording, labels=labels, rate_hz=rate_hz)


def readme_of_labelled(card: Mapping[str, Any]) -> str:
    """The card in words."""
    where = {
        "asc": "Before each event stands a message `LABEL class first last`; pursuits are also "
        "fixations of EyeLink, which has no other event for them.",
        "bids": "Events are rows of `_physioevents.tsv.gz`.",
    }.get(card["format_written"], "The column `event` has the class of each sample.")
    total = max(sum(card["n_samples"].values()), 1)
    shares = ", ".join(f"{name} {n / total:.1%}" for name, n in card["n_samples"].items())
    return f"""# Recordings with labels of events

A network labelled every sample as fixation, saccade, pursuit or noise; none by hand. Gaze is as
recorded. {where}

- samples: {shares}
- samples that are lost, or that cleaning takes out, are noise
- model: weights with sha256 `{card["labels"]["weights_sha256"]}`
- written by gazediffusion {card["gazediffusion_version"]} as {card["format_written"]}
"""
