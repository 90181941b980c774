"""CSV and Parquet: one long table of all samples, and a JSON sidecar with screens and rate.

Columns are participant, task, trial, t_ms, then x_px, y_px, is_blink for one eye, or the same
with _left and _right for two. Missing gaze is an empty cell in CSV and NaN in Parquet. The sidecar
has BIDS' screen fields where there is one screen, otherwise `Screens`, the fields by task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export.labelled import Labelled, eyes_of, first_of, name, rate_of
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    import polars as pl

OtherUnit = Literal["deg", "screen"]
Screens = dict[str, Screen | None]  # by task

# Sets of recordings are gathered into pieces of about this many samples before being written.
_PIECE_SAMPLES = 1_000_000


def write_csv(labelled: Iterable[Labelled], folder: Path, units: Sequence[OtherUnit] = ()) -> None:
    """Write recordings.csv and recordings.json into `folder`.

    units: columns beside pixels: degrees (`deg`) and normalized to the screen (`screen`).
    """
    import polars as pl

    first, labelled = first_of(labelled)
    screens: Screens = {}
    with open(folder / "recordings.csv", "wb") as stream:
        for number, frame in enumerate(_frames(first, labelled, units, screens)):
            plain = frame.with_columns(
                pl.col(pl.Float32).fill_nan(None), pl.col(pl.Boolean).cast(pl.Int8)
            )
            plain.write_csv(stream, include_header=number == 0)
    _write_sidecar(screens, rate_of(first), folder)


def write_parquet(
    labelled: Iterable[Labelled], folder: Path, units: Sequence[OtherUnit] = ()
) -> None:
    """Write recordings.parquet and recordings.json into `folder`; `units` as for CSV.

    Written row group by row group: memory holds one of them, never the whole set.
    """
    import polars as pl
    from pyarrow import parquet

    first, labelled = first_of(labelled)
    screens: Screens = {}
    oldest = pl.CompatLevel.oldest()
    frames = _pieces(_frames(first, labelled, units, screens))
    piece = next(frames).to_arrow(compat_level=oldest)
    path = folder / "recordings.parquet"
    with parquet.ParquetWriter(path, piece.schema, compression="zstd") as writer:
        writer.write_table(piece)
        for frame in frames:
            writer.write_table(frame.to_arrow(compat_level=oldest))
    _write_sidecar(screens, rate_of(first), folder)


def _pieces(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    import polars as pl

    gathered: list[pl.DataFrame] = []
    for frame in frames:
        gathered.append(frame)
        if sum(len(part) for part in gathered) >= _PIECE_SAMPLES:
            yield pl.concat(gathered)
            gathered = []
    if gathered:
        yield pl.concat(gathered)


def _frames(
    first: Recording, labelled: Iterable[Labelled], units: Sequence[OtherUnit], screens: Screens
) -> Iterator[pl.DataFrame]:
    """One table per recording; all must have the eyes, labels and rate of the first.

    The screen of each task is added to `screens`; those of one task must have the same.
    """
    expected = _shape(first)
    for recording, _ in labelled:
        expected["screen"] = screens.setdefault(recording.task, recording.screen)
        for what, value in _shape(recording).items():
            if value != expected[what]:
                raise GazeError(
                    f"{what} is {value}, that of an earlier recording {expected[what]}; "
                    "one table cannot hold both",
                    place=name(recording),
                    remedy="write them into two tables",
                )
        yield _frame(recording, units)


def _shape(recording: Recording) -> dict[str, Any]:
    return {
        "number of eyes": len(eyes_of(recording)),
        "having blink labels": bool(recording.is_blink),
        "screen": recording.screen,
        "rate": rate_of(recording),
    }


def _frame(recording: Recording, units: Sequence[OtherUnit]) -> pl.DataFrame:
    import polars as pl

    words = ("participant", "task", "trial")
    frame = pl.DataFrame({"t_ms": recording.time_ms}).select(
        *(pl.lit(getattr(recording, word), dtype=pl.String).alias(word) for word in words), "t_ms"
    )
    eyes = eyes_of(recording)
    gaze, blinks = [], []
    for eye in eyes:
        side = f"_{eye}" if len(eyes) == 2 else ""
        x_px, y_px = recording.gaze_px[eye]
        gaze += [pl.Series(f"x{side}_px", x_px), pl.Series(f"y{side}_px", y_px)]
        for unit in units:
            x, y = _in_unit(recording.gaze_px[eye], recording.screen, unit)
            gaze += [pl.Series(f"x{side}_{unit}", x), pl.Series(f"y{side}_{unit}", y)]
        if eye in recording.is_blink:
            blinks.append(pl.Series(f"is_blink{side}", recording.is_blink[eye]))
    return frame.hstack(gaze + blinks)


def _in_unit(
    gaze_px: NDArray[np.float32], screen: Screen | None, unit: OtherUnit
) -> NDArray[np.floating[Any]]:
    """Gaze (2, time) in a unit; NaN where the screen does not tell it."""
    if screen is None or (unit == "deg" and not screen.has_degrees):
        return np.full_like(gaze_px, np.nan)
    return screen.to_degrees(gaze_px) if unit == "deg" else screen.to_normalized(gaze_px)


def _write_sidecar(screens: Screens, rate_hz: float, folder: Path) -> None:
    fields: dict[str, Any] = {}
    if len(set(screens.values())) > 1:
        fields["Screens"] = {
            task: screen.to_bids() for task, screen in screens.items() if screen is not None
        }
    elif (screen := next(iter(screens.values()))) is not None:
        fields = screen.to_bids()
    fields["SamplingFrequency"] = rate_hz
    (folder / "recordings.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
