"""Recipes: everything that defines a model and its training, by name.

`position` and `velocity` hold every value of the paper's hyper-parameter table. The tiny ones try
the whole way on a laptop in a minute with a small network that predicts x0, since predicting eps
needs far longer before samples stay on the screen; they are no models of gaze.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gazediffusion.diffusion import Objective, Schedule, Weighting
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.unet import UNetConfig

RepresentationName = Literal["position", "velocity"]


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained.

    flip: probability of mirroring each axis. reversal: probability of playing a window backwards.
    mixed_precision: bfloat16 arithmetic where the device has it.
    sampling_steps, eta: the default of `generate`.
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
    gradient_clip: float = 1.0
    warmup_epochs: int = 10
    mixed_precision: bool = True
    flip: float = 0.5
    reversal: float = 0.3
    ema_decay: float = 0.9999
    sampling_steps: int = 100
    eta: float = 0.0
    seeds: tuple[int, ...] = (42, 123, 2024)

    def __post_init__(self) -> None:
        for name in ("diffusion_steps", "batch_size", "epochs", "sampling_steps"):
            if getattr(self, name) < 1:
                raise GazeError(f"{name.replace('_', ' ')} must be 1 or more")
        if self.sampling_steps > self.diffusion_steps:
            raise GazeError(
                f"{self.sampling_steps} sampling steps are more than the "
                f"{self.diffusion_steps} diffusion steps"
            )

    def schedule(self) -> Schedule:
        """The noise schedule."""
        return Schedule(self.diffusion_steps, self.beta_first, self.beta_last)

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
                "seeds": tuple(values["seeds"]),
            }
        )


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
        replace(POSITION, name="position-tiny", **_TINY),
        replace(VELOCITY, name="velocity-tiny", **_TINY),
    )
}


def find_recipe(name: str) -> Recipe:
    """The recipe of that name."""
    if name not in RECIPES:
        raise GazeError(f"no recipe {name!r}", remedy=suggestion(name, list(RECIPES)))
    return RECIPES[name]
