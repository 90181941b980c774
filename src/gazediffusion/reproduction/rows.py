"""The tidy table of results: one row for each number, beside the paper's number and the floor.

A row is found by its key (table, row, column). results.json stores the rows as they are; the page
and the claims need nothing else.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.evaluation.report import Cell, as_text
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.paper import Published

# The parts of a row that a table shows, and their words there.
PARTS = {
    "ours": "ours",
    "paper": "paper",
    "floor": "floor",
    "ratio": "ratio",
    "joint": "joint",
    "joint_ratio": "joint ratio",
}
Draws = NDArray[np.float64]


class MissingError(LookupError):
    """A number that is not among the results."""


@dataclass(frozen=True)
class Row:
    """One number of one table.

    table, row, column: its key. label: the row in words.
    ours: a number, a word, or None. It is the mean over `seeds` where there are several, with
        their SD (ddof = 1). interval: 95 % bootstrap interval over participants, and over seeds
        where there are several.
    paper, paper_sd: the published number. floor: the same distance between the training
        participants and the held-out participants. ratio: ours over the floor, as `evaluate`
        defines it (JS of both in the floor's bins), with its interval.
    joint, joint_ratio: the same of the joint model. n: windows of each set.
    note: what a reader must know of the number, or why there is none.
    draws, ratio_draws: bootstrap replicates of ours and of the ratio; not stored in results.json.
    """

    row: str
    column: str
    label: str = ""
    ours: float | str | None = None
    sd: float | None = None
    interval: Sequence[float | None] | None = None
    paper: float | None = None
    paper_sd: float | None = None
    floor: float | None = None
    ratio: float | None = None
    ratio_sd: float | None = None
    ratio_interval: Sequence[float] | None = None
    joint: float | None = None
    joint_ratio: float | None = None
    unit: str = ""
    n: int | None = None
    seeds: Sequence[int] = ()
    note: str = ""
    table: str = ""
    draws: Draws | None = field(default=None, repr=False, compare=False)
    ratio_draws: Draws | None = field(default=None, repr=False, compare=False)

    @property
    def number(self) -> float:
        """Our number; MissingError if there is none."""
        if self.ours is None or isinstance(self.ours, str):
            raise MissingError(f"{self.table}: {self.row}: {self.column}")
        return self.ours

    def cell(self, part: str) -> Cell:
        """A part of `PARTS` as a document shows it; the paper's numbers keep their digits."""
        if part == "paper":
            return None if self.paper is None else as_published(self.paper, self.paper_sd)
        if part in ("floor", "joint", "joint_ratio"):
            value: float | None = getattr(self, part)
            return value
        if part == "ratio":
            return Estimate(self.ratio, sd=self.ratio_sd)
        if part in ("interval", "ratio_interval"):
            limits = getattr(self, part)
            return None if limits is None else "[{}, {}]".format(*map(as_text, limits))
        if self.ours is None or isinstance(self.ours, str):
            return self.ours or self.note or None
        return Estimate(self.ours, None if self.sd is not None else self.interval, sd=self.sd)

    def text(self, part: str = "ours") -> str:
        """The same in words, without the interval."""
        cell = self.cell(part)
        return as_text(Estimate(cell.value, sd=cell.sd) if isinstance(cell, Estimate) else cell)

    def beside_paper(self, table: str) -> Row:
        """This row in its table, with the number that the paper gives for its key."""
        theirs = paper.find(table, self.row, self.column)
        if theirs is None:
            return replace(self, table=table)
        return replace(self, table=table, paper=theirs.mean, paper_sd=theirs.sd)

    def drawn(self, number: int) -> Row:
        """This row with one bootstrap replicate in place of its numbers."""
        if self.draws is None:
            return self
        ratio = self.ratio if self.ratio_draws is None else float(self.ratio_draws[number])
        return replace(self, ours=float(self.draws[number]), ratio=ratio)

    def to_json(self) -> dict[str, Any]:
        """The fields that say something, as plain values."""
        fields = asdict(replace(self, draws=None, ratio_draws=None))
        return {key: value for key, value in fields.items() if value not in (None, "", (), [])}


@dataclass
class Rows:
    """Rows by key. `read` are those that were asked for, in order.

    number_of_draw: a bootstrap replicate that stands for the numbers; None for the numbers.
    """

    of: Mapping[tuple[str, str, str], Row]
    read: dict[tuple[str, str, str], Row] = field(default_factory=dict)
    number_of_draw: int | None = None

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> Rows:
        """Read what `Row.to_json` wrote."""
        found = [Row(**row) for row in rows]
        return cls({(row.table, row.row, row.column): row for row in found})

    def find(self, table: str, row: str, column: str) -> Row:
        """The row of a key; MissingError if there is none or no number of ours in it."""
        found = self.of.get((table, row, column))
        if found is None or found.ours is None:
            raise MissingError(f"{table}: {row}: {column}")
        self.read[table, row, column] = found
        return found if self.number_of_draw is None else found.drawn(self.number_of_draw)

    def number(self, table: str, row: str, column: str) -> float:
        """Our number of a key."""
        return self.find(table, row, column).number

    def names(self, table: str, column: str) -> list[str]:
        """The names of a table's rows that have a number or a word of ours in a column."""
        return [
            row.row
            for row in self.of.values()
            if (row.table, row.column) == (table, column) and row.ours is not None
        ]

    def table(self, name: str) -> list[Row]:
        """All rows of a table."""
        return [row for row in self.of.values() if row.table == name]


class _Words(string.Formatter):
    """Numbers and rows as the tables show them, unless a template names another format."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Row):
            return value.text(format_spec or "ours")
        if format_spec == "paper":
            return as_published(value)
        return format(value, format_spec) if format_spec else as_text(value)


def in_words(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values: {row:floor} is a part of a row, {x} a number as in a table."""
    return _Words().vformat(template, (), values)


def as_published(mean: float | Published, sd: float | None = None) -> str:
    """A number of the paper with the digits it has there, no more and no less."""
    if isinstance(mean, Published):
        return as_published(mean.mean, mean.sd)
    if sd is None:
        return f"{mean:.10g}" if 0 < abs(mean) < 1e-3 else f"{mean:,.10g}"
    if abs(mean) >= 1e-3:
        return f"{mean:,.10g} ± {sd:.10g}"
    exponent = math.floor(math.log10(abs(mean)))
    digits, spread = (round(one / 10.0**exponent, 6) for one in (mean, sd))
    return f"({digits:g} ± {spread:g})e{exponent}"


def mean_and_sd(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and SD (ddof = 1) over seeds: no SD of one, nothing if one lacks."""
    found = list(values)
    if not found or any(one is None for one in found):
        return None, None
    numbers = np.array(found, dtype=np.float64)
    if len(numbers) == 1:
        return float(numbers[0]), None
    return float(numbers.mean()), float(numbers.std(ddof=1))


def centred(draws: Draws, value: float) -> Draws:
    """Replicates moved to have the value as their median, as intervals of `evaluate` are.

    Drawing with replacement makes histograms rougher and distances larger.
    """
    return np.asarray(draws - np.median(draws) + value)


def interval_of(draws: Draws, lowest: float | None = None) -> list[float]:
    """The central 95 % of replicates; not below `lowest`."""
    low, high = np.percentile(draws, [2.5, 97.5]).tolist()
    return [low if lowest is None else max(low, lowest), high]


def over(value: float | None, floor: float | None) -> float | None:
    """value / floor; None where either is nothing or the floor is zero."""
    return None if value is None or not floor else value / floor


def percent_above(value: float | None, other: float | None) -> float | None:
    """By how many percent a value is above another."""
    ratio = over(value, other)
    return None if ratio is None else 100.0 * (ratio - 1.0)
