"""Long tables, one row per sample: text with a header (comma, semicolon, tab) and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gazediffusion.data.readers.naming import find_columns, require_known_words
from gazediffusion.data.readers.options import ReadOptions
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.sidecars import sidecar_screens
from gazediffusion.data.readers.tabular import (
    TABLE_ERRORS,
    header_of,
    open_table,
    parquet_names,
)
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError

NAME = "table"

_TEXT_ENDINGS = {".csv", ".tsv", ".txt"}


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the table's columns are known; a Parquet file that cannot be opened is claimed,
    so that its damage is reported and not passed over.
    """
    require_known_words(options)
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            names = parquet_names(path)
        elif ending in _TEXT_ENDINGS:
            names = header_of(head, path)
        else:
            return False
        find_columns(names, options, path)
    except TABLE_ERRORS:
        return True
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one table: rows of equal participant, task and trial are one."""
    table = open_table(path)
    columns = find_columns(table.names, options, path)
    screen = options.screen_or(sidecar_screens(path))
    return recordings(table, columns, options, screen, NAME)
