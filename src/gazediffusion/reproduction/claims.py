"""Claims: what the paper says, and whether it holds here.

Each claim reads rows of the tidy table by key. One whose rows are not there is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gazediffusion.reproduction import abstract_claims, section_claims
from gazediffusion.reproduction.rows import MissingError, Row, Rows

CLAIMS = {**abstract_claims.CLAIMS, **section_claims.CLAIMS}


def evaluate_claims(rows: Mapping[tuple[str, str, str], Row]) -> list[dict[str, Any]]:
    """Every claim whose rows are there.

    name; claim: what the paper says; ours: our numbers in a sentence; rule and verdict; numbers:
    the rows that were read, by key.
    """
    found = []
    for name, function in CLAIMS.items():
        read = Rows(rows)
        try:
            texts = dict(zip(("claim", "ours", "rule", "verdict"), function(read), strict=True))
        except MissingError:
            continue
        numbers = [
            {"table": table, "row": row, "column": column, "ours": one.ours}
            for (table, row, column), one in read.read.items()
        ]
        found.append({"name": name, **texts, "numbers": numbers})
    return found
