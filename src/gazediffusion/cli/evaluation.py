"""Commands that compare: evaluate and baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import Overwrite, reads_recordings
from gazediffusion.errors import GazeError


@reads_recordings
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
    summary: Annotated[
        str | None,
        typer.Option(
            help="Packaged summary used without --real: gazecom, bioeye, or NAME/task.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="The training participants, for the floor; by default those of the real windows "
            "file.",
            show_default=False,
        ),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n",
            help="Windows to generate from a model; default: 2500, at most half as many as the "
            "training participants have.",
            show_default=False,
        ),
    ] = None,
    by_task: Annotated[
        bool,
        typer.Option(
            "--by-task", help="Also evaluate each task with three or more held-out participants."
        ),
    ] = False,
    split_seed: Annotated[
        int | None,
        typer.Option(help="Seed of another split than that of the file.", show_default=False),
    ] = None,
    feature_model: Annotated[
        str | None,
        typer.Option(
            help="A position model, for the Frechet Gaze Distance (on a CPU the paper's network "
            "takes about a minute per 500 windows).",
            show_default=False,
        ),
    ] = None,
    membership: Annotated[
        bool, typer.Option("--membership", help="Also attack the models (membership inference).")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also the deep two-sample test: a network separates real from synthetic "
            "snippets. Minutes on a GPU, tens of minutes on two cores.",
        ),
    ] = False,
    protocol: Annotated[str, typer.Option(help="position, velocity or both.")] = "both",
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: no intervals, no slow tests.")
    ] = False,
    bootstrap: Annotated[int, typer.Option(help="Number of bootstrap replicates.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of subsets and bootstrap replicates.")] = 0,
    overwrite: Overwrite = False,
    *,
    reading: dict[str, Any],
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

    protocols = {"position": ("position",), "velocity": ("velocity",)}
    if protocol not in (*protocols, "both"):
        raise GazeError(f"--protocol must be position, velocity or both, not {protocol!r}")
    config = gd.EvaluationConfig(
        protocols=protocols.get(protocol, ("position", "velocity")),  # type: ignore[arg-type]
        n_bootstrap=bootstrap,
        quick=quick,
        seed=seed,
        deep=gd.DeepConfig() if deep else None,
    )
    with progress.steps_line() as step:
        evaluation = gd.evaluate_files(
            [*synthetic, *(more or [])],
            real,
            reference,
            config,
            summary=summary,
            n=n,
            by_task=by_task,
            split_seed=split_seed,
            feature_model=feature_model,
            with_membership=membership,
            output=output,
            overwrite=overwrite,
            progress=step,
            **reading,
        )
    tables.print_evaluation(evaluation)
    out.print(f"wrote {plain(output)}: report.html, report.md, results.json, figures")
