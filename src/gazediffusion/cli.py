"""The command line: parse, call one library function, say what was written.

Bad input is one line on standard error and exit code 2. Heavy modules are imported inside the
commands, so that `--help` answers at once and training needs nothing it does not use.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazediffusion import console
from gazediffusion.console import err, out, plain
from gazediffusion.errors import GazeError
from gazediffusion.files import require_writable
from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.cleaning import CleaningConfig
    from gazediffusion.geometry import Screen
    from gazediffusion.readers import ReadOptions
    from gazediffusion.windows import Windows

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn how human eyes move from eye-tracker recordings and generate new gaze.\n\n"
    "Typical way: [bold]inspect[/bold] your files, [bold]prepare[/bold] windows from them. "
    "Without recordings, [bold]simulate[/bold] some. Every command explains itself with --help.",
)


def main() -> None:
    """Run the command line; a `GazeError` becomes one line and exit code 2."""
    try:
        app()
    except GazeError as error:
        err.print(f"[bold red]error:[/bold red] {plain(str(error))}")
        sys.exit(2)


# Options that several commands share.
Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, quoted globs, or [bold]pymovements:NAME[/bold] for a public dataset.",
        show_default=False,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="auto, bids, eyelink-asc, tobii, pupil-labs, columns (the paper's txt) or table.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Names of a table's columns where they are not recognised, as "
        "[bold]x=GazeX,y=GazeY,t=Time[/bold]; also participant, task, trial, blink, "
        "x_left, y_left, x_right, y_right.",
        show_default=False,
    ),
]
ParticipantPattern = Annotated[
    str | None,
    typer.Option(
        help="Regular expression that finds the participant (and task) in a path: "
        r"[bold]'sub(?P<participant>\\d+)_(?P<task>\\w+)'[/bold].",
        show_default=False,
    ),
]
ScreenPx = Annotated[
    str | None,
    typer.Option("--screen", help="Screen in pixels, as 1280x720, where the file is silent."),
]
ScreenCm = Annotated[
    str | None, typer.Option("--screen-cm", help="Screen in centimetres, as 40x22.5.")
]
DistanceCm = Annotated[float | None, typer.Option(help="From eye to screen, in centimetres.")]
EyeOption = Annotated[
    str,
    typer.Option(
        "--eye",
        help="right (the paper's), left, or best: the eye seen more often in each recording. "
        "A recording of one eye gives that one.",
    ),
]
BlinkBefore = Annotated[
    float, typer.Option("--blink-before", help="Milliseconds dropped before every blink or loss.")
]
BlinkAfter = Annotated[
    float, typer.Option("--blink-after", help="Milliseconds dropped after every blink or loss.")
]
MaxSpeed = Annotated[
    float, typer.Option("--max-speed", help="Faster is no eye movement (degrees per second).")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Where pymovements:NAME datasets are kept.", show_default=False)
]


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder.")],
    participants: Annotated[int, typer.Option(help="How many people.")] = 10,
    minutes: Annotated[float, typer.Option(help="Minutes of gaze per person.")] = 2.0,
    format: Annotated[str, typer.Option(help="asc, csv, parquet, bids or columns.")] = "parquet",
    rate: Annotated[float, typer.Option(help="Samples per second.")] = 1000.0,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
) -> None:
    """Simulate eye-tracker recordings whose true events are known.

    Saccades on the main sequence, fixational drift and tremor, blinks and losses, on the
    tracker's 0.1 px grid: data without a licence, for trying the package and testing detectors.
    It is a hand-written model, not a trained one.

    Example: [bold]gazediffusion simulate -o sim --participants 20 --format bids[/bold]
    """
    from gazediffusion.simulation import SimulationConfig, write_simulation

    config = SimulationConfig(n_participants=participants, minutes=minutes, seed=seed, rate_hz=rate)
    with console.progress_bar("simulating", participants, "person") as update:
        written = write_simulation(config, output, format, lambda done, _: update(done, ""))
    out.print(
        f"wrote {plain(output)}: {participants} people, {minutes:g} min each at {rate:g} Hz, "
        f"{len(written)} files, true events in {plain(_truth_of(written))}"
    )


@app.command()
def inspect(
    paths: Paths,
    format: Format = "auto",
    columns: Columns = None,
    participant_pattern: ParticipantPattern = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    rate: Annotated[float, typer.Option(help="Rate of the windows counted (Hz).")] = 250.0,
    seconds: Annotated[float, typer.Option(help="Length of the windows counted.")] = 8.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw one recording in both representations (.png, .svg, .pdf)."),
    ] = None,
    plot_participant: Annotated[
        str | None, typer.Option(help="Whose recording to draw; the first long enough otherwise.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Look into recordings: who, what, how long, how much is lost, how many windows.

    Example: [bold]gazediffusion inspect study/ --screen 1920x1080 --plot look.png[/bold]
    """
    from gazediffusion.inspection import inspect as inspect_sources
    from gazediffusion.preparing import PrepareConfig
    from gazediffusion.readers import find_sources

    options = _read_options(columns, participant_pattern, screen, screen_cm, distance_cm, data_dir)
    cleaning = _cleaning(eye, blink_before, blink_after, max_speed)
    config = PrepareConfig(rate_hz=rate, seconds=seconds, cleaning=cleaning)
    sources = find_sources(paths, options, format)
    with console.recording_bar("reading", len(sources)) as progress:
        summaries = inspect_sources(sources, config, progress)
    out.print(console.inspection_table(summaries, config.seconds))
    for screen_found in {found for summary in summaries for found in summary.screens}:
        out.print(f"screen: {console.screen_words(screen_found)}")
    for note in sorted({note for summary in summaries for note in summary.notes}):
        out.print(f"note: {plain(note)}")
    if plot is not None:
        from gazediffusion.overview import draw_overview

        title = draw_overview(sources, config, plot, plot_participant)
        out.print(f"wrote {plain(plot)}: {plain(title)}")


@app.command()
def prepare(
    paths: Paths,
    output: Annotated[Path, typer.Option("-o", "--output", help="The windows file to write.")],
    recipe: Annotated[
        str, typer.Option(help="position (windows slide) or velocity (windows do not overlap).")
    ] = "position",
    rate: Annotated[float, typer.Option(help="Samples per second of the windows.")] = 250.0,
    seconds: Annotated[float, typer.Option(help="Length of a window.")] = 8.0,
    stride: Annotated[
        int | None,
        typer.Option(
            help="Samples between window starts [250 for position, the length for velocity].",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="Keep this task only; may be given again.", show_default=False),
    ] = None,
    format: Format = "auto",
    columns: Columns = None,
    participant_pattern: ParticipantPattern = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    eye: EyeOption = "right",
    blink_before: BlinkBefore = 60.0,
    blink_after: BlinkAfter = 100.0,
    max_speed: MaxSpeed = 1000.0,
    val_fraction: Annotated[
        float, typer.Option(help="Share of the people kept for validation; 0 keeps none.")
    ] = 0.2,
    split_seed: Annotated[int, typer.Option(help="Which people those are.")] = 42,
    same_person: Annotated[
        list[str] | None,
        typer.Option(
            help="Names that may be one person, as A=B; they stay on one side of the split.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Turn recordings into clean, split, documented training windows.

    Lost samples, blinks and impossible speeds break a recording into valid runs; windows are cut
    from runs alone and people, never windows, are split. One safetensors file holds it all.

    Example: [bold]gazediffusion prepare study/ -o windows.safetensors --screen 1280x720
    --screen-cm 40x22.5 --distance-cm 45[/bold]
    """
    from gazediffusion.preparing import PrepareConfig
    from gazediffusion.preparing import prepare as prepare_windows
    from gazediffusion.readers import find_sources

    config = PrepareConfig(
        recipe=recipe,  # type: ignore[arg-type]  # checked by the config itself
        rate_hz=rate,
        seconds=seconds,
        stride=stride,
        tasks=tuple(task or ()),
        validation_fraction=val_fraction,
        split_seed=split_seed,
        same_person=tuple(_names(group) for group in same_person or ()),
        cleaning=_cleaning(eye, blink_before, blink_after, max_speed),
    )
    if output.suffix != ".safetensors":
        raise GazeError("a windows file ends in .safetensors", path=output)
    require_writable(output)
    options = _read_options(columns, participant_pattern, screen, screen_cm, distance_cm, data_dir)
    sources = find_sources(paths, options, format)
    with console.recording_bar("preparing", len(sources)) as progress:
        windows = prepare_windows(sources, config, progress)
    windows.save(output)
    console.print_windows(windows)
    out.print(
        f"wrote {plain(output)}: {len(windows)} windows, {output.stat().st_size / 1e6:.1f} MB"
    )


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A windows file.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for a program.")] = False,
) -> None:
    """Say what a file is, how it was made, and from what.

    Example: [bold]gazediffusion info windows.safetensors[/bold]
    """
    from gazediffusion.windows import Windows

    windows = Windows.load(path)
    if as_json:
        out.print_json(data=_as_json(windows))
        return
    console.print_windows(windows)
    console.print_provenance(windows.provenance)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"gazediffusion {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def _names(group: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in group.replace(",", "=").split("=") if name.strip())
    if len(names) < 2:
        raise GazeError(f"--same-person needs two names, as A=B, not {group!r}")
    return names


def _cleaning(eye: str, before: float, after: float, max_speed: float) -> CleaningConfig:
    from gazediffusion.cleaning import CleaningConfig

    return CleaningConfig(
        eye=eye,  # type: ignore[arg-type]  # checked by the config itself
        blink_before_ms=before,
        blink_after_ms=after,
        max_speed_deg_s=max_speed,
    )


def _read_options(
    columns: str | None,
    participant_pattern: str | None,
    screen: str | None,
    screen_cm: str | None,
    distance_cm: float | None,
    data_dir: Path | None,
) -> ReadOptions:
    from gazediffusion.readers import ReadOptions

    return ReadOptions(
        columns=_column_names(columns),
        participant_pattern=participant_pattern,
        screen=_screen(screen, screen_cm, distance_cm),
        data_dir=data_dir,
    )


def _column_names(text: str | None) -> dict[str, str]:
    names: dict[str, str] = {}
    for pair in (text or "").split(","):
        if not pair.strip():
            continue
        word, equals, column = pair.partition("=")
        if not equals or not word.strip() or not column.strip():
            raise GazeError(f"--columns must look like x=GazeX,y=GazeY,t=Time, not {text!r}")
        names[word.strip()] = column.strip()
    return names


def _screen(px: str | None, cm: str | None, distance_cm: float | None) -> Screen | None:
    from gazediffusion.geometry import Screen, parse_size

    if px is None:
        if cm is not None or distance_cm is not None:
            raise GazeError("--screen-cm and --distance-cm need --screen in pixels as well")
        return None
    width_px, height_px = parse_size(px, "--screen")
    width_cm, height_cm = parse_size(cm, "--screen-cm") if cm is not None else (None, None)
    return Screen(round(width_px), round(height_px), width_cm, height_cm, distance_cm)


def _truth_of(written: list[Path]) -> Path:
    return next(path for path in written if path.name == "events.csv")


def _as_json(windows: Windows) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "kind": "windows",
        "recipe": windows.recipe,
        "n_windows": len(windows),
        "length": windows.length,
        "rate_hz": windows.rate_hz,
        "screen": asdict(windows.screen),
        "participants": list(windows.participants),
        "validation": sorted(windows.validation),
        "tasks": list(windows.tasks),
        "grid_px": windows.grid_px,
        "velocity_scale": windows.velocity_scale,
        "provenance": dict(windows.provenance),
    }
