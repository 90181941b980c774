"""The report of an evaluation: results.json, report.md, report.html and the figures, whole or not.

The results are laid out once as sections of text, tables and pictures; Markdown and HTML only
write that layout down, so they cannot disagree. The page is one file that asks for nothing from
outside (its content security policy forbids it): styles, script and figures are inside it.
Every number that compares real with synthetic stands beside its floor.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from gazediffusion.files import written_whole
from gazediffusion.plotting.evaluation import Gaze, Results, closest_pairs, draw_all, set_styles

TITLE = "How near synthetic gaze comes to people"
TIMES, NOTHING = "\u00d7", "\u2013"
PAIRWISE = "One number for a pair of sets"
DISTANCES = {"js": "JS divergence (nats)", "ks": "KS statistic", "w1": "Wasserstein-1 distance"}
FAMILIES = {
    "features": ("Features of windows", "The paper's nine kinematic features."),
    "events": ("Events", "Fixations and saccades by I-VT in normalized units, as in the paper."),
    "directions": ("Directions", "The four-metric framework: speed, direction, turning angle."),
    "velocity": ("Velocity", "The paper's velocity protocol."),
    "temporal": ("Temporal structure", "Delta rho1, D_PSD and the autocorrelation of speed."),
    "degrees": ("Degrees of visual angle", "Events by pymovements' detectors; main sequence."),
}
TESTS = {
    "c2st": "Classifier two-sample test",
    "memorisation": "Memorisation",
    "coverage": "Coverage and diversity",
    "tstr": "Train on synthetic, test on real",
    "fgd": "Frechet gaze distance",
}
HOW_TO_READ = (
    "Lower is better. Floor: training people against held-out people. Halves: halves of the same "
    f"people. Each set: its distance to held-out people, {TIMES} how many times the floor that is, "
    "[its bootstrap interval over participants]."
)
# Nothing may be loaded, from anywhere, but what stands in the page itself.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


@dataclass(frozen=True)
class Estimate:
    """A number with what it is worth: its interval and its ratio to the floor, where known."""

    value: float | None
    interval: Sequence[float | None] | None = None
    ratio: float | None = None


Cell = str | float | Estimate | None


@dataclass(frozen=True)
class Table:
    """Rows under columns; `foot` rows (means, floors) stay below when the others are sorted."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Sequence[Cell]] = ()


@dataclass(frozen=True)
class Picture:
    """A figure by its name in the figures folder."""

    name: str
    caption: str


@dataclass(frozen=True)
class Bars:
    """Overall ratios to the floor, name -> (ratio, colour)."""

    ratios: Mapping[str, tuple[float | None, str]]


Block = str | Table | Picture | Bars
Sections = dict[str, list[Block]]


def write_report(
    results: Results, folder: Path, gallery: Mapping[str, Gaze] | None = None
) -> list[Path]:
    """Write results.json, report.md, report.html and figures/ into a new folder.

    Keys keep their order in results.json: the order of the synthetic sets is the user's.
    gallery: windows (window, 2, time) to show, by name of the set.
    """
    folder = Path(folder)
    plain: Results = _plain(results)
    with written_whole(folder) as temporary:
        temporary.mkdir()
        figures = draw_all(plain, temporary / "figures", gallery)
        sections = lay_out(plain)
        texts = {
            "report.html": to_html(sections, figures),
            "report.md": to_markdown(sections, figures),
            "results.json": json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False),
        }
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")
    pictures = [folder / "figures" / path.name for both in figures.values() for path in both]
    return [*(folder / name for name in texts), *pictures]


def _plain(value: Any) -> Any:
    """What JSON can hold: arrays as lists, and null for NaN and infinity, which it lacks."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lay_out(results: Results) -> Sections:
    """The report as title -> blocks, in reading order."""
    sections = {"Ratio to the floor": list(_headline(results))}
    for name, (title, about) in FAMILIES.items():
        sections[title] = list(_family(results, name, about))
    for name, test in (results.get("tests") or {}).items():
        sections[TESTS.get(name, name)] = list(_test(name, test))
    sections["Differences between generators"] = list(_differences(results))
    sections["Real beside synthetic"] = [Picture("gallery", "The first windows of each set.")]
    sections["How this was made"] = list(_about(results))
    return sections


def _headline(results: Results) -> Iterator[Block]:
    ratios, names = results["ratios"], list(results["sets"]["synthetic"])
    yield str(ratios.get("definition", ""))
    overall = ratios.get("overall") or {}
    if not any(overall.values()):
        yield f"Not computable: {ratios.get('not_computable') or 'there is no floor'}"
        return
    yield Bars({name: (overall.get(name), set_styles(results)[name].colour) for name in names})
    rows = [[family, *map(of.get, names)] for family, of in ratios.get("families", {}).items()]
    foot = [["overall", *map(overall.get, names)]]
    yield Table("Ratio to the floor by family (the floor is 1)", ["family", *names], rows, foot)
    yield Picture("floor_ratios", "Ratio to the floor by family and set; the line is the floor.")


def _family(results: Results, family: str, about: str) -> Iterator[Block]:
    quantities = [one for one in results["quantities"] if one["family"] == family]
    scalars = [one for one in results["scalars"] if one["family"] == family]
    sequence = (results.get("main_sequence") or {}) if family == "degrees" else {}
    if not (quantities or scalars or sequence):
        return
    yield about
    yield Picture(family, f"{about} Values beyond the range of real people are in the end bins.")
    names = list(results["sets"]["synthetic"])
    if quantities:
        people = ["real", "train"] if results["sets"].get("train") else ["real"]
        rows = [[_named(one), *map(one["mean"].get, [*people, *names])] for one in quantities]
        yield Table("Means", ["quantity", *map(_role, people), *names], rows)
    yield HOW_TO_READ
    columns = ["quantity", "floor", "halves", *names]
    for kind, title in DISTANCES.items():
        rows = [[_named(one), *_compared(one["distances"][kind], names)] for one in quantities]
        # Path length is mean speed times a constant: the paper's mean leaves it out.
        words = {8: "mean over eight (without path length)", 9: "mean over nine"}
        means = {n: (results.get("means") or {}).get(f"{kind}_{n}") for n in words}
        foot = [[words[n], *_compared(one, names)] for n, one in means.items() if one]
        if rows:
            yield Table(title, columns, rows, foot if family == "features" else ())
    if scalars:
        rows = [[_named(one), *_compared(one, names)] for one in scalars]
        yield Table(PAIRWISE, columns, rows)
    if "not_computable" in sequence:
        yield f"Main sequence: not computable: {sequence['not_computable']}"
    elif sequence.get("sets"):
        keys = ("slope", "intercept", "spread", "n")
        rows = [[_role(key), *map(fit.get, keys)] for key, fit in sequence["sets"].items()]
        columns = ["set", "slope", "intercept (log10 deg/s)", "spread (log10)", "n saccades"]
        yield Table("Main sequence: log10 peak velocity over log10 amplitude", columns, rows)
        yield Picture("main_sequence", "Peak velocity over amplitude of saccades, with the fits.")


def _named(one: Results) -> str:
    return f"{one['title']} ({one['unit']})" if one.get("unit") else str(one["title"])


def _role(key: str) -> str:
    return {"real": "real, held out", "train": "real, training"}.get(key, key)


def _compared(distance: Results, names: Sequence[str]) -> list[Cell]:
    """Floor, halves, and each set's estimate."""
    cells: list[Cell] = [distance.get("floor"), distance.get("halves")]
    for name in names:
        found = distance["synthetic"].get(name)
        if not isinstance(found, Mapping):
            floor = distance.get("floor")
            found = {"value": found, "ratio": found / floor if found and floor else None}
        cells.append(Estimate(found["value"], found.get("interval"), found.get("ratio")))
    return cells


def _test(name: str, test: Results) -> Iterator[Block]:
    yield from filter(None, [test.get("about")])
    if "not_computable" in test:
        yield f"Not computable: {test['not_computable']}"
        return
    columns = {"floor": _flat(test["floor"])} if test.get("floor") else {}
    columns |= {key: _flat(found) for key, found in test["synthetic"].items()}
    measures = dict.fromkeys(key for column in columns.values() for key in column)
    rows = [
        [key.replace("_", " "), *(column.get(key) for column in columns.values())]
        for key in measures
    ]
    yield Table("Results", ["measure", *columns], rows)
    pairs = closest_pairs(test)
    if pairs:
        yield Picture(name, "The closest pairs: training in grey, synthetic in colour.")
        keys = ("distance", "synthetic_index", "training_index")
        nearest = [[key, *map(pair.get, keys)] for key, found in pairs.items() for pair in found]
        heads = ["set", "distance", "synthetic window", "training window"]
        yield Table("Closest pairs", heads, nearest)


def _flat(found: Results | None, before: str = "") -> dict[str, Cell]:
    """Nested results in one row: {"raw": {"accuracy": 0.6}} -> {"raw accuracy": 0.6}."""
    row: dict[str, Cell] = {}
    for key, value in (found or {}).items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{before}{key} ")
        elif isinstance(value, list) and key != "pairs":
            row[before + key] = ", ".join(map(_text, value))
        elif key != "pairs":
            row[before + key] = ("no", "yes")[value] if isinstance(value, bool) else value
    return row


def _differences(results: Results) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for one in results.get("differences") or []:
        gap, different = Estimate(one["value"], one["interval"]), ("no", "yes")[one["is_different"]]
        rows.append([one["a"], one["b"], one["quantity"], gap, different])
    if rows:
        yield "Below zero the first generator is better; different: the interval leaves out zero."
        yield Table("Differences", ["first", "second", "quantity", "difference", "different"], rows)


def _about(results: Results) -> Iterator[Block]:
    sets, about = results["sets"], results.get("about") or {}
    roles = {"real": sets.get("real"), "train": sets.get("train"), **sets["synthetic"]}
    keys = ("name", "n_windows", "n_participants", "sha256")
    rows = [[_role(key), *map(one.get, keys)] for key, one in roles.items() if one]
    yield Table("Sets", ["set", "file", "windows", "participants", "sha256"], rows)
    settings = _flat({key: value for key, value in about.items() if key != "notes"})
    listed = [[key.replace("_", " "), _text(value)] for key, value in settings.items()]
    yield Table("Settings and versions", ["setting", "value"], listed)
    yield from (f"Note: {note}" for note in about.get("notes") or [])


def _text(cell: Cell) -> str:
    """A cell in words: three significant digits, whole numbers whole, a dash for nothing."""
    if isinstance(cell, Estimate):
        parts = [_text(cell.value)]
        parts += [f"{TIMES}{_text(cell.ratio)}"] if cell.ratio is not None else []
        parts += [f"[{', '.join(map(_text, cell.interval))}]"] if cell.interval else []
        return " ".join(parts)
    if cell is None or isinstance(cell, str):
        return cell or NOTHING
    size = abs(cell)
    if isinstance(cell, int) or size == 0 or size >= 999.5:
        return f"{cell:,.0f}"
    return f"{cell:.2e}".replace("e-0", "e-") if size < 1e-3 else f"{cell:#.3g}".rstrip(".")


def to_markdown(sections: Sections, figures: Mapping[str, Sequence[Path]]) -> str:
    """The report in Markdown; pictures are those of the figures folder beside it."""
    lines = [f"# {TITLE}"]
    for title, blocks in sections.items():
        shown = [text for block in blocks if (text := _block_markdown(block, figures))]
        lines += [f"## {_safe(title)}", *shown] if shown else []
    return "\n\n".join(lines) + "\n"


def _block_markdown(block: Block, figures: Mapping[str, Sequence[Path]]) -> str:
    if isinstance(block, str):
        return _safe(block)
    if isinstance(block, Picture):
        source = f"figures/{block.name}.png"
        return f"![{_safe(block.caption)}]({source})" if block.name in figures else ""
    if isinstance(block, Bars):
        overall = [[name, ratio] for name, (ratio, _) in block.ratios.items()]
        block = Table("Overall", ["set", "ratio to the floor"], overall)
    rule = "|".join(["---", *["---:"] * (len(block.columns) - 1)])
    lines = [
        " | ".join(_safe(_text(cell)) for cell in row)
        for row in (block.columns, *block.rows, *block.foot)
    ]
    lines.insert(1, rule)
    return "\n".join([f"**{_safe(block.title)}**\n", *(f"| {line} |" for line in lines)])


def _safe(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\`*|]|\](?=[(:\[]))", r"\\\1", escape(" ".join(text.split()), quote=False))


def to_html(sections: Sections, figures: Mapping[str, Sequence[Path]]) -> str:
    """The report as one page with everything inside it."""
    links, parts = [], []
    for number, (title, blocks) in enumerate(sections.items()):
        inside = "\n".join(_block_html(block, figures) for block in blocks).strip()
        if inside:
            name, heading = f"part{number}", escape(title)
            links.append(f'<a href="#{name}">{heading}</a>')
            parts.append(f'<section id="{name}"><h2>{heading}</h2>\n{inside}\n</section>')
    data = files("gazediffusion.evaluation")
    style, script = (data.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{TITLE}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{TITLE}</h1>\n{parts[0]}\n<nav>{' '.join(links[1:])}</nav>\n"
        + "\n".join(parts[1:])
        + f"\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _block_html(block: Block, figures: Mapping[str, Sequence[Path]]) -> str:
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    if isinstance(block, Bars):
        return _bars_html(block)
    if isinstance(block, Table):
        return _table_html(block)
    if block.name not in figures:
        return ""
    # Thousands of points make an SVG many times the size of the same picture in pixels.
    path = min(figures[block.name], key=lambda one: one.stat().st_size)
    kind = {".png": "png", ".svg": "svg+xml"}[path.suffix]
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    caption = escape(block.caption)
    image = f'<img src="data:image/{kind};base64,{data}" alt="{caption}">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _table_html(table: Table) -> str:
    heads = [
        f'<th scope="col" aria-sort="none"><button type="button">{escape(name)}</button></th>'
        for name in table.columns
    ]
    body, foot = (
        "\n".join(f"<tr>{''.join(map(_cell_html, row))}</tr>" for row in rows)
        for rows in (table.rows, table.foot)
    )
    return (
        f'<div class="scroll"><table><caption>{escape(table.title)}</caption>\n'
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>{body}</tbody>\n"
        f"<tfoot>{foot}</tfoot></table></div>"
    )


def _cell_html(cell: Cell) -> str:
    if isinstance(cell, str):
        is_list = re.fullmatch(r"[-\d.e]+(, [-\d.e]+)+", cell)
        return f"{'<td class=number>' if is_list else '<td>'}{escape(cell)}</td>"
    value = cell.value if isinstance(cell, Estimate) else cell
    key = "" if value is None else repr(value)
    main, *rest = _text(cell).split(" ", 2)
    beside = "".join(f" <small>{escape(part)}</small>" for part in rest)
    return f'<td class="number" data-sort="{key}">{escape(main)}{beside}</td>'


def _bars_html(bars: Bars) -> str:
    """A logarithmic track for each set: the floor is a line, the bar reaches from it to the set."""
    logs = {name: math.log(ratio) for name, (ratio, _) in bars.ratios.items() if ratio}
    low, high = min(-0.2, *logs.values()), max(0.7, *logs.values())
    rows = []
    for name, (ratio, colour) in bars.ratios.items():
        floor, place = ((100 * (x - low) / (high - low)) for x in (0.0, logs.get(name, 0.0)))
        left, width = min(floor, place), abs(place - floor)
        rows.append(
            f'<div class="bar"><span class="name">{escape(name)}</span><span class="track">'
            f'<i class="reach" style="left:{left:.1f}%;width:{width:.1f}%;background:{colour}"></i>'
            f'<i class="floor" style="left:{floor:.1f}%"></i></span><b>{_text(ratio)}</b></div>'
        )
    note = '<p class="note">Line: the floor, 1. The scale is logarithmic; shorter is better.</p>'
    return f'<div class="bars">{"".join(rows)}</div>{note}'
