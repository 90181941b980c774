"""The deep two-sample test in the report: AUCs, and where the network looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gazediffusion.document import Block, Cell, Picture, Table, as_text
from gazediffusion.evaluation.deep_result import DeepTest

Results = Mapping[str, Any]

FLOOR = "two groups of participants (floor)"
TITLE = "AUC of the deep two-sample test"
WITHOUT = (
    "AUC of the same networks when a frequency band or an event is taken out of the tested windows "
    "of both sides. It falls where the network needs what is taken out."
)
SALIENCY = (
    "Size of the gradient of the network's output with respect to its input, relative to the mean "
    "over the window: above 1 the network responds more to these samples than to others."
)


def deep_sets(test: Results) -> dict[str, DeepTest]:
    """The floor, the planted defects and the synthetic sets, by name."""
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
    yield from _nested("AUC by task", sets, "by_task")
    if any(one.without for one in sets.values()):
        yield WITHOUT
        yield from _nested("AUC without a band or an event", sets, "without")
    if any(one.saliency for one in sets.values()):
        yield SALIENCY
        yield _saliency(sets)
    settings = test["settings"]
    n_train, n_test = (
        ", ".join(f"{name} {getattr(one, key):,}" for name, one in sets.items())
        for key in ("n_train", "n_test")
    )
    yield (
        f"Trials: {settings['n_seeds']}, each of another seed and fold of participants; at most "
        f"{settings['n_steps']} steps of {settings['batch_size']} snippets. Windows of a side in "
        f"training: {n_train}; in test: {n_test}. Jitter: SD {as_text(settings['jitter'])} "
        "normalized units."
    )


def _nested(title: str, sets: Mapping[str, DeepTest], key: str) -> Iterator[Table]:
    """A table for each test: a row for each set, a column for each task, band or event."""
    tests = dict.fromkeys(test for one in sets.values() for test in getattr(one, key))
    for test in tests:
        of = {name: getattr(one, key).get(test, {}) for name, one in sets.items()}
        columns = list(dict.fromkeys(column for row in of.values() for column in row))
        rows: list[list[Cell]] = []
        for name, row in of.items():
            whole = [sets[name].auc.get(test)] if key == "without" else []
            rows.append([name, *whole, *map(row.get, columns)])
        whole_column = ["nothing"] if key == "without" else []
        if columns:
            yield Table(f"{title}: {test}", ["set", *whole_column, *columns], rows)


def _saliency(sets: Mapping[str, DeepTest]) -> Table:
    rows: list[list[Cell]] = []
    events = dict.fromkeys(
        key for one in sets.values() for of in one.saliency.values() for key in of if key != "time"
    )
    for name, one in sets.items():
        for test, of in one.saliency.items():
            seconds = " ".join(as_text(value) for value in of["time"])
            rows.append([name, test, *map(of.get, events), seconds])
    return Table("Saliency", ["set", "test", *events, "by second of the window"], rows)
