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
    from gazediffusion.data.preparing import FileRead
    from gazediffusion.data.recordings import Recording
    from gazediffusion.training.training import Epoch

_REFRESH_S = 0.1


@contextlib.contextmanager
def progress_bar(name: str, total: int, unit: str) -> Iterator[Callable[[float, str], None]]:
    """A bar with count, rate and time left; call it with (done, note). Gone when done."""
    from rich import progress as bars

    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn(unit + " {task.completed:.0f}/{task.total:.0f}"),
        bars.TextColumn("{task.fields[note]}"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(name, total=total, note="")
        yield lambda done, note: progress.update(task, completed=done, note=note)


@contextlib.contextmanager
def recording_bar(name: str, n_files: int) -> Iterator[Callable[[Recording], None]]:
    """Progress over files, with the samples read per second beside it."""
    seen: set[Path] = set()
    n_samples = 0
    begun = time.monotonic()
    with progress_bar(name, n_files, "file") as update:

        def show(recording: Recording) -> None:
            nonlocal n_samples
            n_samples += len(recording)
            seen.add(recording.path)
            rate = n_samples / max(time.monotonic() - begun, 1e-9) / 1e6
            update(len(seen) - 1, f"{rate:.1f} M samples/s")

        yield show


@contextlib.contextmanager
def file_bar(name: str, n_files: int) -> Iterator[Callable[[FileRead], None]]:
    """Progress over files that several processes read, with the samples read per second."""
    n_done, n_samples, begun = 0, 0, time.monotonic()
    with progress_bar(name, n_files, "file") as update:

        def show(file: FileRead) -> None:
            nonlocal n_done, n_samples
            n_done, n_samples = n_done + 1, n_samples + file.n_samples
            rate = n_samples / max(time.monotonic() - begun, 1e-9) / 1e6
            update(n_done, f"{rate:.1f} M samples/s")

        yield show


class WindowsBar:
    """Progress over windows, with windows per second beside it; call it with the number done."""

    def __init__(self, name: str, n: int, unit: str = "window") -> None:
        self.unit = unit
        self.done = 0.0
        self.note = ""
        self._first: float | None = None
        self._begun = time.monotonic()
        self._bar = progress_bar(name, n, unit)
        self._update = self._bar.__enter__()

    def __call__(self, done: float) -> None:
        """`done` windows are generated."""
        self.done = done
        self._first = done if self._first is None else self._first
        rate = (done - self._first) / max(time.monotonic() - self._begun, 1e-9)
        self._update(done, f"{rate:.2f} {self.unit}s/s {self.note}")

    def close(self) -> None:
        """Remove the bar."""
        self._bar.__exit__(None, None, None)


@contextlib.contextmanager
def windows_bar(name: str, n: int) -> Iterator[WindowsBar]:
    """A bar over windows, removed at the end."""
    bar = WindowsBar(name, n)
    try:
        yield bar
    finally:
        bar.close()


class Bars:
    """Bars of a job, one for each phase of its work: what functions take as `progress`."""

    def __init__(self) -> None:
        self.phase, self.done, self.total = "", 0.0, 0.0
        self._bar: WindowsBar | None = None
        self._shown = 0.0

    def __call__(self, phase: str, done: float, total: float, note: str = "") -> None:
        """So much of a phase is done."""
        now, is_new = time.monotonic(), phase != self.phase
        self.done, self.total = done, total
        if now - self._shown < _REFRESH_S and done < total and not is_new:
            return
        self._shown = now
        if is_new or self._bar is None:
            self.close()
            self.phase = phase
            self._bar = WindowsBar(phase, int(total), _UNITS.get(phase, "window"))
        self._bar.note = note
        self._bar(done)

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
            self._bar.close()
        self._bar = None


_UNITS = {"reading": "file"}
_DONE = {
    "generating": "generated",
    "filling": "filled",
    "labelling": "labelled",
    "training": "trained on",
    "distilling": "distilled on",
    "calibrating": "generated",
}


@contextlib.contextmanager
def bars_of(output: Path, kept: str | None = None) -> Iterator[Bars]:
    """Bars of a job; Ctrl-C ends the command with a line that says what is kept of the output."""
    bars = Bars()
    try:
        yield bars
    except KeyboardInterrupt:
        bars.close()
        if bars.phase not in _DONE:
            exit_stopped("stopped; nothing is done yet")
        what = f"{bars.done:.0f} of {bars.total:.0f} windows are {_DONE[bars.phase]}"
        exit_stopped(f"stopped; {what} and kept {kept or kept_place(output)}")
    finally:
        bars.close()


@contextlib.contextmanager
def evaluations_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Progress over evaluations of a network, with their rate; call it with (done, total)."""
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        update: Callable[[float, str], None] | None = None

        def show(done: int, total: int) -> None:
            nonlocal update
            update = update or stack.enter_context(progress_bar(name, total, "evaluation"))
            update(done, f"{done / max(time.monotonic() - begun, 1e-9):.1f}/s")

        yield show


Step = Callable[[str], None]


@contextlib.contextmanager
def steps_line() -> Iterator[Step]:
    """One line on standard error that names the part at work and the time it has taken."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        yield lambda name: progress.update(task, description=plain(name))


class ReproductionWatcher:
    """A line for each part of a reproduction as it begins, and bars for the long ones."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self.should_stop = should_stop
        self.begun = time.monotonic()

    def part(self, name: str) -> None:
        """A part starts."""
        seconds = time.monotonic() - self.begun
        err.print(f"[dim]{seconds // 60:3.0f}:{seconds % 60:02.0f}[/dim] {plain(name)}")

    def preparing(
        self, protocol: str, n_files: int
    ) -> contextlib.AbstractContextManager[Callable[[Recording], None]]:
        """A bar over the files of recordings."""
        return recording_bar(f"preparing {protocol}", n_files)

    @contextlib.contextmanager
    def training(self, n_runs: int, n_windows: int) -> Iterator[Callable[[str, int], None]]:
        """A bar over the windows of all runs."""
        done_by: dict[str, int] = {}
        first: dict[str, int] = {}
        begun, shown = time.monotonic(), 0.0
        with progress_bar(f"training {n_runs} runs", n_windows, "window") as update:

            def show(run: str, done: int) -> None:
                nonlocal shown
                done_by[run] = done
                first.setdefault(run, done)
                now = time.monotonic()
                if now - shown > 0.2:
                    shown = now
                    total = sum(done_by.values())
                    rate = (total - sum(first.values())) / max(now - begun, 1e-9)
                    update(total, f"{rate:.0f} windows/s")

            yield show

    def generating(self, n: int) -> contextlib.AbstractContextManager[Callable[[float], None]]:
        """A bar over the windows of a set."""
        return windows_bar("generating", n)


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
    bars = Bars()
    with stop_on_interrupt() as stopped:
        try:
            yield bars, stopped
        except StoppedError as stop:
            bars.close()
            exit_stopped(stop)
        finally:
            bars.close()
