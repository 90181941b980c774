"""The report of an evaluation: the layout of report.md and report.html, and the headline as text.

The results are laid out once as sections of text, tables and pictures, which document.py writes as
Markdown or HTML. The headline stands first. Every number that compares real with synthetic stands
beside its floor. An evaluation of several parts has the sections of each part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gazediffusion.data.windows import Windows
from gazediffusion.document import (
    TIMES,
    Bars,
    Block,
    Cell,
    Estimate,
    Picture,
    Sections,
    Table,
    as_text,
    to_html,
    to_markdown,
)
from gazediffusion.evaluation.deep_report import deep_blocks, deep_text
from gazediffusion.evaluation.gaze_sets import SECOND_DRAW
from gazediffusion.evaluation.headline import COUNTS, LIMIT, Headline
from gazediffusion.plotting.evaluation import Results, closest_pairs, draw_all, set_styles
from gazediffusion.plotting.style import GREY

Parts = Mapping[str, Results]
Figures = Mapping[str, Sequence[Path]]

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
_COLUMNS = (
    "set",
    "median ratio",
    f"above {LIMIT:g}",
    "worst",
    "saccades (%)",
    "fixations (%)",
    "path length (%)",
    "main sequence (%)",
    "C2ST",
    "windows",
)


def html_report(parts: Parts, figures: Figures) -> str:
    """The report as one page."""
    return to_html(TITLE, lay_out(parts), figures)


def markdown_report(parts: Parts, figures: Figures) -> str:
    """The report in Markdown; pictures are those of the figures folder beside it."""
    return to_markdown(TITLE, lay_out(parts), figures)


def draw_figures(parts: Parts, folder: Path, shown: Mapping[str, Windows]) -> dict[str, list[Path]]:
    """Write every figure that can be drawn as PNG and SVG; name -> the paths, PNG first."""
    if len(parts) == 1:
        return draw_all(next(iter(parts.values())), folder, shown)
    drawn: dict[str, list[Path]] = {}
    for number, (part, results) in enumerate(parts.items()):
        home = _home(part)
        found = draw_all(results, folder / home, shown if number == 0 else None)
        drawn |= {f"{home}/{name}": paths for name, paths in found.items()}
    return drawn


def _home(part: str) -> str:
    """The folder of a part's figures."""
    return re.sub(r"[^\w-]+", "-", part)


def headline_text(parts: Parts) -> str:
    """Warnings, what is compared, and the headline as a table of text."""
    lines = [f"warning: {one}" for one in warnings_of(parts)]
    for before, results in _prefixed(parts):
        lines.append(before + results["about"]["compared"])
        columns = [_COLUMNS, *([as_text(cell) for cell in row] for row in _rows(results))]
        widths = [max(map(len, column)) for column in columns]
        lines += [
            "  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*columns, strict=True)
        ]
        if "settings" in (deep := (results.get("tests") or {}).get("deep") or {}):
            lines += deep_text(deep)
    return "\n".join(lines)


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
    for name, test in (results.get("tests") or {}).items():
        sections[TESTS.get(name, name)] = list(_test(name, test))
    sections["Differences between generators"] = list(_differences(results))
    sections["Real and synthetic windows"] = [Picture("gallery", "The first windows of each set.")]
    sections["Settings"] = list(_about(results))
    return sections


def _headline(parts: Parts) -> Iterator[Block]:
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
    yield str(ratios.get("definition", ""))
    overall = ratios.get("overall") or {}
    if not any(overall.values()):
        yield f"Not computable: {ratios.get('not_computable') or 'there is no floor'}"
        return
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
        means = {n: (results.get("means") or {}).get(f"{kind}_{n}") for n in words}
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
        yield from deep_blocks(test)
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
            row[before + key] = ", ".join(map(as_text, value))
        elif key != "pairs":
            row[before + key] = ("no", "yes")[value] if isinstance(value, bool) else value
    return row


def _differences(results: Results) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for one in results.get("differences") or []:
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
    yield from (f"Note: {note}" for note in about.get("notes") or [])
