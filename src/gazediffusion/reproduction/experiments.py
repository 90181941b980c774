"""`reproduce`: from recordings to the page, one stage after the other; a folder is resumed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from gazediffusion.data.preparing import PrepareConfig, prepare
from gazediffusion.data.reading import Recordings, read
from gazediffusion.data.simulation import SimulationConfig, write_simulation
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.files import read_json, write_json, written_whole
from gazediffusion.reproduction.building import Builder, Watcher
from gazediffusion.reproduction.figures import draw_figures
from gazediffusion.reproduction.page import render
from gazediffusion.reproduction.plan import PAPER, TINY, Plan
from gazediffusion.reproduction.tables import TABLES, make_results, requirements
from gazediffusion.version import __version__

Stage = Literal["windows", "samples", "results"]
STAGES: tuple[Stage, ...] = ("windows", "samples", "results")
SIMULATED = SimulationConfig(n_participants=8, minutes=2.0, rate_hz=250.0)
_DATA = "data.json"


class Silent:
    """A watcher that shows nothing and never asks for a stop."""

    def part(self, name: str) -> None:
        """Show nothing."""

    @contextmanager
    def preparing(self, protocol: str, n_files: int) -> Iterator[Callable[..., None]]:
        """Show nothing."""
        yield lambda recording: None

    @contextmanager
    def training(self, n_runs: int, n_windows: int) -> Iterator[Callable[..., None]]:
        """Show nothing."""
        yield lambda run, done: None

    @contextmanager
    def generating(self, n: int) -> Iterator[Callable[[float], None]]:
        """Show nothing."""
        yield lambda done: None

    def should_stop(self) -> bool:
        """Never."""
        return False


def reproduce(
    recordings: Recordings | Callable[[], Recordings] | None,
    folder: Path | str,
    *,
    tiny: bool = False,
    tasks: Sequence[str] = (),
    only: Sequence[str] = (),
    until: str = "results",
    so_far: bool = False,
    device: str = "auto",
    command: str = "gazediffusion.reproduce(recordings, folder)",
    watcher: Watcher | None = None,
) -> Path:
    """Reproduce the paper's experiments on recordings; returns the folder of the results.

    recordings: as `read` finds them, or a function that does; they are read only if their windows
        are not in the folder yet. None resumes a folder or, with `tiny`, simulates recordings.
    tiny: the same experiments with networks that train in seconds. tasks: all of them if empty.
    only: names of tables; all of them if empty. until: stop after windows, samples or results;
        before the last, `folder` is returned.
    so_far: train and sample nothing, and write the tables that the sets at hand allow.
    command: what the page names as its origin. watcher: is notified of what is being built.
    What is in the folder is not built again. Raises StoppedError when the watcher asks for a stop;
    the same call resumes.
    """
    folder, plan, watcher = Path(folder), TINY if tiny else PAPER, watcher or Silent()
    _require_known(only, until)
    if recordings is None and not tiny and not (folder / _DATA).is_file():
        raise GazeError("no recordings are named", remedy="give `recordings`")
    _require_same_plan(folder, plan)
    builder = Builder(plan, folder, watcher, device)
    if (folder / _DATA).is_file():
        watcher.part(_resumed(builder))
    else:
        if recordings is None:
            watcher.part("simulating recordings")
            write_simulation(SIMULATED, folder / "recordings", "parquet")
            recordings = read(folder / "recordings")
        found = recordings() if callable(recordings) else recordings
        _prepare(found, tasks, builder)
        write_json(folder / _DATA, _described(found, tasks, command))
    if until == "windows":
        return folder
    names = list(only or TABLES)
    if so_far:
        builder = replace(builder, plan=plan.with_seeds(builder.existing("sets")))
        names = [name for name in names if builder.can_build(requirements(builder.plan, [name]))]
    required = requirements(builder.plan, names)
    builder.samples(required)
    if until == "samples":
        return folder
    builder.evaluations(required.evaluations)
    watcher.part("tables, figures and page")
    missing = sorted(set(plan.runs) - builder.existing("histories"))
    made = builder.artefacts(required, {**_about(builder), "not_yet_run": missing})
    results = make_results(made, names)
    output = folder / "results"
    results["figures"] = draw_figures(made, output / "figures")
    write_json(output / "results.json", results)
    with written_whole(output / "README.md") as temporary:
        temporary.write_text(render(results), encoding="utf-8")
    return output


def _prepare(recordings: Recordings, tasks: Sequence[str], builder: Builder) -> None:
    """Windows of the same recordings and split for both models."""
    n_files = len(recordings.sources)
    config = PrepareConfig(seconds=builder.plan.seconds, tasks=tuple(tasks))
    for protocol in ("position", "velocity"):
        with builder.watcher.preparing(protocol, n_files) as progress:
            windows = prepare(recordings, replace(config, protocol=protocol), progress)
        _require_participants(windows)
        windows.save(builder.path("windows", protocol))


def _described(recordings: Recordings, tasks: Sequence[str], command: str) -> dict[str, Any]:
    """The recordings as the page names them."""
    names = sorted({source.path.name for source in recordings.sources})
    return {"data": names[:20], "task": ", ".join(tasks) or None, "command": command}


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
    planned: dict[str, tuple[Collection[str], str]] = {
        "histories": (plan.runs, "runs trained"),
        "sets": (plan.sets, "sets generated"),
        "evaluations": (plan.evaluations, "evaluations"),
    }
    found = [
        f"{len(builder.existing(kind) & set(names))} of {len(names)} {title}"
        for kind, (names, title) in planned.items()
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
