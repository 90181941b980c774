"""The command that evaluates a generator's file on the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import in_flags, out, plain, warn
from gazediffusion.cli.options import Overwrite, reads_recordings
from gazediffusion.storage import require_free, require_writable


@reads_recordings
def benchmark(
    file: Annotated[
        str,
        typer.Argument(
            help="Generated gaze: windows file, recordings, .npz; or a run folder or packaged "
            "model, whose windows are generated.",
            show_default=False,
        ),
    ],
    task: Annotated[str, typer.Option(help="reading, dots or movies.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The .json file to submit; by default NAME-TASK.json.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the row; default: that of the file.")
    ] = None,
    trained_on: Annotated[
        str, typer.Option(help="Data that the generator was trained on, as shown in the table.")
    ] = "",
    link: Annotated[str, typer.Option(help="Address of the generator's page.")] = "",
    version: Annotated[
        int | None,
        typer.Option(help="Version of the definition; default: the newest.", show_default=False),
    ] = None,
    real: Annotated[
        Path | None,
        typer.Option(
            help="A windows file of recordings: networks are trained to tell FILE from its "
            "training participants and tested on the held-out ones (deep two-sample test). "
            "Minutes on a GPU, tens of minutes on two cores.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Evaluate a generator's file against held-out participants, in figures that others can cite.

    Prints the row beside that of real windows and writes it as JSON. No recordings are needed. The
    benchmark compares 300 windows of 8 s at 250 Hz: of more a fixed draw is taken, fewer are
    refused. Definitions have a version and never change.

    Example: [bold]gazediffusion benchmark gaze.parquet --task reading --name ours[/bold]
    """
    import gazediffusion as gd

    stem = name or Path(file).stem
    output = output or Path(f"{stem.replace(' ', '-').replace('/', '-')}-{task}.json")
    require_free(output, overwrite)
    require_writable(output)
    with progress.steps_line() as step:
        row = gd.benchmark(
            file,
            task,
            name=name,
            trained_on=trained_on,
            link=link,
            version=version,
            real=real,
            progress=step,
            **reading,
        )
    row.save(output, overwrite=overwrite)
    for line in row.warnings:
        warn(in_flags(line))
    tables.print_benchmark(row)
    out.print(f"wrote {plain(output)}; how to submit it: docs/howto/evaluate_a_generator.md")
