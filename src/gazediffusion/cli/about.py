"""The command that says what a file or folder is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazediffusion.cli import tables
from gazediffusion.cli.console import out, plain
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.data.windows import Windows


def info(
    path: Annotated[
        Path,
        typer.Argument(help="A windows file, a run folder or a synthetic set.", show_default=False),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for a program.")] = False,
    bound: Annotated[
        Path | None,
        typer.Option(
            help="A windows file: estimate a run's variational bound on its held-out people.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what a file or folder is, how it was made, and from what.

    Example: [bold]gazediffusion info windows.safetensors[/bold]
    """
    from gazediffusion.generation.sets import read_card, readme_of

    if not path.exists():
        raise GazeError("there is no such file or folder", path=path)
    card = read_card(path)
    if card is not None:
        out.print_json(data=card) if as_json else out.print(plain(readme_of(card, path.suffix[1:])))
        return
    if path.is_dir():
        tables.print_run(path, as_json)
        if bound is not None:
            _print_bound(path, bound)
        return
    from gazediffusion.data.windows import Windows

    windows = Windows.load(path)
    if as_json:
        out.print_json(data=_as_json(windows))
        return
    tables.print_windows(windows)
    tables.print_provenance(windows.provenance)


def _print_bound(run_folder: Path, windows: Path) -> None:
    from gazediffusion.data.windows import Windows
    from gazediffusion.models.checkpoint import load_run
    from gazediffusion.training.loop import held_out_bound

    estimate = held_out_bound(load_run(run_folder), Windows.load(windows))
    out.print(
        f"variational bound on held-out windows: {estimate.total:.4f} nats per dimension "
        f"(prior {estimate.prior:.2g}, diffusion {estimate.diffusion:.4f}, "
        f"reconstruction {estimate.reconstruction:.4f})"
    )


def _as_json(windows: Windows) -> dict[str, Any]:
    return {
        "kind": "windows",
        "recipe": windows.protocol,
        "n_windows": len(windows),
        "length": windows.length,
        "rate_hz": windows.rate_hz,
        "screen": asdict(windows.screen),
        "participants": list(windows.participants),
        "validation": sorted(windows.validation),
        "tasks": list(windows.tasks),
        "grid_px": windows.grid_px,
        "velocity_scale": windows.velocity_scale,
        "provenance": dict(windows.provenance),
    }
