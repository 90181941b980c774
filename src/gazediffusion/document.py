"""A document of sections, each of text, tables and pictures, written as Markdown or as one page.

Markdown and HTML write the same layout down, so they cannot disagree. The page asks for nothing
from outside (its content security policy forbids it): style, script and figures are inside it, and
no other style or script, which the policy names by their hashes.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from gazediffusion.storage import sha256_source

TIMES, NOTHING = "\u00d7", "\u2013"


@dataclass(frozen=True)
class Estimate:
    """A number with what it is worth: interval, ratio to the floor and SD, where known."""

    value: float | None
    interval: Sequence[float | None] | None = None
    ratio: float | None = None
    sd: float | None = None


Cell = str | float | Estimate | None


@dataclass(frozen=True)
class Table:
    """Rows under columns; `foot` rows (means, floors) stay below when the others are sorted.

    is_text: the cells are sentences, which Markdown aligns to the left.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Sequence[Cell]] = ()
    is_text: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure by its name in the figures folder."""

    name: str
    caption: str


@dataclass(frozen=True)
class Bars:
    """Overall ratios to the floor, name -> (ratio, colour)."""

    ratios: Mapping[str, tuple[float | None, str]]


@dataclass(frozen=True)
class Code:
    """A command or other text that is shown as it is."""

    text: str


Block = str | Table | Picture | Bars | Code
Sections = dict[str, list[Block]]


def as_text(cell: Cell) -> str:
    """A cell in words: three significant digits, whole numbers whole, a dash for nothing."""
    if isinstance(cell, Estimate):
        parts = [as_text(cell.value) if cell.sd is None else _with_sd(cell.value, cell.sd)]
        parts += [f"{TIMES}{as_text(cell.ratio)}"] if cell.ratio is not None else []
        parts += [f"[{', '.join(map(as_text, cell.interval))}]"] if cell.interval else []
        return " ".join(parts)
    if cell is None or isinstance(cell, str):
        return cell or NOTHING
    size = abs(cell)
    if isinstance(cell, int) or size == 0 or size >= 999.5:
        return f"{cell:,.0f}"
    return f"{cell:.2e}".replace("e-0", "e-") if size < 1e-3 else f"{cell:#.3g}".rstrip(".")


def _with_sd(mean: float | None, sd: float) -> str:
    """A mean and its SD with the same decimals: 0.0155 ± 0.0038, (1.31 ± 0.02)e-4."""
    digits, _, exponent = as_text(mean).partition("e")
    if exponent:
        return f"({digits} ± {sd / 10.0 ** int(exponent):.2f})e{exponent}"
    return f"{digits} ± {sd:,.{len(digits.partition('.')[2])}f}"


def to_markdown(title: str, sections: Sections, figures: Mapping[str, Sequence[Path]]) -> str:
    """The document in Markdown; pictures are those of the figures folder beside it."""
    lines = [f"# {_safe(title)}"]
    for heading, blocks in sections.items():
        shown = [text for block in blocks if (text := _block_markdown(block, figures))]
        lines += [f"## {_safe(heading)}", *shown] if shown else []
    return "\n\n".join(lines) + "\n"


def _block_markdown(block: Block, figures: Mapping[str, Sequence[Path]]) -> str:
    if isinstance(block, str):
        return _safe(block)
    if isinstance(block, Code):
        return "\n".join(f"    {line}" for line in block.text.splitlines())
    if isinstance(block, Picture):
        source, caption = f"figures/{block.name}.png", _safe(block.caption)
        return f"![{caption}]({source})\n\n*{caption}*" if block.name in figures else ""
    if isinstance(block, Bars):
        overall = [[name, ratio] for name, (ratio, _) in block.ratios.items()]
        block = Table("Overall", ["set", "ratio to the floor"], overall)
    return table_markdown(block)


def table_markdown(table: Table) -> str:
    """A table in Markdown, below its title."""
    rule = "|".join(["---", *["---" if table.is_text else "---:"] * (len(table.columns) - 1)])
    lines = [
        " | ".join(_safe(as_text(cell)) for cell in row)
        for row in (table.columns, *table.rows, *table.foot)
    ]
    lines.insert(1, rule)
    return "\n".join([f"**{_safe(table.title)}**\n", *(f"| {line} |" for line in lines)])


def _safe(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\`*|]|\](?=[(:\[]))", r"\\\1", escape(" ".join(text.split()), quote=False))


def to_html(title: str, sections: Sections, figures: Mapping[str, Sequence[Path]]) -> str:
    """The document as one page with everything inside it."""
    links, parts = [], []
    for number, (section, blocks) in enumerate(sections.items()):
        inside = "\n".join(_block_html(block, figures) for block in blocks).strip()
        if inside:
            name, heading = f"part{number}", escape(section)
            links.append(f'<a href="#{name}">{heading}</a>')
            parts.append(f'<section id="{name}"><h2>{heading}</h2>\n{inside}\n</section>')
    data = files("gazediffusion")
    style, script = (data.joinpath(f"document.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{parts[0]}\n<nav>{' '.join(links[1:])}</nav>\n"
        + "\n".join(parts[1:])
        + f"\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _policy(style: str, script: str) -> str:
    """Nothing may be loaded, from anywhere, but what stands in the page itself."""
    sources = (sha256_source(f"\n{text}") for text in (style, script))
    return "default-src 'none'; img-src data:; style-src {}; script-src {}".format(*sources)


def _block_html(block: Block, figures: Mapping[str, Sequence[Path]]) -> str:
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    if isinstance(block, Code):
        return f"<pre><code>{escape(block.text)}</code></pre>"
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
    main, *rest = as_text(cell).split(" ", 2)
    beside = "".join(f" <small>{escape(part)}</small>" for part in rest)
    return f'<td class="number" data-sort="{key}">{escape(main)}{beside}</td>'


def _bars_html(bars: Bars) -> str:
    """A logarithmic track for each set: the floor is a line, the bar reaches from it to the set."""
    logs = {name: math.log(ratio) for name, (ratio, _) in bars.ratios.items() if ratio}
    low, high = min(-0.2, *logs.values()), max(0.7, *logs.values())
    rows = []
    for name, (ratio, colour) in bars.ratios.items():
        floor, place = ((100 * (x - low) / (high - low)) for x in (0.0, logs.get(name, 0.0)))
        left, width = min(floor, place), max(abs(place - floor), 0.5)
        # Places are attributes of SVG: the content security policy allows no style of one element.
        rows.append(
            f'<div class="bar"><span class="name">{escape(name)}</span><svg class="track">'
            f'<rect x="{left:.1f}%" width="{width:.1f}%" y="25%" height="50%" fill="{colour}"/>'
            f'<rect class="floor" x="{floor:.1f}%" width="2" y="-32%" height="164%"/></svg>'
            f"<b>{as_text(ratio)}</b></div>"
        )
    note = '<p class="note">Line: the floor, 1. The scale is logarithmic; shorter is better.</p>'
    return f'<div class="bars">{"".join(rows)}</div>{note}'
