"""The command line: parse, call one public function, print what was written.

Bad input is one line on standard error and exit code 2. It contains no computation; heavy modules
are imported inside the commands, so that `--help` is fast. The options of a command are the groups
of `settings` among its parameters.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from gazediffusion import __version__, settings
from gazediffusion.cli import data, evaluation, models, recordings
from gazediffusion.cli.console import exit_with, out, plain, states
from gazediffusion.errors import CompleteError, GazeError
from gazediffusion.options import Options, command, flags

VERBS = (
    data.simulate,
    data.inspect,
    data.prepare,
    models.train,
    models.generate,
    recordings.fill,
    recordings.augment,
    recordings.label,
    recordings.score,
    evaluation.evaluate,
    evaluation.benchmark,
    evaluation.reproduce,
    models.serve,
    evaluation.info,
)

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


for verb in VERBS:
    app.command()(command(verb, states))


def _stated_elsewhere(flag: str) -> str | None:
    """What to say where a rare option was given as a flag; None of another."""
    name = flag.lstrip("-").replace("-", "_")
    for group in vars(settings).values():
        if isinstance(group, type) and issubclass(group, Options):
            for option, how in flags(group).items():
                if option.startswith(name or "-") and not how.startswith("--no") and " " in how:
                    return f"{flag} is no flag: state it as {how}"
    return None


def main() -> None:
    """Run the command line; an error becomes one line and exit code 2."""
    try:
        code: Any = app(standalone_mode=False)
    except CompleteError as complete:
        out.print(plain(complete))
        sys.exit(0)
    except GazeError as error:
        exit_with(str(error))
    except Exception as error:
        # Of typer, whose own classes of errors are not public.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if not message():  # the help was printed instead
            sys.exit(2)
        elsewhere = _stated_elsewhere(getattr(error, "option_name", ""))
        context = getattr(error, "ctx", None)
        of = f" (see {context.command_path} --help)" if context is not None else ""
        exit_with(elsewhere or f"{message().rstrip('.')}{of}", getattr(error, "exit_code", 2))
    sys.exit(code if isinstance(code, int) else 0)
