"""The command that runs the paper's experiments again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gazediffusion.cli import progress
from gazediffusion.cli.console import exit_stopped, out, plain
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
from gazediffusion.errors import GazeError, StoppedError
from gazediffusion.files import require_writable

if TYPE_CHECKING:
    from gazediffusion.data.preparing import PrepareConfig
    from gazediffusion.data.readers import ReadOptions
    from gazediffusion.reproduction import Data, Stage, Watcher


def reproduce(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder of all artefacts and results; it is resumed."),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Recordings: a file, a folder, or pymovements:NAME; may be repeated. Not needed "
            "to resume, nor with --tiny, which simulates recordings.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Build this table only; may be repeated.", show_default=False),
    ] = None,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="Tiny networks: the whole pipeline in minutes.")
    ] = False,
    until: Annotated[
        str,
        typer.Option(
            help="Stop after windows (recordings read), samples (all GPU work) or results."
        ),
    ] = "results",
    so_far: Annotated[
        bool,
        typer.Option("--so-far", help="Train nothing; write the tables that the runs allow."),
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
    """Reproduce the paper's experiments on your recordings: every table and figure.

    Trains three seeds of both models and an ablation (concurrently on a GPU, about half an hour on
    an H200; on a CPU use --tiny), generates, evaluates, and writes OUTPUT/results: README.md,
    results.json and figures. Each number stands beside the paper's and the real-vs-real floor.
    Every artefact is kept: the same command resumes, and OUTPUT can be moved between machines.

    Example: [bold]gazediffusion reproduce --data study/ --screen 1280x720 --screen-cm 40x22.5
    --distance-cm 45 -o reproduction[/bold]
    """
    from gazediffusion.reproduction import PAPER, TINY
    from gazediffusion.reproduction import reproduce as run

    require_writable(output)
    plan = TINY if tiny else PAPER
    shown = {"--data": data, "--task": task, "--screen": screen, "--screen-cm": screen_cm}
    command = _command({**shown, "--distance-cm": distance_cm}, tiny, output)

    with progress.stop_on_interrupt() as stopped:
        watcher = progress.ReproductionWatcher(stopped)

        def read() -> Data:
            from gazediffusion.data.preparing import PrepareConfig

            sources = data if data or not tiny else [str(_simulated(output, watcher))]
            if not sources:
                raise GazeError("no recordings are named", remedy="give `data`")
            options = read_options_of(
                columns, participant_pattern, screen, screen_cm, distance_cm, data_dir
            )
            config = PrepareConfig(seconds=plan.seconds, tasks=tuple(task or ()))
            return _read(sources, config, format, options, command, watcher)

        try:
            results = run(
                output,
                plan,
                read,
                watcher,
                only=only or (),
                until=cast("Stage", until),
                so_far=so_far,
                device=device,
            )
        except StoppedError as stop:
            exit_stopped(stop)
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
    windows = {}
    for protocol in ("position", "velocity"):
        with progress.recording_bar(f"preparing {protocol}", len(sources)) as bar:
            windows[protocol] = prepare(sources, replace(config, protocol=protocol), bar)
    described = {
        "data": sorted({source.path.name for source in sources})[:20],
        "task": ", ".join(config.tasks) or None,
        "command": command,
    }
    return Data(windows["position"], windows["velocity"], described)


def _simulated(output: Path, watcher: Watcher) -> Path:
    from gazediffusion.data.simulation import SimulationConfig, write_simulation

    folder = output / "recordings"
    watcher.part("simulating recordings")
    config = SimulationConfig(n_participants=8, minutes=2.0, rate_hz=250.0)
    write_simulation(config, folder, "parquet")
    return folder


def _command(options: dict[str, Any], tiny: bool, output: Path) -> str:
    """The command as the page shows it; options that were given in lists are repeated."""
    words = ["gazediffusion", "reproduce"]
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            words += [] if one is None else [option, f"{one}"]
    return shlex.join([*words, *(["--tiny"] if tiny else []), "-o", output.name])
