"""What pages take from the sources: modules of the names they cite, and verdicts on the claims.

    python docs/_ext/pages.py            # write both into the pages
    python docs/_ext/pages.py --check    # exit code 1 where a page differs

A code span `module: name` names a definition of the package; the module follows the definition
when it moves. Verdicts are those of `gazediffusion reproduce`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gazediffusion"
DOCS = ROOT / "docs"
NAMED = re.compile(r"`([a-z_0-9.]+): ([A-Za-z_.0-9]+)`")
CLAIMS = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)


@cache
def definitions() -> dict[str, list[str]]:
    """The modules that define each name: functions, classes, constants, members of classes."""
    found = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for name in _names(ast.parse(path.read_text(encoding="utf-8"))):
            found[name].append(module)
    return dict(found)


def _names(tree: ast.Module | ast.ClassDef, prefix: str = "") -> set[str]:
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(prefix + node.name)
        if isinstance(node, ast.ClassDef) and not prefix:
            names |= _names(node, f"{node.name}.")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {prefix + ast.unparse(one) for one in targets}
    return names


def home_of(module: str, name: str) -> str:
    """The module that defines a name: of several the cited one, else one of the cited package."""
    homes = definitions().get(name, [])
    near = [one for one in homes if one.partition(".")[0] == module.partition(".")[0]]
    for chosen in ([module] if module in homes else [], near, homes):
        if len(chosen) == 1:
            return chosen[0]
    where = f"in {', '.join(homes)}" if homes else "nowhere"
    raise SystemExit(f"error: `{module}: {name}` is defined {where}")


def claims() -> str:
    """Verdicts on the paper's claims, as a table."""
    path = next(iter(sorted((DOCS / "results").rglob("results.json"))))
    rows = json.loads(path.read_text(encoding="utf-8"))["claims"]
    n = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in _VERDICTS}
    counts = ", ".join(f"{n[verdict]} {words}" for verdict, words in _VERDICTS.items())
    lines = [f"Of {len(rows)} claims {counts}.", "", "| claim | here | verdict |", "|---|---|---|"]
    lines += [f"| {row['name']} | {row['ours'].rstrip('.')} | {row['verdict']} |" for row in rows]
    return "\n".join([*lines, ""])


_VERDICTS = {
    "holds": "hold",
    "holds in part": "hold in part",
    "does not hold": "do not hold",
    "undecided": "are undecided",
}


def pages() -> list[Path]:
    """The pages of the documentation."""
    return [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "howto").glob("*.md"))]


def cited(text: str) -> list[tuple[str, str]]:
    """The modules and names that a page cites; a setting as `unit: px` is no citation."""
    found = NAMED.findall(text)
    return [(module, name) for module, name in found if "." in module or name in definitions()]


def written(text: str) -> str:
    """A page with the present modules and verdicts."""
    for module, name in cited(text):
        text = text.replace(f"`{module}: {name}`", f"`{home_of(module, name)}: {name}`")
    return CLAIMS.sub(lambda _: claims(), text)


def main(arguments: list[str]) -> None:
    """Write or check the pages."""
    stale = []
    for page in pages():
        before = page.read_text(encoding="utf-8")
        if (after := written(before)) != before:
            stale.append(str(page.relative_to(ROOT)))
            if "--check" not in arguments:
                page.write_text(after, encoding="utf-8")
    if "--check" in arguments and stale:
        raise SystemExit(f"error: {', '.join(stale)}: run python docs/_ext/pages.py")


if __name__ == "__main__":
    main(sys.argv[1:])
