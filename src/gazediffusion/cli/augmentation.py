"""The command that generates recordings in the style of a study's participants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import out, plain, warn
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
    SameParticipant,
    SplitSeed,
    ValFraction,
    cleaning_of,
    groups_of,
    reads_recordings,
)
from gazediffusion.errors import GazeError


@reads_recordings
def augment(
    paths: Paths,
    output: RecordingsOutput,
    model: Annotated[
        str, typer.Option(help="A steerable model: a run folder or a packaged one.")
    ] = "default",
    times: Annotated[int, typer.Option(help="Synthetic recordings per recording.")] = 5,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="The model's task for tasks that it does not have, or OWN=MODEL (repeatable). "
            "Default: each recording's own task.",
            show_default=False,
        ),
    ] = None,
    losses: Annotated[
        bool, typer.Option("--losses", help="Add blinks and losses of the eye.")
    ] = False,
    labels: Annotated[
        bool | None,
        typer.Option(
            "--labels/--no-labels",
            help="Add the event class of each sample; default: if the study has labels.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Participant who is not augmented; repeatable. Default: the split of prepare.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        Path | None,
        typer.Option(
            help="Windows file of the study; only its training participants are augmented.",
            show_default=False,
        ),
    ] = None,
    val_fraction: ValFraction = 0.2,
    split_seed: SplitSeed = 42,
    same_participant: SameParticipant = None,
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
    """Generate recordings in the style of each participant of a study.

    A recording of participant P07 becomes --times synthetic ones of its length, rate and screen, of
    P07-synthetic-1, P07-synthetic-2 and so on. Participants whom prepare holds out are not
    augmented, so that they can test what is trained with the synthetic recordings; --val-fraction 0
    augments all. The output does not contain the study. Ctrl-C keeps what is generated; the same
    command resumes.

    Example: [bold]gazediffusion augment study/ -o study-synthetic --times 5[/bold]
    """
    import gazediffusion as gd

    if split is not None and held_out:
        raise GazeError("give `held_out` or `split`, not both")
    recordings = gd.read(paths, input_format=format, **reading)
    loaded = gd.load(model, device=device)
    with progress.bars_of(output) as bars:
        written = gd.augment(
            recordings,
            output,
            loaded,
            progress=bars,
            overwrite=overwrite,
            times=times,
            seed=seed,
            task=_task_of(task or []),
            held_out=held_out or None if split is None else gd.Windows.load(split),
            validation_fraction=val_fraction,
            split_seed=split_seed,
            same_participant=groups_of(same_participant),
            cleaning=cleaning_of(eye, blink_before, blink_after, max_speed),
            losses=losses,
            labels=labels,
            quality=quality,
            precision=precision,
            batch_size=batch_size,
        )
    for line in written.warnings:
        warn(line)
    rows = written.card["participants"]
    names = {row["participant"] for row in rows}
    n_recordings = times * sum(row["recordings"] for row in rows)
    minutes = sum(row["synthetic_seconds"] for row in rows) / 60
    held = written.card["split"]["held_out"]
    out.print(
        f"generated {n_recordings} recordings, {minutes:.1f} min, in the style of {len(names)} "
        f"participants; held out: {plain(', '.join(held) or 'nobody')}"
    )
    bars.wrote(written.paths, f"times {times}, model {loaded.name}, seed {seed}")


def _task_of(given: list[str]) -> str | dict[str, str] | None:
    """`movies`, or `search=stills` and others by their own names."""
    pairs = [tuple(word.strip() for word in one.partition("=")) for one in given]
    if all(equals and own and taken for own, equals, taken in pairs):
        return {own: taken for own, _, taken in pairs} or None
    if len(given) == 1 and not pairs[0][1]:
        return given[0]
    raise GazeError(f"`task` must be one task of the model or OWN=MODEL, not {' '.join(given)!r}")
