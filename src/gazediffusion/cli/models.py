"""Commands about models: train and use one, and serve them in the browser."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import show
from gazediffusion.cli.console import (
    bar,
    mute_other_processes,
    out,
    plain,
    scalar_log,
    show_written,
    stop_on_interrupt,
    warn,
)
from gazediffusion.cli.data import Overwrite
from gazediffusion.errors import GazeError, shown
from gazediffusion.options import stated
from gazediffusion.settings import (
    Finishing,
    Generating,
    Loading,
    Numbered,
    Partitioning,
    Reading,
    Steering,
    Training,
)
from gazediffusion.storage import place_of, require_writable
from gazediffusion.web.settings import Limits, Settings

_BASELINES = ("kinematic-markov", "positional-markov", "uniform", "gaussian")
_WEB_NEEDS = ("fastapi", "uvicorn", "plotly", "python_multipart")


def train(
    windows: Annotated[
        list[Path],
        typer.Argument(
            help="A windows file written by prepare; the joint recipe takes several.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The run folder.")],
    training: Training,
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
    log = scalar_log(place_of(output) / "tensorboard" if tensorboard else None)
    with bar(output) as shown_bar, stop_on_interrupt() as stopped:
        gd.train(
            loaded,
            output,
            recipe,
            training,
            initial=source,
            progress=shown_bar,
            on_epoch=log,
            should_stop=stopped,
            say=shown_bar.say,
        )
    if out.quiet:
        return
    show.print_run(gd.describe(output))
    out.print(f"wrote {plain(output)}{shown_bar.note}")


def generate(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="A folder, or a .parquet, .csv, .npz or .safetensors (windows) file.",
        ),
    ],
    loading: Loading,
    numbered: Numbered,
    generating: Generating,
    steering: Steering,
    finishing: Finishing,
    partitioning: Partitioning,
    fit: Annotated[
        Path | None,
        typer.Option(
            help="A windows file that a baseline is fitted to: --model kinematic-markov, "
            "positional-markov, uniform, gaussian or a plug-in's generator.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the output: parquet, csv, npz, bids, asc or a plug-in's; default: by "
            "the output's ending.",
            show_default=False,
            rich_help_panel="Output",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Generate synthetic gaze with the packaged model, or with your own.

    Every window keeps its task, screen and resolution. Every set comes with a card that says it is
    synthetic, from which model and seed. Ctrl-C keeps what is generated; the same command resumes.

    Example: [bold]gazediffusion generate -n 100 --task reading -o gaze.parquet[/bold]
    """
    import gazediffusion as gd

    if fit is not None or loading.model in _BASELINES:
        groups = (generating, steering, finishing, partitioning)
        for name in (name for group in groups for name in stated(group)):
            raise GazeError(f"a baseline takes no `{name}`")
        _generate_by_baseline(output, loading.model, fit, numbered, format, overwrite)
        return
    engine, device = partitioning.engine, loading.device
    if engine is None:
        for name in stated(partitioning):
            raise GazeError(f"`{name}` needs `engine`")
    where = "auto" if engine == "ray" and device == "cuda" else device  # the workers' GPUs
    model = gd.load(loading.model, loading.weights, where)
    if not model.is_calibrated:
        warn(f"{loading.model} is not calibrated: the train command that made it calibrates it")
    screen = finishing.given_screen()
    steering = model.read_steering(steering, screen, generating.task)
    n = numbered.n or max(len(steering.scanpath), len(steering.targets)) or 100
    parts = None if engine is None else gd.Parts(**vars(partitioning), device=device)
    kept = None if engine is None else f"in {shown(output)}"
    with bar(output, kept) as shown_bar:
        written = model.sample_to(
            output,
            n,
            generating,
            steering,
            finishing,
            seed=numbered.seed,
            progress=shown_bar,
            say=shown_bar.say,
            overwrite=overwrite,
            format=format,
            parts=parts,
        )
    show_written(shown_bar, written, f"{n} synthetic windows by {model.name}, seed {numbered.seed}")


def _generate_by_baseline(
    output: Path,
    name: str,
    fit: Path | None,
    numbered: Numbered,
    format: str | None,
    overwrite: bool,
) -> None:
    """Generate by one of the paper's statistical baselines, or by a plug-in's generator."""
    import gazediffusion as gd

    if fit is None:
        raise GazeError(
            f"the baseline {name} is fitted to recordings",
            remedy="give a windows file written by prepare with `fit`",
        )
    require_writable(output)
    n, seed = numbered.n or 100, numbered.seed
    with bar() as shown_bar:
        shown_bar(f"fitting {name}", 0)
        fitted = gd.fit_baseline(name, gd.Windows.load(fit))
        if output.suffix == ".safetensors" and format is None:
            shown_bar("generating", 0)
            fitted.sample(n, seed).save(output, overwrite=overwrite)
        else:
            fitted.sample_to(
                output, n, seed=seed, format=format, progress=shown_bar, overwrite=overwrite
            )
    show_written(shown_bar, [output], f"{n} windows of the baseline {name}, seed {seed}")


def serve(
    settings: Settings,
    limits: Limits,
    reading: Reading,
    opens: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the page in a browser; by default in a terminal.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Generate, compare and export synthetic gaze in the browser or over HTTP.

    Uploaded recordings are read on this machine and not stored. The HTTP API is described at /docs.

    Example: [bold]gazediffusion serve --real study/ --screen 1280x720[/bold]
    """
    from importlib.util import find_spec

    missing = [name for name in _WEB_NEEDS if find_spec(name) is None]
    if missing:
        raise GazeError(
            f"the playground needs {', '.join(missing)}", remedy="pip install 'gazediffusion[web]'"
        )
    from gazediffusion.web.app import serve as serve_page

    def say(url: str) -> None:
        out.print(f"the playground is at {plain(url)} (Ctrl-C ends it)")

    is_interactive = sys.stdout.isatty() and settings.is_loopback
    settings = replace(settings, reading=stated(reading), limits=limits)
    serve_page(settings, say, is_interactive if opens is None else opens)
