"""The page of a reproduction in Markdown, from results.json alone.

Its text is the template page.md.jinja. Each number comes from the results or from paper.toml.
Tables that were not built and figures that were not drawn are left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from gazediffusion.evaluation.report import NOTHING, as_text
from gazediffusion.reproduction.tables import (
    HYPERPARAMETERS,
    PARTS,
    PROTOCOL,
    Row,
    Rows,
    in_words,
    read_data,
)

Results = Mapping[str, Any]

TEXT = read_data("page")
FIGURES: dict[str, tuple[str, str]] = TEXT["figures"]
# Settings that a joint model, which is trained by EDM, does not have.
OF_DDPM = ("steps T", "beta_1, beta_T", "loss weighting", "eta")


def render(results: Results) -> str:
    """The whole page."""
    about, claims = results["about"], results["claims"]
    rows, drawn = Rows.from_json(results["rows"]), results.get("figures") or []

    def pictures(place: str) -> str:
        shown = [(name, one[1]) for name, one in FIGURES.items() if one[0] == place]
        texts = [(name, markdown(caption)) for name, caption in shown if name in drawn]
        return "\n\n".join(f"![{text}](figures/{name}.png)\n\n*{text}*" for name, text in texts)

    environment = Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, str) else as_text(value),
    )
    environment.filters["md"] = markdown
    template = (files(__package__) / "page.md.jinja").read_text(encoding="utf-8")
    nine = rows.of.get(("features", "mean of nine", "js"))
    places = {place for place, _ in FIGURES.values()} - {"data", *results["tables"]}
    text = environment.from_string(template).render(
        text=TEXT,
        about=about,
        task=about.get("task") or "not named",
        protocol=PROTOCOL,
        claims=claims,
        claim_rows=[_claim(one) for one in claims],
        counts=Counter(one["verdict"] for one in claims),
        reversed=[one["name"] for one in claims if one["is_reversed"]],
        headlines=_headlines(rows),
        part_words=list(PARTS.values()),
        sizes=[_sizes(about, name) for name in ("position", "velocity")],
        **_hyperparameters(about["settings"]),
        tables=results["tables"],
        sections=_sections(results, rows),
        homeless=sorted(place for place in places if pictures(place)),
        pictures=pictures,
        table=table,
        nine=nine if nine and None not in (nine.ours, nine.floor, nine.paper) else None,
        smallest=math.sqrt(about["settings"]["position"]["beta_first"]),
        times=list(_times(rows)),
    )
    blocks = re.split(r"\n{2,}", text.strip())
    is_kept = ("|", " ", "**")  # tables, commands
    lines = [one if one.startswith(is_kept) else " ".join(one.split()) for one in blocks]
    return "\n\n".join(lines) + "\n"


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\`*|]|\](?=[(:\[]))", r"\\\1", escape(" ".join(text.split()), quote=False))


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], is_text: bool = False
) -> str:
    """A table in Markdown, below its title; sentences are aligned to the left."""
    lines = [" | ".join(markdown(as_text(cell)) for cell in row) for row in (columns, *rows)]
    lines.insert(1, "|".join(["---", *["---" if is_text else "---:"] * (len(columns) - 1)]))
    return "\n".join([f"**{markdown(title)}**\n", *(f"| {line} |" for line in lines)])


def _sections(results: Results, rows: Rows) -> dict[str, dict[str, dict[str, str]]]:
    """The tables of each section, and their captions, by name."""
    sections: dict[str, dict[str, dict[str, str]]] = {}
    for name, one in results["tables"].items():
        of = rows.table(name)
        shown = {"table": _table(one, of), "caption": markdown(_caption(one, of))}
        sections.setdefault(one["section"], {})[name] = shown
    return sections


def _table(described: Results, rows: list[Row]) -> str:
    """A table of the page: our number, the paper's, the floor and the ratio where there are any."""
    by_key = {(row.row, row.column): row for row in rows}
    labels = {row.row: row.label for row in rows}
    floor_below = described["floor_below"]

    def of(column: str) -> list[Row]:
        return [row for row in rows if row.column == column]

    shown = [
        (column, part, title)
        for column, title in described["columns"].items()
        for part in (["ours"] if floor_below else PARTS)
        if part == "ours" or any(getattr(row, part) is not None for row in of(column))
    ]
    n_parts = Counter(column for column, _, _ in shown)
    heads = [
        title if n_parts[column] == 1 else f"{title}, {PARTS[part]}"
        for column, part, title in shown
    ]

    def cell(row: Row | None, part: str) -> str:
        if row is None:
            return NOTHING
        # In a table with the floor below, the paper has rows of its own.
        is_paper = floor_below and row.ours is None and row.paper is not None
        return row.text("paper" if is_paper else part, with_interval=True)

    lines: dict[str, list[str]] = {
        name: [label, *(cell(by_key.get((name, column)), part) for column, part, _ in shown)]
        for name, label in labels.items()
    }
    foot = [lines.pop(name) for name in labels if "mean" in name.split()]
    if floor_below:
        floors = [next((row.floor for row in of(one)), None) for one, _, _ in shown]
        foot.append(["floor (training participants)", *map(as_text, floors)])
    return table(described["title"], [described["of"], *heads], [*lines.values(), *foot])


def _caption(described: Results, rows: list[Row]) -> str:
    """The table's note, what its rows say of themselves, numbers of windows and seeds."""
    counts = [f"{n:,}" for n in sorted({row.n for row in rows if row.n})]
    seeds = {tuple(row.seeds) for row in rows if len(row.seeds) > 1}
    listed = [", ".join(map(str, one)) for one in sorted(seeds)]
    return " ".join(
        [
            described["note"],
            *dict.fromkeys(row.note for row in rows if row.note and row.ours is not None),
            *([f"n = {' and '.join(counts)} windows."] if counts else []),
            *([f"Seeds: {'; '.join(listed)}."] if listed else []),
        ]
    )


def _headlines(rows: Rows) -> list[list[str]]:
    found = {label: rows.of.get(tuple(key)) for label, key in TEXT["headlines"].items()}
    return [
        [label, *(row.text(part, with_interval=True) for part in PARTS)]
        for label, row in found.items()
        if row
    ]


def _sizes(about: Results, name: str) -> list[Any]:
    """Participants and windows of a model, ours and the paper's."""
    numbers = {**about[name], "n_compared": about["n_compared"].get(name)}
    for key in ("n_train_windows", "n_held_out_windows"):
        numbers[f"{key}_paper"] = PROTOCOL[key][name]
    return [f"{name} model", *(numbers[key] for key in TEXT["counts"])]


def _hyperparameters(settings: Results) -> dict[str, Any]:
    """The paper's table of hyper-parameters beside ours."""
    names = ["position", "velocity", *(["joint"] if settings.get("joint") else [])]
    recipes = {name: _said(settings[name]) for name in names}
    lines = []
    for label, (template, *theirs) in HYPERPARAMETERS.items():
        ours = [
            "EDM" if name == "joint" and label in OF_DDPM else in_words(template, {"recipe": of})
            for name, of in recipes.items()
        ]
        lines.append([label, *theirs, *ours])
    heads = ["setting", "position, paper", "velocity, paper", *(f"{name}, ours" for name in names)]
    return {"hyperparameter_heads": heads, "hyperparameters": lines}


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


def _claim(claim: Results) -> list[str]:
    """A verdict, and the share of replicates with each verdict."""
    support = "; ".join(f"{name} {share:.0%}" for name, share in claim["support"].items())
    return [claim["claim"], claim["ours"], claim["verdict"], support, claim["rule"]]


def _times(rows: Rows) -> Iterator[dict[str, Any]]:
    """Wall time of training by device."""
    runs: dict[str, list[str]] = {}
    for run in rows.names("training", "device"):
        runs.setdefault(str(rows.find("training", run, "device").ours), []).append(run)
    timed = rows.names("training", "minutes")
    for device, names in runs.items():
        minutes = [rows.number("training", run, "minutes") for run in names if run in timed]
        n = {"n": len(minutes), "n_missing": len(names) - len(minutes)}
        yield {"device": device, "hours": sum(minutes) / 60.0, **n}
