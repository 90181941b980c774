"""The command that describes a file or folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import tables
from gazediffusion.cli.console import out


def info(
    path: Annotated[
        str,
        typer.Argument(
            help="A windows file, a run folder, a packaged model or a synthetic set.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for a program.")] = False,
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

    if as_json:
        out.print_json(data=gd.describe(path))
    else:
        tables.print_description(path)
    if bound is not None:
        estimate = gd.load(path).variational_bound(gd.Windows.load(bound))
        out.print(
            f"variational bound on held-out windows: {estimate.total:.4f} nats per dimension "
            f"(prior {estimate.prior:.2g}, diffusion {estimate.diffusion:.4f}, "
            f"reconstruction {estimate.reconstruction:.4f})"
        )
