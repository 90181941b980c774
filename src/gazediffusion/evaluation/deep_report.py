"""The deep two-sample test in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gazediffusion.document import Block, Picture, Table, as_text
from gazediffusion.evaluation.deep_test import DeepTest

Results = Mapping[str, Any]

FLOOR = "two groups of participants (floor)"
TITLE = "AUC of the deep two-sample test"


def deep_sets(test: Results) -> dict[str, DeepTest]:
    """The floor, the planted defect and the synthetic sets, by name."""
    rows = {FLOOR: test["floor"]} if test.get("floor") else {}
    rows |= {**test.get("planted", {}), **test.get("synthetic", {})}
    return {name: DeepTest.of(row) for name, row in rows.items()}


def auc_table(sets: Mapping[str, DeepTest], title: str = TITLE) -> Table:
    """A row for each set, a column for each test."""
    tests = list(dict.fromkeys(test for one in sets.values() for test in one.auc))
    rows = [[name, *map(one.auc.get, tests)] for name, one in sets.items()]
    return Table(title, ["set", *tests], rows)


def deep_text(test: Results) -> list[str]:
    """The AUCs as lines of text."""
    table = auc_table(deep_sets(test))
    lines = [list(table.columns), *([as_text(cell) for cell in row] for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        f"{table.title}, 0.5 is chance:",
        *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines),
    ]


def deep_blocks(test: Results) -> Iterator[Block]:
    """Tables and the figure of the report."""
    sets = deep_sets(test)
    yield auc_table(sets)
    yield Picture("deep", "AUC with 95 % intervals over participants and seeds; 0.5 is chance.")
    for cell in dict.fromkeys(cell for one in sets.values() for cell in one.by_task):
        of = {name: one.by_task.get(cell, {}) for name, one in sets.items()}
        if tasks := list(dict.fromkeys(task for row in of.values() for task in row)):
            rows = [[name, *map(row.get, tasks)] for name, row in of.items()]
            yield Table(f"AUC by task: {cell}", ["set", *tasks], rows)
    settings = test["settings"]
    n_train, n_test = (
        ", ".join(f"{name} {getattr(one, key):,}" for name, one in sets.items())
        for key in ("n_train", "n_test")
    )
    yield (
        f"Trials: {settings['n_seeds']}, each of another seed and fold of participants; at most "
        f"{settings['n_steps']} steps of {settings['batch_size']} snippets. Windows of a side in "
        f"training: {n_train}; in test: {n_test}."
    )
