"""Parquet and Arrow files (Feather, IPC), scanned through pyarrow.

polars' own readers can abort the process on a damaged file. pymovements keeps the coordinates of a
sample in one list, `pixel` or `position` (in degrees): x and y of one eye, of the left and the
right, or of both and their mean. Each is read as a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa
from pyarrow import dataset, ipc, parquet

from gazediffusion.data.readers.scanning import scan_batches

ENDINGS = {".parquet", ".feather", ".arrow", ".ipc"}

_BOTH_EYES = ["x_left", "y_left", "x_right", "y_right"]
_AXES = {2: ["x", "y"], 4: _BOTH_EYES, 6: [*_BOTH_EYES, "x_mean", "y_mean"]}
_UNITS = {"pixel": "px", "position": "deg"}


def scan(path: Path) -> pl.LazyFrame:
    """The rows of a file, with a column for each coordinate."""
    if path.suffix.lower() == ".parquet":
        return _without_lists(_scan_parquet(path))
    with _open(path) as (schema, _):
        empty = cast("pl.DataFrame", pl.from_arrow(schema.empty_table()))
    return _without_lists(scan_batches(lambda: _batches(path), empty.schema))


def _scan_parquet(path: Path) -> pl.LazyFrame:
    """Text columns come as categories, since identities repeat for thousands of rows."""
    schema = parquet.read_schema(path)
    text = [one.name for one in schema if one.type in (pa.string(), pa.large_string())]
    layout = dataset.ParquetFileFormat(dictionary_columns=text)
    return pl.scan_pyarrow_dataset(dataset.dataset(path, format=layout))


def _batches(path: Path) -> Iterator[pl.DataFrame]:
    """The record batches of an Arrow file or stream, checked, since polars trusts its offsets."""
    with _open(path) as (_, batches):
        for batch in batches:
            batch.validate(full=True)
            yield cast("pl.DataFrame", pl.from_arrow(batch))


@contextmanager
def _open(path: Path) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    with pa.OSFile(str(path)) as stream:
        if stream.read(6) != b"ARROW1":
            stream.seek(0)
            reader = ipc.open_stream(stream)
            yield reader.schema, reader
        else:
            reader = ipc.open_file(stream)
            yield reader.schema, map(reader.get_batch, range(reader.num_record_batches))


def _without_lists(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The frame with a column for each coordinate in pymovements' lists."""
    schema = frame.collect_schema()
    for name, unit in _UNITS.items():
        if not isinstance(schema.get(name), pl.List | pl.Array):
            continue
        as_list = pl.col(name).cast(pl.List(pl.Float64))
        n_axes = frame.select(as_list.list.len().max()).collect().item()
        axes = {
            f"{name} {axis} [{unit}]": as_list.list.get(place, null_on_oob=True)
            for place, axis in enumerate(_AXES.get(n_axes, []))
        }
        frame = frame.with_columns(**axes)
    return frame
