"""Commands about recordings themselves: simulate, inspect, prepare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import show
from gazediffusion.cli.console import bar, in_flags, out, plain, show_reading
from gazediffusion.settings import PrepareConfig, Reading, SimulationConfig, Working
from gazediffusion.storage import require_free, size_of

Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, quoted globs, URLs (s3://bucket/study), or "
        "[bold]pymovements:NAME[/bold] for a public dataset.",
        show_default=False,
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output of the same command.")
]


def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder.")],
    config: SimulationConfig,
    format: Annotated[
        str, typer.Option(help="asc, csv, parquet, bids, columns or a plug-in's.")
    ] = "parquet",
    overwrite: Overwrite = False,
) -> None:
    """Simulate eye-tracker recordings whose true events are known.

    Saccades on the main sequence, fixational drift and tremor, blinks and losses, on the
    tracker's 0.1 px grid: data without a licence, for trying the package and testing detectors.
    It is a hand-written model, not a trained one.

    Example: [bold]gazediffusion simulate -o sim --participants 20 --format bids[/bold]
    """
    import gazediffusion as gd

    with bar() as shown:
        written = gd.write_simulation(config, output, format, shown, overwrite=overwrite)
    truth = next(path for path in written if path.name == "events.csv")
    out.print(
        f"wrote {plain(output)}: {config.n_participants} participants, {config.minutes:g} min each "
        f"at {config.rate_hz:g} Hz, {len(written)} files, true events in {plain(truth)}"
    )


def inspect(
    paths: Paths,
    reading: Reading,
    rate: Annotated[float, typer.Option(help="Rate of the counted windows (Hz).")] = 250.0,
    seconds: Annotated[float, typer.Option(help="Length of the counted windows (s).")] = 8.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw one recording in both representations (.png, .svg, .pdf)."),
    ] = None,
    plot_participant: Annotated[
        str | None, typer.Option(help="Participant to draw; default: the first with enough gaze.")
    ] = None,
    write_study: Annotated[
        bool,
        typer.Option(
            "--write-study",
            help="Write study.yaml beside the recordings: how they are read, for all commands.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Inspect recordings: participants, tasks, rate, duration, losses, and windows they give.

    What options state about the recordings is kept with --write-study, for all other commands.
    Rarer facts (eye, padding of blinks, participants in file names) are stated in that file alone.

    Example: [bold]gazediffusion inspect study/ --screen 1920x1080 --write-study[/bold]
    """
    import gazediffusion as gd

    if plot is not None:
        require_free(plot, overwrite)
    recordings = gd.read(paths, reading)
    show_reading(recordings)
    config = PrepareConfig(rate_hz=rate, seconds=seconds, cleaning=recordings.reading.cleaning)
    with bar() as shown:
        summaries = gd.inspect(recordings, config, shown)
    for summary in summaries:
        out.print(show.inspection_table(summary, config.seconds))
    for note in sorted({note for summary in summaries for note in summary.notes}):
        out.print(f"note: {plain(in_flags(note))}")
    if plot is not None:
        title = gd.plot_recording(recordings, config, plot, plot_participant, overwrite=overwrite)
        out.print(f"wrote {plain(plot)}: {plain(title)}")
    if write_study:
        out.print(f"wrote {plain(gd.write_study(recordings, overwrite))}")


def prepare(
    paths: Paths,
    output: Annotated[Path, typer.Option("-o", "--output", help="The windows file to write.")],
    reading: Reading,
    config: PrepareConfig,
    working: Working,
    targets: Annotated[
        Path | None,
        typer.Option(
            help="Table of the jumps of a target: participant, trial, t_ms, x_px, y_px.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
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

    recordings = gd.read(paths, reading)
    show_reading(recordings)
    config = replace(config, cleaning=recordings.reading.cleaning)
    with bar() as shown:
        windows = gd.prepare(
            recordings,
            config,
            shown,
            output=output,
            overwrite=overwrite,
            targets=targets,
            **vars(working),
        )
    show.print_windows(windows)
    what = f"{len(windows)} windows, {size_of(output) / 1e6:.1f} MB"
    out.print(f"wrote {plain(output)}{shown.note}: {what}")
