"""The command distill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.options import Compiled, Device, SaveEvery, TrainingPrecision
from gazediffusion.errors import GazeError
from gazediffusion.storage import is_remote


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
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="A new run folder that the model is copied to; by default its own.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Instead of 6,000, which take five minutes on an H200.", show_default=False
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Windows at each level, instead of 32.", show_default=False),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Instead of 0.001.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same device: same weights.")] = 0,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    compiled: Compiled = None,
    save_every: SaveEvery = 60.0,
) -> None:
    """Add a distilled network to a model: six evaluations a window instead of fifteen.

    It is trained to go in one step where the model goes in several (progressive distillation,
    docs/distillation.md), and is calibrated at the end. Qualities default and fast then take it;
    best, labels and scores stay with the model. train does the same at its end. Ctrl-C
    saves; the same command resumes.

    Example: [bold]gazediffusion distill run windows.safetensors[/bold]
    """
    import gazediffusion as gd

    if output is None and not (is_remote(model) or Path(model).is_dir()):
        raise GazeError(f"{model} is no run folder", remedy="name a new one with -o")
    folder = Path(model) if output is None else output
    teacher = gd.load(model, device="cpu")
    loaded = [gd.Windows.load(path) for path in windows]
    with progress.training_into(folder) as (bars, stopped):
        gd.distill(
            teacher,
            loaded,
            folder,
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
