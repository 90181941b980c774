"""The report of an evaluation: results.json, report.md, report.html and the figures, whole or not.

The results are laid out once as sections of text, tables and pictures; Markdown and HTML only
write that layout down, so they cannot disagree. The page is one file that asks for nothing from
outside (its content security policy forbids it): styles, script and figures are inside it.
Every number that compares real with synthetic stands beside its floor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from gazediffusion.files import written_whole
from gazediffusion.plotting.evaluation import Gaze, Results, closest_pairs, draw_all, set_styles

TITLE = "How near synthetic gaze comes to people"
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
            "report.html": to_html(TITLE, sections, figures),
            "report.md": to_markdown(TITLE, sections, figures),
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
        yield "Below zero the first generator is better; different: the interval leaves out zero."
        yield Table("Differences", ["first", "second", "quantity", "difference", "different"], rows)


def _about(results: Results) -> Iterator[Block]:
    sets, about = results["sets"], results.get("about") or {}
    roles = {"real": sets.get("real"), "train": sets.get("train"), **sets["synthetic"]}
    keys = ("name", "n_windows", "n_participants", "sha256")
    rows = [[_role(key), *map(one.get, keys)] for key, one in roles.items() if one]
    yield Table("Sets", ["set", "file", "windows", "participants", "sha256"], rows)
    settings = _flat({key: value for key, value in about.items() if key != "notes"})
    listed = [[key.replace("_", " "), as_text(value)] for key, value in settings.items()]
    yield Table("Settings and versions", ["setting", "value"], listed)
    yield from (f"Note: {note}" for note in about.get("notes") or [])
