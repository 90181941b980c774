"""Pages of the reference: the public names of the package, and the commands with their options."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import gazediffusion

# Sections of the reference, in this order; a name of none is one of the last, `Others`.
SECTIONS = {
    "Generate and train": "load Model train RECIPES Recipe list_models Parts fit_baseline Baseline "
    "Synthesizer distill",
    "Recordings and windows": "Screen read Recording Recordings EVENT_CLASSES inspect prepare "
    "Windows style_windows Scanpath read_scanpaths Targets read_targets parse_waypoint "
    "parse_position simulate write_simulation from_frame from_pymovements from_mne",
    "Whole studies": "fill label augment score calibrate_scores Scores",
    "Evaluate": "evaluate evaluate_files real_windows Evaluation DeepTest benchmark BenchmarkRow",
    "Settings": "CleaningConfig PrepareConfig SimulationConfig EvaluationConfig DeepConfig",
    "Draw, describe, reproduce": "plot_windows plot_recording describe reproduce",
    "Plug-ins and errors": "find_plugins Plugin GazeError StoppedError",
}


def sections() -> dict[str, list[str]]:
    """The public names of each section."""
    public = [name for name in gazediffusion.__all__ if not name.startswith("__")]
    found = {
        title: [one for one in names.split() if one in public] for title, names in SECTIONS.items()
    }
    placed = {name for names in found.values() for name in names}
    found["Others"] = [name for name in public if name not in placed]
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
