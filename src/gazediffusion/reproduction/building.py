"""Building the artefacts of a plan: each is a file, written once, from the files it needs.

windows/      position.safetensors, velocity.safetensors
runs/         one run folder for each network
sets/         generated windows
features/RUN/ bottleneck features of a set in that run
frechet/RUN/  Frechet Gaze Distance of a set by these features
histories/    losses by epoch, time and device of a run
levels/       what a run recovers at each noise level
bounds/       the variational bound of a run
evaluations/  sets compared with the held-out participants

What is there is not built again, and only what is missing asks for what it is built from: with the
sets at hand no run is needed. So a GPU machine can train and sample, and a laptop do the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from gazediffusion.data.windows import Windows
from gazediffusion.device import choose_device
from gazediffusion.errors import StoppedError
from gazediffusion.evaluation.comparison import compare
from gazediffusion.evaluation.distances import drawn_windows
from gazediffusion.evaluation.gaze_sets import GazeSet
from gazediffusion.evaluation.generated import bottleneck_features
from gazediffusion.evaluation.metrics import frechet_of
from gazediffusion.evaluation.result import plain_values
from gazediffusion.generation.baselines import fit_baseline
from gazediffusion.generation.generator import DiffusionGenerator
from gazediffusion.generation.qualities import default_batch_size
from gazediffusion.models.checkpoint import Run, WeightsName, load_run, read_config, read_metrics
from gazediffusion.models.compact import rounded
from gazediffusion.models.pretrained import load_model
from gazediffusion.reproduction.artefacts import Artefacts, Required
from gazediffusion.reproduction.binning import other_bins
from gazediffusion.reproduction.evidence import PACKAGED, described_run, packaged_history
from gazediffusion.reproduction.plan import BASELINES, Plan
from gazediffusion.settings import EvaluationConfig
from gazediffusion.storage import read_json, write_json, written_whole
from gazediffusion.training import calibration
from gazediffusion.training.loop import held_out_bound, train_epochs
from gazediffusion.training.noise_levels import loss_by_level

PARTICIPANTS = ("real", "train")
# Seeds of what is not trained: of the windows of each set, and of subsampling.
SET_SEED, SUBSAMPLE_SEED = 0, 0
_N_SHOWN = 12
Bar = AbstractContextManager[Callable[..., None]]
_ENDINGS = {"windows": ".safetensors", "sets": ".safetensors", "runs": "", "features": ".npy"}


class Watcher(Protocol):
    """Is notified of what is being built."""

    def part(self, name: str) -> None:
        """A part begins."""

    def preparing(self, protocol: str, n_files: int) -> Bar:
        """A bar for the recordings of some files; the function takes each recording."""
        return nullcontext(lambda recording: None)

    def training(self, n_runs: int, n_windows: int) -> Bar:
        """A bar for several runs; the function takes (run, windows done)."""
        return nullcontext(lambda run, done: None)

    def generating(self, n: int) -> Bar:
        """A bar for the windows of a set."""
        return nullcontext(lambda done: None)

    def should_stop(self) -> bool:
        """Whether to save what is trained and stop."""
        return False


class Silent(Watcher):
    """Shows nothing and never asks for a stop."""

    def part(self, name: str) -> None:
        """Show nothing."""


@dataclass
class Builder:
    """Builds the artefacts of a plan in a folder.

    packaged: the weights of `evidence.PACKAGED` stand for runs that are not there.
    """

    plan: Plan
    folder: Path
    watcher: Watcher
    device: str = "auto"
    packaged: bool = False
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
        histories, levels, bounds = (
            self._missing(kind, required[kind]) for kind in ("histories", "levels", "bounds")
        )
        frechet = self._missing("frechet", required["frechet"])
        features = self._missing("features", ["real", *frechet] if frechet else [])
        needed = self._sets_of({**required, "frechet": features})
        sets = self._missing("sets", [*needed, self.plan.reference])
        if only:
            of = self.plan.sets
            sets = [name for name in sets if of[name].run in only]
            histories, levels, bounds = (
                [name for name in names if name in only] for names in (histories, levels, bounds)
            )
            features = []
        runs = [self.plan.sets[name].run for name in sets]
        runs += [*histories, *levels, *bounds, *([self.plan.reference] if features else [])]
        self._train([name for name in dict.fromkeys(runs) if name is not None])
        for name in histories:
            write_json(self.path("histories", name), self._history(name))
        for name in sets:
            self._part(f"generating {name}")
            self._generate(name).save(self.path("sets", name))
        self._write_features(features)
        for name in levels:
            self._part(f"noise levels of {name}")
            run = self._run(name)
            windows = self.windows(run.config.recipe.representation)
            write_json(self.path("levels", name), loss_by_level(run, windows))
        for name in bounds:
            self._part(f"variational bound of {name}")
            run = self._run(name)
            windows = self.windows(run.config.recipe.representation)
            bound = held_out_bound(run, windows, self.plan.n_bound)
            write_json(self.path("bounds", name), bound.to_json())

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
        reference = self.plan.reference
        has_reference = self.is_packaged(reference) or (
            (self.path("runs", reference) / "best.safetensors").is_file()
        )
        has_features = has_reference or (
            set(required["frechet"]) <= self.existing("features") | self.existing("frechet")
        )
        return (
            set(self._sets_of(required)) <= self._can_generate
            and has_features
            and all(
                self.is_packaged(name) or name in self.existing(kind)
                for kind in ("histories", "levels", "bounds")
                for name in required[kind]
            )
        )

    @property
    def _can_generate(self) -> set[str]:
        """The sets that are there or need no training: baselines, packaged weights."""
        packaged = {
            name
            for name, one in self.plan.sets.items()
            if one.run is not None and one.weights == "best" and self.is_packaged(one.run)
        }
        return self.existing("sets") | set(BASELINES) | packaged

    def counts(self, representation: str) -> dict[str, int]:
        """How many participants and windows there are on either side of the split."""
        windows = self.windows(representation)
        found = {}
        for side, part in {"train": windows.train, "real": windows.held_out}.items():
            found[f"n_{side}_windows"] = len(part)
            found[f"n_{side}_participants"] = len(np.unique(part.participant))
        return found

    def _sets_of(self, required: Required) -> list[str]:
        """The sets that are evaluated, or whose features are required."""
        sets = [name for one in required["evaluations"] for name in self.plan.evaluations[one]]
        return [*sets, *(name for name in required["frechet"] if name not in PARTICIPANTS)]

    def _missing(self, kind: str, names: Iterable[str]) -> list[str]:
        return [name for name in dict.fromkeys(names) if not self.path(kind, name).is_file()]

    def _part(self, name: str) -> None:
        """Announce a part; a stop that was asked for takes effect between parts."""
        self._require_no_stop()
        self.watcher.part(name)

    def _require_no_stop(self) -> None:
        if self.watcher.should_stop():
            raise StoppedError(f"stopped; all finished parts are saved in {self.folder}")

    def is_packaged(self, name: str) -> bool:
        """Whether packaged weights stand for a run."""
        is_there = self.path("runs", name).is_dir()
        return self.packaged and name in PACKAGED and not is_there

    def _run(self, name: str, weights: WeightsName = "best") -> Run:
        if self.is_packaged(name):
            return load_model(PACKAGED[name], weights, choose_device(self.device))
        return load_run(self.path("runs", name), weights, choose_device(self.device))

    def _train(self, names: Sequence[str]) -> None:
        names = [name for name in names if not self.is_packaged(name)]
        plans = {name: self.plan.runs[name] for name in names}
        due = {
            name: self.windows(self.plan.representation_of(name))
            for name, plan in plans.items()
            if len(read_metrics(self.path("runs", name))) < plan.recipe.epochs
        }
        if due:
            self._part("training " + ", ".join(due))
            n_windows = sum(len(due[name].train) * plans[name].recipe.epochs for name in due)
            with self.watcher.training(len(due), n_windows) as update:
                for name, windows in due.items():

                    def on_step(done: int, total: int, name: str = name) -> None:
                        update(name, done)

                    epochs = train_epochs(
                        windows,
                        self.path("runs", name),
                        plans[name].recipe,
                        seed=plans[name].seed,
                        device=self.device,
                        should_stop=self.watcher.should_stop,
                        on_step=on_step,
                    )
                    for _ in epochs:
                        pass
            self._require_no_stop()
        for name in names:
            folder = self.path("runs", name)
            if calibration.is_due(read_config(folder)):
                self._part(f"calibrating {name}")
                calibration.calibrate(
                    folder,
                    choose_device(self.device),
                    self.plan.n_calibration,
                    should_stop=self.watcher.should_stop,
                )

    def _history(self, name: str) -> dict[str, Any]:
        """Losses by epoch, time and device of a run."""
        if self.is_packaged(name):
            return packaged_history(name, self._run(name))
        folder = self.path("runs", name)
        config, epochs = read_config(folder), read_metrics(folder)
        best = min(epochs, key=lambda one: one["validation_loss"] or np.inf)
        timing = folder / "timing.jsonl"
        times = timing.read_text().splitlines() if timing.is_file() else None
        is_known = config.device == "cuda" and torch.cuda.is_available()
        return {
            **described_run(name, config),
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
        """The number of windows of a set."""
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
        if plan.levels is not None:
            run.network.load_state_dict(rounded(run.network.state_dict(), plan.levels))
        generator = DiffusionGenerator(
            run, steps=plan.steps, eta=plan.eta, batch_size=default_batch_size(run)
        )
        with self.watcher.generating(n) as progress:
            gaze = np.concatenate(list(generator.pieces(0, n, SET_SEED, progress)))
        made = generator.as_windows(gaze, SET_SEED)
        return replace(made, provenance={**made.provenance, "levels": plan.levels})

    def _gaze(self, name: str) -> GazeSet:
        """The windows of a set, or of participants, dequantized to the tracker's resolution."""
        position = self.windows("position")
        if name == "real":
            return GazeSet.of(name, position.held_out)
        if name == "train":
            rng = np.random.default_rng(SUBSAMPLE_SEED)
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
        rng = np.random.default_rng(SET_SEED)
        drawn = [real[drawn_windows(group, rng)] for _ in range(self.plan.n_bootstrap)]
        for name in names:
            self._part(f"Frechet Gaze Distance of {name}")
            other, group = np.load(self.path("features", name)), self._gaze(name).group
            rng = np.random.default_rng(SET_SEED + 1)
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
