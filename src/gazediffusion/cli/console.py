"""What the command line prints: progress on standard error, tables and lines on output.

Tables are built from the library's own summaries; nothing is computed here but percentages.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.data.inspection import TaskSummary
    from gazediffusion.data.recordings import Recording
    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.result import Evaluation
    from gazediffusion.geometry import Screen
    from gazediffusion.training.loop import Epoch

# A pipe has no width of its own, and a table must not be squeezed into 80 columns for it.
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: object) -> str:
    """Text that rich prints as it is."""
    return escape(str(text))


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
def generation_bar(n: int) -> Iterator[Callable[[float], None]]:
    """Progress over windows, with windows per second beside it."""
    begun, first = time.monotonic(), None
    with progress_bar("generating", n, "window") as update:

        def show(done: float) -> None:
            nonlocal first
            first = done if first is None else first
            rate = (done - first) / max(time.monotonic() - begun, 1e-9)
            update(done, f"{rate:.2f} windows/s")

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


class TrainingBar:
    """Progress of training: windows per second, time left, and the latest losses."""

    def __init__(self, n_epochs: int, update: Callable[[float, str], None]) -> None:
        self.n_epochs, self.update = n_epochs, update
        self.losses = ""
        self.first: int | None = None
        self.begun = time.monotonic()
        self.shown = 0.0

    def on_step(self, done: int, total: int) -> None:
        """Hear of `done` windows out of `total`."""
        now = time.monotonic()
        if self.first is None:
            self.first, self.begun = done, now
        if now - self.shown < 0.1 and done < total:
            return
        self.shown = now
        rate = (done - self.first) / max(now - self.begun, 1e-9)
        self.update(done * self.n_epochs / total, f"{rate:.0f} windows/s {self.losses}")

    def on_epoch(self, epoch: Epoch) -> None:
        """Hear of an epoch's losses."""
        held_out = epoch.validation_loss
        self.losses = f"loss {epoch.training_loss:.4f}" + (
            "" if held_out is None else f", held out {held_out:.4f}"
        )


@contextlib.contextmanager
def training_bar(n_epochs: int) -> Iterator[TrainingBar]:
    """A bar over epochs."""
    with progress_bar("training", n_epochs, "epoch") as update:
        yield TrainingBar(n_epochs, update)


class ReproductionWatcher:
    """A line for each part of a reproduction as it begins, and bars for the long ones."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self.should_stop = should_stop
        self.begun = time.monotonic()

    def part(self, name: str) -> None:
        """A part is begun."""
        seconds = time.monotonic() - self.begun
        err.print(f"[dim]{seconds // 60:3.0f}:{seconds % 60:02.0f}[/dim] {plain(name)}")

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
        return generation_bar(n)


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and a polite kill ask for a stop instead of breaking in; yields "was it asked?"."""
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
        # Opened at the first epoch: until then the run folder may still be refused.
        nonlocal writer
        writer = writer or SummaryWriter(str(folder))
        writer.add_scalar("loss/training", epoch.training_loss, epoch.step)
        if epoch.validation_loss is not None:
            writer.add_scalar("loss/held_out", epoch.validation_loss, epoch.step)
        writer.add_scalar("learning_rate", epoch.learning_rate, epoch.step)
        writer.flush()

    return log


def print_run(folder: Path, as_json: bool = False) -> None:
    """What a run is, and how far it has come."""
    from gazediffusion.models.checkpoint import read_config, read_metrics
    from gazediffusion.models.unet import n_parameters

    config = read_config(folder)
    metrics = read_metrics(folder)
    if as_json:
        out.print_json(data={"kind": "run", **config.to_json(), "epochs_done": metrics})
        return
    recipe, data = config.recipe, config.data
    out.print(
        f"[bold]{recipe.name} run[/bold]: {n_parameters(recipe.network):,} parameters, "
        f"seed {config.seed}, {config.precision} on {config.device}, windows of {config.length} "
        f"samples at {config.rate_hz:g} Hz"
    )
    out.print(
        f"trained on {data['n_windows']} windows of "
        f"{data['n_participants'] - data['n_held_out_participants']} people "
        f"({plain(', '.join(data['tasks']))}), {data['n_held_out_windows']} windows of "
        f"{data['n_held_out_participants']} people held out, data sha256 {data['sha256']}"
    )
    done = f"{len(metrics)} of {recipe.epochs} epochs"
    if metrics:
        done += f", training loss {metrics[-1]['training_loss']:.5f}"
        losses = [m["validation_loss"] for m in metrics if m["validation_loss"] is not None]
        if losses:
            best = losses.index(min(losses))
            done += f", held-out loss {losses[-1]:.5f}, best {losses[best]:.5f} at epoch {best}"
    out.print(done)
    out.print(f"made by gazediffusion {config.gazediffusion_version}, torch {config.torch_version}")


def print_evaluation(evaluation: Evaluation) -> None:
    """The headline of an evaluation, after its warnings."""
    out.print(plain(evaluation.headline()), soft_wrap=True)


def inspection_table(summaries: list[TaskSummary], seconds: float) -> Table:
    """One row per task, and their sum."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    table.add_column("format")
    right = ("people", "trials", "rate (Hz)", "eyes", "minutes")
    counted = ("lost", "blinks", "usable", "off screen", "longest run")
    windows = (f"{seconds:g} s windows:\nposition", "\nvelocity")
    for name in (*right, *counted, *windows):
        table.add_column(name, justify="right")
    for one in summaries:
        table.add_row(
            plain(one.task),
            plain(one.format),
            str(len(one.participants)),
            str(one.n_trials),
            ", ".join(sorted(one.rates)) or "-",
            ", ".join(sorted(one.eyes)),
            *_sums([one]),
        )
    if len(summaries) > 1:
        people = set().union(*(one.participants for one in summaries))
        n_trials = sum(one.n_trials for one in summaries)
        table.add_section()
        table.add_row("all", "", str(len(people)), str(n_trials), "", "", *_sums(summaries))
    return table


def _sums(summaries: list[TaskSummary]) -> list[str]:
    """The columns that add up, from minutes to windows."""

    def count(name: str) -> int:
        return sum(getattr(one.counts, name) for one in summaries)

    total = max(count("total"), 1)
    return [
        f"{sum(one.minutes for one in summaries):.1f}",
        f"{count('lost') / total:.1%}",
        str(count("blinks")),
        f"{count('valid') / total:.1%}",
        f"{count('off_screen') / total:.1%}",
        f"{max(one.longest_segment_s for one in summaries):.1f} s",
        str(sum(one.position_windows for one in summaries)),
        str(sum(one.velocity_windows for one in summaries)),
    ]


def screen_words(screen: Screen | None) -> str:
    """A screen in words: `1280x720 px, 40x22.5 cm at 45 cm`."""
    return "unknown" if screen is None else screen.in_words()


def print_windows(windows: Windows) -> None:
    """What the windows are, how many by task and split, and what cleaning dropped."""
    import numpy as np

    grid = f"grid {windows.grid_px:g} px" if windows.grid_px else "no grid"
    scale = f", c_v {windows.velocity_scale:.4f}/s" if windows.velocity_scale else ""
    out.print(
        f"[bold]{windows.protocol} windows[/bold]: {windows.length} samples at "
        f"{windows.rate_hz:g} Hz, {screen_words(windows.screen)}, {grid}{scale}"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    for name in ("people", "training", "windows", "validation", "windows"):
        table.add_column(name, justify="right")
    participant, task, held = windows.participant, windows.task, windows.is_validation
    rows = [(name, task == index) for index, name in enumerate(windows.tasks)]
    if len(rows) > 1:
        rows.append(("all", np.ones(len(windows), dtype=bool)))
    for name, chosen in rows:
        n_people = [len(np.unique(participant[chosen & side])) for side in (~held, held)]
        n_windows = [int((chosen & side).sum()) for side in (~held, held)]
        cells = (sum(n_people), n_people[0], n_windows[0], n_people[1], n_windows[1])
        table.add_row(plain(name), *map(str, cells))
    out.print(table)
    _print_cleaning(windows.provenance)


def _print_cleaning(provenance: Mapping[str, Any]) -> None:
    counts = provenance.get("cleaning", {}).get("all")
    if counts:
        from gazediffusion.data.cleaning import REASONS

        total = max(counts["total"], 1)
        dropped = [
            f"{counts[reason] / total:.2%} {reason.replace('_', ' ')}"
            for reason in REASONS
            if counts[reason]
        ]
        out.print(
            f"cleaning: {counts['total']:,} samples, {counts['valid'] / total:.2%} valid; "
            f"dropped {', '.join(dropped) or 'none'}; {counts['blinks']} blinks; "
            f"{provenance['windows_dropped_off_screen']} windows dropped as off screen"
        )
    without = provenance.get("participants_without_windows")
    if without:
        out.print(f"no window from: {plain(', '.join(without))}")


def print_provenance(provenance: Mapping[str, Any]) -> None:
    """By which version, from which files, with which settings."""
    out.print(f"made by gazediffusion {provenance.get('gazediffusion_version', 'unknown')}")
    out.print(f"data sha256 {provenance.get('data_sha256')}")
    sources = provenance.get("sources", [])
    for source in sources[:10]:
        out.print(
            f"from {plain(source['name'])} ({source['format']}, {source['bytes']:,} bytes, "
            f"sha256 {source['sha256'][:16]}...)"
        )
    if len(sources) > 10:
        out.print(f"and {len(sources) - 10} more files (--json lists all)")
    settings = ", ".join(f"{name}={value}" for name, value in provenance["config"].items())
    out.print(f"settings: {plain(settings)}")
