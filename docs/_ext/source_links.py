"""Links from pages to code: `module: name` leads to the highlighted source.

A code span such as `diffusion.edm: Edm.denoise` becomes a link to the page that sphinx.ext.viewcode
writes of the module, at the name. There "[docs]" leads back.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext.viewcode import OUTPUT_DIRNAME
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

PACKAGE = "gazediffusion"
NAMED = re.compile(r"([a-z_.]+): ([A-Za-z_.0-9]+)")


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Have viewcode write the modules that a page names, with an anchor for each name."""
    modules = app.env.__dict__.setdefault("_viewcode_modules", {})
    seen: set[str] = set()
    for literal in doctree.findall(nodes.literal):
        found = NAMED.fullmatch(literal.astext())
        home = None if found is None else home_of(f"{PACKAGE}.{found[1]}", found[2])
        if found is None or home is None:  # the log names modules of then
            continue
        name = found[2]
        if not modules.get(home):
            analyzer = ModuleAnalyzer.for_module(home)
            analyzer.find_tags()
            modules[home] = (analyzer.code, analyzer.tags, {}, PACKAGE)
        code, tags, used, _ = modules[home]
        for assigned, span in assignments(code).items():
            tags.setdefault(assigned, span)
        while name and name not in tags:  # what is inherited leads to its class
            name = name.rpartition(".")[0]
        if name:
            used.setdefault(name, app.env.current_document.docname)
            if f"{PACKAGE}.{name}" not in seen:
                literal["ids"].append(f"{PACKAGE}.{name}")
                seen.add(f"{PACKAGE}.{name}")
        literal["source"] = (home, name)


def home_of(module: str, name: str) -> str | None:
    """The module that defines what a module names; None where there is no such module."""
    try:
        thing = getattr(import_module(module), name.partition(".")[0], None)
    except ModuleNotFoundError:
        return None
    home = str(getattr(thing, "__module__", module))
    return home if home.startswith(PACKAGE) else module


def assignments(code: str) -> dict[str, tuple[str, int, int]]:
    """Constants of a module and fields of its classes as tags of viewcode: kind, first, last."""
    found = {}
    body = ast.parse(code).body
    classes = [one for one in body if isinstance(one, ast.ClassDef)]
    owners = [("", body), *((f"{one.name}.", one.body) for one in classes)]
    for prefix, statements in owners:
        for node in statements:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                found[prefix + ast.unparse(target)] = ("other", node.lineno, node.end_lineno)
    return found


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn the code spans that `collect` found into links."""
    if app.builder.format != "html":
        return
    for literal in list(doctree.findall(nodes.literal)):
        if "source" not in literal or isinstance(literal.parent, nodes.reference):
            continue
        module, name = literal["source"]
        page = f"{OUTPUT_DIRNAME}/{module.replace('.', '/')}"
        parent, at = literal.parent, literal.parent.index(literal)
        parent[at] = make_refnode(app.builder, docname, page, name, [literal.deepcopy()])


def setup(app: Sphinx) -> dict[str, Any]:
    """Collect names when a page is read, link them when it is written."""
    app.connect("doctree-read", collect, priority=400)
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
