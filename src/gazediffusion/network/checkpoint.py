"""A run folder: everything a trained model is, in files that are never half-written.

config.json         recipe, seed, data, screen and schema of the conditioning
conditioning.safetensors   tables of the conditioning prior, for a model with summary statistics
best.safetensors    averaged (EMA) weights of the epoch with the lowest validation loss
distilled.safetensors   a distilled network (distilled.py), where there is one
last.safetensors    averaged weights after the latest saved step
state.safetensors   all that training needs to resume: raw and averaged weights, both moments
metrics.jsonl       one line per epoch; timing.jsonl: the seconds it took
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gazediffusion import __version__
from gazediffusion.conditioning import Conditioning
from gazediffusion.conditioning.statistics import STATISTICS
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.network.distilled import Distilled, load_distilled
from gazediffusion.network.recipes import Recipe
from gazediffusion.network.representations import Joint, Position, Velocity
from gazediffusion.network.tensors import load_tensors, save_tensors
from gazediffusion.network.unet import UNet
from gazediffusion.screen import Screen
from gazediffusion.storage import read_bytes, sha256_of, write_json

FORMAT = "gazediffusion-run"
CONFIG, TABLES = "config.json", "conditioning.safetensors"
HUB_WEIGHTS = "model.safetensors"  # the best weights in a folder of the hub (`models.hub`)
WeightsName = Literal["best", "last", "raw"]


@dataclass(frozen=True)
class RunConfig:
    """What a run was trained with and on.

    data: hash, counts and tasks of the windows files; no participant is named.
    screen: of the first windows. joint: the scales of the joint representation.
    conditioning: what the network is conditioned on.
    initialised_from: SHA-256 of the weights that training was initialised from; None for random.
    """

    recipe: Recipe
    seed: int
    length: int
    rate_hz: float
    screen: Screen
    velocity_scale: float | None
    grid_px: float | None
    precision: str
    device: str
    data: Mapping[str, Any]
    gazediffusion_version: str = __version__
    torch_version: str = torch.__version__
    joint: Joint | None = None
    conditioning: Conditioning = field(default_factory=Conditioning)
    initialised_from: str | None = None

    @classmethod
    def of(
        cls,
        parts: Sequence[Windows],
        recipe: Recipe,
        seed: int,
        precision: str,
        device: str,
    ) -> RunConfig:
        """The configuration of training `recipe` on the windows files `parts`."""
        first = parts[0]
        conditioning = Conditioning()
        if recipe.is_conditioned:
            conditioning = Conditioning.fit(
                parts, STATISTICS if recipe.has_statistics else (), recipe.is_steerable
            )
        is_joint = recipe.representation == "joint"
        return cls(
            recipe=recipe.with_condition_width(conditioning.width),
            seed=seed,
            length=first.length,
            rate_hz=first.rate_hz,
            screen=first.screens[0],
            velocity_scale=first.velocity_scale,
            grid_px=first.grid_px,
            precision=precision,
            device=device,
            data=_described(parts),
            joint=Joint.fit(parts, recipe.asinh_scale) if is_joint else None,
            conditioning=conditioning,
        )

    @property
    def representation(self) -> Position | Velocity | Joint:
        """How network tensors and gaze belong together."""
        if self.recipe.representation == "position":
            return Position()
        if self.recipe.representation == "joint":
            if self.joint is None:
                raise GazeError("the run does not have the scales of its representation")
            return self.joint
        if self.velocity_scale is None:
            raise GazeError("the run does not have its velocity scale")
        return Velocity(self.velocity_scale, self.rate_hz)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, but for the tables of the conditioning prior."""
        return {
            "format": FORMAT,
            **vars(self),
            "data": dict(self.data),
            "recipe": self.recipe.to_json(),
            "screen": asdict(self.screen),
            "joint": self.joint.to_json() if self.joint else None,
            "conditioning": self.conditioning.to_json(),
        }

    @classmethod
    def from_json(
        cls, values: Mapping[str, Any], tables: Mapping[str, Tensor] | None = None
    ) -> RunConfig:
        """Read what `to_json` wrote; tables: of the prior."""
        # The hash is a packaged model's; runs of version 0.1.0 had a fitted solver.
        others = ("format", "weights_sha256", "solver")
        plain = {key: value for key, value in values.items() if key not in others}
        plain["recipe"] = Recipe.from_json(plain["recipe"])
        plain["screen"] = Screen(**plain["screen"])
        plain["joint"] = Joint.from_json(plain["joint"]) if plain.get("joint") else None
        plain["conditioning"] = Conditioning.from_json(plain["conditioning"], tables)
        return cls(**plain)


def _described(parts: Sequence[Windows]) -> dict[str, Any]:
    hashes = [part.provenance.get("data_sha256") for part in parts]
    joined = hashlib.sha256(" ".join(map(str, hashes)).encode()).hexdigest()
    return {
        "sha256": hashes[0] if len(hashes) == 1 else joined,
        "tasks": list(dict.fromkeys(task for part in parts for task in part.tasks)),
        "n_participants": sum(len(part.participants) for part in parts),
        "n_held_out_participants": sum(len(part.validation) for part in parts),
        "n_windows": sum(len(part.train) for part in parts),
        "n_held_out_windows": sum(len(part.held_out) for part in parts),
        "sources": [
            source["name"] for part in parts for source in part.provenance.get("sources", [])[:20]
        ],
    }


@dataclass(frozen=True)
class Run:
    """A run folder opened for generating: its configuration and one set of weights."""

    path: Path
    config: RunConfig
    network: UNet
    weights: WeightsName
    weights_sha256: str
    epoch: int
    validation_loss: float | None
    distilled: Distilled | None = None

    def to(self, device: torch.device | str) -> Run:
        """The same with copies of its networks on a device."""
        distilled = None if self.distilled is None else self.distilled.to(device)
        network = copy.deepcopy(self.network).to(device)
        return replace(self, network=network, distilled=distilled)

    def describe(self) -> dict[str, Any]:
        """What a card says of the model."""
        return {
            "recipe": self.config.recipe.name,
            "training_seed": self.config.seed,
            "weights": self.weights,
            "weights_sha256": self.weights_sha256,
            "epoch": self.epoch,
            "validation_loss": self.validation_loss,
            "trained_on": dict(self.config.data),
        }

    def with_distilled(self) -> Run:
        """The run with the distilled network in the model's place.

        Only samplers may use it: labels and scores are the model's own.
        """
        distilled = self.distilled
        assert distilled is not None
        config = replace(self.config, conditioning=distilled.conditioning)
        return replace(self, network=distilled.network, config=config, distilled=None)


def read_config(folder: Path) -> RunConfig:
    """The configuration of a run folder."""
    path = Path(folder) / CONFIG
    if not Path(folder).is_dir() or not path.is_file():
        raise GazeError(
            "this is no run folder", path=folder, remedy="make one with gazediffusion train"
        )
    try:
        values = json.loads(read_bytes(path))
        if values.get("format") != FORMAT:
            raise GazeError("this is no configuration of a gazediffusion run", path=path)
        if "conditioning" not in values:
            raise GazeError(
                "the run is of a development version, which is no longer read",
                path=path,
                remedy="train it again with gazediffusion train",
            )
        return config_from(values, Path(folder))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GazeError(f"the configuration is damaged ({error})", path=path) from error


def config_from(values: Mapping[str, Any], folder: Path) -> RunConfig:
    """The configuration in these plain values, with the prior's tables of the folder."""
    has_tables = (folder / TABLES).is_file()
    return RunConfig.from_json(values, load_tensors(folder / TABLES)[0] if has_tables else None)


def write_config(folder: Path, config: RunConfig, **more: Any) -> None:
    """Write a configuration and the tables of its conditioning prior, which calibration changes."""
    if tables := config.conditioning.to_tensors():
        save_tensors(folder / TABLES, tables, {"schema": config.conditioning.to_json()["schema"]})
    write_json(folder / CONFIG, {**config.to_json(), **more})


def changed_settings(there: RunConfig, here: RunConfig) -> list[str]:
    """The settings of a run that differ, as `epochs: 2 in the folder, 3 requested`."""

    def settings(config: RunConfig) -> dict[str, Any]:
        # As written, where a tuple is a list.
        plain = json.loads(json.dumps(config.to_json()))
        recipe = plain["recipe"]
        flat = {key: value for key, value in recipe.items() if not isinstance(value, dict)}
        flat.pop("distillation")  # follows the training
        for group in ("network", "edm", "data"):
            flat |= {
                f"{group} {key}": value
                for key, value in (recipe | plain)[group].items()
                if key != "sources"
            }
        others = ("seed", "precision", "device", "initialised_from")
        return flat | {key: plain[key] for key in others}

    old, new = settings(there), settings(here)
    return [
        f"{key.replace('_', ' ')}: {old.get(key)} in the folder, {new.get(key)} asked for"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics.jsonl, one per epoch done."""
    path = Path(folder) / "metrics.jsonl"
    try:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    except ValueError as error:
        raise GazeError(f"the metrics are damaged ({error})", path=path) from error


def load_run(
    folder: Path | str, weights: WeightsName = "best", device: torch.device | str = "cpu"
) -> Run:
    """Open a run folder: the network with the best, last or raw (not averaged) weights."""
    folder = Path(folder)
    config = read_config(folder)
    path = folder / ("state.safetensors" if weights == "raw" else f"{weights}.safetensors")
    if weights == "best" and not path.is_file() and (folder / HUB_WEIGHTS).is_file():
        path = folder / HUB_WEIGHTS
    if not path.is_file():
        raise GazeError(
            f"the run has no {weights} weights yet", path=folder, remedy="train it further"
        )
    tensors, header = load_tensors(path)
    if weights == "raw":
        tensors = with_prefix(tensors, "net.")
    return run_of(folder, config, weights, path, tensors, header, device)


def run_of(
    folder: Path,
    config: RunConfig,
    weights: WeightsName,
    path: Path,
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
    device: torch.device | str,
) -> Run:
    """The run whose weights, read from `path`, are these tensors."""
    network = UNet(config.recipe.network)
    load_weights(network, tensors, path)
    distilled = None
    if weights == "best":
        distilled = load_distilled(folder, network, config.conditioning, device)
    return Run(
        path=folder,
        config=config,
        network=network.to(device).eval().requires_grad_(False),
        weights=weights,
        weights_sha256=sha256_of(path),
        epoch=int(header.get("epoch", 0)),
        validation_loss=header.get("validation_loss"),
        distilled=distilled,
    )


def load_weights(network: UNet, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put tensors into a network; names and shapes must be the network's own."""
    own = network.state_dict()
    foreign = sorted(set(tensors) ^ set(own))
    if foreign:
        raise GazeError(f"the weights are of another network ({foreign[0]})", path=path)
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise GazeError(f"the weights are of another network ({name})", path=path)
    network.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})


def with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
