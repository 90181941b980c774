"""Recipes: everything that defines a model and its training, by name.

`position` and `velocity` hold every value of the paper's hyper-parameter table. The tiny ones try
the whole way on a laptop in a minute with a small network that predicts x0, since predicting eps
needs far longer before samples stay on the screen; they are no models of gaze.

`joint` goes beyond the paper: position and velocity together, continuous noise levels, and a
network that is told the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from gazediffusion.conditioning.manner import NAMES
from gazediffusion.data.windows import Protocol
from gazediffusion.diffusion.ddpm import Ddpm, Objective, Schedule, Weighting
from gazediffusion.diffusion.edm import Edm
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.models.representations import KNEE
from gazediffusion.models.unet import UNetConfig

RepresentationName = Literal["position", "velocity", "joint"]
# Numbers told to a conditioned network beside the task: whether x, y, time were turned round.
TURNS = 3


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained.

    flip: probability of mirroring each axis. reversal: probability of playing a window backwards.
    mixed_precision: bfloat16 arithmetic where the device has it.
    optimizer: of matrices, kernels among them; all else is AdamW's.
    sampling_steps, eta: the default of `generate`.
    process: ddpm takes the schedule's settings (diffusion_steps, betas, objective, weighting), edm
        those of `edm`.
    knee_share: of the joint representation.
    is_conditioned: the network is told the task, and whether a window was mirrored or reversed, so
        that it learns from turned windows without making them.
    is_told_manner: the network is told the manner of a window too (see manner.py).
    condition_dropout: share of windows whose task is not told, for the mixture and for guidance;
        and of those, drawn apart, whose manner is not.
    """

    name: str
    representation: RepresentationName
    network: UNetConfig = field(default_factory=UNetConfig)
    diffusion_steps: int = 1000
    beta_first: float = 1e-4
    beta_last: float = 2e-2
    objective: Objective = "eps"
    weighting: Weighting = "standard"
    snr_gamma: float = 5.0
    batch_size: int = 8
    epochs: int = 500
    learning_rate: float = 1e-4
    weight_decay: float = 1e-4
    optimizer: Literal["adamw", "muon"] = "adamw"
    gradient_clip: float = 1.0
    warmup_epochs: int = 10
    mixed_precision: bool = True
    flip: float = 0.5
    reversal: float = 0.3
    ema_decay: float = 0.9999
    sampling_steps: int = 100
    eta: float = 0.0
    seeds: tuple[int, ...] = (42, 123, 2024)
    process: Literal["ddpm", "edm"] = "ddpm"
    edm: Edm = field(default_factory=Edm)
    knee_share: float = KNEE
    is_conditioned: bool = False
    is_told_manner: bool = False
    condition_dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("diffusion_steps", "batch_size", "epochs", "sampling_steps"):
            if getattr(self, name) < 1:
                raise GazeError(f"{name.replace('_', ' ')} must be 1 or more")
        if not 0 <= self.learning_rate < float("inf"):
            raise GazeError("learning rate must be 0 or more")
        if self.process == "ddpm" and self.sampling_steps > self.diffusion_steps:
            raise GazeError(
                f"{self.sampling_steps} sampling steps are more than the "
                f"{self.diffusion_steps} diffusion steps"
            )

    def schedule(self) -> Schedule:
        """The noise schedule of a ddpm recipe."""
        return Schedule(self.diffusion_steps, self.beta_first, self.beta_last)

    def noise(self) -> Ddpm | Edm:
        """The process: how noise is drawn and what is lost."""
        if self.process == "edm":
            return self.edm
        return Ddpm(self.schedule(), self.objective, self.weighting, self.snr_gamma)

    @property
    def most_steps(self) -> int:
        """Sampling steps beyond which there are none."""
        return self.diffusion_steps if self.process == "ddpm" else 1000

    @property
    def protocol(self) -> Protocol:
        """How windows are cut for this recipe."""
        return "velocity" if self.representation == "velocity" else "position"

    def for_tasks(self, n_tasks: int) -> Recipe:
        """The recipe with a network that can be told so many tasks, if it is to be told any."""
        if not self.is_conditioned:
            return self
        n_told = n_tasks + TURNS + (len(NAMES) + 1 if self.is_told_manner else 0)
        return replace(self, network=replace(self.network, conditions=n_told))

    def to_json(self) -> dict[str, Any]:
        """All settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Recipe:
        """Read what `to_json` wrote."""
        network = {**values["network"], "widths": tuple(values["network"]["widths"])}
        return cls(
            **{
                **values,
                "network": UNetConfig(**network),
                "edm": Edm(**values.get("edm", {})),
                "seeds": tuple(values["seeds"]),
            }
        )


def conditions(
    tasks: Tensor,
    turns: Tensor | None = None,
    manner: Tensor | None = None,
    is_told: Tensor | None = None,
) -> Tensor:
    """What a conditioned network is told, (batch, conditions).

    tasks (batch, tasks): which one, or zeros. turns (batch, 3): which were made, none if left out.
    manner (batch, number): of a network that is told one; is_told (batch, 1): of which windows, all
    if left out.
    """
    turns = tasks.new_zeros(len(tasks), TURNS) if turns is None else turns.to(tasks)
    if manner is None:
        return torch.cat([tasks, turns], dim=1)
    is_told = tasks.new_ones(len(tasks), 1) if is_told is None else is_told.to(tasks)
    return torch.cat([tasks, turns, manner * is_told, is_told], dim=1)


POSITION = Recipe(name="position", representation="position")
VELOCITY = Recipe(
    name="velocity",
    representation="velocity",
    weighting="min-snr",
    batch_size=16,
    mixed_precision=False,
    flip=0.0,
    reversal=0.0,
    ema_decay=0.999,
    sampling_steps=50,
    seeds=(0, 1, 2),
)
JOINT = Recipe(
    name="joint",
    representation="joint",
    network=UNetConfig(
        channels=4,
        widths=(64, 128, 256),
        kernel=3,
        patch=2,
        attentions=4,
        rotary=True,
        biases=False,
    ),
    process="edm",
    edm=Edm(log_mean=-0.4, log_std=1.9, sigma_max=20.0, emphasis=1.0),
    batch_size=64,
    epochs=120,
    learning_rate=2e-3,
    weight_decay=0.0,
    optimizer="muon",
    reversal=0.0,
    ema_decay=0.9995,
    sampling_steps=15,
    is_conditioned=True,
    is_told_manner=True,
    condition_dropout=0.1,
    seeds=(0, 1, 2),
)
_TINY: dict[str, Any] = {
    "network": UNetConfig(widths=(16, 32, 64), embedding=64),
    "objective": "x0",
    "weighting": "min-snr",
    "epochs": 40,
    "learning_rate": 1e-3,
    "warmup_epochs": 1,
    "mixed_precision": False,
    "ema_decay": 0.98,
    "sampling_steps": 50,
}
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        POSITION,
        VELOCITY,
        JOINT,
        replace(POSITION, name="position-tiny", **_TINY),
        replace(VELOCITY, name="velocity-tiny", **_TINY),
        replace(
            JOINT,
            name="joint-tiny",
            network=UNetConfig(
                channels=4, widths=(16, 32, 64), embedding=64, attentions=2, rotary=True
            ),
            epochs=40,
            batch_size=16,
            learning_rate=1e-3,
            warmup_epochs=1,
            mixed_precision=False,
            ema_decay=0.98,
        ),
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name."""
    if name not in RECIPES:
        raise GazeError(f"no recipe {name!r}", remedy=suggestion(name, list(RECIPES)))
    return RECIPES[name]
