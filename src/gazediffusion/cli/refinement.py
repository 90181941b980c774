"""The command refine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.options import Compiled, Device, SaveEvery, TrainingPrecision


def refine(
    model: Annotated[
        str,
        typer.Argument(
            help="A run folder of recipe joint or steerable, or a packaged model.",
            show_default=False,
        ),
    ],
    windows: Annotated[
        list[Path],
        typer.Argument(help="The windows files that the model was trained on.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The refined run folder.")],
    weight: Annotated[
        float | None,
        typer.Option(
            help="How far the weights are extrapolated, instead of 0.5; 0 changes nothing.",
            show_default=False,
        ),
    ] = None,
    n_windows: Annotated[
        int | None,
        typer.Option("-n", help="Windows to generate, instead of 16,384.", show_default=False),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Instead of 3,000, which take a minute on an H200.", show_default=False),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Windows of a step, instead of 64.", show_default=False),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Instead of 0.0003.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same device: same weights.")] = 0,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    compiled: Compiled = None,
    save_every: SaveEvery = 60.0,
) -> None:
    """Refine a model, against what a deep classifier recognises its gaze by.

    A copy of the model is trained on windows that the model generates, and the model's weights are
    moved away from the copy's (docs/refinement.md). The refined model is calibrated at the end and
    used as any other. Ctrl-C saves; the same command resumes.

    Example: [bold]gazediffusion refine run windows.safetensors -o refined[/bold]
    """
    import gazediffusion as gd

    source = gd.load(model, device="cpu")
    loaded = [gd.Windows.load(path) for path in windows]
    with progress.training_into(output) as (bars, stopped):
        gd.refine(
            source,
            loaded,
            output,
            weight=weight,
            n_windows=n_windows,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            device=device,
            precision=precision,
            compiled=compiled,
            save_every_s=save_every,
            on_generation=bars.on_generation,
            on_step=bars.on_step,
            on_calibration=bars.on_calibration,
            should_stop=stopped,
            say=bars.say,
        )
