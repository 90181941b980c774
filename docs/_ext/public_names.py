"""Pages of the reference: the public names of the package, and the commands with their options."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import gazediffusion

# A section of the reference and the modules whose public names it holds, in this order.
SECTIONS = {
    "Generate and train": ("model", "datasets", "generation", "models"),
    "Recordings and windows": ("geometry", "data"),
    "Whole studies": ("studies", "scoring"),
    "Evaluate": ("evaluation",),
    "Draw, describe, reproduce": ("plotting", "description", "reproduction"),
    "Errors": ("errors",),
}


def sections() -> dict[str, list[str]]:
    """The public names of each section; a name of no section is one of the last, `Others`."""
    home = gazediffusion._HOME
    found: dict[str, list[str]] = {title: [] for title in (*SECTIONS, "Others")}
    for name in gazediffusion.__all__:
        package = home.get(name, "").split(".")[0]
        titles = [title for title, packages in SECTIONS.items() if package in packages]
        if package:
            found[(titles or ["Others"])[0]].append(name)
    for title, packages in SECTIONS.items():
        found[title].sort(key=lambda name: packages.index(home[name].split(".")[0]))
    return {title: names for title, names in found.items() if names}


def write_api(folder: Path) -> None:
    """Write the index of the reference and the page of commands into a folder."""
    folder.mkdir(exist_ok=True)
    lines = [
        "# Python reference",
        "",
        "Every public name of the package (`import gazediffusion as gd`). Each has an example,",
        "which the tests run. Names are loaded when first used. Shapes and units are in the text:",
        "`normalized` runs from -1 to 1 over the screen, y down.",
        "",
    ]
    for title, names in sections().items():
        lines += [f"## {title}", "", "```{eval-rst}"]
        lines += [".. currentmodule:: gazediffusion", "", ".. autosummary::"]
        lines += ["   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        lines += ["```", ""]
    _write(folder / "index.md", "\n".join(lines))
    _write(folder / "commands.md", commands())


def commands() -> str:
    """The commands of the command line and their options, as one page of Markdown."""
    import typer

    from gazediffusion.cli import app

    verbs: Any = typer.main.get_command(app)
    parts = [
        "# Commands",
        "",
        "`gazediffusion COMMAND --help` prints the same. An input error is one line with the file,",
        "the place and the remedy, and exit code 2.",
        "",
    ]
    for verb, command in verbs.commands.items():
        about = inspect.cleandoc(command.help or "").replace("\b", "")
        about, _, example = _unmarked(about).partition("Example: ")
        shown = [_usage(verb, command), *([" ".join(example.split())] if example else [])]
        parts += [f"## {verb}", "", _plain(about).strip(), "", "```text", *shown, "```", ""]
        rows = [_row(one) for one in command.params if not getattr(one, "hidden", False)]
        parts += ["| option | meaning | default |", "|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _usage(verb: str, command: Any) -> str:
    arguments = [
        f"{(one.name or '').upper()}{'...' if one.nargs != 1 else ''}"
        for one in command.params
        if one.param_type_name == "argument"
    ]
    return " ".join(["gazediffusion", verb, *arguments, "[OPTIONS]"])


def _row(one: Any) -> str:
    is_argument = one.param_type_name == "argument"
    names = [(one.name or "").upper()] if is_argument else [*one.opts, *one.secondary_opts]
    default = one.default
    if default is None or callable(default) or default in ((), []):
        default = "required" if one.required else ""
    elif default is False:
        default = "off"
    elif default is True:
        default = "on"
    default = getattr(default, "value", default)
    about = _plain(" ".join((getattr(one, "help", None) or "").split())).replace("|", "\\|")
    shown = f"`{default}`" if default not in ("", "required", "off", "on") else default
    return f"| {' '.join(f'`{name}`' for name in names)} | {about} | {shown} |"


def _unmarked(text: str) -> str:
    """Help text without the markup of rich."""
    return re.sub(r"\[/?(?:bold|dim|italic|cyan|green)\]", "", text)


def _plain(text: str) -> str:
    """Help text without what Markdown would take for markup."""
    return re.sub(r"([<>*_$\[\]])", r"\\\1", _unmarked(text))


def _write(path: Path, text: str) -> None:
    """Write a file unless it has this text, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
