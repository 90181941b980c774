"""Commands that work through recordings with a model: fill, label, augment, score."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import show
from gazediffusion.cli.console import bar, out, plain, show_reading, show_written, warn
from gazediffusion.cli.data import Overwrite, Paths
from gazediffusion.errors import GazeError
from gazediffusion.settings import (
    Augmenting,
    Computing,
    Filling,
    Loading,
    Reading,
    Sampled,
    Scoring,
)

Output = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        help="A .parquet or .csv file, or a folder in the recordings' own format (bids, asc, csv, "
        "parquet; parquet for others).",
    ),
]


def fill(
    paths: Paths,
    output: Output,
    reading: Reading,
    loading: Loading,
    filling: Filling,
    sampled: Sampled,
    overwrite: Overwrite = False,
) -> None:
    """Fill blinks and losses of recordings with a steerable model.

    Each gap up to --max-gap is sampled given the gaze on both sides. Known samples are kept, filled
    ones are marked, and longer gaps, and those at the beginning or end of a recording, stay lost.
    The flanks of a blink are part of its gap; padding of 0 ms in study.yaml keeps them. Ctrl-C
    keeps what is sampled; the same command resumes.

    Example: [bold]gazediffusion fill study/P01.asc -o filled --draws 5[/bold]
    """
    import gazediffusion as gd

    recordings = gd.read(paths, reading)
    show_reading(recordings)
    model = gd.load(**vars(loading))
    with bar(output) as shown:
        written = gd.fill(
            recordings,
            output,
            model,
            filling,
            sampled,
            progress=shown,
            overwrite=overwrite,
        )
    for line in written.warnings:
        warn(line)
    counts = written.counts
    if counts.gaps == 0:
        out.print("no gap: the recordings are written as they are")
    else:
        out.print(
            f"filled {counts.filled} of {counts.gaps} gaps, {counts.filled_samples} of "
            f"{counts.samples} samples; still lost: {counts.too_long} longer than "
            f"{filling.max_gap_s:g} s, {counts.at_ends} at the beginning or end of a recording"
        )
    what = f"draws {filling.draws}, model {model.name}, seed {filling.seed}"
    show_written(shown, written.paths, what)


def label(
    paths: Paths,
    output: Output,
    reading: Reading,
    loading: Loading,
    computing: Computing,
    overwrite: Overwrite = False,
) -> None:
    """Label every sample of recordings: fixation, saccade, pursuit or noise.

    The network that generates gaze labels it, as GazeCom's hand labels taught it. Gaze is written
    as it was read. Lost samples, and the flanks of blinks, are noise; padding of 0 ms in study.yaml
    labels the flanks. Labels that the recordings have are replaced. Ctrl-C keeps what is labelled;
    the same command resumes.

    Example: [bold]gazediffusion label study/P01.asc -o labelled.parquet[/bold]
    """
    import gazediffusion as gd

    recordings = gd.read(paths, reading)
    show_reading(recordings)
    model = gd.load(**vars(loading))
    with bar(output) as shown:
        written = gd.label(
            recordings,
            output,
            model,
            computing,
            progress=shown,
            overwrite=overwrite,
        )
    for line in written.warnings:
        warn(line)
    total = sum(written.n_samples.values())
    shares = ", ".join(f"{name} {n / total:.1%}" for name, n in written.n_samples.items())
    show_written(shown, written.paths, f"{total} samples ({shares}), model {model.name}")


def augment(
    paths: Paths,
    output: Output,
    reading: Reading,
    loading: Loading,
    augmenting: Augmenting,
    sampled: Sampled,
    split: Annotated[
        Path | None,
        typer.Option(
            help="Windows file of the study; only its training participants are augmented.",
            show_default=False,
            rich_help_panel="Split",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Generate recordings in the style of each participant of a study.

    A recording of participant P07 becomes --times synthetic ones of its length, rate and screen, of
    P07-synthetic-1, P07-synthetic-2 and so on. Participants whom prepare holds out are not
    augmented, so that they can test what is trained with the synthetic recordings; --val-fraction 0
    augments all. The output does not contain the study. Ctrl-C keeps what is generated; the same
    command resumes.

    Example: [bold]gazediffusion augment study/ -o study-synthetic --times 5[/bold]
    """
    import gazediffusion as gd

    if split is not None and augmenting.held_out:
        raise GazeError("give `held_out` or `split`, not both")
    how = {} if split is None else {"held_out": gd.Windows.load(split)}
    recordings = gd.read(paths, reading)
    show_reading(recordings)
    model = gd.load(**vars(loading))
    with bar(output) as shown:
        written = gd.augment(
            recordings,
            output,
            model,
            augmenting,
            sampled,
            progress=shown,
            overwrite=overwrite,
            **how,
        )
    for line in written.warnings:
        warn(line)
    rows = written.card["participants"]
    n_recordings = augmenting.times * sum(row["recordings"] for row in rows)
    minutes = sum(row["synthetic_seconds"] for row in rows) / 60
    held = ", ".join(written.card["split"]["held_out"])
    out.print(
        f"generated {n_recordings} recordings, {minutes:.1f} min, in the style of "
        f"{len({row['participant'] for row in rows})} participants; held out: "
        f"{plain(held or 'nobody')}"
    )
    what = f"times {augmenting.times}, model {model.name}, seed {augmenting.seed}"
    show_written(shown, written.paths, what)


def score(
    reading: Reading,
    loading: Loading,
    scoring: Scoring,
    computing: Computing,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Recordings: files, folders or quoted globs; or one windows file of prepare.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="A .parquet or .csv file.", show_default=False),
    ] = None,
    stride: Annotated[
        float | None,
        typer.Option(help="Seconds between windows; default: their length.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Folder for one picture per recording.", show_default=False),
    ] = None,
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(
            help="Windows files with training and held-out participants; writes the quantiles that "
            "percentiles need into the run folder of --model, first. Repeatable.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int, typer.Option("-n", help="Windows of each task for --calibrate, at most.")
    ] = 500,
    overwrite: Overwrite = False,
) -> None:
    """Score every window of recordings: which are odd, where and at which scale.

    Columns of the output: the log-likelihood by the probability-flow equation, the denoising error,
    and the distance of its profile over noise levels, each with its percentile among windows of
    held-out participants. Windows that cannot be cut are counted. The oddest windows are printed.

    Example: [bold]gazediffusion score study/ -o scores.parquet --plot odd[/bold]
    """
    import gazediffusion as gd

    if not paths and not calibrate:
        raise GazeError("there is nothing to score", remedy="name recordings")
    if paths and output is None:
        raise GazeError("the scores need a file", remedy="give `output`, as -o scores.parquet")
    model = gd.load(**vars(loading))
    if calibrate:
        parts = [gd.Windows.load(path) for path in calibrate]
        with bar() as shown:
            path = gd.calibrate_scores(
                model, parts, scoring, computing, n=n, progress=shown, overwrite=overwrite
            )
        out.print(f"wrote {plain(path)}")
    if not paths or output is None:
        return
    given: Path | gd.Recordings
    if any(path.endswith(".safetensors") for path in paths):
        if len(paths) > 1:
            raise GazeError("a windows file is scored alone", remedy="name one file")
        given = Path(paths[0])
    else:
        given = gd.read(paths, reading)
        show_reading(given)
    with bar() as shown:
        scores = gd.score(
            given,
            output,
            model,
            scoring,
            computing,
            plot=plot,
            stride_s=stride,
            progress=shown,
            overwrite=overwrite,
        )
    for note in scores.notes:
        warn(note)
    show.print_scores(scores)
    what = f"{len(scores)} windows, model {model.name}, seed {scoring.seed}"
    out.print(f"wrote {plain(output)}: {what}")
    if plot is not None:
        out.print(f"pictures: {plain(plot)}")
