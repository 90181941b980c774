"""Claims: what the paper says, and whether it holds here.

claims.toml has each claim's sentences, verdicts.py its rule. Both read rows of the tidy table by
key. A claim whose rows are not there is left out. The rule is applied to the numbers and to every
bootstrap replicate of them; a verdict that fewer than `SUPPORT` of the replicates share is
"undecided".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from gazediffusion.reproduction import paper
from gazediffusion.reproduction.rows import MissingError, Row, Rows, in_words
from gazediffusion.reproduction.verdicts import NEAR, RULES, UNDECIDED, Finding

# The share of bootstrap replicates that must have the verdict of the numbers.
SUPPORT = 0.95

_DATA = paper.read_data("claims")
_EVENT = _DATA.pop("event")
CLAIMS: dict[str, dict[str, Any]] = {
    name: {**_EVENT, **claim} if claim.pop("like", None) else claim for name, claim in _DATA.items()
}


def evaluate_claims(rows: Mapping[tuple[str, str, str], Row]) -> list[dict[str, Any]]:
    """Every claim whose rows are there.

    name; claim: what the paper says; ours: our numbers in a sentence; rule and verdict; support:
    the share of bootstrap replicates with each verdict; numbers: the rows that were read, by key.
    is_reversed: whether the distances agree with the paper and their ratios to the floor do not.
    """
    found = []
    for name, claim in CLAIMS.items():
        read = Rows(rows)
        try:
            (verdict, values), listed = _apply(name, claim, read)
        except MissingError:
            continue
        support = _support(name, claim, read)
        if support and support.get(verdict, 0.0) < SUPPORT:
            verdict = UNDECIDED
        words = {**listed, **values, "text": paper.TEXT, "protocol": paper.PROTOCOL, "near": NEAR}
        said = [in_words(claim[key], words) for key in ("paper", "ours", "rule")]
        numbers = [
            {"table": table, "row": row, "column": column, "ours": one.ours}
            for (table, row, column), one in read.read.items()
        ]
        texts = dict(zip(("claim", "ours", "rule"), said, strict=True))
        found.append(
            {
                "name": name,
                **texts,
                "verdict": verdict,
                "support": support,
                "is_reversed": bool(values.get("is_reversed")) and verdict != UNDECIDED,
                "numbers": numbers,
            }
        )
    return found


def _apply(name: str, claim: Mapping[str, Any], rows: Rows) -> tuple[Finding, dict[str, Row]]:
    """The finding of a claim's rule, and the rows that the claim lists."""
    listed = {word: rows.find(*key) for word, key in claim.get("rows", {}).items()}
    return RULES[name](rows, **listed), listed


def _support(name: str, claim: Mapping[str, Any], read: Rows) -> dict[str, float]:
    """The share of bootstrap replicates with each verdict; none where no row has replicates."""
    lengths = [len(row.draws) for row in read.read.values() if row.draws is not None]
    n = min(lengths, default=0)
    found = Counter(
        _apply(name, claim, Rows(read.of, number_of_draw=number))[0][0] for number in range(n)
    )
    return {verdict: count / n for verdict, count in found.most_common()}
