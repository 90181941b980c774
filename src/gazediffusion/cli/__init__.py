"""The command line: parse, call one public function, print what was written.

Bad input is one line on standard error and exit code 2. It contains no computation; heavy modules
are imported inside the commands, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gazediffusion import __version__
from gazediffusion.cli import (
    about,
    augmentation,
    benchmark,
    evaluation,
    filling,
    labelling,
    models,
    recordings,
    reproduction,
    scoring,
    web,
)
from gazediffusion.cli.console import err, in_flags, out, plain
from gazediffusion.errors import CompleteError, GazeError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Learn how human eyes move from eye-tracker recordings and generate new gaze.\n\n"
    "Typical order: [bold]inspect[/bold] your files, [bold]prepare[/bold] windows from them, "
    "[bold]train[/bold] a model, [bold]generate[/bold] new gaze, [bold]evaluate[/bold] it. "
    "Without recordings, [bold]simulate[/bold] some. --help of a command has its options.",
)


def _version(is_requested: bool) -> None:
    if is_requested:
        out.print(f"gazediffusion {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # By default OpenMP threads busy-wait and slow down other processes.
    # The service sets a passive wait (web/app.py), which a spin count would override.
    if context.invoked_subcommand != "serve" and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")


for command in (
    recordings.simulate,
    recordings.inspect,
    recordings.prepare,
    models.train,
    models.generate,
    filling.fill,
    augmentation.augment,
    labelling.label,
    scoring.score,
    evaluation.evaluate,
    benchmark.benchmark,
    reproduction.reproduce,
    web.serve,
    about.info,
):
    app.command()(command)


def main() -> None:
    """Run the command line; a `GazeError` becomes one line and exit code 2."""
    try:
        app()
    except CompleteError as complete:
        out.print(plain(complete))
    except GazeError as error:
        err.print(f"[bold red]error:[/bold red] {plain(in_flags(str(error)))}")
        sys.exit(2)
