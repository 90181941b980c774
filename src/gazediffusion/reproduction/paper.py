"""The paper's published numbers, from paper.toml, under the keys of the same numbers of ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Published:
    """A number of the paper, with its SD over three seeds where one is given."""

    mean: float
    sd: float | None = None

    @classmethod
    def of(cls, value: float | list[float]) -> Published:
        """A number, or a pair of a mean and its SD."""
        return cls(*value) if isinstance(value, list) else cls(value)


Table = dict[str, dict[str, Published]]


def read_data(name: str) -> dict[str, Any]:
    """A TOML file of this package."""
    return tomllib.loads((files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


_DATA = read_data("paper")
# Numbers of participants, windows and parameters; numbers that the text names.
PROTOCOL: dict[str, Any] = _DATA["protocol"]
TEXT: dict[str, Any] = _DATA["text"]
# label -> template of our value, the paper's for position and for velocity
HYPERPARAMETERS: dict[str, list[str]] = _DATA["hyperparameters"]
# table -> row -> column -> number
NUMBERS: dict[str, Table] = {
    name: {
        row: {column: Published.of(value) for column, value in cells.items()}
        for row, cells in rows.items()
    }
    for name, rows in _DATA["tables"].items()
}
for _row in NUMBERS["events"].values():
    _above = 100.0 * (_row["generated"].mean / _row["real"].mean - 1.0)
    _row["above_real"] = Published(float(f"{_above:.3g}"))
NUMBERS["event-distances"] = NUMBERS["events"]


def find(table: str, row: str, column: str) -> Published | None:
    """The paper's number of a key, if it gives one."""
    return NUMBERS.get(table, {}).get(row, {}).get(column)
