"""What every command prints with: output, errors, warnings and the end of a stopped command."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from gazediffusion.errors import shown
from gazediffusion.storage import is_remote

# A pipe has no width of its own, and a table must not be squeezed into 80 columns for it.
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: object) -> str:
    """Text that rich prints as it is; a path as the user names it."""
    return escape(shown(text))


def kept_place(output: Path) -> str:
    """Where unfinished work on an output is kept."""
    return "on this machine" if is_remote(output) else f"beside {output}"


def mute_other_processes() -> None:
    """Of the processes of torchrun the first prints, and errors the first of each machine."""
    if "WORLD_SIZE" in os.environ:
        out.quiet = os.environ.get("RANK", "0") != "0"
        err.quiet = os.environ.get("LOCAL_RANK", "0") != "0"


def warn(text: str) -> None:
    """One line on standard error; the command continues."""
    err.print(f"[bold yellow]warning:[/bold yellow] {plain(text)}")


def exit_stopped(what: object) -> NoReturn:
    """End a command that was stopped: one line that says what is saved and how to resume."""
    out.print(f"{plain(what)}; the same command resumes")
    raise typer.Exit(130)


# Arguments of the library whose flag is not their name with dashes.
FLAGS = {
    "blink_after_ms": "--blink-after",
    "blink_before_ms": "--blink-before",
    "compiled": "--compile",
    "grid_px": "--grid",
    "initial": "--from",
    "max_calibration_error_deg": "--max-calibration-error",
    "max_gap_s": "--max-gap",
    "max_speed_deg_s": "--max-speed",
    "n": "-n",
    "n_bootstrap": "--bootstrap",
    "n_draws": "--draws",
    "n_participants": "--participants",
    "n_steps": "--steps",
    "n_workers": "--workers",
    "rate_hz": "--rate",
    "real": "--real",
    "recordings": "--data",
    "save_every_s": "--save-every",
    "source_rate_hz": "--source-rate",
    "stride_s": "--stride",
    "task_names": "--rename",
    "tasks": "--task",
    "validation_fraction": "--val-fraction",
    "width_cm": "--screen-cm",
}


def in_flags(message: str) -> str:
    """An error of the library with its `arguments` as the flags of the command line."""
    return re.sub(
        r"`([a-z][a-z0-9_]*)`", lambda m: FLAGS.get(m[1], f"--{m[1].replace('_', '-')}"), message
    )
