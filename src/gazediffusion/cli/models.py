"""Commands about models: train and generate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import console
from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import DistanceCm, ScreenCm, ScreenPx, screen_of
from gazediffusion.errors import GazeError


def train(
    windows: Annotated[
        list[Path],
        typer.Argument(
            help="A windows file made by prepare; joint takes several.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run folder.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            help="position, velocity, joint, or the small position-tiny, velocity-tiny, "
            "joint-tiny; by default what the windows were prepared for, or the recipe of --from.",
            show_default=False,
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Begin with the weights of a model: default, another model inside the package, "
            "or a run folder.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same device: same weights.")] = 42,
    epochs: Annotated[
        int | None, typer.Option(help="Instead of the recipe's.", show_default=False)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Instead of the recipe's.", show_default=False)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="Instead of the recipe's, or of half of it with --from.", show_default=False
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")] = "auto",
    precision: Annotated[
        str, typer.Option(help="auto (the recipe's on a GPU, fp32 elsewhere), fp32 or bf16.")
    ] = "auto",
    compiled: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile",
            help="Build kernels for this machine first; by default on a GPU. On a CPU it needs a "
            "C++ compiler, and long trainings take two thirds of the time.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on with the run in the folder.")
    ] = True,
    save_every: Annotated[
        float, typer.Option(help="Seconds between saved states; a kill loses no more.")
    ] = 60.0,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard.")
    ] = False,
) -> None:
    """Train a diffusion model on windows.

    The validation loss is that of the averaged weights on people nobody trained on, with the same
    noise every epoch. Ctrl-C saves; the same command goes on where it stopped.

    With few recordings begin with a model that has seen many: --from default. A joint model is in
    the end compared with what it is told, and corrected by what it misses.

    Example: [bold]gazediffusion train windows.safetensors -o run --recipe position[/bold]
    """
    from dataclasses import replace

    from gazediffusion.data.windows import Windows
    from gazediffusion.device import choose_device
    from gazediffusion.models.checkpoint import read_config
    from gazediffusion.models.pretrained import load_model
    from gazediffusion.models.recipes import find_recipe
    from gazediffusion.training.calibration import calibrate, is_due, n_made
    from gazediffusion.training.loop import train as train_windows

    _require_seed(seed)
    loaded = [Windows.load(path) for path in windows]
    start = None if begin is None else load_model(begin)
    if start is not None and recipe is None:
        chosen = start.config.recipe
    else:
        chosen = find_recipe(recipe or loaded[0].protocol)
    if learning_rate is None:
        # What a model has learned is not to be shaken off at once.
        learning_rate = chosen.learning_rate if start is None else chosen.learning_rate / 2
    chosen = replace(
        chosen,
        epochs=chosen.epochs if epochs is None else epochs,
        batch_size=chosen.batch_size if batch_size is None else batch_size,
        learning_rate=learning_rate,
    )
    log = console.scalar_log(output / "tensorboard" if tensorboard else None)
    last = None
    with console.stop_on_interrupt() as stopped, console.training_bar(chosen.epochs) as bar:
        epochs_done = train_windows(
            loaded,
            output,
            chosen,
            seed=seed,
            start=start,
            device=device,
            precision=precision,
            compiled=compiled,
            resume=resume,
            save_every_s=save_every,
            should_stop=stopped,
            on_step=bar.on_step,
        )
        for last in epochs_done:
            bar.on_epoch(last)
            log(last)
    if stopped():
        out.print(f"stopped; {plain(output)} is saved, and the same command goes on from there")
        raise typer.Exit(130)
    config = read_config(output)
    if is_due(config):
        out.print("comparing what the model makes with what it is told")
        with console.generation_bar(n_made(config)) as progress:
            calibrate(output, choose_device(device), progress=progress)
    console.print_run(output)
    out.print(f"wrote {plain(output)}" + ("" if last else " (it was complete already)"))


def generate(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A new folder, or a .parquet, .csv or .npz file."),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A run folder, or a model inside the package: joint, which is the default, or the "
            "paper's position and velocity."
        ),
    ] = "default",
    n: Annotated[int, typer.Option("-n", help="How many windows.")] = 100,
    quality: Annotated[
        str, typer.Option(help="fast, default or best; --steps and --sampler go before it.")
    ] = "default",
    steps: Annotated[
        int | None, typer.Option(help="Sampling steps instead of the recipe's.", show_default=False)
    ] = None,
    eta: Annotated[
        float | None,
        typer.Option(help="0 is deterministic, 1 as random as DDPM.", show_default=False),
    ] = None,
    sampler: Annotated[
        str,
        typer.Option(
            help="ddim, or ancestral over every step, for the paper's recipes; unipc, multistep or "
            "heun for joint; auto is the first."
        ),
    ] = "auto",
    task: Annotated[
        str | None,
        typer.Option(
            help="What the person is doing, for a model that was told tasks; a mixture otherwise.",
            show_default=False,
        ),
    ] = None,
    guidance: Annotated[
        float, typer.Option(help="Above 1 exaggerates what the task changes.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Window k of a seed is always the same.")] = 0,
    format: Annotated[
        str | None,
        typer.Option(
            help="parquet, csv, npz, bids or asc; by the output's ending, else parquet.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[str, typer.Option(help="best, last, or raw (not averaged).")] = "best",
    batch_size: Annotated[
        int | None, typer.Option(help="Windows at a time; changes speed only.", show_default=False)
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(help="Keep so much of every window from its start.", show_default=False),
    ] = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    grid: Annotated[
        float | None, typer.Option(help="Round to the tracker's grid, as 0.1 (pixels).")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda ...")] = "auto",
    precision: Annotated[
        str, typer.Option(help="fp32, bf16 (joint alone), or auto: bf16 where it is faster.")
    ] = "auto",
) -> None:
    """Generate synthetic gaze with the model inside the package, or with your own.

    Every set comes with a card that says it is synthetic, from which model and seed. A stopped
    run goes on from the windows it has when the same command is given again.

    Example: [bold]gazediffusion generate -n 100 --task reading -o gaze.parquet[/bold]
    """
    from gazediffusion.device import choose_device
    from gazediffusion.generation.generator import DiffusionGenerator
    from gazediffusion.generation.sets import SetConfig, write_set
    from gazediffusion.models.pretrained import load_model

    ending = output.suffix[1:]
    config = SetConfig(
        n=n,
        seed=seed,
        format=format or (ending if ending in ("csv", "npz") else "parquet"),
        screen=screen_of(screen, screen_cm, distance_cm),
        grid_px=grid,
        seconds=seconds,
    )
    if weights not in ("best", "last", "raw"):
        raise GazeError(f"--weights must be best, last or raw, not {weights!r}")
    on = choose_device(device)
    run = load_model(model, weights, on)  # type: ignore[arg-type]  # checked above
    generator = DiffusionGenerator.of_quality(
        run,
        quality,
        precision,
        sampler,  # type: ignore[arg-type]  # checked there
        steps,
        eta=eta,
        task=task,
        guidance=guidance,
        batch_size=batch_size,
    )
    with console.generation_bar(n) as progress:
        written = write_set(generator, config, output, progress)
    settings = generator.settings
    out.print(
        f"wrote {plain(written[0])}: {n} synthetic windows of "
        f"{config.n_samples(generator) / run.config.rate_hz:g} s by {run.config.recipe.name}, "
        f"{settings['sampler']} {settings['steps']} steps, seed {seed}"
    )
    out.print(f"card: {plain(written[1])}, in words: {plain(written[2])}")


def _require_seed(seed: int) -> None:
    if seed < 0:
        raise GazeError(f"--seed must be 0 or more, not {seed}")
