"""Commands that compare and describe: evaluate, benchmark, reproduce, info."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gazediffusion.cli import show
from gazediffusion.cli.console import (
    bar,
    err,
    out,
    plain,
    show_reading,
    stop_on_interrupt,
    warn,
)
from gazediffusion.cli.data import Overwrite
from gazediffusion.options import stated, words_of
from gazediffusion.settings import (
    Benchmarking,
    Comparing,
    EvaluationConfig,
    Reading,
    Reproducing,
)
from gazediffusion.storage import require_free, require_writable


def evaluate(
    synthetic: Annotated[
        list[str],
        typer.Option(
            help="Windows file, recordings, .npz, run folder, packaged model, baseline or a "
            "plug-in's generator (these generate their windows), as PATH or NAME=PATH; more may "
            "follow.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder.")],
    comparing: Comparing,
    config: EvaluationConfig,
    reading: Reading,
    more: Annotated[
        list[str] | None, typer.Argument(help="More synthetic sets.", show_default=False)
    ] = None,
    real: Annotated[
        str | None,
        typer.Option(
            help="Real gaze: a windows file (its held-out participants) or recordings; without it "
            "each window is compared with the packaged summary of its own task.",
            show_default=False,
        ),
    ] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also the deep two-sample test: a network separates real from synthetic "
            "snippets. Minutes on a GPU, tens of minutes on two cores.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Evaluate synthetic gaze against real participants, with the real-vs-real floor.

    Writes report.html (one page, opens offline), report.md, results.json and the figures. The
    headline is the ratio to the floor: at 1.0 a set is as close to held-out participants as the
    training participants are. Without --real, the real gaze is that of a summary inside the package
    (histograms and means): intervals and the tests of whole sets are left out.

    Example: [bold]gazediffusion evaluate --real windows.safetensors --synthetic ours=gaze.parquet
    theirs=other.csv -o report[/bold]

    A model: [bold]gazediffusion evaluate --real windows.safetensors --synthetic joint -n 2500
    --by-task -o report[/bold]
    """
    import gazediffusion as gd

    if real is not None and Path(real).suffix not in (".safetensors", ".npz"):
        show_reading(gd.read(real, reading))
    with bar() as shown:
        evaluation = gd.evaluate_files(
            [*synthetic, *(more or [])],
            real,
            config=replace(config, deep=gd.DeepConfig() if deep else None),
            output=output,
            overwrite=overwrite,
            progress=lambda name: shown(name, 0),
            **vars(comparing),
            **stated(reading),
        )
    show.print_evaluation(evaluation)
    out.print(f"wrote {plain(output)}: report.html, report.md, results.json, figures")


def benchmark(
    file: Annotated[
        str,
        typer.Argument(
            help="Generated gaze: windows file, recordings, .npz; or a run folder or packaged "
            "model, whose windows are generated.",
            show_default=False,
        ),
    ],
    task: Annotated[str, typer.Option(help="reading, dots or movies.", show_default=False)],
    benchmarking: Benchmarking,
    reading: Reading,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The .json file to submit; by default NAME-TASK.json.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Evaluate a generator's file against held-out participants, in figures that others can cite.

    Prints the row beside that of real windows and writes it as JSON. No recordings are needed. The
    benchmark compares 300 windows of 8 s at 250 Hz: of more a fixed draw is taken, fewer are
    refused. Definitions have a version and never change.

    Example: [bold]gazediffusion benchmark gaze.parquet --task reading --name ours[/bold]
    """
    import gazediffusion as gd

    stem = benchmarking.name or Path(file).stem
    output = output or Path(f"{stem.replace(' ', '-').replace('/', '-')}-{task}.json")
    require_free(output, overwrite)
    require_writable(output)
    with bar() as shown:
        row = gd.benchmark(
            file,
            task,
            progress=lambda name: shown(name, 0),
            **vars(benchmarking),
            **stated(reading),
        )
    row.save(output, overwrite=overwrite)
    for line in row.warnings:
        warn(line)
    show.print_benchmark(row)
    out.print(f"wrote {plain(output)}; how to submit it: docs/howto/evaluate_a_generator.md")


def reproduce(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder of all artefacts and results; it is resumed."),
    ],
    reproducing: Reproducing,
    reading: Reading,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Recordings: a file, a folder, or pymovements:NAME; repeatable. Not needed to "
            "resume, nor with --tiny, which simulates recordings.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Reproduce the paper's experiments on your recordings: every table and figure.

    Trains three seeds of both models and an ablation (an hour on an H200; on a CPU use --tiny),
    generates, evaluates, and writes OUTPUT/results: README.md, results.json and figures. Each
    number stands beside the paper's and the real-vs-real floor. Every artefact is kept: the same
    command resumes, and OUTPUT can be moved between machines.

    Example: [bold]gazediffusion reproduce --data study/ --screen 1280x720 --screen-cm 40x22.5
    --distance-cm 45 -o reproduction[/bold]
    """
    import gazediffusion as gd

    require_writable(output)
    recordings = gd.read(data, reading) if data else None
    if recordings is not None:
        show_reading(recordings)
    chosen = {name: getattr(reproducing, name) for name in ("tasks", "tiny")}
    words = words_of(stated(reading) | {k: v for k, v in chosen.items() if v}, Reading, Reproducing)
    sources = [word for path in data or [] for word in ("--data", path)]
    begun = time.monotonic()
    with bar(output) as shown, stop_on_interrupt() as stopped:

        def say(part: str) -> None:
            minutes, seconds = divmod(time.monotonic() - begun, 60)
            shown.close()
            err.print(f"[dim]{minutes:3.0f}:{seconds:02.0f}[/dim] {plain(part)}")

        results = gd.reproduce(
            output,
            recordings,
            command=shlex.join(["gazediffusion", "reproduce", *sources, *words, "-o", output.name]),
            progress=shown,
            should_stop=stopped,
            say=say,
            **vars(reproducing),
        )
    runs = ", ".join(reproducing.runs)
    reached = f": {runs}" if runs else f": all up to {reproducing.until}"
    out.print(f"wrote {plain(results or output)}" + ("" if results else reached))


def info(
    path: Annotated[
        str | None,
        typer.Argument(
            help="A windows file, a run folder, a packaged model or a synthetic set; without it, "
            "plug-ins are listed.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    bound: Annotated[
        Path | None,
        typer.Option(
            help="A windows file: estimate a run's variational bound on its held-out participants.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Describe a file or folder: what it is, from which data, settings and versions.

    Example: [bold]gazediffusion info windows.safetensors[/bold]
    """
    import gazediffusion as gd

    if path is None:
        show.print_installed()
        return
    if bound is not None:
        model, windows = gd.load(path), gd.Windows.load(bound)
        with bar() as shown:
            estimate = model.variational_bound(windows, progress=shown)
    if as_json:
        described = gd.describe(path)
        if bound is not None:
            described |= {"variational_bound": estimate.to_json()}
        out.print_json(data=described)
        return
    show.print_description(path)
    if bound is not None:
        show.print_bound(estimate, model.config.recipe.representation)
