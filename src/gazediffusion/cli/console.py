"""What every command prints with: output, errors by their flags, and how far work is."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from gazediffusion.errors import GazeError, StoppedError, shown
from gazediffusion.options import stated
from gazediffusion.storage import is_remote

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings
    from gazediffusion.training.training import Epoch

# A pipe has no width of its own, and a table must not be squeezed into 80 columns for it.
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_REFRESH_S = 0.1
# Phases of work of which a stopped call keeps windows.
_DONE = {"generating": "generated", "filling": "filled", "labelling": "labelled"}
# How the command at work states what errors of the library name; others are --NAME.
_FLAGS: dict[str, str] = {}
_OTHER_FLAGS = {
    "initial": "--from",
    "recordings": "--data",
    "stride_s": "--stride",
    "width_cm": "--screen-cm",
}


def plain(text: object) -> str:
    """Text that rich prints as it is; a path as the user names it."""
    return escape(shown(text))


def states(flags: Mapping[str, str]) -> None:
    """Errors name options by these flags from now on."""
    _FLAGS.clear()
    _FLAGS.update(_OTHER_FLAGS | dict(flags))


def in_flags(message: str) -> str:
    """A message of the library with its `arguments` as the flags of the command line."""
    return re.sub(
        r"`([a-z][a-z0-9_]*)`", lambda m: _FLAGS.get(m[1], f"--{m[1].replace('_', '-')}"), message
    )


def warn(text: str) -> None:
    """One line on standard error; the command continues."""
    err.print(f"[bold yellow]warning:[/bold yellow] {plain(in_flags(text))}")


def exit_with(problem: str, code: int = 2) -> NoReturn:
    """End the command with one line on standard error."""
    err.print(f"[bold red]error:[/bold red] {plain(in_flags(problem))}")
    sys.exit(code)


def show_reading(recordings: Recordings) -> None:
    """Say what the `study.yaml` beside recordings states, as it is used."""
    if recordings.study is not None:
        words = ", ".join(f"{name} {value}" for name, value in stated(recordings.reading).items())
        out.print(f"by {plain(recordings.study)}: {plain(words or 'nothing but defaults')}")


def show_written(work: Bar, paths: Sequence[Path], what: str) -> None:
    """Say what was written, or was there, and where its card and its README are."""
    note = "" if work.phases & _DONE.keys() else " (it was complete already)"
    out.print(f"wrote {plain(paths[0])}{note}: {plain(what)}")
    if len(paths) > 1:
        out.print(f"card: {plain(paths[1])}, in words: {plain(paths[2])}")


def mute_other_processes() -> None:
    """Of the processes of torchrun the first prints, and errors the first of each machine."""
    if "WORLD_SIZE" in os.environ:
        out.quiet = os.environ.get("RANK", "0") != "0"
        err.quiet = os.environ.get("LOCAL_RANK", "0") != "0"


def kept_place(output: Path) -> str:
    """Where unfinished work on an output is kept."""
    return "on this machine" if is_remote(output) else f"beside {output}"


class Bar:
    """How far work is: a bar on standard error for each phase, with rate and time left."""

    def __init__(self) -> None:
        self.phase = ""
        self.phases: set[str] = set()
        self.done, self.total = 0.0, 0.0
        self._first, self._begun, self._shown = 0.0, 0.0, 0.0
        self._stack = contextlib.ExitStack()
        self._update: Callable[..., None] = lambda **changed: None

    def __call__(self, phase: str, done: float, total: float = 0, note: str = "") -> None:
        """`done` of `total` are done of a phase; a total of 0 is not known."""
        now = time.monotonic()
        if phase != self.phase:
            self._begin(phase, done, total, now)
        elif now - self._shown < _REFRESH_S and done < total:
            self.done = done
            return
        self._shown, self.done, self.total = now, done, total
        rate = (done - self._first) / max(now - self._begun, 1e-9)
        words = f"{rate:.2f}/s {note}" if total else note
        self._update(completed=done, total=total or None, note=plain(words))

    def _begin(self, phase: str, done: float, total: float, now: float) -> None:
        from rich import progress

        self.close()
        self.phase, self._first, self._begun = phase, done, now
        self.phases.add(phase)
        columns = (
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}"),
            *((progress.BarColumn(), progress.MofNCompleteColumn()) if total else ()),
            progress.TextColumn("{task.fields[note]}"),
            progress.TimeElapsedColumn(),
            *((progress.TextColumn("left"), progress.TimeRemainingColumn()) if total else ()),
        )
        bar = self._stack.enter_context(progress.Progress(*columns, console=err, transient=True))
        task = bar.add_task(plain(phase), total=total or None, note="")
        self._update = lambda **changed: bar.update(task, **changed)

    @property
    def note(self) -> str:
        """What is said beside an output that was not made again."""
        return "" if self.phases else " (it was complete already)"

    def say(self, line: str) -> None:
        """A line on output, below which the bar goes on."""
        self.close()
        out.print(plain(line))

    def close(self) -> None:
        """Remove the bar."""
        self._stack.close()
        self.phase = ""


@contextlib.contextmanager
def bar(output: Path | None = None, kept: str | None = None) -> Iterator[Bar]:
    """A bar; Ctrl-C and a stop end the command with a line that says what is kept.

    output: beside which unfinished work is kept; None where nothing is. kept: where it is instead.
    """
    work = Bar()
    try:
        yield work
    except StoppedError as stop:
        work.close()
        out.print(f"{plain(stop)}; the same command resumes")
        raise typer.Exit(130) from None
    except KeyboardInterrupt:
        phase, done, total = work.phase, work.done, work.total
        work.close()
        if output is None:
            err.print("stopped; nothing is written")
            raise typer.Exit(130) from None
        words = "nothing is done yet"
        if phase in _DONE:
            where = kept or kept_place(output)
            words = f"{done:.0f} of {total:.0f} windows are {_DONE[phase]} and kept {where}"
        out.print(f"stopped; {plain(words)}; the same command resumes")
        raise typer.Exit(130) from None
    finally:
        work.close()


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM request a stop instead of an exception; yields "is it requested?"."""
    asked: list[int] = []
    before = {
        number: signal.signal(number, lambda received, _: asked.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def scalar_log(folder: Path | None) -> Callable[[Epoch], None]:
    """A function that logs epochs to TensorBoard; one that does nothing without a folder."""
    if folder is None:
        return lambda epoch: None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise GazeError(
            "TensorBoard is not installed", remedy="pip install 'gazediffusion[tensorboard]'"
        ) from error
    writer: Any = None

    def log(epoch: Epoch) -> None:
        # Opened at the first epoch: until then the run folder may be refused.
        nonlocal writer
        writer = writer or SummaryWriter(str(folder))
        writer.add_scalar("loss/training", epoch.training_loss, epoch.step)
        if epoch.validation_loss is not None:
            writer.add_scalar("loss/held_out", epoch.validation_loss, epoch.step)
        writer.add_scalar("learning_rate", epoch.learning_rate, epoch.step)
        writer.flush()

    return log
