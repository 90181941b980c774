"""Links from pages to code: `module: name` leads to the highlighted source.

A code span such as `diffusion.edm: Edm.denoise` becomes a link to the page that sphinx.ext.viewcode
writes of the module, at the name. There "[docs]" leads back.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import PycodeError
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
        if found is None:
            continue
        module, name = f"{PACKAGE}.{found[1]}", found[2]
        if not modules.get(module):
            try:
                analyzer = ModuleAnalyzer.for_module(module)
            except PycodeError:  # the log names modules of then
                continue
            analyzer.find_tags()
            modules[module] = (analyzer.code, analyzer.tags, {}, PACKAGE)
        _, tags, used, _ = modules[module]
        while name and name not in tags:  # a field leads to its class, a constant to the module
            name = name.rpartition(".")[0]
        if name:
            used.setdefault(name, app.env.current_document.docname)
            if f"{PACKAGE}.{name}" not in seen:
                literal["ids"].append(f"{PACKAGE}.{name}")
                seen.add(f"{PACKAGE}.{name}")
        literal["source"] = (module, name)


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
        reference = make_refnode(app.builder, docname, page, name, [literal.deepcopy()])
        parent[at] = reference


def setup(app: Sphinx) -> dict[str, Any]:
    """Collect names when a page is read, link them when it is written."""
    app.connect("doctree-read", collect, priority=400)
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
