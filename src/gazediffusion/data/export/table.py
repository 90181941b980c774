"""CSV and Parquet: one long table of all samples, and a JSON sidecar with screen and rate.

Columns are participant, task, trial, t_ms, then x_px, y_px, is_blink for one eye, or the same
with _left and _right for two. Missing gaze is an empty cell in CSV and NaN in Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.data.export.labelled import Labelled, eyes_of, first_of, name, rate_of
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen

if TYPE_CHECKING:
    import polars as pl

# Sets of recordings are gathered into pieces of about this many samples before being written.
_PIECE_SAMPLES = 1_000_000


def write_csv(labelled: Iterable[Labelled], folder: Path, all_units: bool = False) -> None:
    """Write recordings.csv and recordings.json into `folder`.

    With `all_units`, gaze also stands in degrees (where the screen's size is known) and
    normalized to the screen.
    """
    import polars as pl

    first, labelled = first_of(labelled)
    with open(folder / "recordings.csv", "wb") as stream:
        for number, frame in enumerate(_frames(first, labelled, all_units)):
            plain = frame.with_columns(
                pl.col(pl.Float32).fill_nan(None), pl.col(pl.Boolean).cast(pl.Int8)
            )
            plain.write_csv(stream, include_header=number == 0)
    _write_sidecar(first, folder)


def write_parquet(labelled: Iterable[Labelled], folder: Path, all_units: bool = False) -> None:
    """Write recordings.parquet and recordings.json into `folder`; `all_units` as for CSV.

    Written row group by row group: memory holds one of them, never the whole set.
    """
    import polars as pl
    from pyarrow import parquet

    first, labelled = first_of(labelled)
    oldest = pl.CompatLevel.oldest()
    frames = _pieces(_frames(first, labelled, all_units))
    piece = next(frames).to_arrow(compat_level=oldest)
    path = folder / "recordings.parquet"
    with parquet.ParquetWriter(path, piece.schema, compression="zstd") as writer:
        writer.write_table(piece)
        for frame in frames:
            writer.write_table(frame.to_arrow(compat_level=oldest))
    _write_sidecar(first, folder)


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
    first: Recording, labelled: Iterable[Labelled], all_units: bool
) -> Iterator[pl.DataFrame]:
    """One table per recording; all must have the eyes, labels, screen and rate of the first."""
    expected = _shape(first)
    for recording, _ in labelled:
        for what, value in _shape(recording).items():
            if value != expected[what]:
                raise GazeError(
                    f"{what} is {value}, the first recording's {expected[what]}; "
                    "one table cannot hold both",
                    place=name(recording),
                    remedy="write them apart",
                )
        yield _frame(recording, all_units)


def _shape(recording: Recording) -> dict[str, Any]:
    return {
        "number of eyes": len(eyes_of(recording)),
        "having blink labels": bool(recording.is_blink),
        "screen": recording.screen,
        "rate": rate_of(recording),
    }


def _frame(recording: Recording, all_units: bool) -> pl.DataFrame:
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
        if all_units and recording.screen is not None:
            for unit, values in _other_units(recording.gaze_px[eye], recording.screen):
                x, y = values
                gaze += [pl.Series(f"x{side}_{unit}", x), pl.Series(f"y{side}_{unit}", y)]
        if eye in recording.is_blink:
            blinks.append(pl.Series(f"is_blink{side}", recording.is_blink[eye]))
    return frame.hstack(gaze + blinks)


def _other_units(
    gaze_px: NDArray[np.float32], screen: Screen
) -> Iterator[tuple[str, NDArray[np.floating[Any]]]]:
    """Gaze (2, time) in degrees, where they are known, and normalized to [-1, 1]."""
    if screen.has_degrees:
        yield "deg", screen.to_degrees(gaze_px)
    yield "screen", screen.to_normalized(gaze_px)


def _write_sidecar(first: Recording, folder: Path) -> None:
    fields: dict[str, Any] = first.screen.to_bids() if first.screen is not None else {}
    fields["SamplingFrequency"] = rate_of(first)
    (folder / "recordings.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
