"""The command that runs the paper's experiments again."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import err, out, plain
from gazediffusion.cli.options import Format, Tasks, reads_recordings, screen_options
from gazediffusion.storage import require_writable


@reads_recordings
def reproduce(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder of all artefacts and results; it is resumed."),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Recordings: a file, a folder, or pymovements:NAME; may be repeated. Not needed "
            "to resume, nor with --tiny, which simulates recordings.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Build this table only; may be repeated.", show_default=False),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            help="Train this run and generate its sets, nothing else; may be repeated. Where one "
            "machine has not the time for all: sets and histories of several are "
            "copied into one folder.",
            show_default=False,
        ),
    ] = None,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="Tiny networks: the whole pipeline in minutes.")
    ] = False,
    until: Annotated[
        str,
        typer.Option(
            help="Stop after windows (recordings read), samples (all GPU work) or results."
        ),
    ] = "results",
    so_far: Annotated[
        bool,
        typer.Option("--so-far", help="Train nothing; write the tables that the runs allow."),
    ] = False,
    task: Tasks = None,
    format: Format = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda ...")] = "auto",
    *,
    reading: dict[str, Any],
) -> None:
    """Reproduce the paper's experiments on your recordings: every table and figure.

    Trains three seeds of both models and an ablation (an hour on an H200; on a CPU use --tiny),
    generates, evaluates, and writes OUTPUT/results: README.md, results.json and figures. Each
    number stands beside the paper's and the real-vs-real floor. Every artefact is kept: the same
    command resumes, and OUTPUT can be moved between machines.

    Example: [bold]gazediffusion reproduce --data study/ --screen 1280x720 --screen-cm 40x22.5
    --distance-cm 45 -o reproduction[/bold]
    """
    import gazediffusion as gd

    require_writable(output)
    shown = {"--data": data, "--task": task, **screen_options(reading["screen"])}
    command = _command(shown, tiny, output)

    def recordings() -> gd.Recordings:
        return gd.read(data or [], input_format=format, **reading)

    begun = time.monotonic()
    with progress.training_bars() as (bars, stopped):

        def say(part: str) -> None:
            seconds = time.monotonic() - begun
            bars.close()
            err.print(f"[dim]{seconds // 60:3.0f}:{seconds % 60:02.0f}[/dim] {plain(part)}")

        results = gd.reproduce(
            output,
            recordings if data else None,
            tiny=tiny,
            tasks=task or (),
            only=only or (),
            runs=run or (),
            until=until,  # type: ignore[arg-type]  # checked there
            so_far=so_far,
            command=command,
            device=device,
            progress=bars,
            should_stop=stopped,
            say=say,
        )
    reached = f": {', '.join(run)}" if run else f": all up to {until}"
    out.print(f"wrote {plain(results or output)}" + ("" if results else reached))


def _command(options: dict[str, Any], tiny: bool, output: Path) -> str:
    """The command as the page shows it; options that were given in lists are repeated."""
    words = ["gazediffusion", "reproduce"]
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [option, f"{one}"]
    return shlex.join([*words, *(["--tiny"] if tiny else []), "-o", output.name])
