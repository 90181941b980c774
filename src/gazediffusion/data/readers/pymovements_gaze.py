"""A `Gaze` of pymovements as a table whose columns are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from gazediffusion.data.readers.experiment import ORIGINS
from gazediffusion.data.readers.naming import Column, Columns, meaning
from gazediffusion.data.readers.tabular import Table
from gazediffusion.data.recordings import Eye
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen


def as_table(
    gaze: Any, path: Path, metadata: Mapping[str, Any], experiment: Any, extra: Sequence[str] = ()
) -> tuple[Table, Columns]:
    """A pymovements Gaze as a table with one column per eye and axis, and one per identity.

    metadata: what is known of all its samples. extra: further columns to keep.
    """
    names = gaze.samples.columns
    source = next((name for name in ("pixel", "position") if name in names), None)
    if source is None or "time" not in names:
        raise GazeError(f"pymovements found no gaze in {', '.join(names)}", path=path)
    unit = "px" if source == "pixel" else "deg"
    eyes = _eyes(gaze.n_components, experiment)
    axes = {
        f"{axis}_{eye}": pl.col(source).list.get(2 * number + offset, null_on_oob=True)
        for number, eye in enumerate(eyes)
        for offset, axis in enumerate("xy")
    }
    trials = gaze.trial_columns or []
    trials = [trials] if isinstance(trials, str) else trials
    frame = gaze.samples.lazy()
    if trials:
        # Samples between trials carry no trial at all.
        frame = frame.filter(pl.any_horizontal(pl.col(trials).is_not_null()))
    said = {key: pl.lit(str(value)) for key, value in metadata.items() if key not in trials}
    frame = frame.select("time", *trials, *extra, **axes, **said)
    identity = [*said, *trials]
    participant, task = (
        next((name for name in identity if meaning(name)[0] == word), None)
        for word in ("participant", "task")
    )
    origin = ORIGINS.get(getattr(getattr(experiment, "screen", None), "origin", None))
    if unit == "deg":  # the origin is that of the pixels
        origin = "center"
    columns = Columns(
        time=Column("time", "ms"),
        gaze={eye: (Column(f"x_{eye}", unit), Column(f"y_{eye}", unit)) for eye in eyes},
        participant=participant,
        task=task,
        trial=[name for name in identity if name not in (participant, task)],
        origin=origin,
    )
    return Table(frame, path, lambda row: f"row {row + 1}"), columns


def _eyes(n_components: int | None, experiment: Any) -> list[Eye]:
    """Whose eyes pymovements' components are: one eye's x and y, or left, right, cyclopean."""
    if n_components in (4, 6):
        both: list[Eye] = ["left", "right", "cyclopean"]
        return both[: n_components // 2]
    tracker = getattr(experiment, "eyetracker", None)
    has_left, has_right = (getattr(tracker, side, None) for side in ("left", "right"))
    return ["left"] if has_left and not has_right else ["right"]


def screen_of(experiment: Any) -> Screen | None:
    """The screen of a pymovements experiment; None where its pixels are not known."""
    screen = getattr(experiment, "screen", None)
    if screen is None or screen.width_px is None or screen.height_px is None:
        return None
    return Screen(*(getattr(screen, one.name) for one in fields(Screen)))
