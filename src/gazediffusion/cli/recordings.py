"""Commands about recordings: simulate, inspect, prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import in_flags, out, plain
from gazediffusion.cli.options import (
    Address,
    BlinkAfter,
    BlinkBefore,
    EyeOption,
    FileEngine,
    FileWorkers,
    Format,
    MaxSpeed,
    Overwrite,
    Paths,
    SameParticipant,
    SplitSeed,
    Tasks,
    ValFraction,
    cleaning_of,
    groups_of,
    reads_recordings,
)
from gazediffusion.errors import GazeError
from gazediffusion.storage import require_free, size_of


def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder.")],
    participants: Annotated[int, typer.Option(help="Number of participants.")] = 10,
    minutes: Annotated[float, typer.Option(help="Minutes of gaze per participant.")] = 2.0,
    format: Annotated[
        str, typer.Option(help="asc, csv, parquet, bids, columns or a plug-in's.")
    ] = "parquet",
    rate: Annotated[float, typer.Option(help="Samples per second.")] = 1000.0,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Simulate eye-tracker recordings whose true events are known.

    Saccades on the main sequence, fixational drift and tremor, blinks and losses, on the
    tracker's 0.1 px grid: data without a licence, for trying the package and testing detectors.
    It is a hand-written model, not a trained one.

    Example: [bold]gazediffusion simulate -o sim --participants 20 --format bids[/bold]
    """
    import gazediffusion as gd

    config = gd.SimulationConfig(
        n_participants=participants, minutes=minutes, seed=seed, rate_hz=rate
    )
    with progress.shown() as bars:
        written = gd.write_simulation(config, output, format, bars, overwrite=overwrite)
    out.print(
        f"wrote {plain(output)}: {participants} participants, {minutes:g} min each at {rate:g} Hz, "
        f"{len(written)} files, true events in {plain(_truth_of(written))}"
    )


@reads_recordings
def inspect(
    paths: Paths,
    format: Format = "auto",
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    rate: Annotated[float, typer.Option(help="Rate of the counted windows (Hz).")] = 250.0,
    seconds: Annotated[float, typer.Option(help="Length of the counted windows (s).")] = 8.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw one recording in both representations (.png, .svg, .pdf)."),
    ] = None,
    plot_participant: Annotated[
        str | None, typer.Option(help="Participant to draw; default: the first with enough gaze.")
    ] = None,
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Inspect recordings: participants, tasks, rate, duration, losses, and windows they give.

    Example: [bold]gazediffusion inspect study/ --screen 1920x1080 --plot look.png[/bold]
    """
    import gazediffusion as gd

    if plot is not None:
        require_free(plot, overwrite)
    recordings = gd.read(paths, input_format=format, **reading)
    cleaning = cleaning_of(eye, blink_before, blink_after, max_speed)
    config = gd.PrepareConfig(rate_hz=rate, seconds=seconds, cleaning=cleaning)
    with progress.shown() as bars:
        summaries = gd.inspect(recordings, config, bars)
    for summary in summaries:
        out.print(tables.inspection_table(summary, config.seconds))
    for note in sorted({note for summary in summaries for note in summary.notes}):
        out.print(f"note: {plain(in_flags(note))}")
    if plot is not None:
        title = gd.plot_recording(recordings, config, plot, plot_participant, overwrite=overwrite)
        out.print(f"wrote {plain(plot)}: {plain(title)}")


@reads_recordings
def prepare(
    paths: Paths,
    output: Annotated[Path, typer.Option("-o", "--output", help="The windows file to write.")],
    protocol: Annotated[
        str, typer.Option(help="position (windows slide) or velocity (windows do not overlap).")
    ] = "position",
    rate: Annotated[float, typer.Option(help="Samples per second of the windows.")] = 250.0,
    seconds: Annotated[float, typer.Option(help="Length of a window (s).")] = 8.0,
    stride: Annotated[
        int | None,
        typer.Option(
            help="Samples between window starts; default: one second for position, one window for "
            "velocity.",
            show_default=False,
        ),
    ] = None,
    task: Tasks = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(
            help="Rename a task, OLD=NEW; several tasks may get the same name.",
            show_default=False,
        ),
    ] = None,
    format: Format = "auto",
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    min_valid: Annotated[
        float,
        typer.Option(help="Exclude participants with a smaller share of valid samples."),
    ] = 0.0,
    max_calibration_error: Annotated[
        float | None,
        typer.Option(
            help="Exclude participants with a larger calibration error (degrees), where files "
            "state it.",
            show_default=False,
        ),
    ] = None,
    val_fraction: ValFraction = 0.2,
    split_seed: SplitSeed = 42,
    same_participant: SameParticipant = None,
    targets: Annotated[
        Path | None,
        typer.Option(
            help="Table of the jumps of a target: participant, trial, t_ms, x_px, y_px.",
            show_default=False,
        ),
    ] = None,
    engine: FileEngine = "local",
    workers: FileWorkers = None,
    address: Address = None,
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Turn recordings into clean, split, documented training windows.

    Lost samples, blinks and impossible speeds divide a recording into valid segments. Windows are
    cut within segments, and participants, never windows, are split. The output is one safetensors
    file.

    Example: [bold]gazediffusion prepare study/ -o windows.safetensors --screen 1280x720
    --screen-cm 40x22.5 --distance-cm 45[/bold]

    Thousands of files: [bold]--workers 8[/bold] reads them in 8 processes, [bold]--engine
    ray[/bold] by a cluster.
    """
    import gazediffusion as gd

    config = gd.PrepareConfig(
        protocol=protocol,  # type: ignore[arg-type]  # checked by the config itself
        rate_hz=rate,
        seconds=seconds,
        stride_s=None if stride is None else stride / rate,
        tasks=tuple(task or ()),
        task_names=tuple(_pair(one) for one in rename or ()),
        validation_fraction=val_fraction,
        split_seed=split_seed,
        same_participant=groups_of(same_participant),
        cleaning=cleaning_of(eye, blink_before, blink_after, max_speed),
        min_valid=min_valid,
        max_calibration_error_deg=max_calibration_error,
    )
    recordings = gd.read(paths, input_format=format, **reading)
    with progress.shown() as bars:
        windows = gd.prepare(
            recordings,
            config,
            bars,
            output=output,
            overwrite=overwrite,
            targets=targets,
            engine=engine,
            n_workers=workers,
            address=address,
        )
    tables.print_windows(windows)
    out.print(
        f"wrote {plain(output)}{bars.note}: {len(windows)} windows, {size_of(output) / 1e6:.1f} MB"
    )


def _pair(words: str) -> tuple[str, str]:
    old, equals, new = (word.strip() for word in words.partition("="))
    if not equals or not old or not new:
        raise GazeError(f"`task_names` must look like OLD=NEW, not {words!r}")
    return old, new


def _truth_of(written: list[Path]) -> Path:
    return next(path for path in written if path.name == "events.csv")
