"""Claims: what the paper says, and whether it holds here.

claims.toml has each claim's sentences, verdicts.py its rule. Both read rows of the tidy table by
key. A claim whose rows are not there is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gazediffusion.reproduction import paper
from gazediffusion.reproduction.rows import MissingError, Row, Rows, in_words
from gazediffusion.reproduction.verdicts import NEAR, RULES

_DATA = paper.read_data("claims")
_EVENT = _DATA.pop("event")
CLAIMS: dict[str, dict[str, Any]] = {
    name: {**_EVENT, **claim} if claim.pop("like", None) else claim for name, claim in _DATA.items()
}


def evaluate_claims(rows: Mapping[tuple[str, str, str], Row]) -> list[dict[str, Any]]:
    """Every claim whose rows are there.

    name; claim: what the paper says; ours: our numbers in a sentence; rule and verdict; numbers:
    the rows that were read, by key.
    """
    found = []
    for name, claim in CLAIMS.items():
        read = Rows(rows)
        try:
            listed = {word: read.find(*key) for word, key in claim.get("rows", {}).items()}
            verdict, values = RULES[name](read, **listed)
        except MissingError:
            continue
        words = {**listed, **values, "text": paper.TEXT, "protocol": paper.PROTOCOL, "near": NEAR}
        said = [in_words(claim[key], words) for key in ("paper", "ours", "rule")]
        numbers = [
            {"table": table, "row": row, "column": column, "ours": one.ours}
            for (table, row, column), one in read.read.items()
        ]
        texts = dict(zip(("claim", "ours", "rule"), said, strict=True))
        found.append({"name": name, **texts, "verdict": verdict, "numbers": numbers})
    return found
