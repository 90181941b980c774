"""The paper's experiments, run again: every table and figure from one command.

plan.py names what is made, making.py makes what is missing, tables.py and figures.py draw it up,
page.py writes it down beside the paper's own numbers (paper.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.files import read_json, write_json, written_whole
from gazediffusion.reproduction.claims import judge
from gazediffusion.reproduction.figures import draw_figures
from gazediffusion.reproduction.making import Maker, StoppedError, Wanted, Watcher
from gazediffusion.reproduction.page import render
from gazediffusion.reproduction.plan import PAPER, TINY, Plan
from gazediffusion.reproduction.tables import NEEDS, TABLES, make_results
from gazediffusion.version import __version__

__all__ = [
    "PAPER",
    "STAGES",
    "TABLES",
    "TINY",
    "Data",
    "Plan",
    "StoppedError",
    "Watcher",
    "reproduce",
]

Stage = Literal["windows", "samples", "results"]
STAGES: tuple[Stage, ...] = ("windows", "samples", "results")
_DATA = "data.json"


@dataclass(frozen=True)
class Data:
    """Recordings as both models want them, and how they were named on the command line."""

    position: Windows
    velocity: Windows
    described: dict[str, Any]


def reproduce(
    folder: Path,
    plan: Plan,
    read: Callable[[], Data],
    watcher: Watcher,
    *,
    only: Sequence[str] = (),
    until: Stage = "results",
    so_far: bool = False,
    device: str = "auto",
) -> Path | None:
    """Make what is missing in `folder`, up to a stage; returns the folder of the results.

    read: a function without arguments that gives the `Data`, called only if they are not yet in
    the folder. only: names of tables; all of them otherwise. so_far: train and sample nothing, and
    make the tables that the runs and sets at hand allow.
    """
    _require_same_plan(folder, plan)
    maker = Maker(plan, folder, watcher, device)
    if not (folder / _DATA).is_file():
        data = read()
        for representation in ("position", "velocity"):
            windows: Windows = getattr(data, representation)
            _require_people(windows)
            windows.save(maker.path("windows", representation))
        write_json(folder / _DATA, data.described)
    if until == "windows":
        return None
    if so_far:
        maker = replace(maker, plan=plan.with_seeds(maker.made("sets")))
        only = [name for name in only or TABLES if maker.can_make(_wanted(maker.plan, [name]))]
    wanted = _wanted(maker.plan, only)
    maker.samples(wanted)
    if until == "samples":
        return None
    maker.evaluations(wanted.evaluations)
    missing = sorted(set(plan.runs) - maker.made("histories"))
    return _write_results(maker, wanted, only, missing)


def _write_results(
    maker: Maker, wanted: Wanted, only: Sequence[str], missing: Sequence[str]
) -> Path:
    maker.watcher.part("tables, figures and page")
    artefacts = maker.artefacts(wanted, {**_about(maker), "not_yet_run": list(missing)})
    results = make_results(artefacts)
    if only:
        # Parts that several tables share may have made others as well.
        results["tables"] = {n: t for n, t in results["tables"].items() if n in only}
        results["claims"] = judge(results["tables"])
    folder = maker.folder / "results"
    results["figures"] = draw_figures(artefacts, folder / "figures")
    write_json(folder / "results.json", results)
    with written_whole(folder / "README.md") as temporary:
        temporary.write_text(render(results), encoding="utf-8")
    return folder


def _about(maker: Maker) -> dict[str, Any]:
    windows = maker.windows("position")
    return {
        **read_json(maker.folder / _DATA),
        "data_sha256": windows.provenance["data_sha256"],
        "screen": windows.screen.in_words(),
        "screen_px": [windows.screen.width_px, windows.screen.height_px],
        "rate_hz": windows.rate_hz,
        "position": maker.counts("position"),
        "velocity": maker.counts("velocity"),
        "gazediffusion_version": __version__,
        "tiny": maker.plan.name == "tiny",
    }


def _wanted(plan: Plan, only: Sequence[str]) -> Wanted:
    """What the tables asked for are made from; all of them where none is named."""
    needs = [NEEDS[name] for name in only or TABLES]
    sets = {name for one in needs for name in one.fgd(plan)}
    has_levels = any(one.levels for one in needs)
    return Wanted(
        evaluations=list(dict.fromkeys(name for one in needs for name in one.evaluations)),
        features=["real", "train", *sorted(sets)] if sets else [],
        histories=list(dict.fromkeys(name for one in needs for name in one.runs(plan))),
        levels=[*plan.position_sets, *plan.velocity_sets] if has_levels else [],
        shown=[plan.reference],
    )


def _require_same_plan(folder: Path, plan: Plan) -> None:
    """A folder holds one reproduction; parts of another plan would be taken for this one's."""
    path = folder / "plan.json"
    here = json.loads(json.dumps(plan.to_json()))
    if not path.is_file():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise GazeError("this is not an empty folder", path=folder, remedy="name a new one")
        write_json(path, here)
    elif not _is_same(read_json(path), here):
        raise GazeError(
            "this folder holds a reproduction by another plan",
            path=folder,
            remedy="name another folder, or give the options it was begun with",
        )


def _is_same(there: Any, here: Any) -> bool:
    """Whether settings agree; those an older version did not write down were the same for all."""
    if isinstance(there, dict) and isinstance(here, dict):
        return all(key in here and _is_same(there[key], here[key]) for key in there)
    return bool(there == here)


def _require_people(windows: Windows) -> None:
    if not len(windows.held_out) or not len(windows.train):
        raise GazeError(
            f"people must be on both sides of the split, and {windows.protocol} windows have "
            f"{len(windows.train)} of training and {len(windows.held_out)} of held-out people",
            remedy="bring recordings of more people",
        )
