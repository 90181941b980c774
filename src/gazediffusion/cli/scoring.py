"""The command that scores windows: which are odd to a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from gazediffusion.cli import progress
from gazediffusion.cli.console import err, out, plain, warn
from gazediffusion.cli.options import (
    BatchSize,
    BlinkAfter,
    BlinkBefore,
    Device,
    EyeOption,
    Format,
    MaxSpeed,
    Overwrite,
    cleaning_of,
    reads_recordings,
)
from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.scoring.scores import Scores

_SHOWN = 10


@reads_recordings
def score(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings: files, folders or quoted globs; or one windows file of prepare.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .parquet or .csv file.", show_default=False),
    ] = None,
    model: Annotated[
        str, typer.Option(help="A run folder of joint or steerable, or the packaged model.")
    ] = "default",
    task: Annotated[
        str | None,
        typer.Option(
            help="Task that the model is given for all windows; default: the recording's own if "
            "the model has it.",
            show_default=False,
        ),
    ] = None,
    likelihood: Annotated[
        bool,
        typer.Option(
            "--likelihood/--no-likelihood",
            help="Compute the log-likelihood, which takes most of the time.",
        ),
    ] = True,
    steps: Annotated[int, typer.Option(help="Steps of the likelihood's solver.")] = 16,
    draws: Annotated[int, typer.Option(help="Draws of noise and trace probes per likelihood.")] = 2,
    stride: Annotated[
        float | None,
        typer.Option(help="Seconds between windows; default: their length.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Folder for one picture per recording.", show_default=False),
    ] = None,
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(
            help="Windows files with training and held-out participants; writes the quantiles that "
            "percentiles need into the run folder of --model, first. May be repeated.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", help="Windows of each task for --calibrate, at most.")
    ] = 500,
    seed: Annotated[int, typer.Option(help="Same seed, same scores.")] = 0,
    format: Format = "auto",
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    batch_size: BatchSize = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Score every window of recordings: which are odd, where and at which scale.

    Columns of the output: the log-likelihood by the probability-flow equation, the denoising error,
    and the distance of its profile over noise levels, each with its percentile among windows of
    held-out participants. Windows that cannot be cut are counted. The oddest windows are printed.

    Example: [bold]gazediffusion score study/ -o scores.parquet --plot odd[/bold]
    """
    import gazediffusion as gd

    settings: dict[str, Any] = {
        "has_likelihood": likelihood, "n_steps": steps, "n_draws": draws, "seed": seed,
    }  # fmt: skip
    if not paths and not calibrate:
        raise GazeError("there is nothing to score", remedy="name recordings")
    if paths and output is None:
        raise GazeError("the scores need a file", remedy="give `output`, as -o scores.parquet")
    loaded = gd.load(model, device=device)
    if calibrate:
        parts = [gd.Windows.load(path) for path in calibrate]
        with _bars() as bars:
            written = gd.calibrate_scores(
                loaded, parts, n=n, batch_size=batch_size, progress=bars, overwrite=overwrite,
                **settings,
            )  # fmt: skip
        out.print(f"wrote {plain(written)}")
    if not paths or output is None:
        return
    given = _windows_file(paths) or gd.read(paths, input_format=format, **reading)
    with _bars() as bars:
        scores = gd.score(
            given,
            output,
            loaded,
            plot=plot,
            task=task,
            stride_s=stride,
            cleaning=cleaning_of(eye, blink_before, blink_after, max_speed),
            batch_size=batch_size,
            progress=bars,
            overwrite=overwrite,
            **settings,
        )
    for note in scores.notes:
        warn(note)
    _print(scores)
    out.print(scores.coverage.in_words(scores.windows.length / scores.windows.rate_hz))
    out.print(f"wrote {plain(output)}: {len(scores)} windows, model {loaded.name}, seed {seed}")
    if plot is not None:
        out.print(f"pictures: {plain(plot)}")


@contextmanager
def _bars() -> Iterator[progress.Bars]:
    """Bars over windows; Ctrl-C leaves no output."""
    with progress.shown() as bars:
        try:
            yield bars
        except KeyboardInterrupt:
            bars.close()
            err.print("stopped; nothing is written")
            raise typer.Exit(130) from None


def _windows_file(paths: list[str]) -> Path | None:
    """The one path that is a windows file; None where the paths are recordings."""
    if not any(path.endswith(".safetensors") for path in paths):
        return None
    if len(paths) > 1:
        raise GazeError("a windows file is scored alone", remedy="name one file")
    return Path(paths[0])


def _print(scores: Scores) -> None:
    """The oddest windows first."""
    columns, order = scores.columns, scores.order[:_SHOWN]
    titles = {
        "recording": "recording", "participant": "participant", "task": "task", "trial": "trial",
        "onset_ms": "onset (s)", "profile_percentile": "profile %",
        "denoising_error_percentile": "error %", "log_likelihood_percentile": "likelihood %",
        "denoising_error": "error", "log_likelihood": "log-likelihood",
        "oddest_level": "odd at sigma", "oddest_span_ms": "odd from (s)",
    }  # fmt: skip
    table = Table(title=f"oddest of {len(scores)} windows")
    shown = [name for name in titles if columns[name].dtype == object or _is_known(columns[name])]
    for name in shown:
        table.add_column(titles[name], justify="left" if columns[name].dtype == object else "right")
    for row in order:
        table.add_row(*(_cell(name, columns[name][row]) for name in shown))
    out.print(table)


def _is_known(values: Any) -> bool:
    return not bool((values != values).all())


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return plain(value)
    if name.endswith("_ms"):
        return f"{value / 1000:.1f}"
    return f"{value:.1f}" if name.endswith("percentile") else f"{value:.3g}"
