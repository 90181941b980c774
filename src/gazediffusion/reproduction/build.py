"""Building a reproduction: each artefact is a file, written once, from the files it needs.

windows/      position.safetensors, velocity.safetensors
runs/         one run folder for each network
sets/         generated windows
features/RUN/ bottleneck features of a set in that run
frechet/RUN/  Frechet Gaze Distance of a set by these features
histories/    losses by epoch, time and device of a run
evaluations/  sets compared with the held-out participants
results/      results.json, README.md, figures/

What is there is not built again, and only what is missing asks for what it is built from: with the
sets at hand no run is needed. So a GPU machine can train and sample, and a laptop do the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from gazediffusion import __version__, seeds
from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError, StoppedError, suggestion
from gazediffusion.evaluation.evaluation import compare
from gazediffusion.evaluation.features import IVT_THRESHOLD
from gazediffusion.evaluation.metrics import drawn_windows, frechet_of
from gazediffusion.evaluation.reading import bottleneck_features
from gazediffusion.evaluation.result import plain_values
from gazediffusion.evaluation.sets import GazeSet
from gazediffusion.generation.baselines import SMOOTHING_CELLS, fit_baseline
from gazediffusion.generation.sampler import Sampler, default_batch_size
from gazediffusion.jobs import Show, locked, never, nothing
from gazediffusion.network.checkpoint import Run, WeightsName, load_run, read_config, read_metrics
from gazediffusion.network.unet import n_parameters
from gazediffusion.reproduction.claims import evaluate_claims
from gazediffusion.reproduction.page import FIGURES, render
from gazediffusion.reproduction.plan import BASELINES, PAPER, TINY, Artefacts, Plan, Required
from gazediffusion.reproduction.tables import (
    FORMAT,
    FORMAT_VERSION,
    TABLES,
    Comparison,
    other_bins,
    requirements,
    rows_of,
)
from gazediffusion.seeds import Stream
from gazediffusion.settings import EvaluationConfig
from gazediffusion.storage import is_remote, read_json, working_copy, write_json, written_whole
from gazediffusion.training import calibration
from gazediffusion.training.training import train_epochs

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

Stage = Literal["windows", "samples", "results"]
STAGES: tuple[Stage, ...] = ("windows", "samples", "results")
PARTICIPANTS = ("real", "train")
# Seeds of what is not trained: of the windows of each set, and of subsampling.
SET_SEED, SUBSAMPLE_SEED = 0, 0
_N_SHOWN = 12
_DATA = "data.json"
_ENDINGS = {"windows": ".safetensors", "sets": ".safetensors", "runs": "", "features": ".npy"}


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
    command: str = "",
    device: str = "auto",
    progress: Show = nothing,
    should_stop: Callable[[], bool] = never,
    say: Callable[[str], None] = lambda part: None,
) -> Path | None:
    """Run the paper's experiments in `folder`, up to a stage; returns the folder of the results.

    recordings: of the experiments, or a function that reads them; not needed to resume, nor with
        `tiny`, which simulates recordings and trains tiny networks.
    tasks: of the recordings; all if empty. only: names of tables; all if empty. until: windows,
        samples or results. runs: train these and generate their sets, and nothing else: where one
        machine has not the time for all. so_far: train and sample nothing, and write what the sets
        at hand allow.
    command: as the page shows it. say: is called with each part of the work when it begins.
    folder: at a URL it is worked on in a local copy, and uploaded when the call ends or is stopped.
    Raises StoppedError when `should_stop` returns True; the same call resumes.

    >>> reproduce("try", tiny=True, until="windows")  # prepares, and returns no folder of results
    """
    given = locals()
    folder, plan = Path(folder), TINY if tiny else PAPER
    if is_remote(folder):
        with working_copy(folder) as local:
            written = reproduce(**{**given, "folder": local})
        return None if written is None else folder / written.relative_to(local)
    if until not in STAGES:
        raise GazeError(f"`until` must be one of {', '.join(STAGES)}, not {until!r}")
    for kind, names, known in (("table", only, TABLES), ("run", runs, plan.runs)):
        for name in names:
            if name not in known:
                raise GazeError(f"no {kind} {name!r}", remedy=suggestion(name, list(known)))
    if recordings is None and not tiny and not (folder / _DATA).is_file():
        raise GazeError("no recordings are named", remedy="give `recordings`")
    _require_same_plan(folder, plan)
    with locked(folder):
        builder = Builder(plan, folder, progress, should_stop, say, device)
        if (folder / _DATA).is_file():
            say(builder.resumed())
        else:
            _prepare(builder, recordings, tasks, command)
        if until == "windows":
            return None
        names = list(only or TABLES)
        if so_far:
            builder = replace(builder, plan=plan.with_seeds(builder.existing("sets")))
            names = [
                name for name in names if builder.can_build(requirements(builder.plan, [name]))
            ]
        required = requirements(builder.plan, names)
        builder.samples(required, runs)
        if runs or until == "samples":
            return None
        builder.evaluations(required)
        say("tables, figures and page")
        missing = sorted(set(plan.runs) - builder.existing("histories"))
        made = builder.artefacts(required, {**_about(builder), "not_yet_run": missing})
        return _write_results(made, names, folder / "results")


def _write_results(made: Artefacts, names: Sequence[str], output: Path) -> Path:
    from gazediffusion.reproduction.figures import draw_figures

    results = make_results(made, names)
    shown = {name for name, (place, _) in FIGURES.items() if place in ("data", *names)}
    results["figures"] = draw_figures(made, output / "figures", shown)
    write_json(output / "results.json", results)
    with written_whole(output / "README.md") as temporary:
        temporary.write_text(render(results), encoding="utf-8")
    return output


@dataclass
class Builder:
    """Builds the artefacts of a plan in a folder."""

    plan: Plan
    folder: Path
    progress: Show
    should_stop: Callable[[], bool]
    say: Callable[[str], None]
    device: str = "auto"
    _windows: dict[str, Windows] = field(default_factory=dict)

    def path(self, kind: str, name: str) -> Path:
        """The file, or folder, of an artefact."""
        home = self.plan.reference if kind in ("features", "frechet") else ""
        return self.folder / kind / home / (name + _ENDINGS.get(kind, ".json"))

    def windows(self, representation: str) -> Windows:
        """The prepared recordings."""
        if representation not in self._windows:
            self._windows[representation] = Windows.load(self.path("windows", representation))
        return self._windows[representation]

    def samples(self, required: Required, only: Collection[str] = ()) -> None:
        """Build all that needs a trained network, training first what is needed for it.

        only: of these runs; all if it is empty.
        """
        histories = self._missing("histories", required["histories"])
        frechet = self._missing("frechet", required["frechet"])
        features = self._missing("features", ["real", *frechet] if frechet else [])
        needed = self._sets_of({**required, "frechet": features})
        sets = self._missing("sets", [*needed, self.plan.reference])
        if only:
            sets = [name for name in sets if self.plan.sets[name].run in only]
            histories, features = [name for name in histories if name in only], []
        runs = [self.plan.sets[name].run for name in sets]
        runs += [*histories, *([self.plan.reference] if features else [])]
        self._train([name for name in dict.fromkeys(runs) if name is not None])
        for name in histories:
            write_json(self.path("histories", name), self._history(name))
        for name in sets:
            self._part(f"generating {name}")
            self._generate(name).save(self.path("sets", name))
        self._write_features(features)

    def evaluations(self, required: Required) -> None:
        """Compare sets with the held-out participants."""
        self._write_frechet(self._missing("frechet", required["frechet"]))
        for name in required["evaluations"]:
            path = self.path("evaluations", name)
            # One of fewer seeds (`so_far`) is another evaluation.
            is_there = path.is_file() and (
                list(read_json(path)["sets"]["synthetic"]) == self.plan.evaluations[name]
            )
            if not is_there:
                write_json(path, self._evaluated(name))

    def artefacts(self, required: Required, about: Mapping[str, Any]) -> Artefacts:
        """Read back what was built."""
        read: dict[str, Any] = {
            kind: {name: read_json(self.path(kind, name)) for name in names}
            for kind, names in required.items()
        }
        first = [name for name in self.plan.named(["first"]) if self.path("sets", name).is_file()]
        shown = {name: self._set(name).cut()[:_N_SHOWN] for name in first}
        return Artefacts(self.plan, **read, shown=shown, about=about)

    def existing(self, kind: str) -> set[str]:
        """The names of the artefacts of a kind that are there."""
        pattern = self.path(kind, "*")
        ending = _ENDINGS.get(kind, ".json")
        return {path.name.removesuffix(ending) for path in pattern.parent.glob(pattern.name)}

    def can_build(self, required: Required) -> bool:
        """Whether all of it is there, or can be built without training or sampling a network."""
        best = self.path("runs", self.plan.reference) / "best.safetensors"
        features = self.existing("features") | self.existing("frechet")
        return (
            set(self._sets_of(required)) <= self.existing("sets") | set(BASELINES)
            and (best.is_file() or set(required["frechet"]) <= features)
            and set(required["histories"]) <= self.existing("histories")
        )

    def counts(self, representation: str) -> dict[str, int]:
        """How many participants and windows there are on either side of the split."""
        windows = self.windows(representation)
        found = {}
        for side, part in {"train": windows.train, "real": windows.held_out}.items():
            found[f"n_{side}_windows"] = len(part)
            found[f"n_{side}_participants"] = len(np.unique(part.participant))
        return found

    def resumed(self) -> str:
        """What is there of the plan, in words."""
        plan = self.plan
        planned: dict[str, tuple[str, Iterable[str]]] = {
            "histories": ("runs trained", plan.runs),
            "sets": ("sets generated", plan.sets),
            "evaluations": ("evaluations", plan.evaluations),
        }
        found = [
            f"{len(self.existing(kind) & set(names))} of {len(set(names))} {words}"
            for kind, (words, names) in planned.items()
        ]
        return f"resuming {self.folder}: {', '.join(found)}"

    def _sets_of(self, required: Required) -> list[str]:
        """The sets that are evaluated, or whose features are required."""
        sets = [name for one in required["evaluations"] for name in self.plan.evaluations[one]]
        return [*sets, *(name for name in required["frechet"] if name not in PARTICIPANTS)]

    def _missing(self, kind: str, names: Iterable[str]) -> list[str]:
        return [name for name in dict.fromkeys(names) if not self.path(kind, name).is_file()]

    def _part(self, name: str) -> None:
        """Announce a part; a requested stop takes effect between parts."""
        self._require_no_stop()
        self.say(name)

    def _require_no_stop(self) -> None:
        if self.should_stop():
            raise StoppedError(f"stopped; all finished parts are saved in {self.folder}")

    def _run(self, name: str, weights: WeightsName = "best") -> Run:
        return load_run(self.path("runs", name), weights, choose_device(self.device))

    def _train(self, names: Sequence[str]) -> None:
        """Train runs one after another, and calibrate those that need it."""
        n_epochs = {name: self.plan.runs[name].recipe.epochs for name in names}
        left = [n for n in names if len(read_metrics(self.path("runs", n))) < n_epochs[n]]
        of = {name: self.windows(self.plan.representation_of(name)) for name in left}
        if left:
            self._part("training " + ", ".join(left))
            for name in left:
                self._train_one(name, of[name])
        for name in names:
            folder = self.path("runs", name)
            if calibration.is_due(read_config(folder)):
                self._part(f"calibrating {name}")
                device, n = choose_device(self.device), self.plan.n_calibration
                calibration.calibrate(
                    folder, device, n, progress=self.progress, should_stop=self.should_stop
                )

    def _train_one(self, name: str, windows: Windows) -> None:
        planned = self.plan.runs[name]
        epochs = train_epochs(
            windows,
            self.path("runs", name),
            planned.recipe,
            seed=planned.seed,
            device=self.device,
            should_stop=self.should_stop,
            progress=lambda _, *given: self.progress(f"training {name}", *given),
        )
        for _ in epochs:
            pass
        self._require_no_stop()

    def _history(self, name: str) -> dict[str, Any]:
        """Losses by epoch, time and device of a run."""
        folder = self.path("runs", name)
        config, epochs = read_config(folder), read_metrics(folder)
        best = min(epochs, key=lambda one: one["validation_loss"] or np.inf)
        timing = folder / "timing.jsonl"
        times = timing.read_text().splitlines() if timing.is_file() else None
        is_known = config.device == "cuda" and torch.cuda.is_available()
        kept = ("seed", "device", "precision", "gazediffusion_version", "torch_version")
        return {
            "run": name,
            "recipe": config.recipe.name,
            "objective": config.recipe.objective,
            "n_parameters": n_parameters(config.recipe.network),
            **{key: getattr(config, key) for key in kept},
            "epochs": len(epochs),
            "steps": epochs[-1]["step"],
            "best_validation_loss": best["validation_loss"],
            "best_epoch": best["epoch"] + 1,
            "training_loss_at_best": best["training_loss"],
            "seconds": None if times is None else sum(json.loads(one)["seconds"] for one in times),
            "gpu": torch.cuda.get_device_name() if is_known else None,
            "validation_loss": [one["validation_loss"] for one in epochs],
            "training_loss": [one["training_loss"] for one in epochs],
        }

    def _n_windows(self, windows: Windows) -> int:
        """How many windows a set holds."""
        n = len(windows.held_out)
        return n if self.plan.n_windows is None else min(n, self.plan.n_windows)

    def _set(self, name: str) -> Windows:
        return Windows.load(self.path("sets", name))

    def _generate(self, name: str) -> Windows:
        plan = self.plan.sets[name]
        windows = self.windows(self.plan.representation_of(name))
        n = self._n_windows(windows)
        if plan.run is None:
            return fit_baseline(name, windows).sample(n, SET_SEED)
        run = self._run(plan.run, plan.weights)
        batch_size = default_batch_size(run)
        sampler = Sampler(run, SET_SEED, steps=plan.steps, eta=plan.eta, batch_size=batch_size)
        return sampler.windows(0, n, lambda done: self.progress("generating", done, n, ""))

    def _gaze(self, name: str) -> GazeSet:
        """The windows of a set, or of participants, dequantized to the tracker's resolution."""
        position = self.windows("position")
        if name == "real":
            return GazeSet.of(name, position.held_out)
        if name == "train":
            rng = seeds.rng(SUBSAMPLE_SEED, Stream.REPRODUCTION, "training windows")
            return GazeSet.of(name, position.train).cut(self._n_windows(position), rng)
        return GazeSet.of(name, self._set(name), is_synthetic=True)

    def _write_features(self, names: Sequence[str]) -> None:
        if not names:
            return
        features_of = bottleneck_features(self._run(self.plan.reference))
        for name in names:
            self._part(f"features of {name}")
            features = features_of(self._gaze(name).gaze).astype(np.float64)
            path = self.path("features", name)
            with written_whole(path) as temporary, open(temporary, "wb") as file:
                np.save(file, features)

    def _write_frechet(self, names: Sequence[str]) -> None:
        """Distances of features; participants, and blocks of generated windows, are drawn."""
        if not names:
            return
        real, group = np.load(self.path("features", "real")), self._gaze("real").group
        rng = seeds.rng(SET_SEED, Stream.REPRODUCTION, "real draws")
        drawn = [real[drawn_windows(group, rng)] for _ in range(self.plan.n_bootstrap)]
        for name in names:
            self._part(f"Frechet Gaze Distance of {name}")
            other, group = np.load(self.path("features", name)), self._gaze(name).group
            rng = seeds.rng(SET_SEED, Stream.REPRODUCTION, "draws")
            draws = [frechet_of(one, other[drawn_windows(group, rng)]) for one in drawn]
            found = {"fgd": frechet_of(real, other), "n": len(other), "draws": draws}
            write_json(self.path("frechet", name), found)

    def _evaluated(self, name: str) -> dict[str, Any]:
        windows = self.windows(self.plan.representation_of(name))
        sets = {one: self._set(one) for one in self.plan.evaluations[name]}
        config = EvaluationConfig(
            n_bootstrap=self.plan.n_bootstrap,
            with_tests=name in ("position", "velocity"),
            keep_draws=True,
        )
        # Not `evaluate`, which refuses the few windows of the tiny plan.
        results = compare(
            windows.held_out,
            sets,
            windows.train,
            config,
            progress=lambda part: self._part(f"{name}: {part}"),
        )
        if name == "position":
            results["quantities"] += other_bins(windows.held_out, sets, windows.train, config)
        return dict(plain_values(results, digits=8))


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
        builder.say("simulating recordings")
        simulation = SimulationConfig(n_participants=8, minutes=1.0, rate_hz=250.0)
        write_simulation(simulation, builder.folder / "recordings", "parquet", overwrite=True)
        recordings = read(builder.folder / "recordings")
    found = recordings() if callable(recordings) else recordings
    names = sorted({source.path.name for source in found.sources})[:20]
    for protocol in ("position", "velocity"):
        config = PrepareConfig(protocol=protocol, seconds=builder.plan.seconds, tasks=tuple(tasks))
        windows = prepare(found, config, builder.progress)
        if not len(windows.held_out) or not len(windows.train):
            raise GazeError(
                f"{protocol} windows must have participants on both sides of the split; they have "
                f"{len(windows.train)} training and {len(windows.held_out)} held-out windows",
                remedy="add recordings of more participants",
            )
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


def make_results(made: Artefacts, only: Sequence[str] = ()) -> dict[str, Any]:
    """The tables of these names that can be built, and the verdicts, as plain values.

    only: all tables if it is empty.
    """
    names = [name for name in only or TABLES if made.has(TABLES[name].required(made.plan))]
    rows = rows_of(made, names)
    results = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "about": _described(made),
        "tables": {name: TABLES[name].described(made.plan) for name in names},
        "rows": [row.to_json() for row in rows.values()],
        "claims": evaluate_claims(rows),
    }
    plain: dict[str, Any] = json.loads(json.dumps(results, allow_nan=False))
    return plain


def _described(made: Artefacts) -> dict[str, Any]:
    plan = made.plan
    return {
        **made.about,
        "plan": plan.name,
        "seeds": {"position": list(plan.position.seeds), "velocity": list(plan.velocity.seeds)},
        "reference": plan.reference,
        "n_compared": {name: one["about"]["n_common"] for name, one in made.evaluations.items()},
        "settings": plan.to_json(),
        "choices": {
            "js_bins": next((one["about"]["bins"] for one in made.evaluations.values()), None),
            "markov_smoothing_cells": SMOOTHING_CELLS,
            "fixation_threshold": IVT_THRESHOLD,
        },
        "median_step": _median_step(made),
    }


def _median_step(made: Artefacts) -> float | None:
    """The held-out participants' median motion per sample, normalized, from their log-speeds."""
    for evaluation in made.evaluations.values():
        row = Comparison(evaluation).quantity("velocity", "log_speed")
        if row is not None:
            edges, density = (np.array(row["histogram"][key]) for key in ("edges", "real"))
            share = np.cumsum(density) / density.sum()
            median = np.interp(0.5, [0.0, *share], edges)
            return float(np.exp(median)) / float(made.about["rate_hz"])
    return None
