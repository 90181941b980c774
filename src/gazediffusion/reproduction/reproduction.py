"""The paper's experiments on given recordings: plan, artefacts, tables, figures and page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.reproduction.building import SET_SEED, Builder, Silent, Watcher
from gazediffusion.reproduction.evidence import PACKAGED, disagreements, features_of_first
from gazediffusion.reproduction.page import FIGURES, render
from gazediffusion.reproduction.plan import PAPER, TINY, Plan
from gazediffusion.reproduction.tables import TABLES, make_results, requirements
from gazediffusion.storage import is_remote, read_json, working_copy, write_json, written_whole
from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

Stage = Literal["windows", "samples", "results"]
STAGES: tuple[Stage, ...] = ("windows", "samples", "results")
_DATA = "data.json"


def reproduce(
    folder: Path | str,
    recordings: Callable[[], Recordings] | Recordings | None = None,
    *,
    tiny: bool = False,
    tasks: Sequence[str] = (),
    only: Sequence[str] = (),
    runs: Sequence[str] = (),
    until: Stage = "results",
    so_far: bool = False,
    packaged: bool = False,
    published: Path | str | None = None,
    command: str = "",
    device: str = "auto",
    watcher: Watcher | None = None,
) -> Path | None:
    """Run the paper's experiments in `folder`, up to a stage; returns the folder of the results.

    recordings: of the experiments, or a function that reads them; not needed to resume, nor with
        `tiny`, which simulates recordings and trains tiny networks.
    tasks: of the recordings; all if empty. only: names of tables; all if empty. until: windows,
        samples or results. runs: train these and generate their sets, and nothing else: where one
        machine has not the time for all. so_far: train and sample nothing, and write what the sets
        at hand allow.
    packaged: the weights of the packaged models are those of their runs, which are not trained;
        with so_far all that follows from them is built. published: a results.json to compare
        with; GazeError if a number of the same runs and windows differs.
    command: as the page shows it. watcher: is notified of progress, and may ask for a stop.
    folder: at a URL it is worked on in a local copy, and uploaded when the call ends or is stopped.
    Raises StoppedError when the watcher asks for a stop; the same call resumes.

    >>> reproduce("try", tiny=True, until="windows")  # prepares, and returns no folder of results
    """
    given = locals()
    folder, plan = Path(folder), TINY if tiny else PAPER
    watcher = watcher or Silent()
    if is_remote(folder):
        with working_copy(folder) as local:
            written = reproduce(**{**given, "folder": local})
        return None if written is None else folder / written.relative_to(local)
    _require_known(only, until)
    for name in runs:
        if name not in plan.runs:
            raise GazeError(f"no run {name!r}", remedy=suggestion(name, list(plan.runs)))
    if recordings is None and not tiny and not (folder / _DATA).is_file():
        raise GazeError("no recordings are named", remedy="give `recordings`")
    _require_same_plan(folder, plan)
    builder = Builder(plan, folder, watcher, device, packaged)
    if (folder / _DATA).is_file():
        watcher.part(_resumed(builder))
    else:
        _prepare(builder, recordings, tasks, command)
    if until == "windows":
        return None
    names = list(only or TABLES)
    if so_far:
        at_hand = builder.existing("sets") | (set(PACKAGED) if packaged else set())
        builder = replace(builder, plan=plan.with_seeds(at_hand))
        names = [name for name in names if builder.can_build(requirements(builder.plan, [name]))]
    required = requirements(builder.plan, names)
    builder.samples(required, runs)
    if runs or until == "samples":
        return None
    builder.evaluations(required)
    watcher.part("tables, figures and page")
    known = builder.existing("histories") | set(filter(builder.is_packaged, plan.runs))
    missing = sorted(set(plan.runs) - known)
    made = builder.artefacts(required, {**_about(builder), "not_yet_run": missing})
    from gazediffusion.reproduction.figures import draw_figures  # it simulates a recording

    results = make_results(made, names)
    output = folder / "results"
    shown = {name for name, (place, _) in FIGURES.items() if place in ("data", *names)}
    results["figures"] = draw_figures(made, output / "figures", shown)
    write_json(output / "results.json", results)
    rate_hz = made.about["rate_hz"]
    first = {name: features_of_first(gaze, rate_hz) for name, gaze in made.shown.items()}
    write_json(output / "evidence.json", {"seed": SET_SEED, "features": first})
    with written_whole(output / "README.md") as temporary:
        temporary.write_text(render(results), encoding="utf-8")
    if published is not None:
        _require_agreement(results, Path(published), watcher)
    return output


def _require_agreement(results: dict[str, Any], published: Path, watcher: Watcher) -> None:
    n_compared, lines = disagreements(results["rows"], read_json(published)["rows"])
    if not n_compared:
        raise GazeError("no number is of the same runs and windows as here", path=published)
    watcher.part(f"{n_compared - len(lines)} of {n_compared} numbers agree with {published}")
    if lines:
        shown = "; ".join(lines[:5])
        raise GazeError(f"{len(lines)} of {n_compared} numbers differ: {shown}", path=published)


def _prepare(
    builder: Builder,
    recordings: Callable[[], Recordings] | Recordings | None,
    tasks: Sequence[str],
    command: str,
) -> None:
    """Write both models' windows of the same recordings and the same split."""
    # A machine that only trains and samples needs no readers.
    from gazediffusion.data.preparing import prepare
    from gazediffusion.data.reading import read
    from gazediffusion.data.simulation import write_simulation
    from gazediffusion.settings import PrepareConfig, SimulationConfig

    if recordings is None:
        builder.watcher.part("simulating recordings")
        simulation = SimulationConfig(n_participants=8, minutes=1.0, rate_hz=250.0)
        write_simulation(simulation, builder.folder / "recordings", "parquet", overwrite=True)
        recordings = read(builder.folder / "recordings")
    found = recordings() if callable(recordings) else recordings
    names = sorted({source.path.name for source in found.sources})[:20]
    for protocol in ("position", "velocity"):
        config = PrepareConfig(protocol=protocol, seconds=builder.plan.seconds, tasks=tuple(tasks))
        with builder.watcher.preparing(protocol, len(found.sources)) as progress:
            windows = prepare(found, config, progress)
        _require_participants(windows)
        windows.save(builder.path("windows", protocol), overwrite=True)
    described = {"data": names, "task": ", ".join(tasks) or None, "command": command}
    write_json(builder.folder / _DATA, described)


def _about(builder: Builder) -> dict[str, Any]:
    windows = builder.windows("position")
    return {
        **read_json(builder.folder / _DATA),
        "data_sha256": windows.provenance["data_sha256"],
        "screen": windows.screen.in_words(),
        "screen_px": [windows.screen.width_px, windows.screen.height_px],
        "rate_hz": windows.rate_hz,
        "position": builder.counts("position"),
        "velocity": builder.counts("velocity"),
        "gazediffusion_version": __version__,
        "tiny": builder.plan.name == "tiny",
    }


def _resumed(builder: Builder) -> str:
    """What is there of the plan, in words."""
    plan = builder.plan
    words = {"histories": "runs trained", "sets": "sets generated", "evaluations": "evaluations"}
    planned = (list(plan.runs), list(plan.sets), list(plan.evaluations))
    found = [
        f"{len(builder.existing(kind) & set(names))} of {len(names)} {word}"
        for (kind, word), names in zip(words.items(), planned, strict=True)
    ]
    return f"resuming {builder.folder}: {', '.join(found)}"


def _require_known(only: Sequence[str], until: str) -> None:
    if until not in STAGES:
        raise GazeError(f"`until` must be one of {', '.join(STAGES)}, not {until!r}")
    for name in only:
        if name not in TABLES:
            raise GazeError(f"no table {name!r}", remedy=suggestion(name, list(TABLES)))


def _require_same_plan(folder: Path, plan: Plan) -> None:
    """A folder holds one reproduction; artefacts of another plan would be taken for this one's."""
    path = folder / "plan.json"
    if not path.is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise GazeError("this is not an empty folder", path=folder, remedy="name a new one")
        write_json(path, plan.to_json())
    elif differences := plan.differences(Plan.from_json(read_json(path))):
        named = "; ".join(differences[:3])
        raise GazeError(
            f"this folder holds a reproduction of another plan ({named})",
            path=folder,
            remedy="name another folder, or give the options of the first call",
        )


def _require_participants(windows: Windows) -> None:
    if not len(windows.held_out) or not len(windows.train):
        raise GazeError(
            f"{windows.protocol} windows must have participants on both sides of the split; they "
            f"have {len(windows.train)} training and {len(windows.held_out)} held-out windows",
            remedy="add recordings of more participants",
        )
