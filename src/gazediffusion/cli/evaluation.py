"""Commands that judge: evaluate and baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gazediffusion.cli import progress, tables
from gazediffusion.cli.console import out, plain
from gazediffusion.cli.options import (
    Columns,
    DataDir,
    DistanceCm,
    ParticipantPattern,
    ScreenCm,
    ScreenPx,
    read_options_of,
)
from gazediffusion.errors import GazeError
from gazediffusion.files import require_writable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.evaluation import EvaluationConfig
    from gazediffusion.evaluation.gaze_sets import Like
    from gazediffusion.evaluation.set_tests import FeatureMap


def evaluate(
    synthetic: Annotated[
        list[str],
        typer.Option(
            help="Windows file, run folder (generated on the fly), .npz or recordings, as PATH or "
            "NAME=PATH; more may follow.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="A new folder.")],
    more: Annotated[
        list[str] | None, typer.Argument(help="More synthetic sets.", show_default=False)
    ] = None,
    real: Annotated[
        str | None,
        typer.Option(
            help="Real gaze of people nobody trained on: a windows file (its held-out people) "
            "or recordings; without it a summary of real gaze inside the package.",
            show_default=False,
        ),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            help="Which summary, where there is no --real: gazecom, bioeye, or NAME/task; by "
            "default that of the synthetic sets' task, or gazecom.",
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            help="The training people, for the floor; by default those of the real windows file.",
            show_default=False,
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Run folder of a position model, for the Frechet Gaze Distance (on a CPU the "
            "paper's network takes about a minute per 500 windows).",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help="position, velocity or both.")] = "both",
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: no intervals, no slow tests.")
    ] = False,
    bootstrap: Annotated[int, typer.Option(help="Draws of participants for intervals.")] = 200,
    seed: Annotated[int, typer.Option(help="Of subsets and draws.")] = 0,
    columns: Columns = None,
    participant_pattern: ParticipantPattern = None,
    screen: ScreenPx = None,
    screen_cm: ScreenCm = None,
    distance_cm: DistanceCm = None,
    data_dir: DataDir = None,
) -> None:
    """Judge synthetic gaze against real people, with the real-vs-real floor.

    Writes report.html (one page, opens offline), report.md, results.json and the figures. The
    headline is the ratio to the floor: 1.0 means as near to unseen people as other people are.
    Without --real, the people are those of a summary inside the package (histograms and means):
    no recordings are needed, but intervals and the tests of whole sets are left out.

    Example: [bold]gazediffusion evaluate --real windows.safetensors --synthetic ours=gaze.parquet
    theirs=other.csv -o report[/bold]
    """
    from gazediffusion.evaluation.evaluation import EvaluationConfig
    from gazediffusion.evaluation.report import write_report

    protocols = {"position": ("position",), "velocity": ("velocity",)}
    if protocol not in (*protocols, "both"):
        raise GazeError(f"--protocol must be position, velocity or both, not {protocol!r}")
    if bootstrap < 0 or seed < 0:
        raise GazeError("--bootstrap and --seed must be 0 or more")
    if real is None and (train is not None or reference is not None):
        raise GazeError("--train and --reference need recordings", remedy="give them with --real")
    if real is not None and summary is not None:
        raise GazeError("--summary is for comparing without --real", remedy="give one of them")
    if output.is_dir() and any(output.iterdir()):
        raise GazeError("this folder is not empty", path=output, remedy="name a new one")
    require_writable(output)
    options = read_options_of(
        columns, participant_pattern, screen, screen_cm, distance_cm, data_dir
    )
    config = EvaluationConfig(
        protocols=protocols.get(protocol, ("position", "velocity")),  # type: ignore[arg-type]
        n_bootstrap=bootstrap,
        quick=quick,
        seed=seed,
    )
    given = [*synthetic, *(more or [])]
    with progress.steps_line() as step:
        if real is None:
            results, gallery = _against_summary(summary, given, options, config, step)
        else:
            results, gallery = _against_people(real, train, given, options, config, reference, step)
        step("report")
        write_report(results, output, gallery)
    tables.print_evaluation(results)
    if real is None:
        people = results["sets"]["real"]["name"]
        out.print(
            f"real people: the {plain(people)} inside the package; the report says whom to cite"
        )
    out.print(f"wrote {plain(output)}: report.html, report.md, results.json, figures")


def baseline(
    name: Annotated[
        str,
        typer.Argument(
            help="kinematic-markov, positional-markov, uniform or gaussian.", show_default=False
        ),
    ],
    windows: Annotated[
        Path, typer.Argument(help="The windows file whose training people it learns from.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="A windows file.")],
    n: Annotated[int, typer.Option("-n", help="How many windows.")] = 1000,
    seed: Annotated[int, typer.Option(help="Window k of a seed is always the same.")] = 0,
) -> None:
    """Generate with one of the paper's four statistical baselines.

    Example: [bold]gazediffusion baseline kinematic-markov windows.safetensors -n 1000
    -o markov.safetensors[/bold]
    """
    from gazediffusion.data.windows import Windows
    from gazediffusion.generation.baselines import fit_baseline

    if seed < 0:
        raise GazeError(f"--seed must be 0 or more, not {seed}")
    if output.suffix != ".safetensors":
        raise GazeError("a windows file ends in .safetensors", path=output)
    require_writable(output)
    with progress.steps_line() as step:
        step(f"fitting {name}")
        fitted = fit_baseline(name, Windows.load(windows))
        step("generating")
        fitted.sample(n, seed).save(output)
    out.print(f"wrote {plain(output)}: {n} windows by {name}, seed {seed}")


def _against_people(
    real: str,
    train: str | None,
    given: list[str],
    options: object,
    config: EvaluationConfig,
    reference: Path | None,
    step: progress.Step,
) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """The results, and some windows to show."""
    from gazediffusion.evaluation.evaluation import evaluate as evaluate_sets
    from gazediffusion.evaluation.loading import load_set

    step(f"reading {real}")
    people = load_set(real, "real", read_options=options)
    sets = _synthetic_sets(given, people, options, step)
    trained = _training_people(train, real, options)
    network = _reference(reference, given)
    results = evaluate_sets(people, sets, trained, config, network, step)
    return results, {"real, held out": _four(people), **{n: _four(w) for n, w in sets.items()}}


def _against_summary(
    summary: str | None,
    given: list[str],
    options: object,
    config: EvaluationConfig,
    step: progress.Step,
) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """The results, and some windows to show; of the real people there are none."""
    from gazediffusion.evaluation.summary import evaluate_against, find_summary, summary_for

    people = find_summary(summary or summary_for(_tasks_of(given)))
    sets = _synthetic_sets(given, people, options, step)
    results = evaluate_against(people.summary, sets, config, people.task, step)
    return results, {name: _four(windows) for name, windows in sets.items()}


def _tasks_of(given: list[str]) -> set[str]:
    """The tasks of synthetic sets, as their cards say; a set that does not say counts as one."""
    from gazediffusion.evaluation.loading import name_of
    from gazediffusion.generation.sets import read_card

    tasks: set[str] = set()
    for one in given:
        card = read_card(Path(name_of(one)[1])) or {}
        chosen = card.get("sampling", {}).get("task")
        learned = card.get("model", {}).get("trained_on", {}).get("tasks", [])
        tasks |= {chosen} if chosen else set(learned) or {""}
    return tasks


def _synthetic_sets(
    given: list[str], real: Like, options: object, step: progress.Step
) -> dict[str, Windows]:
    from gazediffusion.evaluation.loading import load_set, name_of

    sets: dict[str, Windows] = {}
    for one in given:
        name, path = name_of(one)
        if name in sets or name in ("real", "train"):
            raise GazeError(f"two sets are named {name!r}", remedy="name one as NAME=PATH")
        step(f"reading {name}")
        sets[name] = load_set(path, "synthetic", real, options)
    return sets


def _training_people(train: str | None, real: str, options: object) -> Windows | None:
    """The training windows: as given, or those of the same windows file as the real ones."""
    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.loading import load_set

    if train is not None:
        return load_set(train, "train", read_options=options)
    if not real.endswith(".safetensors"):
        return None
    windows = Windows.load(real)
    return windows.train if windows.validation else None


def _reference(reference: Path | None, synthetic: list[str]) -> FeatureMap | None:
    """The network of the Frechet Gaze Distance: as given, or the first position run compared."""
    from gazediffusion.device import choose_device
    from gazediffusion.evaluation.loading import name_of, reference_features
    from gazediffusion.models.checkpoint import load_run

    device = choose_device("auto")
    if reference is not None:
        return reference_features(load_run(reference, device=device))
    for one in synthetic:
        path = Path(name_of(one)[1])
        if (path / "config.json").is_file():
            run = load_run(path, device=device)
            if run.config.recipe.representation == "position":
                return reference_features(run)
    return None


def _four(windows: Windows) -> NDArray[np.float32]:
    import numpy as np

    places = np.linspace(0, len(windows) - 1, min(4, len(windows))).round().astype(int)
    return windows.cut(places)
