"""Long tables, one row per sample: text with a header (comma, semicolon, tab) and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gazediffusion.data.readers.naming import find_columns, require_known_words
from gazediffusion.data.readers.options import ReadOptions, sidecar_screens
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tabular import TABLE_ERRORS, header_of, open_table, parquet_names
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError

NAME = "table"


def is_table(path: Path) -> bool:
    """Whether the ending is a table's."""
    return path.suffix.lower() in {".csv", ".tsv", ".txt", ".parquet"}


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the table's columns are known; a Parquet file that cannot be opened is claimed,
    so that its damage is reported and not passed over.
    """
    require_known_words(options)
    if not is_table(path):
        return False
    try:
        is_text = path.suffix.lower() != ".parquet"
        find_columns(header_of(head, path) if is_text else parquet_names(path), options, path)
    except TABLE_ERRORS:
        return True
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one table: rows of equal participant, task and trial are one."""
    table = open_table(path)
    columns = find_columns(table.names, options, path)
    return recordings(table, columns, options, sidecar_screens(path), NAME)
