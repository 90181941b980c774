"""A lazy frame over batches that are made one after another, so that memory holds a few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
from polars.io.plugins import register_io_source


def scan_batches(
    batches: Callable[[], Iterator[pl.DataFrame | pl.LazyFrame]], schema: pl.Schema
) -> pl.LazyFrame:
    """The rows of all batches; they are made anew each time that rows are collected."""

    def frames(
        names: list[str] | None, keep: pl.Expr | None, n_rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        for batch in batches():
            frame = batch.lazy() if names is None else batch.lazy().select(names)
            found = (frame if keep is None else frame.filter(keep)).collect()
            yield found if n_rows is None else found.head(n_rows)
            n_rows = None if n_rows is None else max(0, n_rows - found.height)

    return register_io_source(frames, schema=schema)
