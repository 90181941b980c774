"""The command distill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.options import Compiled, Device, SaveEvery, TrainingPrecision


def distill(
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder of recipe joint or steerable, or a packaged model.",
            show_default=False,
        ),
    ],
    windows: Annotated[
        list[Path],
        typer.Argument(
            help="Windows files written by prepare, of the model's tasks.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The student's run folder.")],
    steps: Annotated[
        int | None,
        typer.Option(
            help="Instead of 6,000, which take six minutes on an H200.", show_default=False
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Windows at each level, instead of 32.", show_default=False),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Instead of 0.0002.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same device: same weights.")] = 0,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    compiled: Compiled = None,
    save_every: SaveEvery = 60.0,
) -> None:
    """Distill a model: a student that takes six evaluations a window instead of fifteen.

    The student is trained to go in one step where the model goes in several (progressive
    distillation, docs/distillation.md), and is calibrated at the end. It is steered as the model
    is; labels, scores and guidance stay with the model. Ctrl-C saves; the same command resumes.

    Example: [bold]gazediffusion distill run windows.safetensors -o student[/bold]
    """
    import gazediffusion as gd

    teacher = gd.load(model, device="cpu")
    loaded = [gd.Windows.load(path) for path in windows]
    with progress.training_into(output) as (bars, stopped):
        gd.distill(
            teacher,
            loaded,
            output,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            device=device,
            precision=precision,
            compiled=compiled,
            save_every_s=save_every,
            on_step=bars.on_distillation,
            on_calibration=bars.on_calibration,
            should_stop=stopped,
            say=bars.say,
        )
