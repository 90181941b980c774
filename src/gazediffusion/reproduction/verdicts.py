"""Verdicts on claims: the rules that several claims share.

Numbers on other recordings cannot be equal. A rule therefore asks for the paper's own bound or,
where participants differ by more among themselves, for a ratio to the floor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gazediffusion.document import as_text
from gazediffusion.evaluation.quantities import EVENTS
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.rows import MissingError, Row, Rows

Verdict = Literal["holds", "holds in part", "does not hold"]
HOLDS: Verdict = "holds"
IN_PART: Verdict = "holds in part"
FAILS: Verdict = "does not hold"
VERDICTS = (HOLDS, IN_PART, FAILS)

# The largest ratio to the floor that still counts as near, where the paper's own bound is missed.
NEAR = 2.0

# (what the paper says, our numbers, the rule of the verdict, the verdict)
Finding = tuple[str, str, str, Verdict]


def verdict(holds: bool, in_part: bool) -> Verdict:
    """The verdict of a rule with two conditions, the second weaker."""
    return HOLDS if holds else IN_PART if in_part else FAILS


def verdict_of(conditions: Sequence[bool]) -> Verdict:
    """Holds if all conditions are met, in part if some are."""
    return verdict(all(conditions), any(conditions))


def near(row: Row, bound: float) -> Verdict:
    """Holds up to a bound or up to the floor, in part up to `NEAR` times the floor."""
    ratio = float("inf") if row.ratio is None else row.ratio
    return verdict(row.number <= bound or ratio <= 1.0, ratio <= NEAR)


def highest(rows: Rows, table: str, names: Sequence[str], column: str) -> Row:
    """The row with the highest of our numbers."""
    return max((rows.find(table, name, column) for name in names), key=lambda row: row.number)


def times_floor(row: Row) -> str:
    """Our number and its ratio to the floor in words."""
    return f"{row.text()}, {as_text(row.ratio)} times the floor of {row.text('floor')}."


def event_within(rows: Rows, name: str) -> Finding:
    """A mean that comes within so many percent of real, as the paper rounds it."""
    above, bound = rows.find("events", name, "above_real"), paper.EVENT_BOUNDS_PERCENT[name]
    generated, real = (rows.find("events", name, one) for one in ("generated", "real"))
    if above.floor is None:
        raise MissingError(f"events: {name}: floor")
    return (
        f"{EVENTS[name][0].capitalize()} within {bound:g} % of real data "
        f"({generated.text('paper')} against {real.text('paper')}).",
        f"{generated.text()} against {real.text()}: {above.number:+.1f} %; the training "
        f"participants: {above.floor:+.1f} %.",
        f"Holds within {bound:g} % (rounded to whole percent); in part if nearer to the held-out "
        "participants than the training participants are.",
        verdict(round(abs(above.number)) <= bound, abs(above.number) <= abs(above.floor)),
    )
