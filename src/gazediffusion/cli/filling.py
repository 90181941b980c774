"""The command that fills the gaps of recordings."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import out, warn
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
    Quality,
    RecordingsOutput,
    cleaning_of,
    reads_recordings,
)


@reads_recordings
def fill(
    paths: Paths,
    output: RecordingsOutput,
    model: Annotated[
        str, typer.Option(help="A steerable model: a run folder or a packaged one.")
    ] = "default",
    draws: Annotated[
        int, typer.Option(help="Draws per gap; several are written to folders draw-1, draw-2 ...")
    ] = 1,
    max_gap: Annotated[
        float, typer.Option(help="Longest gap that is filled (s, padding included).")
    ] = 1.0,
    task: Annotated[
        str | None,
        typer.Option(
            help="Task that the model is given; default: the recording's own if the model has it.",
            show_default=False,
        ),
    ] = None,
    quality: Quality = "default",
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
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
    """Fill blinks and losses of recordings with a steerable model.

    Each gap up to --max-gap is sampled given the gaze on both sides. Known samples are kept, filled
    ones are marked, and longer gaps, and those at the beginning or end of a recording, stay lost.
    The flanks of a blink are part of its gap; --blink-before 0 --blink-after 0 keeps them. Ctrl-C
    keeps what is sampled; the same command resumes.

    Example: [bold]gazediffusion fill study/P01.asc -o filled --draws 5[/bold]
    """
    import gazediffusion as gd

    recordings = gd.read(paths, input_format=format, **reading)
    loaded = gd.load(model, device=device)

    with progress.bars_of(output) as bars:
        written = gd.fill(
            recordings,
            output,
            loaded,
            progress=bars,
            overwrite=overwrite,
            draws=draws,
            seed=seed,
            max_gap_s=max_gap,
            task=task,
            cleaning=cleaning_of(eye, blink_before, blink_after, max_speed),
            quality=quality,
            precision=precision,
            batch_size=batch_size,
        )
    for line in written.warnings:
        warn(line)
    counts = written.counts
    if counts.gaps == 0:
        out.print("no gap: the recordings are written as they are")
    else:
        out.print(
            f"filled {counts.filled} of {counts.gaps} gaps, {counts.filled_samples} of "
            f"{counts.samples} samples; still lost: {counts.too_long} longer than {max_gap:g} s, "
            f"{counts.at_ends} at the beginning or end of a recording"
        )
    bars.wrote(written.paths, f"draws {draws}, model {loaded.name}, seed {seed}")
