"""The command that runs the paper's experiments again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import (
    Columns,
    DataDir,
    DistanceCm,
    Format,
    ParticipantPattern,
    ScreenCm,
    ScreenPx,
    Tasks,
    read_options_of,
)
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import require_writable

if TYPE_CHECKING:
    from gazediffusion.data.preparing import PrepareConfig
    from gazediffusion.data.readers import ReadOptions
    from gazediffusion.reproduction import Data, Watcher


def reproduce(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A folder for all that is made; it is resumed.")
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Recordings: a file, a folder, or pymovements:NAME; may be given again. Not "
            "needed to resume, nor with --tiny, which simulates some.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="This table only; may be given again.", show_default=False),
    ] = None,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="The whole way with tiny networks, in minutes.")
    ] = False,
    until: Annotated[
        str,
        typer.Option(help="windows (recordings read), samples (all that wants a GPU) or results."),
    ] = "results",
    so_far: Annotated[
        bool,
        typer.Option("--so-far", help="Train nothing; write what the runs at hand allow."),
    ] = False,
    task: Tasks = None,
    format: Format = "auto",
    columns: Columns = None,
    participant_pattern: ParticipantPattern = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    data_dir: DataDir = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda ...")] = "auto",
) -> None:
    """Run the paper's experiments on your recordings: every table and figure, beside the paper's.

    Trains three seeds of both models and an ablation (on a GPU side by side, about half an hour
    on an H200; on a CPU only --tiny is sensible), generates, evaluates, and writes
    OUTPUT/results: README.md, results.json and figures. Every step is kept: a stopped command
    goes on where it was, and OUTPUT can be carried between machines.

    Example: [bold]gazediffusion reproduce --data study/ --screen 1280x720 --screen-cm 40x22.5
    --distance-cm 45 -o reproduction[/bold]
    """
    from gazediffusion.reproduction import PAPER, STAGES, TABLES, TINY, StoppedError
    from gazediffusion.reproduction import reproduce as run

    if until not in STAGES:
        raise GazeError(f"--until must be {', '.join(STAGES)}, not {until!r}")
    for name in only or ():
        if name not in TABLES:
            raise GazeError(f"no table {name!r}", remedy=suggestion(name, list(TABLES)))
    require_writable(output)
    plan = TINY if tiny else PAPER
    command = _command(data, task, screen, screen_cm, distance_cm, tiny, output)

    with progress.stop_on_interrupt() as stopped:
        watcher = progress.ReproductionWatcher(stopped)

        def read() -> Data:
            from gazediffusion.data.preparing import PrepareConfig

            sources = data if data or not tiny else [str(_simulated(output, watcher))]
            if not sources:
                raise GazeError("which recordings?", remedy="name them with --data")
            options = read_options_of(
                columns, participant_pattern, screen, screen_cm, distance_cm, data_dir
            )
            cut = PrepareConfig(seconds=plan.seconds, tasks=tuple(task or ()))
            return _read(sources, cut, format, options, command, watcher)

        try:
            results = run(
                output,
                plan,
                read,
                watcher,
                only=only or (),
                until=until,
                so_far=so_far,
                device=device,
            )
        except StoppedError:
            out.print(f"stopped; {plain(output)} is saved, and the same command goes on from there")
            raise typer.Exit(130) from None
    out.print(f"wrote {plain(results or output)}" + ("" if results else f": all up to {until}"))


def _read(
    data: list[str],
    config: PrepareConfig,
    format: str,
    options: ReadOptions,
    command: str,
    watcher: Watcher,
) -> Data:
    """Both models' windows of the same recordings and the same split."""
    from dataclasses import replace

    from gazediffusion.data.preparing import prepare
    from gazediffusion.data.readers import find_sources
    from gazediffusion.reproduction import Data

    watcher.part("reading " + ", ".join(data))
    sources = find_sources(data, options, format)
    made = {}
    for recipe in ("position", "velocity"):
        with progress.recording_bar(f"preparing {recipe}", len(sources)) as bar:
            made[recipe] = prepare(sources, replace(config, protocol=recipe), bar)
    described = {
        "data": sorted({source.path.name for source in sources})[:20],
        "task": ", ".join(config.tasks) or None,
        "command": command,
    }
    return Data(made["position"], made["velocity"], described)


def _simulated(output: Path, watcher: Watcher) -> Path:
    from gazediffusion.data.simulation import SimulationConfig, write_simulation

    folder = output / "recordings"
    watcher.part("simulating recordings")
    config = SimulationConfig(n_participants=8, minutes=2.0, rate_hz=250.0)
    write_simulation(config, folder, "parquet")
    return folder


def _command(
    data: list[str] | None,
    task: list[str] | None,
    screen: str | None,
    screen_cm: str | None,
    distance_cm: float | None,
    tiny: bool,
    output: Path,
) -> str:
    """The command as the page shows it."""
    words = ["gazediffusion", "reproduce"]
    for path in data or ():
        words += ["--data", path]
    for name in task or ():
        words += ["--task", name]
    for option, value in (
        ("--screen", screen),
        ("--screen-cm", screen_cm),
        ("--distance-cm", distance_cm),
    ):
        words += [] if value is None else [option, f"{value}"]
    return shlex.join([*words, *(["--tiny"] if tiny else []), "-o", output.name])
