"""The page of a reproduction in Markdown: docs/results/README.md, from results.json alone.

Its text is in page.toml. Each number comes from the results or from paper.toml. Tables that were
not built and figures that were not drawn are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gazediffusion.evaluation.report import (
    NOTHING,
    Block,
    Cell,
    Code,
    Picture,
    Sections,
    Table,
    as_text,
    to_markdown,
)
from gazediffusion.reproduction import paper
from gazediffusion.reproduction.rows import PARTS, Row, Rows, in_words
from gazediffusion.reproduction.verdicts import VERDICTS

Results = Mapping[str, Any]

TEXT = paper.read_data("page")
# Settings that a joint model, which is trained by EDM, does not have.
OF_DDPM = ("steps T", "beta_1, beta_T", "loss weighting", "eta")
FIGURES: dict[str, tuple[str, str]] = TEXT["figures"]


def _say(name: str, **values: Any) -> str:
    return in_words(TEXT[name], {**values, "protocol": paper.PROTOCOL})


def render(results: Results) -> str:
    """The whole page."""
    rows = Rows.from_json(results["rows"])
    sections: Sections = {
        "Summary": [*_summary(results, rows)],
        "Data and protocol": [*_data(results), *_pictures(results, "data")],
        "Claims of the paper": [*_claims(results)],
        "How to read the tables": [_say("how_to_read")] if results["tables"] else [],
    }
    for name, table in results["tables"].items():
        blocks = sections.setdefault(table["section"], [])
        blocks += [_table(table, rows.table(name)), _caption(table, rows.table(name))]
        blocks += _pictures(results, name)
    without_table = {place for place, _ in FIGURES.values()} - {"data", *results["tables"]}
    sections["More figures"] = [
        picture for place in sorted(without_table) for picture in _pictures(results, place)
    ]
    sections["Agreement with the paper, and its limits"] = [*_limits(results, rows)]
    sections["Training time"] = [*_time(rows)]
    return to_markdown(TEXT["title"], sections, dict.fromkeys(results.get("figures") or [], ()))


def _table(table: Results, rows: list[Row]) -> Table:
    """A table of the page: our number, the paper's, the floor and the ratio where there are any."""
    by_key = {(row.row, row.column): row for row in rows}
    labels = {row.row: row.label for row in rows}
    floor_below = table["floor_below"]
    parts = [part for part in PARTS if not (floor_below and part != "ours")]
    shown = [
        (column, part, title)
        for column, title in table["columns"].items()
        for part in parts
        if part == "ours" or any(getattr(row, part) is not None for row in _of(rows, column))
    ]
    alone = {column for column, _, _ in shown if sum(one[0] == column for one in shown) == 1}
    heads = [
        title if column in alone else f"{title}, {PARTS[part]}" for column, part, title in shown
    ]

    def cells(name: str) -> list[Cell]:
        found = [(by_key.get((name, column)), part) for column, part, _ in shown]
        return [None if row is None else _cell(row, part, floor_below) for row, part in found]

    lines: dict[str, list[Cell]] = {name: [label, *cells(name)] for name, label in labels.items()}
    foot = [lines.pop(name) for name in labels if "mean" in name.split()]
    if floor_below:
        floors = [next((row.floor for row in _of(rows, one)), None) for one, _, _ in shown]
        foot.append(["floor (training participants)", *floors])
    return Table(table["title"], [table["of"], *heads], list(lines.values()), foot)


def _of(rows: list[Row], column: str) -> list[Row]:
    return [row for row in rows if row.column == column]


def _cell(row: Row, part: str, floor_below: bool) -> Cell:
    """A part of a row; in a table with the floor below, the paper has rows of its own."""
    is_paper = floor_below and row.ours is None and row.paper is not None
    return row.cell("paper" if is_paper else part)


def _caption(table: Results, rows: list[Row]) -> str:
    """The table's note, what its rows say of themselves, numbers of windows and seeds."""
    counts = [f"{n:,}" for n in sorted({row.n for row in rows if row.n})]
    seeds = {tuple(row.seeds) for row in rows if len(row.seeds) > 1}
    listed = [", ".join(map(str, one)) for one in sorted(seeds)]
    return " ".join(
        [
            table["note"],
            *dict.fromkeys(row.note for row in rows if row.note and row.ours is not None),
            *([f"n = {' and '.join(counts)} windows."] if counts else []),
            *([f"Seeds: {'; '.join(listed)}."] if listed else []),
        ]
    )


def _pictures(results: Results, home: str) -> list[Block]:
    drawn = results.get("figures") or []
    return [
        Picture(name, caption)
        for name, (place, caption) in FIGURES.items()
        if place == home and name in drawn
    ]


def _summary(results: Results, rows: Rows) -> Iterator[Block]:
    about = results["about"]
    names = [one["name"] for one in results["claims"] if one["is_reversed"]]
    opening = [_say("summary"), *([_say("reversed", names="; ".join(names))] if names else [])]
    yield " ".join(opening)
    if about.get("tiny"):
        yield _say("tiny")
    if verdicts := [claim["verdict"] for claim in results["claims"]]:
        yield _say("verdicts", n=len(verdicts), counts=[verdicts.count(one) for one in VERDICTS])
    found = {label: rows.of.get(tuple(key)) for label, key in TEXT["headlines"].items()}
    lines: list[list[Cell]] = [
        [label, *(row.cell(part) for part in PARTS)] for label, row in found.items() if row
    ]
    if lines:
        yield Table("Headline numbers", ["number", *PARTS.values()], lines)
    if missing := about.get("not_yet_run"):
        yield _say("not_yet_run", missing=", ".join(missing))
    yield _say("command")
    yield Code(about["command"])


def _data(results: Results) -> Iterator[Block]:
    about = results["about"]
    task = about.get("task") or "not named"
    yield _say("recordings", about=about, data=", ".join(about["data"]), task=task)
    lines: list[list[Cell]] = []
    for name in ("position", "velocity"):
        numbers = {**about[name], "n_compared": about["n_compared"].get(name)}
        for key in ("n_train_windows", "n_held_out_windows"):
            numbers[f"{key}_paper"] = paper.PROTOCOL[key][name]
        lines.append([f"{name} model", *(numbers[key] for key in TEXT["counts"])])
    yield Table("Participants and windows", ["model", *TEXT["counts"].values()], lines)
    for name in ("position", "velocity"):
        seeds = ", ".join(map(str, about["seeds"][name]))
        yield _say("model", model=name, recipe=about["settings"][name], seeds=seeds)
    yield _say("reference", about=about)
    yield _hyperparameters(about["settings"])
    yield _say("recordings_of_the_paper")
    yield _say("comparable")


def _hyperparameters(settings: Results) -> Table:
    """The paper's table of hyper-parameters beside ours."""
    names = ["position", "velocity", *(["joint"] if settings.get("joint") else [])]
    recipes = {name: _said(settings[name]) for name in names}
    lines: list[list[Cell]] = [
        [
            label,
            *theirs,
            *(
                "EDM"
                if name == "joint" and label in OF_DDPM
                else in_words(template, {"recipe": of})
                for name, of in recipes.items()
            ),
        ]
        for label, (template, *theirs) in paper.HYPERPARAMETERS.items()
    ]
    heads = ["setting", "position, paper", "velocity, paper", *(f"{name}, ours" for name in names)]
    return Table("Hyper-parameters", heads, lines, is_text=True)


def _said(recipe: Results) -> dict[str, Any]:
    """Settings with lists and switches in words."""
    words: dict[str, Any] = {}
    for key, value in recipe.items():
        if isinstance(value, Mapping):
            words[key] = _said(value)
        elif isinstance(value, list | tuple):
            words[key] = ", ".join(map(str, value))
        else:
            words[key] = ("on" if value else "off") if isinstance(value, bool) else value
    return words


def _claims(results: Results) -> Iterator[Block]:
    heads = ["the paper", "here", "verdict", "share of replicates", "rule of the verdict"]
    lines = [
        [one["claim"], one["ours"], one["verdict"], _support(one), one["rule"]]
        for one in results["claims"]
    ]
    if lines:
        yield _say("undecided")
        yield Table("Verdicts, computed from the tables below", heads, lines, is_text=True)


def _support(claim: Results) -> str:
    """The share of replicates with each verdict, in words."""
    return "; ".join(f"{name} {share:.0%}" for name, share in claim["support"].items()) or NOTHING


def _limits(results: Results, rows: Rows) -> Iterator[Block]:
    about = results["about"]
    for verdict, title in TEXT["agreement"].items():
        found = [one["name"] for one in results["claims"] if one["verdict"] == verdict]
        if found:
            yield f"{title} ({len(found)}): {', '.join(found)}."
    yield _say("task", task=about.get("task") or "not named")
    row = rows.of.get(("features", "mean of nine", "js"))
    if row and None not in (row.ours, row.floor, row.paper):
        is_above = (row.floor or 0.0) > (row.paper or 0.0)
        yield _say("floor", row=row, side=TEXT["above" if is_above else "below"])
    if step := about["median_step"]:
        smallest = math.sqrt(about["settings"]["position"]["beta_first"])
        yield _say("noise", smallest=smallest, step=step, times=smallest / step)
    if about["choices"]["js_bins"]:
        yield _say("choices", about=about, choices=about["choices"])


def _time(rows: Rows) -> Iterator[Block]:
    """Wall time of training by device."""
    runs: dict[str, list[str]] = {}
    for run in rows.names("training", "device"):
        runs.setdefault(str(rows.find("training", run, "device").ours), []).append(run)
    timed = rows.names("training", "minutes")
    for device, names in runs.items():
        minutes = [rows.number("training", run, "minutes") for run in names if run in timed]
        hours = "hours" if device == "cpu" else "GPU hours"
        n_missing = len(names) - len(minutes)
        yield (
            f"{device}: {as_text(sum(minutes) / 60.0)} {hours} for {len(minutes)} "
            f"{'run' if len(minutes) == 1 else 'runs'}"
            + (f"; not recorded for {n_missing}." if n_missing else ".")
        )
