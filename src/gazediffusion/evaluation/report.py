"""The report of an evaluation as Markdown and as one page, and the headline as text.

Results are laid out once, as sections of text, tables and pictures, which two templates write, so
that they cannot disagree. The headline stands first. Every number that compares real with synthetic
stands beside its floor. An evaluation of several parts has the sections of each part.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gazediffusion.data.windows import Windows
from gazediffusion.evaluation.deep_test import DeepTest
from gazediffusion.evaluation.headline import COUNTS, LIMIT, Headline
from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.evaluation.sets import SECOND_DRAW
from gazediffusion.storage import sha256_source

if TYPE_CHECKING:
    import jinja2

Results = Mapping[str, Any]
Parts = Mapping[str, Results]
Figures = Mapping[str, Sequence[Path]]
Cell = str | float | Estimate | None
TIMES, NOTHING = "\u00d7", "\u2013"
TITLE = "Evaluation of synthetic gaze"
PAIRWISE = "Distances between mean curves"
DISTANCES = {"js": "JS divergence (nats)", "ks": "KS statistic", "w1": "Wasserstein-1 distance"}
FAMILIES = {
    "features": ("Features of windows", "The paper's nine kinematic features."),
    "events": ("Events", "Fixations and saccades by I-VT in normalized units, as in the paper."),
    "directions": ("Directions", "The four-metric framework: speed, direction, turning angle."),
    "velocity": ("Velocity", "The paper's velocity protocol."),
    "temporal": ("Temporal structure", "Delta rho1, D_PSD and the autocorrelation of speed."),
    "degrees": (
        "Degrees of visual angle",
        "Fixations by I-VT, saccades by Engbert and Kliegl's detector; main sequence.",
    ),
    "plug-ins": ("Plug-ins", "Metrics of installed plug-ins; they do not count in the headline."),
}
TESTS = {
    "c2st": "Classifier two-sample test",
    "deep": "Deep two-sample test",
    "memorisation": "Memorisation",
    "coverage": "Coverage and diversity",
    "tstr": "Train on synthetic, test on real",
    "fgd": "Frechet gaze distance",
    "membership": "Membership inference",
}
FLOOR = "two groups of participants (floor)"
DEEP_TITLE = "AUC of the deep two-sample test"
HOW_TO_READ = (
    "Lower is better. Floor: training against held-out participants. Halves: two halves of the "
    f"training participants' recordings. Each set: its distance to held-out participants, {TIMES} "
    "its ratio to the floor, [its bootstrap interval over participants]. JS of the floor and of "
    "all sets is in the bins of the floor."
)
HEADLINE = (
    "Median ratio: over the distances of features, events, directions, velocity and temporal "
    "structure; 1 is as close to held-out participants as the training participants are. Counts, "
    "path length and main-sequence slope: in percent of those of the training participants. C2ST: "
    f"accuracy of a classifier, 0.5 is chance. {SECOND_DRAW}: a second draw of the training "
    "participants' windows, evaluated like a synthetic set; a generator without fault would be "
    "there. In brackets: 95 % intervals over participants."
)
_COLUMNS = ["set", "median ratio", f"above {LIMIT:g}", "worst", "saccades (%)", "fixations (%)",
            "path length (%)", "main sequence (%)", "C2ST", "windows"]  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Rows under columns; `foot` rows (means, floors) stay below when the others are sorted."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    foot: Sequence[Sequence[Cell]] = ()
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Picture:
    """A figure by its name in the figures folder."""

    name: str
    caption: str
    kind: ClassVar[str] = "picture"


@dataclass(frozen=True)
class Bars:
    """Overall ratios to the floor, name -> (ratio, colour)."""

    ratios: Mapping[str, tuple[float | None, str]]
    kind: ClassVar[str] = "bars"

    @property
    def table(self) -> Table:
        """The same as a table."""
        rows = [[name, ratio] for name, (ratio, _) in self.ratios.items()]
        return Table("Overall", ["set", "ratio to the floor"], rows)

    @property
    def places(self) -> Iterator[dict[str, Any]]:
        """Where the bars are on a logarithmic track, in percent: from the floor to each set."""
        logs = {name: math.log(ratio) for name, (ratio, _) in self.ratios.items() if ratio}
        low, high = min(-0.2, *logs.values()), max(0.7, *logs.values())
        for name, (ratio, colour) in self.ratios.items():
            floor, place = (100 * (x - low) / (high - low) for x in (0.0, logs.get(name, 0.0)))
            left, width = min(floor, place), max(abs(place - floor), 0.5)
            places = {"floor": f"{floor:.1f}", "left": f"{left:.1f}", "width": f"{width:.1f}"}
            yield {"name": name, "colour": colour, "ratio": ratio, **places}


Block = str | Table | Picture | Bars
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


@cache
def _templates() -> jinja2.Environment:
    import jinja2
    from markupsafe import Markup

    def words(cell: Cell) -> Markup:
        """Text that Markdown shows as it is, in one line."""
        text = escape(" ".join(as_text(cell).split()), quote=False)
        return Markup(re.sub(r"([\\`*|]|\](?=[(:\[]))", r"\\\1", text))

    def sort_key(cell: float | Estimate | None) -> str:
        value = cell.value if isinstance(cell, Estimate) else cell
        return "" if value is None else repr(value)

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("gazediffusion.evaluation"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    found.filters |= {"words": words, "text": as_text, "sort_key": sort_key}
    found.tests["list_of_numbers"] = lambda text: re.fullmatch(r"[-\d.e]+(, [-\d.e]+)+", text)
    found.globals["hash_of"] = lambda text: sha256_source(f"\n{text}")
    return found


def _shown(sections: Sections, figures: Figures) -> Sections:
    """The sections without pictures that were not drawn, and none that is empty."""
    kept = {
        title: [one for one in blocks if not isinstance(one, Picture) or one.name in figures]
        for title, blocks in sections.items()
    }
    return {title: blocks for title, blocks in kept.items() if blocks}


def _data_of(paths: Sequence[Path]) -> str:
    """A figure as it stands inside the page, in the smaller of its formats.

    Thousands of points make an SVG many times the size of the same picture in pixels.
    """
    path = min(paths, key=lambda one: one.stat().st_size)
    kind = {".png": "png", ".svg": "svg+xml"}[path.suffix]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"


def markdown_report(parts: Parts, figures: Figures) -> str:
    """The report in Markdown; pictures are those of the figures folder beside it."""
    template = _templates().get_template("report.md")
    return template.render(title=TITLE, sections=_shown(lay_out(parts), figures))


def html_report(parts: Parts, figures: Figures) -> str:
    """The report as one page with everything inside it."""
    inside = files("gazediffusion.evaluation").joinpath("templates")
    style, script = (inside.joinpath(f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    template = _templates().get_template("report.html")
    pictures = {name: _data_of(paths) for name, paths in figures.items()}
    return template.render(
        title=TITLE,
        sections=_shown(lay_out(parts), figures),
        pictures=pictures,
        style=style,
        script=script,
    )


def draw_figures(parts: Parts, folder: Path, shown: Mapping[str, Windows]) -> dict[str, list[Path]]:
    """Write every figure that can be drawn as PNG and SVG; name -> the paths, PNG first."""
    from gazediffusion.plotting.evaluation import draw_all

    drawn: dict[str, list[Path]] = {}
    for number, (part, results) in enumerate(parts.items()):
        home = _home(part) if len(parts) > 1 else ""
        found = draw_all(results, folder / home, None if number else shown)
        drawn |= {f"{home}/{name}".lstrip("/"): paths for name, paths in found.items()}
    return drawn


def _home(part: str) -> str:
    """The folder of a part's figures."""
    return re.sub(r"[^\w-]+", "-", part)


def headline_text(parts: Parts) -> str:
    """Warnings, what is compared, and the headline as a table of text."""
    lines = [f"warning: {one}" for one in warnings_of(parts)]
    for before, results in _prefixed(parts):
        lines.append(before + results["about"]["compared"])
        # Transposed: a row for each figure, a column for each set.
        lines += _aligned(zip(_COLUMNS, *_rows(results), strict=True))
        if "settings" in (deep := results["tests"].get("deep", {})):
            table = auc_table(deep_sets(deep))
            lines += [f"{table.title}, 0.5 is chance:", *_aligned([table.columns, *table.rows])]
    return "\n".join(lines)


def _aligned(rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    words = [[as_text(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*words, strict=True)]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in words)


def _prefixed(parts: Parts) -> Iterator[tuple[str, Results]]:
    """Each part with what its titles begin with: nothing where there is only one."""
    for part, results in parts.items():
        yield f"{part}: " if len(parts) > 1 else "", results


def lay_out(parts: Parts) -> Sections:
    """The report as title -> blocks, in reading order."""
    sections: Sections = {"Headline": list(_headline(parts))}
    for before, results in _prefixed(parts):
        home = f"{_home(before[:-2])}/" if before else ""
        for title, blocks in _sections(results).items():
            sections[before + title] = [
                Picture(home + one.name, one.caption) if isinstance(one, Picture) else one
                for one in blocks
            ]
    return sections


def _sections(results: Results) -> Sections:
    """The sections of one part."""
    sections = {"Ratio to the floor": list(_ratios(results))}
    for name, (title, about) in FAMILIES.items():
        sections[title] = list(_family(results, name, about))
    for name, test in results["tests"].items():
        sections[TESTS.get(name, name)] = list(_test(name, test))
    sections["Differences between generators"] = list(_differences(results))
    sections["Real and synthetic windows"] = [Picture("gallery", "The first windows of each set.")]
    sections["Settings"] = list(_about(results))
    return sections


def _headline(parts: Parts) -> Iterator[Block]:
    from gazediffusion.plotting.evaluation import set_styles
    from gazediffusion.plotting.style import GREY

    bars: dict[str, tuple[float | None, str]] = {}
    for before, results in _prefixed(parts):
        yield before + results["about"]["compared"]
        styles = set_styles(results)
        for name, row in results["headline"].items():
            colour = styles[name].colour if name in styles else GREY
            bars[before + name] = Headline.of(row).ratio.value, colour
    yield from (f"Warning: {one}" for one in warnings_of(parts))
    if any(ratio for ratio, _ in bars.values()):
        yield Bars(bars)
    yield HEADLINE
    for part, results in parts.items():
        title = f"Headline, {part}" if len(parts) > 1 else "Headline"
        yield Table(title, _COLUMNS, list(_rows(results)))


def warnings_of(parts: Parts) -> list[str]:
    """What limits the results of any part."""
    return list(dict.fromkeys(one for part in parts.values() for one in part["about"]["warnings"]))


def _rows(results: Results) -> Iterator[list[Cell]]:
    """The rows of the headline table."""
    for name, row in results["headline"].items():
        one = Headline.of(row)
        n_above, *interval = as_text(one.n_above).split(" ", 1)
        above = " ".join([n_above, "of", str(one.n_distances), *interval])
        percent = [getattr(one, f"{count}_percent") for count in COUNTS]
        worst = f"{one.worst} {as_text(one.worst_ratio)}"
        yield [name, one.ratio, above, worst, *percent, one.c2st, one.n_windows]


def _ratios(results: Results) -> Iterator[Block]:
    ratios, names = results["ratios"], list(results["sets"]["synthetic"])
    yield ratios["definition"]
    rows = [[family, *map(of.get, names)] for family, of in ratios["families"].items()]
    foot = [["overall", *map(ratios["overall"].get, names)]]
    yield Table("Ratio to the floor by family (the floor is 1)", ["family", *names], rows, foot)
    yield Picture("floor_ratios", "Ratio to the floor by family and set; the line is the floor.")


def _family(results: Results, family: str, about: str) -> Iterator[Block]:
    quantities = [one for one in results["quantities"] if one["family"] == family]
    scalars = [one for one in results["scalars"] if one["family"] == family]
    sequence = results["main_sequence"] if family == "degrees" else {}
    if not (quantities or scalars or sequence):
        return
    yield about
    yield Picture(family, f"{about} Values beyond the range of real gaze are in the end bins.")
    names = list(results["sets"]["synthetic"])
    if quantities:
        real = ["real", "train"] if results["sets"].get("train") else ["real"]
        rows = [[_named(one), *map(one["mean"].get, [*real, *names])] for one in quantities]
        yield Table("Means", ["quantity", *map(_role, real), *names], rows)
    yield HOW_TO_READ
    columns = ["quantity", "floor", "halves", *names]
    for kind, title in DISTANCES.items():
        rows = [[_named(one), *_cells(one["distances"][kind], names)] for one in quantities]
        # Path length is mean speed times a constant: the paper's mean leaves it out.
        words = {8: "mean over eight (without path length)", 9: "mean over nine"}
        means = {n: results["means"].get(f"{kind}_{n}") for n in words}
        foot = [[words[n], *_cells(one, names)] for n, one in means.items() if one]
        if rows:
            yield Table(title, columns, rows, foot if family == "features" else ())
    if scalars:
        yield Table(PAIRWISE, columns, [[_named(one), *_cells(one, names)] for one in scalars])
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


def _cells(distance: Results, names: Sequence[str]) -> list[Cell]:
    """Floor, halves, and each set's estimate."""
    cells: list[Cell] = [distance.get("floor"), distance.get("halves")]
    for name in names:
        found = distance["synthetic"].get(name)
        if isinstance(found, Mapping):
            cells.append(Estimate(found["value"], found.get("interval"), found.get("ratio")))
        else:  # means over features
            cells.append(Estimate(found, ratio=(distance.get("ratio") or {}).get(name)))
    return cells


def _test(name: str, test: Results) -> Iterator[Block]:
    yield from filter(None, [test.get("about")])
    if "not_computable" in test:
        yield f"Not computable: {test['not_computable']}"
        return
    if name == "deep":
        yield from _deep(test)
        return
    columns = {"floor": _flat(test["floor"])} if test.get("floor") else {}
    columns |= {key: _flat(found) for key, found in test["synthetic"].items()}
    measures = dict.fromkeys(key for column in columns.values() for key in column)
    rows = [
        [key.replace("_", " "), *(column.get(key) for column in columns.values())]
        for key in measures
    ]
    yield Table("Results", ["measure", *columns], rows)
    if pairs := {
        key: one["pairs"][:5] for key, one in test["synthetic"].items() if one.get("pairs")
    }:
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
            row[before + key] = ", ".join(map(as_text, value))
        elif key != "pairs":
            row[before + key] = ("no", "yes")[value] if isinstance(value, bool) else value
    return row


def deep_sets(test: Results) -> dict[str, DeepTest]:
    """The floor, the planted defect and the synthetic sets, by name."""
    rows = {FLOOR: test["floor"]} if test.get("floor") else {}
    rows |= {**test.get("planted", {}), **test.get("synthetic", {})}
    return {name: DeepTest.of(row) for name, row in rows.items()}


def auc_table(sets: Mapping[str, DeepTest]) -> Table:
    """A row for each set, a column for each test."""
    tests = list(dict.fromkeys(test for one in sets.values() for test in one.auc))
    rows = [[name, *map(one.auc.get, tests)] for name, one in sets.items()]
    return Table(DEEP_TITLE, ["set", *tests], rows)


def _deep(test: Results) -> Iterator[Block]:
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


def _differences(results: Results) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for one in results["differences"]:
        gap, different = Estimate(one["value"], one["interval"]), ("no", "yes")[one["is_different"]]
        rows.append([one["a"], one["b"], one["quantity"], gap, different])
    if rows:
        yield "Below zero the first generator is better; different: the interval excludes zero."
        yield Table("Differences", ["first", "second", "quantity", "difference", "different"], rows)


def _about(results: Results) -> Iterator[Block]:
    sets, about = results["sets"], results["about"]
    roles = {"real": sets.get("real"), "train": sets.get("train"), **sets["synthetic"]}
    keys = ("name", "n_windows", "n_participants", "sha256")
    rows = [[_role(key), *map(one.get, keys)] for key, one in roles.items() if one]
    yield Table("Sets", ["set", "name", "windows", "participants", "sha256"], rows)
    text = ("notes", "warnings", "compared")
    settings = _flat({key: value for key, value in about.items() if key not in text})
    listed = [[key.replace("_", " "), as_text(value)] for key, value in settings.items()]
    yield Table("Settings and versions", ["setting", "value"], listed)
    yield from (f"Note: {note}" for note in about["notes"])
