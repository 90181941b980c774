"""Recordings as a `Dataset` of Hugging Face's `datasets`, one row per recording, and back.

Columns: participant, task, trial, rate_hz, screen (a struct), eyes, time_ms, and for each eye
x_EYE_px, y_EYE_px and is_blink_EYE; of labelled recordings also event, with the names of the
classes. All but the identities are lists of one number per sample. Lost samples are NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.adapters.required import required
from gazediffusion.data.recordings import EVENT_CLASSES, UNKNOWN_TASK, Eye, Fact, Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    import datasets

    from gazediffusion.data.reading import Recordings

_EYES: tuple[Eye, ...] = ("left", "right", "cyclopean")


def to_datasets(recordings: Iterable[Recording]) -> datasets.Dataset:
    """A `datasets.Dataset` in memory, one row per recording.

    It can be saved with `save_to_disk`, shared with `push_to_hub` and read in batches of torch.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> dataset = windows.to_recordings().to_datasets()
    >>> dataset.num_rows, dataset[0]["screen"]["width_px"], len(dataset[0]["x_cyclopean_px"])
    (2, 1280, 500)
    """
    hf = required("datasets")
    from gazediffusion.data.export.labelled import rate_of

    held = list(recordings)
    if not held:
        raise GazeError("there are no recordings")
    eyes = [eye for eye in _EYES if any(eye in one.gaze_px for one in held)]
    blinking = [eye for eye in eyes if any(eye in one.is_blink for one in held)]
    has_labels = any(one.labels is not None for one in held)
    rows: dict[str, list[Any]] = {name: [] for name in _features(hf, eyes, blinking, has_labels)}
    for one in held:
        row = {
            **{word: getattr(one, word) for word in ("participant", "task", "trial")},
            "rate_hz": rate_of(one),
            "screen": None if one.screen is None else asdict(one.screen),
            "eyes": [eye for eye in eyes if eye in one.gaze_px],
            "time_ms": one.time_ms,
            "event": one.labels,
        }
        for eye in eyes:
            row[f"x_{eye}_px"], row[f"y_{eye}_px"] = one.gaze_px.get(eye, (None, None))
            row[f"is_blink_{eye}"] = one.is_blink.get(eye)
        for name, column in rows.items():
            column.append(row[name])
    features = _features(hf, eyes, blinking, has_labels)
    return hf.Dataset.from_dict(rows, features=hf.Features(features))


def _features(hf: Any, eyes: list[Eye], blinking: list[Eye], has_labels: bool) -> dict[str, Any]:
    """The type of each column."""
    value, many = hf.Value, hf.List
    size = {one.name: value("float64") for one in fields(Screen)}
    screen = {**size, "width_px": value("int64"), "height_px": value("int64")}
    found = {
        **dict.fromkeys(("participant", "task", "trial"), value("string")),
        "rate_hz": value("float64"),
        "screen": screen,
        "eyes": many(value("string")),
        "time_ms": many(value("float64")),
    }
    found |= {f"{axis}_{eye}_px": many(value("float32")) for eye in eyes for axis in "xy"}
    found |= {f"is_blink_{eye}": many(value("bool")) for eye in blinking}
    if has_labels:
        found["event"] = many(hf.ClassLabel(names=["none", *EVENT_CLASSES]))
    return found


def from_datasets(dataset: datasets.Dataset, *, screen: Screen | None = None) -> Recordings:
    """Recordings of a `datasets.Dataset` with the columns that `to_datasets` writes.

    screen: of rows that state none.

    >>> import numpy as np
    >>> import gazediffusion as gd
    >>> windows = gd.Windows.from_array(np.zeros((2, 2, 500)), 250, gd.Screen(1280, 720))
    >>> gd.from_datasets(windows.to_datasets())
    Recordings(2 in memory: datasets)
    """
    from gazediffusion.data.reading import Recordings

    names = set(dataset.column_names)
    eyes = [eye for eye in _EYES if {f"x_{eye}_px", f"y_{eye}_px"} <= names]
    if "time_ms" not in names or not eyes:
        raise GazeError(
            f"the dataset has no gaze: its columns are {', '.join(sorted(names))}",
            remedy="it needs time_ms and x_EYE_px, y_EYE_px of an eye; of one row per sample use "
            "from_frame(dataset.to_pandas())",
        )
    return Recordings.of(_rows(dataset, eyes, screen), "datasets")


def _rows(dataset: Any, eyes: list[Eye], screen: Screen | None) -> Iterator[Recording]:
    for number, row in enumerate(dataset.with_format(None)):
        stated = row.get("screen")
        own = screen if stated is None or stated["width_px"] is None else Screen(**stated)
        gaze = {eye: (row[f"x_{eye}_px"], row[f"y_{eye}_px"]) for eye in eyes}
        blinks = {eye: row.get(f"is_blink_{eye}") for eye in eyes}
        labels = row.get("event")
        yield Recording(
            participant=row.get("participant") or f"row{number}",
            task=row.get("task") or UNKNOWN_TASK,
            trial=row.get("trial") or "0",
            time_ms=np.array(row["time_ms"], dtype=np.float64),
            gaze_px={
                eye: np.array(pair, dtype=np.float32)
                for eye, pair in gaze.items()
                if pair[0] is not None
            },
            path=Path("datasets"),
            format="datasets",
            screen=own,
            rate_hz=row.get("rate_hz"),
            is_blink={
                eye: np.array(mask, dtype=np.bool_)
                for eye, mask in blinks.items()
                if mask is not None
            },
            facts={"unit": Fact("px", "column names")},
            labels=None if labels is None else np.array(labels, dtype=np.uint8),
        )
