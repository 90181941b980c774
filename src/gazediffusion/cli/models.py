"""Commands about models: train and generate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import (
    mute_other_processes,
    out,
    plain,
    warn,
)
from gazediffusion.cli.options import (
    Address,
    BatchSize,
    Candidates,
    Compiled,
    Device,
    DistanceCm,
    Engine,
    Origin,
    Overwrite,
    PartSize,
    SaveEvery,
    ScreenCm,
    ScreenPx,
    TrainingPrecision,
    Unit,
    Workers,
    engine_of,
    screen_of,
    windows_or_recordings,
)
from gazediffusion.errors import GazeError, shown
from gazediffusion.storage import place_of, require_writable

_BASELINES = ("kinematic-markov", "positional-markov", "uniform", "gaussian")


def train(
    windows: Annotated[
        list[Path],
        typer.Argument(
            help="A windows file written by prepare; the joint recipe takes several.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run folder.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            help="position, velocity, joint, steerable, or the small position-tiny, velocity-tiny, "
            "joint-tiny, steerable-tiny; by default that of the windows' protocol, or that of "
            "--from.",
            show_default=False,
        ),
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Fine-tune a model: default, another packaged model, or a run folder.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same device: same weights.")] = 42,
    epochs: Annotated[
        int | None, typer.Option(help="Default: the recipe's.", show_default=False)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Default: the recipe's.", show_default=False)
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(help="Default: the recipe's, with --from half of it.", show_default=False),
    ] = None,
    device: Device = "auto",
    precision: TrainingPrecision = "auto",
    compiled: Compiled = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Resume the run in the folder.")
    ] = True,
    save_every: SaveEvery = 60.0,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also log to RUN/tensorboard.")
    ] = False,
) -> None:
    """Train a diffusion model on windows.

    The validation loss is that of the averaged weights on held-out participants, with the same
    noise at every epoch. A model conditioned on summary statistics is calibrated at the end, and
    with recipes joint and steerable distilled, for windows in few evaluations. Ctrl-C
    saves; the same command resumes.

    With few recordings fine-tune the packaged model: --from default. Several GPUs: torchrun
    --nproc-per-node 4 -m gazediffusion train ...

    Example: [bold]gazediffusion train windows.safetensors -o run --recipe joint[/bold]
    """
    import gazediffusion as gd

    mute_other_processes()
    loaded = [gd.Windows.load(path) for path in windows]
    source = None if initial is None else gd.load(initial, device="cpu")
    log = progress.scalar_log(place_of(output) / "tensorboard" if tensorboard else None)
    with progress.training_bars() as (bars, stopped):
        gd.train(
            loaded,
            output,
            recipe,
            initial=source,
            seed=seed,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            device=device,
            precision=precision,
            compiled=compiled,
            resume=resume,
            save_every_s=save_every,
            progress=bars,
            on_epoch=log,
            should_stop=stopped,
            say=bars.say,
        )
    if out.quiet:
        return
    tables.print_run(gd.describe(output))
    out.print(f"wrote {plain(output)}{bars.note}")


def generate(
    context: typer.Context,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="A folder, or a .parquet, .csv, .npz or .safetensors (windows) file.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A run folder, a packaged model (joint, which is the default, or the paper's "
            "position and velocity), or with --fit a baseline: kinematic-markov, "
            "positional-markov, uniform, gaussian or a plug-in's generator."
        ),
    ] = "default",
    fit: Annotated[
        Path | None,
        typer.Option(
            help="Windows file whose training participants a baseline is fitted to.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            help="Number of windows; default: 100, or one per scanpath or target.",
            show_default=False,
        ),
    ] = None,
    quality: Annotated[
        str,
        typer.Option(
            help="default or best: with a distilled network 6 or 40 evaluations; --steps and "
            "--sampler override it."
        ),
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
            help="ddim, or ancestral over every step, for the paper's recipes; distilled or unipc "
            "for joint; auto is that of the quality."
        ),
    ] = "auto",
    task: Annotated[
        str | None,
        typer.Option(
            help="Task of all windows; default: the mixture of tasks in training.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Generate in the style of this recording of one participant (8 s or more without "
            "a gap), or of a windows file written by prepare. --task states its task.",
            show_default=False,
        ),
    ] = None,
    candidates: Candidates = None,
    seed: Annotated[int, typer.Option(help="Same seed, same windows.")] = 0,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the output: parquet, csv, npz, bids, asc or a plug-in's; default: by "
            "the output's ending.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[str, typer.Option(help="best, last, or raw (not averaged).")] = "best",
    batch_size: BatchSize = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Length of every window: any for a steerable model, else up to the model's 8 s.",
            show_default=False,
        ),
    ] = None,
    scanpath: Annotated[
        Path | None,
        typer.Option(
            help="Table of fixations to make: x, y, and optionally onset or duration.",
            show_default=False,
        ),
    ] = None,
    targets: Annotated[
        Path | None,
        typer.Option(
            help="Table of the jumps of a target that gaze follows: time, x, y.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            help="Waypoint SECONDS:X,Y in pixels, such as 2.0:640,360; repeatable.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="First position, X,Y in pixels.", show_default=False),
    ] = None,
    unit: Unit = None,
    origin: Origin = None,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Rate of the windows (Hz), such as 60; default and maximum: the model's.",
            show_default=False,
        ),
    ] = None,
    losses: Annotated[
        bool,
        typer.Option(
            "--losses",
            help="Add blinks and track loss as in the training participants' recordings: missing "
            "samples, and the artefacts of the lid around them.",
        ),
    ] = False,
    labels: Annotated[
        bool,
        typer.Option(
            "--labels",
            help="Add the event class of each sample: fixation, saccade, pursuit or noise. Gaze is "
            "the same without it.",
        ),
    ] = False,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    grid: Annotated[
        float | None, typer.Option(help="Round to the grid of a tracker, such as 0.1 (pixels).")
    ] = None,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="fp32, bf16 (joint alone), or auto: bf16 where it is faster.")
    ] = "auto",
    engine: Engine = None,
    address: Address = None,
    part_size: PartSize = None,
    workers: Workers = None,
    overwrite: Overwrite = False,
) -> None:
    """Generate synthetic gaze with the packaged model, or with your own.

    Every window keeps its task, screen and resolution. Every set comes with a card that says it is
    synthetic, from which model and seed. Ctrl-C keeps what is generated; the same command resumes.

    Example: [bold]gazediffusion generate -n 100 --task reading -o gaze.parquet[/bold]
    """
    import gazediffusion as gd

    if fit is not None or model in _BASELINES:
        _generate_by_baseline(context, output, model, fit, n, seed, format, overwrite)
        return
    parts = engine_of(engine, address, part_size, workers, device)
    where = "auto" if engine == "ray" and device == "cuda" else device  # the workers' GPUs
    loaded = gd.load(model, weights, where)  # type: ignore[arg-type]  # checked there
    if not loaded.is_calibrated:
        warn(f"{model} is not calibrated: the train command that made it calibrates it")
    given = screen_of(screen, screen_cm, distance_cm)
    steering: dict[str, Any] = {}
    if scanpath or targets or at or start:
        on, place = given or loaded.screen_of(task), {"unit": unit, "origin": origin}
        steering = {
            "scanpath": gd.read_scanpaths(scanpath, on, **place) if scanpath else [],  # type: ignore[arg-type]  # checked there
            "targets": gd.read_targets(targets, on, **place) if targets else [],  # type: ignore[arg-type]
            "at": [gd.parse_waypoint(one, on) for one in at or []],
            "start": gd.parse_position(start, on) if start else None,
        }
    if n is None:
        n = max(*(len(steering.get(name, ())) for name in ("scanpath", "targets")), 0) or 100
    kept = f"in {shown(output)}" if parts else None
    with progress.bars_of(output, kept) as bars:
        written = loaded.sample_to(
            output,
            n,
            seed=seed,
            screen=given,
            grid_px=grid,
            seconds=seconds,
            rate_hz=rate,
            losses=losses,
            labels=labels,
            progress=bars,
            say=bars.say,
            overwrite=overwrite,
            task=task,
            like=None if like is None else windows_or_recordings(like, given),
            candidates=candidates,
            quality=quality,
            sampler=sampler,
            steps=steps,
            eta=eta,
            precision=precision,
            batch_size=batch_size,
            **steering,
            format=format,
            parts=parts,
        )
    bars.wrote(written, f"{n} synthetic windows by {loaded.name}, seed {seed}")


def _generate_by_baseline(
    context: typer.Context,
    output: Path,
    name: str,
    fit: Path | None,
    n: int | None,
    seed: int,
    format: str | None,
    overwrite: bool,
) -> None:
    """Generate by one of the paper's statistical baselines, or by a plug-in's generator."""
    import gazediffusion as gd

    for option in context.params.keys() - {"output", "model", "fit", "n", "seed", "format"}:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE" and option != "overwrite":
            raise GazeError(f"a baseline takes no --{option.replace('_', '-')}")
    if fit is None:
        raise GazeError(
            f"the baseline {name} is fitted to recordings",
            remedy="give a windows file written by prepare with --fit",
        )
    require_writable(output)
    n = 100 if n is None else n
    fitted = gd.fit_baseline(name, gd.Windows.load(fit))
    with progress.bars_of(output) as bars:
        if output.suffix == ".safetensors" and format is None:
            bars("generating", 0, n)
            fitted.sample(n, seed).save(output, overwrite=overwrite)
        else:
            how: dict[str, Any] = {"progress": bars, "overwrite": overwrite}
            fitted.sample_to(output, n, seed=seed, format=format, **how)
    bars.wrote([output], f"{n} windows of the baseline {name}, seed {seed}")
