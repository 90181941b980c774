"""Docstrings of the house as pages: `name: text` of a parameter becomes an item of a list.

A docstring is short plain text. Where a sentence begins with names of parameters or fields and a
colon, it is set as an item; `name` is code, and a link where the name is public.
"""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import gazediffusion

SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
STARRED = re.compile(r"(?<![`\\])(\*+|\|)(?=\w)")


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of one docstring in place."""
    text = constant_text(name.rpartition(".")[2]) if what == "data" else "\n".join(lines)
    names = parameters(thing)
    parts = [_paragraph(part, names) for part in re.split(r"\n\s*\n", inspect.cleandoc(text))]
    lines[:] = "\n\n".join(parts).splitlines()


def parameters(thing: Any) -> set[str]:
    """Names of the parameters of a function, or of the fields of a class."""
    found: set[str] = set()
    if is_dataclass(thing):
        found |= {one.name for one in fields(thing)}
    with suppress(TypeError, ValueError):  # it has no signature
        found |= set(inspect.signature(thing).parameters)
    found |= {one for one in vars(thing) if one[0] != "_"} if inspect.isclass(thing) else set()
    return found


def constant_text(name: str) -> str:
    """The text below the assignment of a public constant."""
    module = import_module(f"gazediffusion.{gazediffusion._HOME[name]}")
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    for node, following in pairwise(body):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if is_text and any(getattr(target, "id", None) == name for target in targets):
            return str(following.value.value)  # type: ignore[attr-defined]
    return ""


def _paragraph(text: str, names: set[str]) -> str:
    if text.lstrip().startswith((">>>", "- ", "* ", "| ")) or re.match(r"(?s)^ {4}", text):
        return text if text.lstrip().startswith(">>>") else "::\n\n" + text.replace("\n", "\n    ")
    joined = " ".join(text.split())
    if not names:
        return _line(joined)
    starts = [
        found.start(1)
        for found in re.finditer(r"(?:^|(?<=[.;] ))((?:`?\w+`?, )*`?\w+`?(?: and \w+)?): ", joined)
        if all(one in names for one in re.findall(r"\w+", found[1]) if one != "and")
    ]
    if not starts:
        return _line(joined)
    pieces = [joined[a:b] for a, b in zip(starts, [*starts[1:], len(joined)], strict=True)]
    items = []
    for piece in pieces:
        given, _, about = piece.partition(": ")
        shown = re.sub(r"`?(?!and\b)\b(\w+)`?", r"``\1``", given)
        items.append(f"- {shown}: {_line(about.strip())}")
    before = _line(joined[: starts[0]].strip())
    return "\n".join([*([before, ""] if before else []), *items])


def _line(text: str) -> str:
    text = SPAN.sub(lambda one: f"\0{one[1]}\1", text)
    text = STARRED.sub(r"\\\1", text)
    return re.sub("\0(.*?)\1", lambda one: _code(one[1]), text)


def _code(text: str) -> str:
    public = text.partition("(")[0].partition(".")[0]
    if public in gazediffusion.__all__ and re.fullmatch(r"[\w.]+", text):
        return f":py:obj:`~gazediffusion.{text}`"
    return f"``{text}``"


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite every docstring that autodoc and autosummary read."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
