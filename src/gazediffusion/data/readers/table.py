"""Long tables, one row per sample: text with or without a header, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gazediffusion.data.readers import arrow
from gazediffusion.data.readers.experiment import saved_experiment
from gazediffusion.data.readers.naming import find_columns, require_known_words
from gazediffusion.data.readers.options import ReadOptions, sidecar_screens
from gazediffusion.data.readers.samples import recordings
from gazediffusion.data.readers.tabular import TABLE_ERRORS, header_of, open_table
from gazediffusion.data.recordings import Recording
from gazediffusion.errors import GazeError

NAME = "table"


def is_table(path: Path) -> bool:
    """Whether the ending is a table's."""
    return path.suffix.lower() in {".csv", ".tsv", ".txt", ".dat", *arrow.ENDINGS}


def matches(path: Path, head: bytes, options: ReadOptions) -> bool:
    """Whether the table's columns are known; a Parquet or Arrow file that cannot be opened is
    claimed, so that its damage is reported and not passed over.
    """
    require_known_words(options)
    if not is_table(path):
        return False
    try:
        if path.suffix.lower() in arrow.ENDINGS:
            names = arrow.scan(path).collect_schema().names()
        else:
            names = header_of(head, path, _is_by_position(options))
        find_columns(names, options, path)
    except TABLE_ERRORS:
        return True
    except GazeError:
        return False
    return True


def read(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """The recordings of one table: rows of equal participant, task and trial are one."""
    table = open_table(path, by_position=_is_by_position(options))
    columns = find_columns(table.names, options, path)
    saved = saved_experiment(path)
    if columns.unit != "deg":
        columns = replace(columns, origin=columns.origin or saved.origin)
    screens = sidecar_screens(path) or saved.screen
    return recordings(table, columns, options, screens, NAME, saved.rate_hz)


def _is_by_position(options: ReadOptions) -> bool:
    """Whether a column is given by its position, as of a table without a header."""
    return any(given.isdecimal() for given in options.columns.values())
