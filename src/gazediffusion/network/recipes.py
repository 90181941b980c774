"""Recipes: everything that defines a model and its training, by name.

`position` and `velocity` hold every value of the paper's hyper-parameter table. The tiny ones run
every step on a laptop in a minute with a small network that predicts x0, since predicting eps
needs far longer before samples stay on the screen; they are not models of gaze.

`joint` goes beyond the paper: position and velocity together, continuous noise levels, and
conditioning on the task and on summary statistics of the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gazediffusion.conditioning.conditioning import N_CHANNELS
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Protocol
from gazediffusion.diffusion.ddpm import Ddpm, Objective, Schedule, Weighting
from gazediffusion.diffusion.edm import Edm
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.network.representations import ASINH_SCALE
from gazediffusion.network.unet import UNetConfig

RepresentationName = Literal["position", "velocity", "joint"]


@dataclass(frozen=True)
class Recipe:
    """A model and how it is trained.

    flip: probability of mirroring each axis. reversal: probability of playing a window backwards.
    mixed_precision: bfloat16 arithmetic where the device has it.
    optimizer: of weight matrices, convolution kernels among them; AdamW has the other parameters.
    sampling_steps, eta: the default of `generate`.
    process: ddpm takes the schedule's settings (diffusion_steps, betas, objective, weighting), edm
        those of `edm`.
    asinh_scale: of the joint representation, as a share of c_v.
    is_conditioned: the network is conditioned on the task and on augmentation labels, so that it
        learns from augmented windows without generating them.
    has_statistics: it is conditioned on summary statistics of the window too.
    condition_dropout: probability of dropping out the task, and independently the
        statistics.
    is_steerable: the network is conditioned on known samples, fixations and targets.
    has_labels: it generates the event class of every sample beside the gaze.
    distillation: steps of the distillation that follows the training of a conditioned edm model, as
        a share of the training's; 0 is none.

    >>> from dataclasses import replace
    >>> recipe = replace(RECIPES["joint"], epochs=50, learning_rate=1e-3)
    >>> recipe.representation, recipe.process, recipe.epochs
    ('joint', 'edm', 50)
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
    asinh_scale: float = ASINH_SCALE
    is_conditioned: bool = False
    has_statistics: bool = False
    condition_dropout: float = 0.0
    is_steerable: bool = False
    has_labels: bool = False
    distillation: float = 0.0

    def __post_init__(self) -> None:
        counts = ("diffusion_steps", "batch_size", "epochs", "sampling_steps")
        for name in counts:
            if getattr(self, name) < 1:
                raise GazeError(f"`{name}` must be 1 or more, not {getattr(self, name)}")
        for name in ("learning_rate", "distillation"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise GazeError(f"`{name}` must be 0 or more, not {getattr(self, name)}")
        if self.process == "ddpm" and self.sampling_steps > self.diffusion_steps:
            raise GazeError(
                f"`sampling_steps` must not exceed the {self.diffusion_steps} diffusion steps, but "
                f"is {self.sampling_steps}"
            )

    def schedule(self) -> Schedule:
        """The noise schedule of a ddpm recipe."""
        return Schedule(self.diffusion_steps, self.beta_first, self.beta_last)

    def noise(self) -> Ddpm | Edm:
        """The diffusion process: noise levels and loss."""
        if self.process == "edm":
            return self.edm
        return Ddpm(self.schedule(), self.objective, self.weighting, self.snr_gamma)

    @property
    def most_steps(self) -> int:
        """The largest number of sampling steps."""
        return self.diffusion_steps if self.process == "ddpm" else 1000

    @property
    def protocol(self) -> Protocol:
        """How windows are cut for this recipe."""
        return "velocity" if self.representation == "velocity" else "position"

    def with_condition_width(self, width: int) -> Recipe:
        """The recipe with a network that takes conditions of this width."""
        return replace(self, network=replace(self.network, condition_width=width))

    @property
    def gaze_channels(self) -> int:
        """Channels of the network that are gaze; the others are labels."""
        return self.network.channels - (len(EVENT_CLASSES) if self.has_labels else 0)

    def to_json(self) -> dict[str, Any]:
        """All settings as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Recipe:
        """Read what `to_json` wrote."""
        network = {**values["network"], "widths": tuple(values["network"]["widths"])}
        # Version 0.1.0 had these as well.
        known = {key: value for key, value in values.items() if key != "solver_steps"}
        edm = {key: value for key, value in values["edm"].items() if key != "rho"}
        return cls(
            **{
                **known,
                "network": UNetConfig(**network),
                "edm": Edm(**edm),
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
JOINT = Recipe(
    name="joint",
    representation="joint",
    network=UNetConfig(
        channels=4,
        widths=(64, 128, 256),
        kernel=3,
        patch=2,
        attention_blocks=4,
        rotary=True,
        biases=False,
    ),
    process="edm",
    edm=Edm(log_mean=-0.4, log_std=1.9, sigma_max=20.0, amplitude_weighting=1.0),
    batch_size=64,
    epochs=120,
    learning_rate=2e-3,
    weight_decay=0.0,
    optimizer="muon",
    reversal=0.0,
    ema_decay=0.9995,
    sampling_steps=15,
    is_conditioned=True,
    has_statistics=True,
    condition_dropout=0.1,
    seeds=(0, 1, 2),
    distillation=0.2,
)
STEERABLE = replace(
    JOINT,
    name="steerable",
    epochs=240,  # as many unsteered windows as JOINT has, and as many again that are steered
    network=replace(JOINT.network, channels=8, sequence_channels=N_CHANNELS),
    is_steerable=True,
    has_labels=True,
    distillation=0.1,  # as many steps as JOINT has
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
_TINY_NETWORK = UNetConfig(
    channels=4, widths=(16, 32, 64), embedding=64, attention_blocks=2, rotary=True
)
_TINY_JOINT: dict[str, Any] = {
    "epochs": 40,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "warmup_epochs": 1,
    "mixed_precision": False,
    "ema_decay": 0.98,
    "distillation": 0.0,
}
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        POSITION,
        VELOCITY,
        JOINT,
        STEERABLE,
        replace(POSITION, name="position-tiny", **_TINY),
        replace(VELOCITY, name="velocity-tiny", **_TINY),
        replace(JOINT, name="joint-tiny", network=_TINY_NETWORK, **_TINY_JOINT),
        replace(
            STEERABLE,
            name="steerable-tiny",
            network=replace(_TINY_NETWORK, channels=8, sequence_channels=N_CHANNELS),
            **_TINY_JOINT,
        ),
    )
}
"""The recipes by name. Those of the paper are `position` and `velocity`; the packaged model has
`steerable`. The tiny ones train in seconds, for tests.

>>> list(RECIPES)[:4], RECIPES["position"].epochs
(['position', 'velocity', 'joint', 'steerable'], 500)
"""


def find_recipe(name: str) -> Recipe:
    """The recipe of that name."""
    if name not in RECIPES:
        raise GazeError(f"no recipe {name!r}", remedy=suggestion(name, list(RECIPES)))
    return RECIPES[name]
