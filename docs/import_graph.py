"""The package as its sources show it: import graph, tree of docs/architecture.md, sizes.

    python docs/import_graph.py docs/images/import_graph.png   # draw the graph, renew the tree
    python docs/import_graph.py --check                        # is the tree of the page current?
    python docs/import_graph.py --measure [SOURCE_FOLDER]      # print sizes as Markdown tables

Imports are read from the syntax trees at any depth of a file; imports for type checking do not
count. The order of packages is `ORDER` of tests/test_architecture.py. The tree holds the first line
of each docstring.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gazediffusion"
PAGE = ROOT / "docs" / "architecture.md"
ARCHITECTURE = ROOT / "tests" / "test_architecture.py"
TREE = re.compile(r"(?<=<!-- tree -->\n).*?(?=<!-- /tree -->)", re.DOTALL)
# The root's modules that stand before every package are one node of the graph.
FOUNDATION = "foundation"
N_LONGEST = 10


def package_order() -> list[str]:
    """Packages and root modules; each may import only those before it."""
    tree = ast.parse(ARCHITECTURE.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ORDER":
            names: list[str] = ast.literal_eval(node.value)
            return [name for name in names if not name.startswith("__")]
    raise SystemExit(f"error: {ARCHITECTURE} has no list ORDER")


def imported(path: Path) -> set[str]:
    """Packages and root modules of gazediffusion that a file imports at run time."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    names: list[str] = []
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "gazediffusion":
            names += [f"gazediffusion.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return {name.split(".")[1] for name in names if name.startswith("gazediffusion.")}


class Graph(NamedTuple):
    """Nodes in their order, the modules in each, and how many of them import another node."""

    nodes: list[str]
    n_modules: Counter[str]
    n_imports: Counter[tuple[str, str]]


def import_graph(source: Path, order: Sequence[str]) -> Graph:
    """The packages of a source folder and the imports between them."""
    first = list(takewhile(lambda name: not (source / name).is_dir(), order))
    node_of = {name: FOUNDATION if name in first else name for name in order}
    graph = Graph(list(dict.fromkeys(node_of.values())), Counter(), Counter())
    for path in sorted(source.rglob("*.py")):
        importing = node_of.get(path.relative_to(source).parts[0].removesuffix(".py"))
        if importing is None:
            continue
        graph.n_modules[importing] += 1
        targets = {node_of[name] for name in imported(path) if name in node_of} - {importing}
        graph.n_imports.update((importing, target) for target in targets)
    return graph


def draw(graph: Graph, output: Path) -> None:
    """Nodes on the diagonal; a line goes from a node to its left, then up to what it imports."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = len(graph.nodes)
    place = {name: number for number, name in enumerate(graph.nodes)}
    figure, axes = plt.subplots(figsize=(0.86 * n + 0.6, 0.56 * n + 0.5))
    used = plt.colormaps["tab20"]
    for (importing, target), count in graph.n_imports.items():
        x, y = place[target], -place[importing]
        is_down = place[target] < place[importing]
        colour = used(place[target] % 20) if is_down else "red"
        width = 0.5 + 0.16 * min(count, 16)
        axes.plot([-y, x], [y, y], color="0.86", linewidth=0.7, zorder=0)
        axes.plot([x, x], [y, -x], color=colour, linewidth=width, alpha=0.35, zorder=1)
        axes.scatter(x, y, s=150, color="white", edgecolors=[colour], linewidths=width, zorder=2)
        axes.text(x, y, str(count), fontsize=7.5, ha="center", va="center", zorder=3)
    for name in graph.nodes:
        n_modules = graph.n_modules[name]
        edge = used(place[name] % 20)
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": edge}
        plural = "s" if n_modules != 1 else ""
        text = f"{name}\n{n_modules} module{plural}"
        at = (place[name], -place[name])
        axes.text(*at, text, fontsize=7.5, ha="center", va="center", bbox=box, zorder=4)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(-n + 0.4, 0.6)
    axes.axis("off")
    axes.set_title(
        "A circle counts the modules of the package in its row that import the package at the "
        "top of its column",
        fontsize=9,
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def first_line(path: Path) -> str:
    """The first line of a file's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].removesuffix(".")


def tree(source: Path, order: Sequence[str]) -> str:
    """The packages and root modules with the first lines of their docstrings, as a code block."""
    lines = []
    for name in order:
        folder = source / name
        if not folder.is_dir():
            lines.append((f"  {name}.py", first_line(source / f"{name}.py")))
            continue
        lines.append((f"  {name}/", first_line(folder / "__init__.py")))
        for inner in sorted(folder.glob("*/__init__.py")):
            lines.append((f"    {inner.parent.name}/", first_line(inner)))
    width = max(len(name) for name, _ in lines) + 2
    body = "\n".join(f"{name:{width}}{about}" for name, about in lines)
    return f"```\nsrc/gazediffusion/\n{body}\n```\n"


def with_tree(page: str, source: Path, order: Sequence[str]) -> str:
    """The text of the page with a current tree between its markers."""
    if not TREE.search(page):
        raise SystemExit(f"error: {PAGE} has no <!-- tree --> ... <!-- /tree -->")
    return TREE.sub(lambda found: tree(source, order), page)


class Function(NamedTuple):
    """A function's name and its lines, decorators and docstring included."""

    name: str
    n_lines: int


def functions(source: Path) -> Iterator[Function]:
    """Every function and method below a source folder."""
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                n_lines = (node.end_lineno or first) - first + 1
                yield Function(f"{path.relative_to(source)}: {node.name}", n_lines)


def public_names(source: Path) -> list[str]:
    """The names in `__all__` of the package."""
    for node in ast.walk(ast.parse((source / "__init__.py").read_text(encoding="utf-8"))):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if target is not None and ast.unparse(target) == "__all__":
            value = getattr(node, "value", None)
            if isinstance(value, ast.List | ast.Tuple):
                return [ast.literal_eval(one) for one in value.elts]
    return []


def measured(source: Path) -> str:
    """Modules, lines, longest modules and functions, and public names, as Markdown tables."""
    n_modules: Counter[str] = Counter()
    n_lines: defaultdict[str, int] = defaultdict(int)
    length: dict[str, int] = {}
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        package = inside.parts[0] + "/" if len(inside.parts) > 1 else "(root)"
        n_modules[package] += 1
        length[str(inside)] = len(path.read_text(encoding="utf-8").splitlines())
        n_lines[package] += length[str(inside)]
    all_functions = list(functions(source))
    median = sorted(one.n_lines for one in all_functions)[len(all_functions) // 2]
    parts = [
        _table(
            ("", str(source)),
            [
                ("modules", str(sum(n_modules.values()))),
                ("lines", f"{sum(n_lines.values()):,}"),
                ("modules in the root folder", str(n_modules["(root)"])),
                ("modules above 400 lines", str(sum(n > 400 for n in length.values()))),
                ("functions", str(len(all_functions))),
                ("lines of the median function", str(median)),
                ("public names", str(len(public_names(source)))),
            ],
        ),
        _table(
            ("package", "modules", "lines"),
            [(name, str(n_modules[name]), f"{n_lines[name]:,}") for name in sorted(n_modules)],
        ),
        _table(("longest modules", "lines"), _longest(list(length.items()))),
        _table(("longest functions", "lines"), _longest(all_functions)),
    ]
    return "\n".join(parts)


def _longest(found: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    longest = sorted(found, key=lambda one: -one[1])[:N_LONGEST]
    return [(f"`{name}`", str(n)) for name, n in longest]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ruler, *rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, check or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="compare the tree only")
    parser.add_argument("--measure", type=Path, nargs="?", const=SOURCE, metavar="SOURCE_FOLDER")
    given = parser.parse_args(arguments)
    if given.measure:
        print(measured(given.measure))
        return
    order = package_order()
    page = PAGE.read_text(encoding="utf-8")
    current = with_tree(page, SOURCE, order)
    if given.check:
        if page != current:
            raise SystemExit("error: the tree of the page is old; run python docs/import_graph.py")
        return
    PAGE.write_text(current, encoding="utf-8")
    print(f"wrote the tree of {PAGE}")
    if given.picture:
        draw(import_graph(SOURCE, order), given.picture)
        print(f"wrote {given.picture}")


if __name__ == "__main__":
    main()
