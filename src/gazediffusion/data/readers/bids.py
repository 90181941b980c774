"""BIDS eye tracking (1.11): headerless `*_physio.tsv.gz` with JSON sidecars, one file per eye.

Fields are inherited: every JSON file of the same suffix, from the dataset's root down to the
file's folder, whose entities (`task-reading`) the file has too, adds to them. The screen is in
the task's `events.json`, the blinks in `*_physioevents.tsv.gz`, and so are event labels where the
sidecar says that events are labels of samples. The two eyes of one recording (`recording-eye1`,
`recording-eye2`) that share their clock become one binocular recording.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gazediffusion.data.readers.columns import (
    MS_PER,
    Column,
    Columns,
    event_classes,
    event_names,
    unit_in,
)
from gazediffusion.data.readers.options import ReadOptions, presented_on, read_sidecar
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tables import Table, open_table
from gazediffusion.data.recordings import EVENT_CLASSES, SAMPLE_LABELS, Eye, Recording
from gazediffusion.errors import GazeError
from gazediffusion.storage import unpacked

NAME = "bids"

_ENDING = "_physio.tsv.gz"
_EVENT_COLUMNS = ["onset", "duration", "trial_type", "blink", "message"]
_TIME, _EVENT, _AXES = "timestamp", "event", ("x_coordinate", "y_coordinate")


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether this is an eye's physio file; one with a damaged sidecar is, and will be refused."""
    if not unpacked(path).name.endswith(unpacked(Path(_ENDING)).name):
        return False
    try:
        fields = _inherited(path, "physio")
    except GazeError:
        return True
    return fields.get("PhysioType") == "eyetrack" or (not fields and "_recording-eye" in path.name)


def first_eye_of(path: Path) -> Path | None:
    """The file of the first eye, where `path` holds the second eye of the same recording."""
    name = path.name.replace("_recording-eye2_", "_recording-eye1_")
    return path.with_name(name) if name != path.name and name.endswith(_ENDING) else None


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recording of one eye; named by its first eye's file, that of both."""
    screen = presented_on(_inherited(path, "events"))
    table, columns, rate_hz = _one_eye(path)
    second = path.with_name(path.name.replace("_recording-eye1_", "_recording-eye2_"))
    has_second = second != path and second.is_file()
    if has_second:
        other, other_columns, other_rate_hz = _one_eye(second)
        clocks = [one.collect([_TIME]).to_series() for one in (table, other)]
        if clocks[0].equals(clocks[1]) and columns.gaze.keys().isdisjoint(other_columns.gaze):
            frames = [table.frame, other.frame.drop(_TIME, _EVENT, strict=False)]
            table = replace(table, frame=pl.concat(frames, how="horizontal"))
            gaze = {**columns.gaze, **other_columns.gaze}
            columns = replace(columns, gaze=gaze, blink={**columns.blink, **other_columns.blink})
            has_second = False
    yield from recordings(table, columns, options, screen, NAME, rate_hz)
    if has_second:
        for recording in recordings(other, other_columns, options, screen, NAME, other_rate_hz):
            yield replace(recording, trial=f"{recording.trial}-eye2")


def _one_eye(path: Path) -> tuple[Table, Columns, float | None]:
    """One eye's samples as numbers, which column is which, and the stated rate in Hz."""
    fields = _inherited(path, "physio")
    if not fields:
        raise GazeError(
            "there is no JSON sidecar",
            path=path,
            remedy=f"put {path.name.removesuffix('.tsv.gz')}.json beside it",
        )
    system = fields.get("SampleCoordinateSystem", "gaze-on-screen")
    if system != "gaze-on-screen":
        raise GazeError(f"the gaze is {system!r}, not on a screen", path=path)
    eye = fields.get("RecordedEye")
    eye = cast("Eye", eye if eye in ("left", "right") else "cyclopean")
    rate_hz = fields.get("SamplingFrequency")
    if rate_hz is not None and not (isinstance(rate_hz, int | float) and 0 < rate_hz < math.inf):
        problem = f"the sidecar's SamplingFrequency must be a positive number, not {rate_hz!r}"
        raise GazeError(problem, path=path)
    table = _headerless(path, fields.get("Columns"))
    if _TIME not in table.names and rate_hz is not None:
        start_s = fields.get("StartTime")
        start_s = start_s if isinstance(start_s, int | float) else 0.0
        table = table.with_columns((pl.int_range(pl.len()) / rate_hz + start_s).alias(_TIME))
        fields = {**fields, _TIME: {"Units": "s"}}
    if missing := {_TIME, *_AXES} - set(table.names):
        raise GazeError(f"the sidecar's Columns lack {', '.join(sorted(missing))}", path=path)
    clock = _unit(fields, _TIME, path, tuple(MS_PER))
    units = [_unit(fields, axis, path, ("px", "deg", "norm")) or "px" for axis in _AXES]
    if units[0] != units[1]:
        raise GazeError(f"x is in {units[0]} but y in {units[1]}", path=path)
    samples = table.numbers([_TIME, *_AXES]).rename({axis: f"{axis}_{eye}" for axis in _AXES})
    blinks, labels = _marks(path, samples[_TIME].cast(pl.Float64).to_numpy(), clock)
    blink = f"blink_{eye}"
    if blinks is not None:
        samples = samples.with_columns(pl.Series(blink, blinks))
    if labels is not None:
        samples = samples.with_columns(event_names(labels).alias(_EVENT))
    x, y = (Column(f"{axis}_{eye}", units[0]) for axis in _AXES)
    columns = Columns(
        time=Column(_TIME, clock),
        gaze={eye: (x, y)},
        blink={eye: blink} if blinks is not None else {},
        label=[_EVENT] if labels is not None else [],
    )
    return replace(table, frame=samples.lazy()), columns, rate_hz and float(rate_hz)


def _headerless(path: Path, names: object) -> Table:
    """A compressed table without a header, whose columns the sidecar names."""
    listed = names if isinstance(names, list) else []
    is_text = all(isinstance(name, str) for name in listed)
    if not listed or not is_text or len(set(listed)) < len(listed):
        raise GazeError("the sidecar's Columns is no list of different names", path=path)
    return open_table(path, listed, separator="\t")


def _marks(
    path: Path, times: NDArray[np.float64], clock: str | None
) -> tuple[NDArray[np.bool_] | None, NDArray[np.uint8] | None]:
    """Which samples (time,) lie in blinks, and their event classes; None where no events tell.

    Onsets and durations are on the samples' clock, unless the units of both are stated.
    """
    events_path = path.with_name(path.name.removesuffix(_ENDING) + "_physioevents.tsv.gz")
    if not events_path.is_file():
        return None, None
    fields = _inherited(events_path, "physioevents")
    events = _headerless(events_path, fields.get("Columns", _EVENT_COLUMNS))
    names, span = set(events.names), ["onset", "duration"]
    if not names.issuperset(span):
        return None, None
    is_blink = np.zeros(events.collect([pl.len()]).item(), dtype=bool)
    for name in names & {"trial_type", "type", "event"}:
        words = events.collect([name]).to_series().str.to_lowercase()
        is_blink |= words.str.contains("blink", literal=True).fill_null(False).to_numpy()
    if "blink" in names:
        is_blink |= events.flags("blink")
    units = [_unit(fields, name, events_path, tuple(MS_PER)) for name in span]
    scales = [MS_PER[unit] / MS_PER[clock] if unit and clock else 1.0 for unit in units]
    spans = events.numbers(span).to_numpy() * scales
    blinks = np.zeros(len(times), dtype=bool)
    for onset, duration in spans[is_blink].tolist():
        blinks |= (times >= onset) & (times <= onset + duration)
    if fields.get(SAMPLE_LABELS) is not True or "trial_type" not in names:
        return blinks, None
    kinds = event_classes(events.collect(["trial_type"]).to_series())
    labels = np.zeros(len(times), dtype=np.uint8)
    # Onsets are rounded; an event ends before the first sample of the next.
    early = 0.25 * float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    for (onset, duration), kind in zip(spans.tolist(), kinds.tolist(), strict=True):
        if 0 < kind <= len(EVENT_CLASSES):
            first, stop = np.searchsorted(times, [onset - early, onset + duration - early])
            labels[first:stop] = kind
    return blinks, labels


def _unit(fields: Mapping[str, Any], name: str, path: Path, known: tuple[str, ...]) -> str | None:
    """The unit that a sidecar states for a column; one that is not known is an error."""
    described = fields.get(name)
    stated = described.get("Units") if isinstance(described, dict) else None
    if stated is None:
        return None
    unit = unit_in(str(stated))
    if unit not in known:
        raise GazeError(f"column {name!r} is in {str(stated)!r}, not in {known}", path=path)
    return unit


def _inherited(path: Path, suffix: str) -> dict[str, Any]:
    """The fields of every applicable JSON file, the nearer overriding the farther."""
    entities = _entities(path.name)
    fields: dict[str, Any] = {}
    for folder in reversed(_folders(path)):
        sidecars = [
            sidecar
            for sidecar in folder.glob(f"*{suffix}.json")
            if sidecar.stem.split("_")[-1] == suffix and _entities(sidecar.name) <= entities
        ]
        for sidecar in sorted(sidecars, key=lambda sidecar: len(_entities(sidecar.name))):
            fields |= read_sidecar(sidecar)
    return fields


def _folders(path: Path) -> list[Path]:
    """The file's folder and those above it, up to the dataset's root."""
    folders = [path.parent, *path.parent.parents]
    for depth, folder in enumerate(folders):
        if (folder / "dataset_description.json").is_file():
            return folders[: depth + 1]
    # Without a description, the root is the folder of the participants.
    subject = next((n for n, folder in enumerate(folders) if folder.name.startswith("sub-")), -1)
    return folders[: subject + 2] if subject >= 0 else folders[:1]


def _entities(name: str) -> set[str]:
    """The key-value parts of a BIDS name, as `{"sub-01", "task-reading"}`."""
    return set(re.findall(r"(?:^|_)([a-zA-Z0-9]+-[a-zA-Z0-9]+)(?=_|\.)", name))
