"""The command that labels the events of recordings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import warn
from gazediffusion.cli.options import (
    BatchSize,
    BlinkAfter,
    BlinkBefore,
    Device,
    EyeOption,
    Format,
    MaxSpeed,
    Overwrite,
    Paths,
    Precision,
    RecordingsOutput,
    cleaning_of,
    reads_recordings,
)


@reads_recordings
def label(
    paths: Paths,
    output: RecordingsOutput,
    model: Annotated[
        str, typer.Option(help="A model with labels: a run folder or a packaged one.")
    ] = "default",
    format: Format = "auto",
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    batch_size: BatchSize = None,
    device: Device = "auto",
    precision: Precision = "auto",
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Label every sample of recordings: fixation, saccade, pursuit or noise.

    The network that generates gaze labels it, as GazeCom's hand labels taught it. Gaze is written
    as it was read. Lost samples, and the flanks of blinks, are noise; --blink-before 0
    --blink-after 0 labels the flanks. Labels that the recordings have are replaced. Ctrl-C keeps
    what is labelled; the same command resumes.

    Example: [bold]gazediffusion label study/P01.asc -o labelled.parquet[/bold]
    """
    import gazediffusion as gd

    recordings = gd.read(paths, input_format=format, **reading)
    loaded = gd.load(model, device=device)

    with progress.bars_of(output) as bars:
        written = gd.label(
            recordings,
            output,
            loaded,
            progress=bars,
            overwrite=overwrite,
            cleaning=cleaning_of(eye, blink_before, blink_after, max_speed),
            precision=precision,
            batch_size=batch_size,
        )
    for line in written.warnings:
        warn(line)
    total = sum(written.n_samples.values())
    shares = ", ".join(f"{name} {n / total:.1%}" for name, n in written.n_samples.items())
    bars.wrote(written.paths, f"{total} samples ({shares}), model {loaded.name}")
