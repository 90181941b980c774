"""Progress of long commands on standard error: bars with rate and time left, and interrupts."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.cli.console import err, exit_stopped, kept_place, out, plain
from gazediffusion.errors import GazeError, StoppedError

if TYPE_CHECKING:
    from rich.progress import Progress

    from gazediffusion.training.training import Epoch

_REFRESH_S = 0.1


class Bars:
    """Bars of a job, one for each phase of its work: what functions take as `progress`.

    A bar has count, rate, the note of the work, and the time left; it is removed at the end.
    """

    def __init__(self) -> None:
        self.phase, self.done, self.total = "", 0.0, 0.0
        self._first, self._begun, self._shown = 0.0, 0.0, 0.0
        self._bar: Progress | None = None

    def __call__(self, phase: str, done: float, total: float, note: str = "") -> None:
        """So much of a phase is done."""
        now, is_new = time.monotonic(), phase != self.phase
        self.done, self.total = done, total
        if now - self._shown < _REFRESH_S and done < total and not is_new:
            return
        self._shown = now
        unit = _UNITS.get(phase, "window")
        if is_new or self._bar is None:
            self.close()
            self.phase, self._first, self._begun = phase, done, now
            self._bar = _bar(unit)
            self._bar.start()
            self._bar.add_task(phase, total=total, note="")
        rate = (done - self._first) / max(now - self._begun, 1e-9)
        note = f"{rate:.2f} {unit}s/s {note}"
        self._bar.update(self._bar.task_ids[0], completed=done, note=note)

    @property
    def note(self) -> str:
        """What is said beside an output that was not made again."""
        return "" if self.phase in _DONE else " (it was complete already)"

    def wrote(self, paths: Sequence[Path], what: str) -> None:
        """Say what was written, or that it was there: a set, and its card where it has one."""
        out.print(f"wrote {plain(paths[0])}{self.note}: {what}")
        if len(paths) > 1:
            out.print(f"card: {plain(paths[1])}, in words: {plain(paths[2])}")

    def say(self, line: str) -> None:
        """A line on output, below which the bar goes on."""
        self.close()
        out.print(plain(line))

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = None


def _bar(unit: str) -> Progress:
    from rich import progress as bars

    return bars.Progress(
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn(unit + " {task.completed:.0f}/{task.total:.0f}"),
        bars.TextColumn("{task.fields[note]}"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
        console=err,
        transient=True,
    )


_UNITS = {"reading": "file", "simulating": "participant", "variational bound": "evaluation"}
_DONE = {
    "generating": "generated",
    "filling": "filled",
    "labelling": "labelled",
    "training": "trained on",
    "distilling": "distilled on",
    "calibrating": "generated",
    "reading": "read",
}


@contextlib.contextmanager
def shown() -> Iterator[Bars]:
    """Bars, removed at the end."""
    bars = Bars()
    try:
        yield bars
    finally:
        bars.close()


@contextlib.contextmanager
def bars_of(output: Path, kept: str | None = None) -> Iterator[Bars]:
    """Bars of a job; Ctrl-C ends the command with a line that says what is kept of the output."""
    with shown() as bars:
        try:
            yield bars
        except KeyboardInterrupt:
            bars.close()
            if bars.phase not in _DONE or bars.phase == "reading":
                exit_stopped("stopped; nothing is done yet")
            what = f"{bars.done:.0f} of {bars.total:.0f} windows are {_DONE[bars.phase]}"
            exit_stopped(f"stopped; {what} and kept {kept or kept_place(output)}")


Step = Callable[[str], None]


@contextlib.contextmanager
def steps_line() -> Iterator[Step]:
    """One line on standard error that names the part at work and the time it has taken."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda name: progress.update(task, description=plain(name))


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


@contextlib.contextmanager
def training_bars() -> Iterator[tuple[Bars, Callable[[], bool]]]:
    """Bars of a training, and whether it is to stop; a training that stops ends the command."""
    with stop_on_interrupt() as stopped, shown() as bars:
        try:
            yield bars, stopped
        except StoppedError as stop:
            bars.close()
            exit_stopped(stop)
