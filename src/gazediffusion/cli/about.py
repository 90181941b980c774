"""The command that describes a file or folder, and lists what is installed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import out, plain


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A windows file, a run folder, a packaged model or a synthetic set; without it, "
            "plug-ins are listed.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    bound: Annotated[
        Path | None,
        typer.Option(
            help="A windows file: estimate a run's variational bound on its held-out participants.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Describe a file or folder: what it is, from which data, settings and versions.

    Example: [bold]gazediffusion info windows.safetensors[/bold]
    """
    import gazediffusion as gd

    if path is None:
        _list_installed()
        return
    if bound is not None:
        model, windows = gd.load(path), gd.Windows.load(bound)
        with progress.shown() as bars:
            estimate = model.variational_bound(windows, progress=partial(bars, "variational bound"))
    if as_json:
        described = gd.describe(path)
        if bound is not None:
            described |= {"variational_bound": estimate.to_json()}
        out.print_json(data=described)
        return
    tables.print_description(path)
    if bound is not None:
        tables.print_bound(estimate, model.config.recipe.representation)


def _list_installed() -> None:
    """The readers, exporters, metrics and generators of plug-ins."""
    import gazediffusion as gd

    groups = ("readers", "exporters", "metrics", "generators")
    found = [one for group in groups for one in gd.find_plugins(group).values()]  # type: ignore[arg-type]
    for one in found:
        out.print(plain(f"{one.group.removesuffix('s')} {one.name}: {one.package}"))
    if not found:
        out.print("no plug-ins are installed")
