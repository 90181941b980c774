"""Cells: what stands in a table of results, how it is found again and how it is written.

A cell is a number, a mean with its SD over seeds, a word, or None where there is nothing. Tables
are plain values, so that results.json is all that the page and the claims need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gazediffusion.reproduction.paper import Published

Cell = int | float | str | dict[str, float] | None
Table = dict[str, Any]
Tables = Mapping[str, Table]

NOTHING = "\u2013"


class MissingError(LookupError):
    """A table, a row or a cell that is not among the results."""


def spread(values: Iterable[float | None]) -> Cell:
    """Mean and SD (ddof=1) over seeds; the number itself if there is one; None if one lacks."""
    found = list(values)
    if not found or any(one is None for one in found):
        return None
    numbers = np.array(found, dtype=np.float64)
    if len(numbers) == 1:
        return float(numbers[0])
    return {"mean": float(numbers.mean()), "sd": float(numbers.std(ddof=1))}


def of_paper(published: Published | Cell) -> Cell:
    """A published number as a cell."""
    if not isinstance(published, Published):
        return published
    if published.sd is None:
        return published.mean
    return {"mean": published.mean, "sd": published.sd}


def over(value: float | None, floor: float | None) -> float | None:
    """value / floor; None where either is nothing or the floor is zero."""
    return None if value is None or not floor else value / floor


def percent_above(value: float | None, other: float | None) -> float | None:
    """By how many percent a value is above another."""
    ratio = over(value, other)
    return None if ratio is None else 100.0 * (ratio - 1.0)


def number(cell: Cell) -> float:
    """A cell's number, or its mean; MissingError if it has none."""
    if isinstance(cell, Mapping):
        return cell["mean"]
    if isinstance(cell, str) or cell is None:
        raise MissingError(f"no number in {cell!r}")
    return float(cell)


def sd(cell: Cell) -> float:
    """A cell's SD, 0 where it has none."""
    return cell["sd"] if isinstance(cell, Mapping) else 0.0


def find(tables: Tables, table: str, row: str, key: str) -> Cell:
    """The cell of a named row; MissingError where there is none or nothing in it."""
    for one in tables.get(table, {}).get("rows", []):
        if one["name"] == row and one.get(key) is not None:
            found: Cell = one[key]
            return found
    raise MissingError(f"{table}: {row}: {key}")


def show(cell: Cell) -> str:
    """A cell in words: three significant digits, whole numbers whole, a dash for nothing.

    Means and SDs share their decimals: 0.0155 ± 0.0038, (1.31 ± 0.02)e-04, 1,650 ± 20.
    """
    if isinstance(cell, Mapping):
        return _mean_and_sd(cell["mean"], cell["sd"])
    if cell is None or isinstance(cell, str):
        return cell or NOTHING
    size = abs(cell)
    if isinstance(cell, int) or size == 0 or size >= 999.5:
        return f"{cell:,.0f}"
    return f"{cell:.2e}" if size < 1e-3 else f"{cell:#.3g}".rstrip(".")


def as_published(value: Published | Cell) -> str:
    """A number of the paper with the digits it has there, no more and no less."""
    cell = of_paper(value)
    if isinstance(cell, Mapping):
        mean, sd = cell["mean"], cell["sd"]
        if abs(mean) >= 1e-3:
            return f"{mean:,.10g} ± {sd:.10g}"
        exponent = math.floor(math.log10(abs(mean)))
        mean, sd = (round(one / 10.0**exponent, 6) for one in (mean, sd))
        return f"({mean:g} ± {sd:g})e{exponent:03d}"
    if cell is None or isinstance(cell, str):
        return show(cell)
    return f"{cell:.10g}" if 0 < abs(cell) < 1e-3 else f"{cell:,.10g}"


def _mean_and_sd(mean: float, sd: float) -> str:
    text = show(mean)
    if "e" in text:
        digits, exponent = text.split("e")
        return f"({digits} ± {sd / 10.0 ** int(exponent):.2f})e{exponent}"
    return f"{text} ± {sd:,.{len(text.partition('.')[2])}f}"
