"""The plan of a reproduction: which runs, which sets of windows, which comparisons.

PAPER is the paper's protocol with every seed and ablation; TINY is the same graph with networks
that train in seconds. A plan only names things; build.py builds what is missing, and `Artefacts`
is what tables, figures and page are made from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gazediffusion.diffusion.ddpm import Objective
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import WeightsName
from gazediffusion.network.recipes import JOINT, POSITION, RECIPES, VELOCITY, Recipe
from gazediffusion.network.unet import UNetConfig
from gazediffusion.training.calibration import WINDOWS

BASELINES = ("kinematic-markov", "positional-markov", "uniform", "gaussian")
STEPS = (10, 25, 50, 100, 200)
ETAS = (0.0, 0.2, 0.5, 1.0)
# Kind (evaluations, frechet, histories) -> names of the artefacts required.
Required = Mapping[str, list[str]]


@dataclass(frozen=True)
class RunPlan:
    """A network to be trained."""

    recipe: Recipe
    seed: int


@dataclass(frozen=True)
class SetPlan:
    """Windows to be generated: by a run and its sampler or, without a run, by the baseline `name`.

    steps, eta: None is the recipe's own.
    """

    name: str
    run: str | None = None
    weights: WeightsName = "best"
    steps: int | None = None
    eta: float | None = None


@dataclass(frozen=True)
class Plan:
    """All that is built.

    joint: the recipe that goes beyond the paper, trained on the position model's windows; None
    leaves it out.
    reference_seed: whose position run is the paper's "single reference run", on which the
    ablations are done and whose bottleneck gives the features of the Frechet Gaze Distance. The
    paper does not say which of its seeds that is; by loss and FGD it is not 123. The first seed
    that the paper lists is taken.
    n_calibration: windows of each round that calibrates the joint model.
    n_windows: windows of a set; None is as many as there are of held-out participants.
    seconds: length of a window.
    """

    position: Recipe = POSITION
    velocity: Recipe = VELOCITY
    joint: Recipe | None = JOINT
    reference_seed: int = 42
    n_bootstrap: int = 200
    n_calibration: int = WINDOWS
    n_windows: int | None = None
    seconds: float = 8.0
    name: str = "paper"

    @property
    def reference(self) -> str:
        """The reference run's name, and that of the set it generates."""
        return f"position-{self.reference_seed}"

    @property
    def position_sets(self) -> list[str]:
        """One set for each seed of the position model, named as its run."""
        return [f"position-{seed}" for seed in self.position.seeds]

    @property
    def velocity_sets(self) -> list[str]:
        """One set for each seed of the velocity model, named as its run."""
        return [f"velocity-{seed}" for seed in self.velocity.seeds]

    @property
    def joint_sets(self) -> dict[str, str]:
        """The sets of the joint model by evaluation, position and velocity; the first is a run."""
        names = {"position": "joint-0", "velocity": "velocity-joint"}
        return {} if self.joint is None else names

    @property
    def x0(self) -> str:
        """The run that predicts x0 instead of eps, all else as the reference run."""
        return f"x0-{self.reference_seed}"

    @property
    def raw(self) -> str:
        """The set of the last seed's weights after the last epoch, not averaged."""
        return f"{self.position_sets[-1]}-raw"

    @property
    def last(self) -> str:
        """The set of averaged weights of the same run and epoch as those of `raw`."""
        return f"{self.position_sets[-1]}-last"

    def with_steps(self, steps: int) -> str:
        """The reference run's set at this many DDIM steps."""
        same = steps == self.position.sampling_steps
        return self.reference if same else f"{self.reference}-steps-{steps}"

    def with_eta(self, eta: float) -> str:
        """The reference run's set at this eta."""
        return self.reference if eta == self.position.eta else f"{self.reference}-eta-{eta:g}"

    @property
    def runs(self) -> dict[str, RunPlan]:
        """Every network, by name."""
        other: Objective = "x0" if self.position.objective == "eps" else "eps"
        ablation = replace(self.position, name=f"{self.position.name}-{other}", objective=other)
        return {
            **{f"position-{seed}": RunPlan(self.position, seed) for seed in self.position.seeds},
            self.x0: RunPlan(ablation, self.reference_seed),
            **{f"velocity-{seed}": RunPlan(self.velocity, seed) for seed in self.velocity.seeds},
            **({} if self.joint is None else {"joint-0": RunPlan(self.joint, 0)}),
        }

    @property
    def sets(self) -> dict[str, SetPlan]:
        """Every set of windows, by name."""
        reference, last = self.reference, self.position_sets[-1]
        plans = [
            *(SetPlan(self.with_steps(n), reference, steps=n) for n in STEPS),
            *(SetPlan(self.with_eta(eta), reference, eta=eta) for eta in ETAS),
            SetPlan(self.raw, last, weights="raw"),
            SetPlan(self.last, last, weights="last"),
            *(SetPlan(name) for name in BASELINES),
            *(SetPlan(name, "joint-0") for name in self.joint_sets.values()),
            # Last, since the reference run's own settings are those of some ablations.
            *(SetPlan(name, name) for name in self.runs),
        ]
        return {plan.name: plan for plan in plans}

    @property
    def evaluations(self) -> dict[str, list[str]]:
        """The sets that one evaluation compares with the held-out participants."""
        ablations = [*map(self.with_steps, STEPS), *map(self.with_eta, ETAS)]
        ablations += [self.raw, self.last, self.x0]
        joint = self.joint_sets
        return {
            "position": [*self.position_sets, *BASELINES, *([joint["position"]] if joint else [])],
            "sampling": list(dict.fromkeys(ablations)),
            "velocity": [*self.velocity_sets, *([joint["velocity"]] if joint else [])],
        }

    def named(self, groups: Iterable[str]) -> list[str]:
        """The names of runs or sets in groups."""
        of = {
            "position": self.position_sets,
            "velocity": self.velocity_sets,
            "baselines": list(BASELINES),
            "joint": [self.joint_sets["position"]] if self.joint_sets else [],
            "first": [self.reference, self.velocity_sets[0]],
            "objectives": [self.reference, self.x0],
            "all": list(self.runs),
        }
        return [name for group in groups for name in of[group]]

    def representation_of(self, name: str) -> Literal["position", "velocity"]:
        """The windows that a set or an evaluation is compared with."""
        return "velocity" if name.startswith("velocity") else "position"

    def with_seeds(self, names: Collection[str]) -> Plan:
        """The plan of those seeds alone whose sets, or runs, are among the names."""
        position = tuple(s for s in self.position.seeds if f"position-{s}" in names)
        velocity = tuple(s for s in self.velocity.seeds if f"velocity-{s}" in names)
        if not position or not velocity:
            raise GazeError("no seed of one of the models has been trained and sampled yet")
        is_there = self.reference_seed in position
        has_joint = set(self.joint_sets.values()) <= set(names)
        return replace(
            self,
            joint=self.joint if has_joint else None,
            position=replace(self.position, seeds=position),
            velocity=replace(self.velocity, seeds=velocity),
            reference_seed=self.reference_seed if is_there else position[0],
        )

    def to_json(self) -> dict[str, Any]:
        """All settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Plan:
        """Read what `to_json` wrote; settings that a plan no longer has are left out."""
        recipes = {
            name: Recipe.from_json(values[name]) if values.get(name) else None
            for name in ("position", "velocity", "joint")
        }
        known = {one.name: values[one.name] for one in fields(cls) if one.name in values}
        return cls(**{**known, **recipes})

    def differences(self, other: Plan) -> list[str]:
        """The settings in which another plan differs, with its value and this one's.

        The settings of EDM count for the joint model alone: those of the paper are DDPMs.
        """
        here, there = (dict(_flat(plan.to_json())) for plan in (self, other))
        return [
            f"{name}: {there.get(name)} there, {value} here"
            for name, value in here.items()
            if there.get(name) != value and (".edm." not in name or name.startswith("joint"))
        ]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings as "position.network.widths" and its value."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@dataclass(frozen=True, eq=False)
class Artefacts:
    """Everything that is there; a part that was not required is not among the keys.

    evaluations: by name, the results of `evaluation.evaluate` in plain values.
    frechet: by set, and of "train" (as many windows of the training participants), the Frechet
        Gaze Distance to the held-out participants with its bootstrap replicates.
    histories: by run, losses by epoch, time, device.
    shown: a few windows (window, 2, time) of normalized gaze by set, for the figures.
    about: data, screen, numbers of participants and windows, versions, command.
    """

    plan: Plan
    evaluations: Mapping[str, Mapping[str, Any]]
    frechet: Mapping[str, Mapping[str, Any]]
    histories: Mapping[str, Mapping[str, Any]]
    shown: Mapping[str, NDArray[np.float32]]
    about: Mapping[str, Any]

    def has(self, required: Required) -> bool:
        """Whether all that is required is there."""
        return all(set(names) <= set(getattr(self, kind)) for kind, names in required.items())


PAPER = Plan()
_SMALL: dict[str, Any] = {"network": UNetConfig(widths=(8, 8, 8), embedding=16), "epochs": 2}
TINY = Plan(
    position=replace(RECIPES["position-tiny"], sampling_steps=100, **_SMALL),
    velocity=replace(RECIPES["velocity-tiny"], **_SMALL),
    joint=replace(
        RECIPES["joint-tiny"],
        network=UNetConfig(channels=4, widths=(8, 8, 8), embedding=16, rotary=True),
        epochs=2,
    ),
    n_bootstrap=20,
    n_calibration=3,
    n_windows=5,
    seconds=4.0,
    name="tiny",
)
