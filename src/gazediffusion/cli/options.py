"""Options that several commands share, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazediffusion.errors import GazeError

if TYPE_CHECKING:
    from gazediffusion.data.cleaning import CleaningConfig
    from gazediffusion.geometry import Screen

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
Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", help="Keep this task only; may be given again.", show_default=False),
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


def cleaning_of(eye: str, before: float, after: float, max_speed: float) -> CleaningConfig:
    """How recordings are cleaned, as the options say."""
    import gazediffusion as gd

    return gd.CleaningConfig(
        eye=eye,  # type: ignore[arg-type]  # checked by the config itself
        blink_before_ms=before,
        blink_after_ms=after,
        max_speed_deg_s=max_speed,
    )


def column_names(text: str | None) -> dict[str, str] | None:
    """`x=GazeX,y=GazeY` as a mapping."""
    if text is None:
        return None
    names: dict[str, str] = {}
    for pair in text.split(","):
        if not pair.strip():
            continue
        word, equals, column = pair.partition("=")
        if not equals or not word.strip() or not column.strip():
            raise GazeError(f"`columns` must look like x=GazeX,y=GazeY,t=Time, not {text!r}")
        names[word.strip()] = column.strip()
    return names


def screen_of(px: str | None, cm: str | None, distance_cm: float | None) -> Screen | None:
    """The screen given on the command line; None where none was."""
    import gazediffusion as gd

    return gd.Screen.parse(px, cm, distance_cm)


def reading(
    columns: str | None,
    participant_pattern: str | None,
    screen: str | None,
    screen_cm: str | None,
    distance_cm: float | None,
    data_dir: Path | None,
) -> dict[str, Any]:
    """The settings of `gd.read` that commands have in common."""
    return {
        "screen": screen_of(screen, screen_cm, distance_cm),
        "columns": column_names(columns),
        "participant_pattern": participant_pattern,
        "data_dir": data_dir,
    }
