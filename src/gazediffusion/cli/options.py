"""Options that several commands share, and their values."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.windows import Windows
    from gazediffusion.generation.dataset import Parts
    from gazediffusion.screen import Screen
    from gazediffusion.settings import CleaningConfig

Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files, folders, quoted globs, URLs (s3://bucket/study), or "
        "[bold]pymovements:NAME[/bold] for a public dataset.",
        show_default=False,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="auto, bids, eyelink-asc, tobii, smi, gazepoint, pupil-labs, gazebase, columns (the "
        "paper's txt), table or a plug-in's.",
    ),
]
Compiled = Annotated[
    bool | None,
    typer.Option(
        "--compile/--no-compile",
        help="Compile the network first; by default on a GPU. On a CPU it needs a C++ compiler and "
        "makes long trainings a third faster.",
        show_default=False,
    ),
]
SaveEvery = Annotated[
    float, typer.Option(help="Seconds between saved states; a kill loses no more.")
]
TrainingPrecision = Annotated[
    str, typer.Option(help="auto (the recipe's on a GPU, fp32 elsewhere), fp32 or bf16.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Names of a table's columns that are not recognised, such as "
        "[bold]x=GazeX,y=GazeY,t=Time[/bold]; also participant, task, trial, blink, label, "
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
Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", help="Keep this task only; repeatable.", show_default=False),
]
ScreenPx = Annotated[
    str | None,
    typer.Option(
        "--screen",
        help="Screen in pixels, such as 1280x720, if files do not state it.",
    ),
]
ScreenCm = Annotated[
    str | None,
    typer.Option("--screen-cm", help="Screen in centimetres, such as 40x22.5."),
]
DistanceCm = Annotated[float | None, typer.Option(help="Distance between eye and screen (cm).")]
EyeOption = Annotated[
    str,
    typer.Option(
        "--eye",
        help="right (the paper's), left, or best: the eye seen more often in each recording. "
        "A monocular recording has one choice.",
    ),
]
BlinkBefore = Annotated[
    float, typer.Option("--blink-before", help="Milliseconds dropped before each blink or loss.")
]
BlinkAfter = Annotated[
    float, typer.Option("--blink-after", help="Milliseconds dropped after each blink or loss.")
]
MaxSpeed = Annotated[
    float,
    typer.Option("--max-speed", help="Faster samples are invalid (deg/s)."),
]
OverrideScreen = Annotated[
    bool,
    typer.Option("--override-screen", help="Use --screen even if a file states another screen."),
]
Unit = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="Unit of gaze: px, deg (degrees of visual angle) or norm (0 to 1 over the screen); "
        "default: the unit in the column names, otherwise px.",
        show_default=False,
    ),
]
Origin = Annotated[
    str | None,
    typer.Option(
        "--origin",
        help="Origin of the gaze: top-left or center (y down), bottom-left or center-up (y up); "
        "default: top-left for px and norm, center for deg.",
        show_default=False,
    ),
]
SourceRate = Annotated[
    float | None,
    typer.Option(
        "--source-rate", help="Rate of recordings without a time column (Hz).", show_default=False
    ),
]
ValFraction = Annotated[float, typer.Option(help="Fraction of participants held out; 0 for none.")]
SplitSeed = Annotated[int, typer.Option(help="Seed of the split of participants.")]
SameParticipant = Annotated[
    list[str] | None,
    typer.Option(
        help="Names of one participant, as A=B; they stay on one side of the split.",
        show_default=False,
    ),
]
RecordingsOutput = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        help="A .parquet or .csv file, or a folder in the recordings' own format (bids, asc, csv, "
        "parquet; parquet for others).",
    ),
]
Quality = Annotated[str, typer.Option(help="default or best.")]
Candidates = Annotated[
    int | None,
    typer.Option(
        help="Number of candidates per window of --like; the ones closest to the recording are "
        "kept. Default: 8, with a scanpath, targets or waypoints 1.",
        show_default=False,
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(help="Windows computed at once; affects speed only.", show_default=False),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 ...")]
Precision = Annotated[str, typer.Option(help="fp32, bf16, or auto (bf16 if it is faster).")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output of the same command.")
]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Write a folder of Parquet parts: local (this process) or ray (a cluster; pip install "
        "'gazediffusion\\[cluster]'). Both write the same parts.",
        show_default=False,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of the Ray cluster: HOST:PORT, or auto for the cluster of this machine; "
        "default: that cluster, otherwise the cores of this machine.",
        show_default=False,
    ),
]
PartSize = Annotated[
    int | None,
    typer.Option(
        help="Number of windows per part; default: 256, or the batch size if it is larger.",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Maximum number of workers; default: one per GPU, on nodes without a GPU one per "
        "core.",
        show_default=False,
    ),
]
FileEngine = Annotated[
    str,
    typer.Option(
        help="Who reads the files, or the parts of a set: local (this machine) or ray (a cluster "
        "that sees them; pip install 'gazediffusion\\[cluster]'). The output is the same."
    ),
]
FileWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Processes that read; by default one, of a cluster one for each core.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of pymovements:NAME datasets.", show_default=False),
]


def cleaning_of(eye: str, before: float, after: float, max_speed: float) -> CleaningConfig:
    """How recordings are cleaned, as the options say."""
    import gazediffusion as gd

    return gd.CleaningConfig(
        eye=eye,  # type: ignore[arg-type]  # checked by the config itself
        blink_before_ms=before,
        blink_after_ms=after,
        max_speed_deg_s=max_speed,
    )


def groups_of(same_participant: list[str] | None) -> tuple[tuple[str, ...], ...]:
    """Groups of names of one participant, as --same-participant gives them."""
    return tuple(_names(group) for group in same_participant or ())


def _names(group: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in group.replace(",", "=").split("=") if name.strip())
    if len(names) < 2:
        raise GazeError(f"`same_participant` needs two names, as A=B, not {group!r}")
    return names


def screen_of(px: str | None, cm: str | None, distance_cm: float | None) -> Screen | None:
    """The screen given on the command line; None where none was."""
    import gazediffusion as gd

    return gd.Screen.parse(px, cm, distance_cm)


def engine_of(
    engine: str | None,
    address: str | None,
    part_size: int | None,
    n_workers: int | None,
    device: str,
) -> Parts | None:
    """How a set is written in parts; None without an engine."""
    import gazediffusion as gd

    given = {"address": address, "part_size": part_size, "n_workers": n_workers}
    if engine is not None:
        return gd.Parts(engine, device=device, **given)  # type: ignore[arg-type]  # by their names
    for name, value in given.items():
        if value is not None:
            raise GazeError(f"`{name}` needs `engine`")
    return None


def windows_or_recordings(path: Path, screen: Screen | None) -> Windows | Recordings:
    """A windows file, or recordings; screen: where a file states none."""
    import gazediffusion as gd

    if path.suffix == ".safetensors":
        return gd.Windows.load(path)
    return gd.read(path, screen=screen)


def screen_options(screen: Screen | None) -> dict[str, Any]:
    """The options that state a screen; None for what is not known."""
    if screen is None:
        return {}
    size_cm = None if screen.width_cm is None else f"{screen.width_cm:g}x{screen.height_cm:g}"
    distance = None if screen.distance_cm is None else f"{screen.distance_cm:g}"
    size_px = f"{screen.width_px}x{screen.height_px}"
    return {"--screen": size_px, "--screen-cm": size_cm, "--distance-cm": distance}


def reads_recordings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; they reach it as `reading`, settings of `gd.read`."""
    shared = list(signature(_reading, eval_str=True).parameters.values())
    own = signature(command, eval_str=True).parameters.values()
    options = [*(one for one in own if one.name != "reading"), *shared]

    def run(**given: Any) -> None:
        settings = _reading(**{one.name: given.pop(one.name) for one in shared})
        command(reading=settings, **given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in options}
    return run


def _reading(
    columns: Columns = None,
    unit: Unit = None,
    origin: Origin = None,
    source_rate: SourceRate = None,
    participant_pattern: ParticipantPattern = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    override_screen: OverrideScreen = False,
    data_dir: DataDir = None,
) -> dict[str, Any]:
    """The settings of `gd.read` that the options state."""
    return {
        "columns": columns,
        "unit": unit,
        "origin": origin,
        "source_rate_hz": source_rate,
        "participant_pattern": participant_pattern,
        "screen": screen_of(screen, screen_cm, distance_cm),
        "override_screen": override_screen,
        "data_dir": data_dir,
    }
